"""A machine becomes a node by one command, or is told in a sentence why not."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from lab import Lab, Result, wait_for
from lab.support.agents import CIDR4, STATE

from .conftest import Pair, hide_tun, hold_port

pytestmark = pytest.mark.namespaces

HOLD_CONNECTION = """
import signal, socket
connection = socket.socket(socket.AF_UNIX)
connection.connect("/run/weft/agent.sock")
signal.pause()
"""


def test_join_is_one_command(site: Pair) -> None:
    """The agent is started by the join, and the first packet to another node gets through."""
    site.n1.join(site.token())
    said = site.n2.run("join", site.token(), "--name", "n2", "--label", "gpu=h100").out
    assert re.search(r"^n2 has joined the network default: 10\.42\.0\.\d+ and fd\S+ on weft0\.$",
                     said, re.MULTILINE)
    assert "The hub at 203.0.113.10:51820 answers" in said
    for version in (4, 6):
        start = time.monotonic()
        site.n2.insist_ping(site.n1.address(version), within_s=3)
        print(f"FIGURE first packet after join, IPv{version}: {time.monotonic() - start:.2f} s "
              "(to be below 1)")
    log = site.n2.host.run(["cat", f"{STATE}/agent.log"], quiet=True).out
    assert "warning" not in log and "error" not in log
    assert all(re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ info: agent: ", line)
               for line in log.splitlines())
    site.n2.run("leave")


def test_status(site: Pair) -> None:
    site.both_join()
    site.n1.insist_ping(site.n2.address(), within_s=5)
    status = site.n1.status()
    assert status["self"]["name"] == "n1"
    assert status["self"]["interface"] == "weft0"
    assert status["self"]["mtu"] == 1420
    assert status["self"]["engine"] in ("userspace", "kernel")
    assert status["hub"]["endpoint"] == "203.0.113.10:51820"
    assert status["hub"]["reachable"] is True
    assert status["hub"]["udp"] is True
    assert 0 <= status["hub"]["handshakeAgeSeconds"] < 30
    [peer] = status["peers"]
    assert peer.keys() >= {"name", "address4", "address6", "publicKey", "path", "endpoint",
                           "handshakeAgeSeconds", "rttMs", "leastRttMs", "loss", "mtu",
                           "rxBytes", "txBytes", "since", "why"}
    assert peer["name"] == "n2"
    assert peer["path"] in ("relay", "direct", "lan")
    assert peer["rxBytes"] > 0
    assert status["hub"]["apiPort"] == 8443
    assert (peer["why"] != "") == (peer["path"] == "relay")
    assert peer["sinceSeconds"] >= 0
    site.hub.run([site.weft, "edge", "set", "n1", "n2", "--path", "relay"])
    wait_for(lambda: site.n1.status()["peers"][0]["path"] == "relay", 5, "the edge to be relayed")
    assert "the edge is set to relay" in site.n1.status()["peers"][0]["why"]
    table = site.n1.run("status").out
    assert re.search(r"^n2 +10\.42\.\S+ +relay ", table, re.MULTILINE)


def test_the_token_does_not_stay_on_the_command_line(site: Pair) -> None:
    """While it waits for a hub that does not answer, nobody can read it any more."""
    host = site.n1.host
    token = site.token()
    site.hub.run(["nft", "-f", "-"], stdin="table inet f {\nchain c {\ntype filter hook input "
                 "priority 0;\ntcp dport 8443 drop\n}\n}\n")
    join = host.spawn([site.weft, "join", token, "--name", "n1", "--no-start", "--proxy",
                       "http://me:password@203.0.113.12:1"], name="join", allow=[""])
    line = Path(f"/proc/{join.pid}/cmdline")
    wait_for(lambda: b"weft1." not in line.read_bytes() and b"join" in line.read_bytes(), 10,
             "the token to be gone")
    assert b"password" not in line.read_bytes()
    assert join.running
    site.hub.run(["nft", "delete", "table", "inet", "f"])
    join.wait()
    assert join.rc == 0, join.lines()
    # A proxy that nobody is at is passed over, and not in silence.
    assert any("through the proxy 203.0.113.12:1: " in line and "answers without it" in line
               for line in join.lines()), join.lines()
    site.n2.host.run(["sh", "-c", "umask 077; cat > /run/token"], stdin=site.token() + "\n")
    both = site.n2.run("join", "x", "--token-file", "/run/token", check=False)
    assert both.rc == 2
    assert "say one of TOKEN" in both.err
    site.n2.run("join", "--token-file", "/run/token", "--no-start")


def test_a_hub_that_is_away_for_a_moment(site: Pair) -> None:
    """It is asked again, which one line says; a token of one use admits all the same."""
    site.hub.run(["nft", "-f", "-"], stdin="table inet f {\nchain c {\ntype filter hook input "
                 "priority 0;\ntcp dport 8443 reject with tcp reset\n}\n}\n")
    token = site.token()
    join = site.n1.host.spawn([site.weft, "join", token, "--name", "n1", "--no-start"],
                              name="join", allow=[""])
    join.wait_line(r"^weft join: the hub cannot be asked: .*: asking again, for up to \d+ s$")
    assert "n1" not in site.node_names()
    site.hub.run(["nft", "delete", "table", "inet", "f"])
    join.wait()
    assert join.rc == 0, join.lines()
    assert sum("asking again" in line for line in join.lines()) == 1
    assert "n1" in site.node_names()
    refused = site.n2.run("join", "--no-start", token, check=False)
    assert refused.rc == 1 and "the token is used up" in refused.err
    assert "asking again" not in refused.err


def test_names(site: Pair) -> None:
    """Every node is known by name, beside what the file says, and forgotten when it goes."""
    n1 = site.n1.host
    n1.run(["sh", "-c", "echo 192.0.2.7 mine >> /etc/hosts"])
    site.both_join()

    def resolves(name: str, address: str) -> bool:
        done = n1.run(["getent", "ahostsv4", name], check=False, quiet=True)
        return done.out.split(" ")[0] == address

    for name in ("n2", "n2.default.weft", "hub.default.weft"):
        address = "10.42.0.1" if name.startswith("hub") else site.n2.address()
        wait_for(lambda n=name, a=address: resolves(n, a), 5, f"{name} to be {address}")
    # An empty file, as an editor may leave it for a moment, is filled again.
    n1.run(["truncate", "-s", "0", "/etc/hosts"])
    n1.run(["sh", "-c", "echo 192.0.2.7 mine >> /etc/hosts"])
    wait_for(lambda: resolves("n2", site.n2.address()), 15, "the block to be there again")
    # Where the file is mounted on its own, it is written in its place.
    n1.run(["mount", "--bind", "/etc/hosts", "/etc/hosts"])
    site.n2.run("leave")
    wait_for(lambda: "n2.default" not in n1.run(["cat", "/etc/hosts"], quiet=True).out, 5,
             "n2 to be forgotten")
    site.n2.run("join", site.token(), "--name", "n2", "--no-hosts", "--no-start")
    site.n2.start()
    wait_for(lambda: resolves("n2", site.n2.address()), 5, "n2 to be known again")
    assert "weft" not in site.n2.host.run(["cat", "/etc/hosts"]).out
    site.n1.run("leave")
    assert n1.run(["cat", "/etc/hosts"]).out == "192.0.2.7 mine\n"


def test_who_has_left_can_join_at_once(site: Pair) -> None:
    """An agent ends later than it answers while somebody is connected to it."""
    site.n2.run("join", site.token(), "--name", "n2")
    host = site.n2.host
    holder = host.spawn(["/usr/bin/python3", "-c", HOLD_CONNECTION], name="holder")
    wait_for(lambda: re.search(r" ESTAB .*/run/weft/agent\.sock",
                               host.run(["ss", "-xH"], quiet=True).out),
             10, "the connection to be taken")
    site.n2.run("leave")
    site.n2.run("join", site.token(), "--name", "n2")
    holder.stop()
    site.n2.run("leave")


def test_second_join_is_refused(site: Pair) -> None:
    site.n1.join(site.token())
    refused = site.n1.run("join", site.token(), check=False)
    assert refused.rc == 1
    assert 'is "n1" in the network "default" already' in refused.err
    assert "weft leave" in refused.err


@pytest.mark.parametrize(("commands", "named"), [
    (["ip route add 10.42.99.0/24 dev wan"], "route 10.42.99.0/24 of wan"),
    (["ip address add 10.42.200.7/32 dev wan"], "address 10.42.200.7/32 of wan"),
    (["ip route add 10.0.0.0/8 via 203.0.113.10"], "route 10.0.0.0/8 of wan"),
], ids=["route", "address", "wider route"])
def test_collision_is_refused(site: Pair, commands: list[str], named: str) -> None:
    """Before the hub takes it in: no node stays there, and the single-use token works elsewhere."""
    token = site.token()
    for command in commands:
        site.n1.host.run(command.split())
    refused = site.n1.run("join", token, "--name", "n1", check=False)
    assert refused.rc == 1
    assert f"block {CIDR4} collides with the {named}" in refused.err
    assert "the token is not used" in refused.err
    assert not site.n1.has_interface()
    assert "n1" not in site.node_names()
    for command in commands:
        site.n1.host.run(command.replace(" add ", " del ").split())
    site.n2.join(token)
    assert site.node_names() >= {"n2"}


# A file may have one block of 512 bytes: the key of a join that has not ended fits, its state not.
SMALL_FILES = "ulimit -f 1; exec \"$@\""


def join_with_small_files(site: Pair, token: str, trap: str = "") -> Result:
    """The hub takes n1 in, and then its state cannot be written."""
    return site.n1.host.run(["bash", "-c", trap + SMALL_FILES, "join", site.weft, "join", token,
                             "--name", "n1", "--no-start"], check=False)


def test_a_join_that_cannot_be_kept_is_undone(site: Pair) -> None:
    """No node stays at the hub, and the token of one use admits this machine afterwards."""
    token = site.token()
    failed = join_with_small_files(site, token, "trap '' XFSZ; ")
    assert failed.rc == 1
    assert "the hub has removed the machine again, and the token can be used once more" \
        in failed.err
    assert "n1" not in site.node_names()
    site.n1.join(token)
    assert "n1" in site.node_names()


def test_a_join_that_was_killed_is_begun_again(site: Pair) -> None:
    """With the same token it goes on; with another the first one admits somebody else."""
    first, second = site.token(), site.token()
    assert join_with_small_files(site, first).rc not in (0, 1)
    assert "n1" in site.node_names()
    site.n1.run("join", first, "--name", "n1", "--no-start")
    site.n1.run("leave")
    first = site.token()
    assert join_with_small_files(site, first).rc not in (0, 1)
    site.n1.join(second)
    site.n2.join(first)
    assert site.node_names() == {"hub", "n1", "n2"}


def test_an_agent_that_cannot_run_undoes_the_join(site: Pair) -> None:
    token = site.token()
    site.n1.host.run(["touch", "/run/file"])
    failed = site.n1.run("join", token, "--name", "n1", "--socket", "/run/file", check=False)
    assert failed.rc == 1
    assert "has joined" not in failed.out
    assert "the join is undone: the hub has removed n1 again, and the token can be used once more" \
        in failed.err
    assert "n1" not in site.node_names()
    assert not site.n1.has_interface()
    site.n1.join(token)


def test_existing_interface_is_refused(site: Pair) -> None:
    site.n1.host.run(["ip", "link", "add", "weft0", "type", "bridge"])
    refused = site.n1.run("join", site.token(), check=False)
    assert refused.rc == 1
    assert "an interface weft0 exists already" in refused.err
    site.n1.join(site.token(), "--interface", "mesh0")
    assert site.n1.has_interface("mesh0")
    assert site.n1.status()["self"]["interface"] == "mesh0"


def test_join_tells_what_is_missing(site: Pair) -> None:
    """The hub has taken it in all the same, and comes up by itself once it can."""
    site.hub.run(["nft", "-f", "-"], stdin="""
        add table inet wall
        add chain inet wall in { type filter hook input priority 0; }
        add rule inet wall in udp dport 51820 drop
        add rule inet wall in tcp dport 8443 ct state new limit rate over 1/hour burst 2 packets \\
            drop
    """)
    said = site.n1.run("join", site.token(), "--name", "n1", check=False)
    assert said.rc == 1
    assert "has joined" not in said.out
    assert "the hub has taken this machine in as n1, but it does not take part yet" in said.err
    assert "is UDP to it blocked?" in said.err
    status = site.n1.status()
    assert status["hub"]["reachable"] is False
    assert status["hub"]["udp"] is False
    site.hub.run(["nft", "delete table inet wall"])
    wait_for(lambda: site.n1.status()["hub"]["reachable"], 20, "n1 to reach the hub")
    site.n1.run("leave")


FAKE_SYSTEMCTL = """#!/bin/sh
echo "$@" > /run/systemctl.said
{weft} agent > /run/unit.log 2>&1 &
"""


@pytest.mark.skipif(not Path("/usr/bin/systemctl").exists(), reason="there is no systemctl here")
def test_join_starts_the_unit(site: Pair) -> None:
    """Where systemd is the init and has the unit, it runs the agent, now and after a boot."""
    n1 = site.n1.host
    n1.run(["mkdir", "-p", "/run/systemd/system", "/etc/systemd/system"])
    n1.run(["touch", "/etc/systemd/system/weft-agent.service", "/run/systemctl"])
    n1.run(["sh", "-c", "cat > /run/systemctl"], stdin=FAKE_SYSTEMCTL.format(weft=site.weft))
    n1.run(["chmod", "755", "/run/systemctl"])
    n1.run(["mount", "--bind", "/run/systemctl", "/usr/bin/systemctl"])
    said = site.n1.run("join", site.token()).out
    assert "under systemd" in said
    assert n1.run(["cat", "/run/systemctl.said"]).out == (
        "enable --now --quiet weft-agent.service\n")
    # The unit is for the usual paths; another state directory gets an agent of its own.
    site.n1.run("leave")
    said = site.n1.run("join", site.token(), "--state", "/var/lib/other").out
    assert "logs to /var/lib/other/agent.log" in said
    site.n1.run("leave", "--state", "/var/lib/other")


def children(pid: int) -> list[int]:
    try:
        return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def watcher_of(state: str) -> int:
    """The process ID of `weft agent --watched` with that state directory; 0: there is none."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--watched" in words and state.encode() in words:
            return int(entry.name)
    return 0


