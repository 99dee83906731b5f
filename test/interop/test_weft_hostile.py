"""`weft wg` and those who mean it ill: floods, malformed datagrams, a configuration socket that is
misused, sudden death, clocks that jump.

    u (weft wg) ──┐
    v (weft wg) ──┼── [ s ]
    x (a stranger)┘
"""

from __future__ import annotations

import base64
import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from lab import Daemon, Host, Lab, wait_for
from lab.support.topologies import one_switch

from .traffic import drops, flood
from .wgpeer import WgPeer
from .wire import DATA, INITIATION, Capture, inject, socket_in

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("s", "192.0.2", {"u": 1, "v": 2, "x": 3})

U, PORT = "192.0.2.1", 51820
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
DAY_S = 86400

# The bound for two idle peers.
IDLE_KIB = 10 << 10
LOADED_KIB = 16 << 10


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.from_text(TOPOLOGY) as a_lab:
        yield a_lab


class Pair:
    """Two ends that know each other; `u` is the one under attack."""

    def __init__(self, lab: Lab, program: Path, stack: ExitStack, env: dict | None = None) -> None:
        self.lab, self.program = lab, program
        self.u = self._make(stack, "u", ["10.7.0.1/24", "fd07::1/64"], env)
        self.v = self._make(stack, "v", ["10.7.0.2/24", "fd07::2/64"], None)
        self.u.add_peer(self.v, endpoint=True)
        self.v.add_peer(self.u, endpoint=True)

    def _make(self, stack, name, addresses, env) -> WgPeer:
        end = WgPeer.userspace(self.lab.host(name), [self.program, "wg"], env=env)
        stack.callback(end.remove)
        end.configure(addresses)
        return end

    def dropped(self) -> dict[str, int]:
        return drops(self.u, self.program)


@pytest.fixture
def pair(lab: Lab, weft: Path) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(lab, weft, stack)


def is_sanitized(program: Path) -> bool:
    """Is it an ASan or TSan build, whose memory says nothing?"""
    code = program.read_bytes()
    return b"__asan_init" in code or b"__tsan_init" in code


