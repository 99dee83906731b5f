"""The life of a `weft wg` process and of its interface."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support.topologies import one_switch

from .traffic import stats, transfer
from .wgpeer import WgPeer

pytestmark = pytest.mark.namespaces

PAIR = one_switch("s", "192.0.2", {"u": 1, "v": 2})
SOCKET = "/run/wireguard/wg0.sock"


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab.from_text(PAIR, capture=False) as lab:
        yield lab


@pytest.fixture
def ends(lab: Lab, weft: Path) -> tuple[WgPeer, WgPeer]:
    """Two connected `weft wg`."""
    u = WgPeer.userspace(lab.host("u"), [weft, "wg"], env={"LOG_LEVEL": "debug"})
    v = WgPeer.userspace(lab.host("v"), [weft, "wg"], env={"LOG_LEVEL": "debug"})
    u.configure(["10.7.0.1/24", "fd07::1/64"])
    v.configure(["10.7.0.2/24", "fd07::2/64"])
    u.add_peer(v, endpoint=True)
    v.add_peer(u, endpoint=True)
    u.ping(v)
    return u, v


def exists(host: Host, path: str) -> bool:
    return host.run(["test", "-e", path], check=False, quiet=True).rc == 0


def test_to_the_background_and_back(lab: Lab, weft: Path):
    host = lab.host("u")
    host.run([weft, "wg", "wg0"])
    # Both are there when it returns.
    assert host.run(["stat", "-c", "%a %F", SOCKET]).out == "600 socket\n"
    host.run(["wg", "show", "wg0"])
    second = host.run([weft, "wg", "wg0"], check=False)
    assert second.rc == 1
    assert "in use" in second.err
    # ss(8) tells the name that the socket was bound to, which it had until it listened.
    ss = f"ss -Hxlp src '{SOCKET}*'"
    pid = int(host.run(["sh", "-c", f"{ss} | sed 's/.*pid=//; s/,.*//'"]).out)
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), 5, "it to end")
    assert not exists(host, SOCKET)
    assert host.run(["ip", "link", "show", "wg0"], check=False).rc != 0


def test_sigterm_ends_it_cleanly(ends):
    u, _ = ends
    assert u.daemon.stop() == 0
    assert not exists(u.machine, SOCKET)


HOLD_PORT = """
import signal, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 51820))
print("held", flush=True)
signal.pause()
"""


def test_a_port_that_is_taken_is_had_later(lab: Lab, weft: Path):
    """As of a process that was killed, whose sockets live a moment longer than itself."""
    u = WgPeer.userspace(lab.host("u"), [weft, "wg"])
    v = WgPeer.userspace(lab.host("v"), [weft, "wg"])
    u.daemon.allow("51820")
    holder = lab.host("u").spawn(["/usr/bin/python3", "-c", HOLD_PORT], name="holder")
    holder.wait_line("held")
    u.configure(["10.7.0.1/24", "fd07::1/64"])
    v.configure(["10.7.0.2/24", "fd07::2/64"])
    u.add_peer(v, endpoint=True)
    v.add_peer(u, endpoint=True)
    u.daemon.wait_line("trying again")
    assert not u.can_ping(v)
    holder.kill9()
    u.daemon.wait_line("listening on port 51820")
    u.ping(v)


def test_deleting_the_link_ends_it(ends):
    u, _ = ends
    u.machine.run(["ip", "link", "delete", "wg0"])
    assert u.daemon.wait() == 0
    assert not exists(u.machine, SOCKET)


def test_kill_9_leaves_nothing_in_the_way(ends, weft):
    u, v = ends
    u.daemon.kill9()
    assert exists(u.machine, SOCKET)  # stale: nobody could remove it
    again = WgPeer.userspace(u.machine, [weft, "wg"])
    again.private_key, again.public_key = u.private_key, u.public_key
    again.configure(["10.7.0.1/24", "fd07::1/64"])
    again.add_peer(v, endpoint=True)
    again.ping(v)


def test_down_and_up(ends):
    """Down: no port, no keys. Up: the same port, and a new handshake."""
    u, v = ends
    first = u.state(v).handshake
    u.machine.run(["ip", "link", "set", "wg0", "down"])
    wait_for(lambda: not u.machine.run(["ss", "-Hlun", "sport = :51820"], quiet=True).out, 5,
             "the port to be closed")
    assert u.port() == 51820
    u.machine.run(["ip", "link", "set", "wg0", "up"])
    u.ping(v)
    assert u.state(v).handshake >= first
    assert any("link down" in line for line in u.daemon.lines())
    assert u.machine.run(["ss", "-Hlun", "sport = :51820"]).out


def test_a_link_in_another_namespace(ends, lab, tmp_path):
    """The UDP socket stays where it was; up, down, MTU and deletion are followed."""
    u, v = ends
    u.machine.run(["sh", "-c", "mkdir -p /run/netns && ip netns add inner && "
                   "ip link set wg0 netns inner && ip -n inner address add 10.7.0.1/24 dev wg0 && "
                   "ip -n inner link set wg0 up"])
    inside = ["ip", "netns", "exec", "inner"]
    wait_for(lambda: u.machine.run([*inside, "ping", "-c1", "-W1", "10.7.0.2"], check=False,
                                   quiet=True).rc == 0, 15, "the way out of the namespace")
    assert u.machine.run(["ss", "-Hlun", "sport = :51820"]).out
    assert not u.machine.run([*inside, "ss", "-Hlun", "sport = :51820"]).out
    u.machine.run(["ip", "-n", "inner", "link", "set", "wg0", "name", "renamed"])
    u.machine.run(["ip", "-n", "inner", "link", "set", "renamed", "down"])
    wait_for(lambda: not u.machine.run(["ss", "-Hlun", "sport = :51820"], quiet=True).out, 5,
             "the port to be closed")
    u.machine.run(["ip", "-n", "inner", "link", "set", "renamed", "up"])
    u.machine.run(["ip", "netns", "delete", "inner"])
    assert u.daemon.wait() == 0
    assert not exists(u.machine, SOCKET)


def test_between_our_own(ends, tmp_path):
    u, v = ends
    for version in (4, 6):
        transfer(tmp_path, u, v, version, 16 << 20)
        transfer(tmp_path, v, u, version, 16 << 20)


def test_a_new_key_ends_old_sessions(ends, weft):
    u, v = ends
    new = WgPeer.__new__(WgPeer)
    new.private_key = u.machine.run(["wg", "genkey"]).out
    new.public_key = u.machine.run(["wg", "pubkey"], stdin=new.private_key).out.strip()
    u.set("private-key", "/dev/stdin", stdin=new.private_key)
    ping = ["ping", "-c1", "-W1", "10.7.0.2"]
    assert u.machine.run(ping, check=False).rc != 0
    v.set("peer", new.public_key, "allowed-ips", "10.7.0.1/32,fd07::1/128")
    wait_for(lambda: u.machine.run(ping, check=False, quiet=True).rc == 0, 15,
             "the session under the new key")


def is_instrumented(program: Path) -> bool:
    """Built with a sanitizer, which has threads and memory of its own."""
    content = program.read_bytes()
    return b"__tsan_init" in content or b"__asan_init" in content


def confinement(pid: int) -> dict[str, str]:
    """Where each of a process's threads may run, by its name."""
    texts = [(task / "status").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    return {text.split("Name:")[1].split()[0]: text.split("Cpus_allowed_list:")[1].split()[0]
            for text in texts}


def test_cpus_are_obeyed(lab, weft):
    """--cpus: every thread stays there, with as many workers as fit; the rest is refused."""
    last = max(os.sched_getaffinity(0))
    u = WgPeer.userspace(lab.host("u"), [weft, "wg", "--cpus", str(last)])
    threads = confinement(u.daemon.pid)
    assert set(threads.values()) == {str(last)}
    assert {"rx0", "tx0-wg0", "control"} <= set(threads)
    assert not {"rx1", "tx1-wg0"} & set(threads)
    v = WgPeer.userspace(lab.host("v"), [weft, "wg", "--cpus", str(last), "--threads", "2"])
    assert {"rx0", "rx1", "tx0-wg0", "tx1-wg0", "control"} <= set(confinement(v.daemon.pid))
    assert set(confinement(v.daemon.pid).values()) == {str(last)}
    for wrong, said in {
        "1023": "CPU 1023 cannot be used: this process may run on ",
        "0-": 'CPU list "0-" is not understood; it is numbers and ranges below 1024, as in "0,2-5"',
        "all": 'CPU list "all" is not understood; it is numbers and ranges below 1024',
    }.items():
        refused = lab.host("u").run([weft, "wg", "-f", "wg1", "--cpus", wrong], check=False)
        assert refused.rc != 0
        assert said in refused.err
        assert refused.err.count("\n") == 1


def test_idle_costs_little(ends, weft):
    """Idle with peers: less than 10 MiB resident, and nothing to wake up for."""
    u, _ = ends
    if is_instrumented(weft.with_name("weft-wg")):
        pytest.skip("a sanitizer's own threads and memory would be measured")
    status = Path(f"/proc/{u.daemon.pid}/status").read_text()
    assert int(status.split("VmRSS:")[1].split()[0]) < 10 * 1024

    def switches() -> int:
        return sum(int(line.split()[1])
                   for task in Path(f"/proc/{u.daemon.pid}/task").iterdir()
                   for line in (task / "status").read_text().splitlines()
                   if line.startswith("voluntary_ctxt_switches"))

    before = switches()
    u.machine.run(["sleep", "2"])
    # Two seconds of polling, even at 10 Hz, would be more; a keepalive may fall in.
    assert switches() - before < 10
    assert stats(u, weft)["peers"] == "1"