def agent_of(state: str) -> int:
    return next(iter(children(watcher_of(state))), 0)


def test_an_agent_that_dies_is_started_again(site: Pair) -> None:
    """Without systemd by its parent, which ends when the node leaves, or by a signal."""
    state = f"/var/lib/weft/watched-{os.getpid()}"
    site.n2.join(site.token())
    said = site.n1.run("join", site.token(), "--state", state).out
    assert f"is started again if it dies, and logs to {state}/agent.log" in said
    watcher, first = watcher_of(state), agent_of(state)
    assert watcher and first
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: agent_of(state) not in (0, first), 20, "another agent")
    wait_for(lambda: site.n1.run("status", check=False).rc == 0, 20, "it to answer")
    site.n1.insist_ping(site.n2.address(), within_s=10)
    log = site.n1.host.run(["cat", f"{state}/agent.log"], quiet=True).out
    assert re.search(r"^20\S+ warning: agent: the agent was ended by signal 9; it is started again "
                     r"in 0\.25 s$", log, re.MULTILINE), log
    # By a signal: the interface stays. It is begun again by hand, once.
    os.kill(watcher, signal.SIGTERM)
    wait_for(lambda: not Path(f"/proc/{watcher}").exists(), 20, "the watcher to end")
    assert site.n1.run("status", check=False).rc == 1
    assert site.n1.host.run(["ip", "link", "show", "weft0"], check=False).rc == 0
    said = site.n1.run("agent", "--background", "--state", state).out
    assert f"runs in the background, is started again if it dies, and logs to {state}" in said
    again = site.n1.run("agent", "--background", "--state", state, check=False)
    assert again.rc == 1 and "an agent answers on /run/weft/agent.sock already" in again.err
    watcher = watcher_of(state)
    site.n1.run("leave", "--state", state)
    wait_for(lambda: not Path(f"/proc/{watcher}").exists(), 20, "the watcher to end")
    none = site.n1.run("agent", "--background", "--state", state, check=False)
    assert none.rc == 1 and "has not joined a network" in none.err