def rss_kib(daemon: Daemon) -> int:
    """Its resident memory."""
    status = Path(f"/proc/{daemon.pid}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0])


def cpu_s(daemon: Daemon) -> float:
    """Processor time that it has used so far."""
    stat = Path(f"/proc/{daemon.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def wait_idle(daemon: Daemon) -> None:
    """Wait until half a second costs it next to nothing."""
    def is_idle() -> bool:
        before = cpu_s(daemon)
        time.sleep(0.5)  # the length of the measurement
        return cpu_s(daemon) - before <= 0.02

    wait_for(is_idle, 15, f"{daemon.name} to be idle")


# ---- datagrams ----


def test_traffic_goes_on_under_garbage(pair):
    pair.u.ping(pair.v)
    wait_idle(pair.u.daemon)
    before = rss_kib(pair.u.daemon)
    sender = flood(pair.lab.host("x"), "garbage", U, PORT)
    sender.wait_line("^ready")
    wait_for(lambda: pair.dropped()["unknown-index"] > 20_000, 60, "a lot of garbage to be seen")
    for _ in range(5):
        pair.v.ping(pair.u, size=1300)
    under_load = rss_kib(pair.u.daemon)
    sender.stop()
    print(f"resident: idle {before} KiB, under garbage {under_load} KiB")
    if not is_sanitized(pair.program):
        assert under_load < LOADED_KIB
    counted = pair.dropped()
    for reason in ("unknown-type", "mac1-invalid", "unknown-index"):
        assert counted[reason] > 0, reason
    wait_idle(pair.u.daemon)
    pair.u.ping(pair.v, 6)
    assert pair.u.daemon.running


def test_datagrams_longer_than_any_message(pair):
    pair.u.ping(pair.v)
    with Capture(pair.lab.host("u"), "s", PORT) as capture:
        pair.v.ping(pair.u)
        good = capture.messages(DATA, is_outgoing=False)[0].payload
    with socket_in(pair.lab.host("x"), socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(good[:16] + bytes(60_000), (U, PORT))
    wait_for(lambda: pair.dropped()["tag-invalid"] == 1, 10, "weft to refuse it")
    pair.v.ping(pair.u)


def test_packets_longer_than_any_datagram(pair):
    """The interface takes them, a datagram does not: their sender is told what one carries."""
    for end in (pair.u, pair.v):
        end.machine.run(["ip", "link", "set", "wg0", "mtu", 65535])
    pair.u.ping(pair.v)
    longest = 65472  # in 65,507 bytes, with padding, header and tag
    argv = ["ping", "-c", 1, "-W", 2, "-M", "do"]
    for size in (65535, 65504, 65490, longest + 1):
        said = pair.u.machine.run([*argv, "-s", size - 28, "10.7.0.2"], check=False).out
        assert f"mtu = {longest}" in said, said
        pair.u.machine.run(["ip", "route", "flush", "cache"])
    assert pair.dropped()["too-big"] == 4
    pair.u.ping(pair.v, size=longest - 28)


def test_an_idle_pair_is_small(pair, weft):
    if is_sanitized(weft):
        pytest.skip("a sanitizer's memory is not weft's")
    pair.u.set("peer", "A" * 42 + "E=", "allowed-ips", "10.7.0.3/32")
    pair.u.ping(pair.v)
    wait_idle(pair.u.daemon)
    resident = rss_kib(pair.u.daemon)
    print(f"resident with two peers: {resident} KiB")
    assert resident < IDLE_KIB


# ---- the configuration socket ----


class Uapi:
    """A raw connection to the configuration socket of `end`."""

    def __init__(self, end: WgPeer) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The host's own /run, seen from outside.
        self.socket.connect(f"/proc/{end.daemon.pid}/root/run/wireguard/wg0.sock")
        self.socket.settimeout(60)

    def ask(self, request: bytes) -> bytes:
        self.socket.sendall(request)
        answer = b""
        while not answer.endswith(b"\n\n"):
            received = self.socket.recv(1 << 16)
            if not received:
                break
            answer += received
        return answer

    def __enter__(self) -> Uapi:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def test_connections_that_say_nothing_keep_nobody_out(pair):
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(Uapi(pair.u)).socket.sendall(b"set=1\nprivate_")
        assert b"errno=0\n\n" in stack.enter_context(Uapi(pair.u)).ask(b"get=1\n\n")
        pair.u.ping(pair.v)
        pair.u.machine.run(["wg", "show", "wg0"])
    wait_idle(pair.u.daemon)


def test_lines_without_end_and_binary_requests(pair):
    before = rss_kib(pair.u.daemon)
    errors = {
        b"set=1\n" + b"a" * (1 << 20) + b"\n\n": b"errno=-90\n\n",
        b"b" * (1 << 20) + b"\n\n": b"errno=-90\n\n",
        b"set=1\nprivate_key=\0\xff\n\n": b"errno=-90\n\n",
        b"\xff\xfe\x80=1\n\n": b"errno=-22\n\n",
        b"get=1\nset=1\n\n": b"errno=-22\n\n",
        b"set=1\nlisten_port=65536\n\n": b"errno=-22\n\n",
        b"set=1\npublic_key=00\n\n": b"errno=-22\n\n",
    }
    for request, expected in errors.items():
        with Uapi(pair.u) as uapi:
            assert uapi.ask(request) == expected, request[:40]
            # The connection is still good.
            assert uapi.ask(b"get=1\n\n").endswith(b"errno=0\n\n")
    with Uapi(pair.u) as uapi:
        uapi.socket.sendall(random.Random(2).randbytes(1 << 20))
    pair.u.ping(pair.v)
    assert pair.u.port() == PORT
    if not is_sanitized(pair.program):
        assert rss_kib(pair.u.daemon) < before + 2048


def test_65536_peers(pair, tmp_path):
    lines = ["[Interface]", f"PrivateKey = {pair.u.private_key}", f"ListenPort = {PORT}"]
    rng = random.Random(3)
    for i in range(65535):
        key = base64.b64encode(rng.randbytes(32)).decode()
        lines += ["[Peer]", f"PublicKey = {key}", f"AllowedIPs = 10.64.{i >> 8}.{i & 255}/32"]
    lines += ["[Peer]", f"PublicKey = {pair.v.public_key}", "AllowedIPs = 10.7.0.2/32"]
    file = tmp_path / "wg0.conf"
    file.write_text("\n".join(lines) + "\n")
    began = time.monotonic()
    pair.u.machine.run(["wg", "setconf", "wg0", file], timeout_s=120)
    took = time.monotonic() - began
    shown = pair.u.machine.run(["wg", "show", "wg0", "peers"], quiet=True).out
    assert len(shown.splitlines()) == 65536
    print(f"65,536 peers: set in {took:.1f} s, {rss_kib(pair.u.daemon)} KiB resident")
    pair.v.ping(pair.u)
    refused = pair.u.machine.run(["wg", "set", "wg0", "peer", "B" * 42 + "A="], check=False)
    assert refused.rc != 0
    check_answers_wait(pair)


def check_answers_wait(pair):
    """Many long answers are asked for at once, and not read: one at a time is kept."""
    with Uapi(pair.u) as reader, Uapi(pair.u) as other:
        length = len(reader.ask(b"get=1\n\n"))
        before = rss_kib(pair.u.daemon)
        reader.socket.sendall(8 * b"get=1\n\n")
        assert other.ask(b"set=1\n\n") == b"errno=0\n\n"
        if not is_sanitized(pair.program):
            assert rss_kib(pair.u.daemon) < before + 3 * length // 1024
        left = 8 * length
        while left > length // 2:  # counters and ages in it may have changed their width
            left -= len(reader.socket.recv(1 << 20))


# ---- sudden death ----


def test_killed_and_started_again(pair, weft):
    pair.u.ping(pair.v)
    config = pair.u.machine.run(["wg", "showconf", "wg0"]).out
    pair.u.daemon.kill9()
    socket_file = Path(f"/proc/{pair.lab.host('u').namespace.pid}/root/run/wireguard/wg0.sock")
    assert socket_file.exists()
    again = WgPeer.userspace(pair.lab.host("u"), [weft, "wg"])
    try:
        again.addresses = pair.u.addresses
        again.machine.run(["wg", "setconf", "wg0", "/dev/stdin"], stdin=config)
        for address in again.addresses:
            again.machine.run(["ip", "address", "add", address, "dev", "wg0"])
        again.machine.run(["ip", "link", "set", "wg0", "up"])
        again.ping(pair.v)
        pair.v.ping(again)
    finally:
        again.remove()


# ---- clocks that jump ----


class Clock:
    """A clock that can be moved under a running weft; both kinds of time, or only the date."""

    # On the machine's own /run, which the program may read after it has given up other files.
    FILE = "/run/clock"

    def __init__(self, host: Host, *, only_date: bool) -> None:
        if not FAKETIME.exists():
            pytest.skip(f"clocks that jump need {FAKETIME} (package faketime)")
        self._host = host
        self.env = {
            "LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": self.FILE,
            "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1" if only_date else "0",
            # The sanitizer's library may come second.
            "ASAN_OPTIONS": "verify_asan_link_order=0:abort_on_error=1"}
        self.move(0)

    def move(self, seconds: int) -> None:
        self._host.run(["sh", "-c", f"cat > {self.FILE}.new && mv {self.FILE}.new {self.FILE}"],
                       stdin=f"{seconds:+d}\n", quiet=True)


def _renew_session(pair: Pair) -> None:
    """Have `u` forget its session and begin another one."""
    with Capture(pair.lab.host("u"), "s", PORT) as capture:
        # The same key again: that ends all sessions, and what was sent to whom is remembered.
        pair.u.set("private-key", "/dev/stdin", stdin=pair.u.private_key)
        pair.u.ping(pair.v)
        assert capture.messages(INITIATION, is_outgoing=True)
        assert not capture.messages(INITIATION, is_outgoing=False)


@pytest.mark.parametrize("jump_s", [-DAY_S, DAY_S])
def test_handshakes_go_on_when_the_date_jumps(lab, weft, jump_s):
    clock = Clock(lab.host("u"), only_date=True)
    with ExitStack() as stack:
        pair = Pair(lab, weft, stack, clock.env)
        pair.u.ping(pair.v)
        clock.move(jump_s)
        _renew_session(pair)
        wait_for(
            lambda: abs(pair.u.state(pair.v).handshake - time.time() - jump_s) < 60, 5,
            "weft to tell the new date")
        clock.move(0)
        _renew_session(pair)
        pair.v.ping(pair.u)


def test_a_session_expires(lab, weft):
    clock = Clock(lab.host("u"), only_date=False)
    with ExitStack() as stack:
        pair = Pair(lab, weft, stack, clock.env)
        with Capture(lab.host("u"), "s", PORT) as capture:
            pair.v.ping(pair.u)
            old = capture.messages(DATA, is_outgoing=False)[0].payload
            clock.move(181)
            inject(lab.host("x"), ("192.0.2.2", PORT), (U, PORT), old)
            wait_for(lambda: pair.dropped()["session-expired"] == 1, 5, "weft to refuse old keys")
            pair.u.ping(pair.v)
            assert capture.messages(INITIATION, is_outgoing=True)
        clock.move(181 + 541)
        pair.dropped()  # has weft look at the time
        before = pair.dropped()["unknown-index"]
        inject(lab.host("x"), ("192.0.2.2", PORT), (U, PORT), old)
        wait_for(lambda: pair.dropped()["unknown-index"] > before, 5, "weft to forget old keys")
        pair.v.ping(pair.u)


def _forget_sessions(end: WgPeer) -> None:
    """Down and up, and with a pause between them, or weft would rightly not notice."""
    end.machine.run(["ip", "link", "set", "wg0", "down"])
    wait_for(
        lambda: not end.machine.run(["ss", "-Huln", f"sport = :{PORT}"], quiet=True).out, 5,
        "the port to be closed")
    end.machine.run(["ip", "link", "set", "wg0", "up"])


def test_a_peer_that_was_forgotten_while_the_date_went_back(lab, weft):
    """As `wg setconf` does, or an agent whose peer left and came again."""
    clock = Clock(lab.host("u"), only_date=True)
    clock.move(DAY_S)
    with ExitStack() as stack:
        pair = Pair(lab, weft, stack, clock.env)
        pair.u.ping(pair.v)
        clock.move(0)
        config = pair.u.machine.run(["wg", "showconf", "wg0"]).out
        pair.u.machine.run(["wg", "setconf", "wg0", "/dev/stdin"], stdin="[Interface]\n")
        pair.u.machine.run(["wg", "setconf", "wg0", "/dev/stdin"], stdin=config)
        invalid = drops(pair.v, weft)["handshake-invalid"]
        pair.u.ping(pair.v)
        assert drops(pair.v, weft)["handshake-invalid"] == invalid


def _start_again(pair: Pair, stack: ExitStack, env: dict, *, is_killed: bool, keeps: bool) -> None:
    """`u` dies or ends, and runs again with the same configuration."""
    config = pair.u.machine.run(["wg", "showconf", "wg0"]).out
    if is_killed:
        pair.u.daemon.kill9()
    else:
        assert pair.u.daemon.stop() == 0
    if not keeps:
        pair.u.machine.run(["rm", "/var/lib/weft/wg/wg0"])
    again = WgPeer.userspace(pair.u.machine, [pair.program, "wg"], env=env,
                             allow=["this machine's clock is [0-9]+ s behind"])
    stack.callback(again.remove)
    pair.u.daemon = again.daemon
    pair.u.machine.run(["wg", "setconf", "wg0", "/dev/stdin"], stdin=config)
    for address in pair.u.addresses:
        pair.u.machine.run(["ip", "address", "add", address, "dev", "wg0", *(
            ["nodad"] if address.version == 6 else [])])
    pair.u.machine.run(["ip", "link", "set", "wg0", "up"])


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "ended"])
def test_a_restart_with_an_older_clock(lab, weft, is_killed):
    """What the file says is kept to: nothing is refused, and nobody has to wait."""
    clock = Clock(lab.host("u"), only_date=True)
    clock.move(DAY_S)
    with ExitStack() as stack:
        pair = Pair(lab, weft, stack, clock.env)
        pair.u.ping(pair.v)
        clock.move(0)
        _start_again(pair, stack, clock.env, is_killed=is_killed, keeps=True)
        invalid = drops(pair.v, weft)["handshake-invalid"]
        pair.u.ping(pair.v)
        assert drops(pair.v, weft)["handshake-invalid"] == invalid
        pair.u.daemon.wait_line("this machine's clock is 8[67][0-9]{3} s behind what it was")
        kept = int(pair.u.machine.run(["cat", "/var/lib/weft/wg/wg0"]).out)
        assert DAY_S < kept - time.time() < DAY_S + 3600


def test_a_restart_with_an_older_clock_and_without_the_file(lab, weft):
    clock = Clock(lab.host("u"), only_date=True)
    clock.move(DAY_S)
    with ExitStack() as stack:
        pair = Pair(lab, weft, stack, clock.env)
        pair.u.ping(pair.v)
        clock.move(0)
        _start_again(pair, stack, clock.env, is_killed=True, keeps=False)
        invalid = drops(pair.v, weft)["handshake-invalid"]
        pair.u.machine.run(["ping", "-c1", "-W1", "10.7.0.2"], check=False)
        # Its initiations are a day old for the other end, which refuses them as replays...
        assert drops(pair.v, weft)["handshake-invalid"] > invalid
        assert pair.u.state(pair.v).handshake == 0
        # ... but which, once the session that it knows is over, begins one of its own.
        _forget_sessions(pair.v)
        with Capture(lab.host("v"), "s", PORT) as capture:
            pair.u.ping(pair.v, deadline_s=12)
            assert capture.messages(INITIATION, is_outgoing=True)