@pytest.mark.parametrize("token", [
    "", "weft1.", "weft1.e30", "weft1." + "A" * 5000, "weft1.!!!", "weft9.e30",
])
def test_bad_token_is_refused(site: Pair, token: str) -> None:
    refused = site.n1.run("join", token, check=False)
    assert refused.rc in (1, 2)
    assert refused.err.count("\n") <= 3
    assert "token" in refused.err.lower()
    from_stdin = site.n1.host.run([site.weft, "join", "-"], stdin=token, check=False)
    assert from_stdin.rc == 1
    assert "token" in from_stdin.err


def test_stock_wireguard_is_a_node(site: Pair) -> None:
    """The file of `weft render` and the node's key are all that wg-quick needs."""
    site.n1.join(site.token())
    site.n2.run("join", site.token(), "--name", "n2", "--no-start")
    key = json.loads(site.n2.host.run(["cat", f"{STATE}/node.json"], quiet=True).out)["privateKey"]
    conf = site.hub.run([site.weft, "render", "n2"]).out
    site.n2.host.run(["mkdir", "-p", "/etc/wireguard"])
    for name, text in (("stock0.key", key + "\n"), ("stock0.conf", conf)):
        path = f"/etc/wireguard/{name}"
        site.n2.host.run(["sh", "-c", f"umask 077; cat > {path}"], stdin=text, quiet=True)
    site.n2.host.run(["wg-quick", "up", "stock0"],
                     env={"WG_QUICK_USERSPACE_IMPLEMENTATION": "wireguard-go"})
    # The first keepalive goes out when the key is there, so the hub hears of the node at once.
    start = time.monotonic()
    wait_for(lambda: re.search(r"\t[1-9]\d*\n", site.n2.host.run(
        ["wg", "show", "stock0", "latest-handshakes"], quiet=True).out), 10, "a handshake")
    print(f"FIGURE stock WireGuard is up: first handshake after {time.monotonic() - start:.2f} s "
          "(to be below 1)")
    wait_for(lambda: site.n1.peer_names() == {"n2"}, 5, "n1 to hear of n2")
    for version in (4, 6):
        site.n2.insist_ping(site.n1.address(version), within_s=10)
    site.n2.host.run(["wg-quick", "down", "stock0"])


WITHOUT_NET_ADMIN = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"]


@pytest.mark.parametrize("how", ["tun", "sockets", "capability", "module"])
def test_what_joining_needs_is_checked_before_the_token_is_used(site: Pair, how: str) -> None:
    """The sentence names what is missing, and the token admits once it is there."""
    n1, token = site.n1, site.token()
    argv = [site.weft, "join", token, "--name", "n1", "--no-start", "--engine", "userspace"]
    if how == "tun":
        hide_tun(n1.host)
        done, word = n1.host.run(argv, check=False), "/dev/net/tun"
    elif how == "sockets":
        n1.host.run(["mkdir", "-p", "/run/wireguard"])
        n1.host.run(["mount", "-t", "tmpfs", "-o", "ro", "none", "/run/wireguard"])
        done, word = n1.host.run(argv, check=False), "sockets cannot be made in /run/wireguard"
        n1.host.run(["umount", "/run/wireguard"])
    elif how == "capability":
        done, word = n1.host.run([*WITHOUT_NET_ADMIN, *argv], check=False), "CAP_NET_ADMIN"
    else:
        done = n1.host.run([*argv[:-1], "kernel"], check=False)
        if done.rc == 0:
            pytest.skip("this kernel has WireGuard")
        word = "this kernel has no WireGuard"
    assert done.rc == 1 and word in done.err and "the token is not used" in done.err, done.err
    assert "n1" not in site.node_names() and not n1.has_interface()
    if how == "tun":
        n1.host.run(["umount", "/dev/net"])
    n1.join(token, "--engine", "userspace")


def test_a_listen_port_that_is_in_use(site: Pair) -> None:
    """The port and who has it are named before the token is used; it has joined, or it has not."""
    token = site.token()
    holder = hold_port(site.n1.host, 51999)
    refused = site.n1.run("join", token, "--name", "n1", "--listen", "51999", check=False)
    assert refused.rc == 1 and "has joined" not in refused.out, refused
    assert (f"UDP port 51999 is in use already (EADDRINUSE): python3 (process {holder.pid}) has it"
            in refused.err), refused
    assert "n1" not in site.node_names()
    holder.kill9()
    holder.wait()
    site.n1.run("join", token, "--name", "n1", "--listen", "51999", "--no-start")


# Takes a port as soon as the machine has been taken in, before its agent is started.
TAKE_PORT = """
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while not os.path.exists(sys.argv[1]):
    pass
s.bind(("", int(sys.argv[2])))
time.sleep(1000)
"""


def test_a_listen_port_that_is_taken_during_the_join(site: Pair) -> None:
    """The join is undone, and says who has the port; it promises nothing that nobody does."""
    token = site.token()
    taker = site.n1.host.spawn(["/usr/bin/python3", "-c", TAKE_PORT, f"{STATE}/node.json", "51999"],
                               name="taker")
    failed = site.n1.run("join", token, "--name", "n1", "--listen", "51999", check=False)
    assert failed.rc == 1 and "has joined" not in failed.out, failed
    assert (f"UDP port 51999 is in use already (EADDRINUSE): python3 (process {taker.pid}) has it: "
            "end that, or join with another --listen; the join is undone") in failed.err, failed
    assert "keeps trying" not in failed.err and "as soon as" not in failed.err
    assert "n1" not in site.node_names()
    taker.kill9()
    taker.wait()
    site.n1.join(token, "--listen", "51999")


def test_a_hub_whose_port_is_in_use(site: Pair) -> None:
    """The hub says which port it cannot have, and who has it."""
    hold_port(site.n1.host, 51820)
    refused = site.n1.run("hub", "up", "--public", "203.0.113.11", check=False)
    assert refused.rc == 1 and re.search(
        r"UDP port 51820 is in use already \(EADDRINUSE\): (python3|a process of user 0) ",
        refused.err), refused


def test_a_hub_whose_block_is_in_use(site: Pair) -> None:
    """The first network is not made with it: the next start takes the block that it is given."""
    n1 = site.n1
    n1.host.run(["ip", "address", "add", "10.77.0.2/16", "dev", "wan"])
    refused = n1.run("hub", "up", "--public", "203.0.113.11", check=False)
    assert refused.rc == 1 and "10.77.0.0/16 collides with the address 10.77.0.2/16" in refused.err
    assert "say another block with --cidr4" in refused.err, refused
    hub = n1.host.spawn([n1.weft, "hub", "up", "--public", "203.0.113.11",
                         "--cidr4", "10.88.0.0/16"])
    hub.wait_line("weft hub is up")
    assert hub.stop() == 0


ELSEWHERE = """
switch wan 203.0.113.0/24
host hub
host n1
link hub wan 203.0.113.10
link n1 wan 203.0.113.11
"""


def test_a_public_address_that_is_not_the_hub_s(weft: Path) -> None:
    """The hub says it at its start, and who cannot join what to look at."""
    with Lab.from_text(ELSEWHERE) as lab:
        publics = ["203.0.113.99", "192.168.7.7", "203.0.113.10"]
        hub = lab.host("hub").spawn(
            [weft, "hub", "up", *(word for at in publics[:2] for word in ("--public", at))])
        hub.wait_line("--public 203.0.113.99:51820 is at no interface of this machine")
        hub.wait_line("--public 192.168.7.7:51820 is a private address")
        hub.wait_line("weft hub is up")
        token = lab.host("hub").run([weft, "token", "new"], quiet=True).out.strip()
        refused = lab.host("n1").run([weft, "join", token, "--no-start"], check=False, timeout_s=90)
        assert refused.rc == 1 and "203.0.113.99:8443" in refused.err
        assert '"weft hub up --ports" prints the ports' in refused.err
        assert hub.stop() == 0
        hub = lab.host("hub").spawn([weft, "hub", "up", "--public", publics[2]], name="hub-there")
        hub.wait_line("weft hub is up")
        assert not [line for line in hub.lines() if "--public" in line]


def test_a_hub_that_tells_its_own_address(weft: Path) -> None:
    """Without --public, where nodes elsewhere cannot reach it."""
    with Lab.from_text(ELSEWHERE) as lab:
        host = lab.host("hub")
        host.run(["ip", "address", "add", "100.64.3.4/24", "dev", "wan"])
        for source, is_private in (("100.64.3.4", True), ("203.0.113.10", False)):
            host.run(["ip", "route", "replace", "default", "via", "203.0.113.11", "src", source])
            hub = host.spawn([weft, "hub", "up"], name=f"hub-at-{source}")
            said = hub.wait_line(f"no --public was given: nodes will be told {source}:51820, the "
                                 "address of the default route(.*)$")
            assert ("It is private" in said[1]) == is_private
            hub.wait_line("weft hub is up")
            assert hub.stop() == 0
