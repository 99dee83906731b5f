"""The name server of a node: for containers on it, by its overlay address, and for nobody else.

   hub .10     n2 .12     dns .53
    |           |          |
   [         wan 203.0.113.0/24         ]
    |
   n1 .11  ── [ bridge 172.18.0.0/24 ] ── box .2       a container of n1: n1 is its router

n1 asks dns for what is no node's name, and the box knows no server but n1's overlay address.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, Host, Lab, wait_for
from lab.support import PROGRAMS

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch wan 203.0.113.0/24
host hub
link hub wan 203.0.113.10
router n1
link n1 wan 203.0.113.11
host n2
link n2 wan 203.0.113.12
host dns
link dns wan 203.0.113.53
switch bridge 172.18.0.0/24 gateway=n1
link n1 bridge 172.18.0.1
host box
link box bridge 172.18.0.2
"""

# More addresses than 512 bytes hold, and fewer than 1,232.
MANY = ",".join(f"192.0.2.{i}" for i in range(1, 60))


class Site:
    def __init__(self, lab: Lab, weft: Path) -> None:
        self.lab = lab
        self.weft = weft
        self.hub, self.n1, self.n2, self.box, self.dns = (
            lab.host(name) for name in ("hub", "n1", "n2", "box", "dns"))
        self.hub.spawn([weft, "hub", "up", "--public", self.hub.address()],
                       name="hub").wait_line("weft hub is up")
        self.n1.run(["sh", "-c", f"echo nameserver {self.dns.address()} > /etc/resolv.conf"])
        self.agents: dict[str, Daemon] = {}
        for host in (self.n1, self.n2):
            self.join(host)
        # As `docker run --dns` leaves it.
        self.box.run(["sh", "-c", f"printf 'nameserver {self.address(self.n1)}\\n"
                                  "search default.weft\\n' > /etc/resolv.conf"])

    def join(self, host: Host, *words: str) -> None:
        token = self.hub.run([self.weft, "token", "new"], quiet=True).out.strip()
        host.run([self.weft, "join", token, "--no-start", "--name", host.name, *words])
        self.agents[host.name] = host.spawn([self.weft, "agent"], name="agent")
        self.agents[host.name].wait_line("the hub answers")

    def status(self, host: Host) -> dict:
        return json.loads(host.run([self.weft, "status", "--json"], quiet=True).out)

    def address(self, host: Host, family: int = 4) -> str:
        return self.status(host)["self"][f"address{family}"]

    def wait_listening(self, host: Host) -> None:
        wait_for(lambda: self.status(host)["self"]["dns"]["listening"], 20,
                 f"{host.name} to answer for names")

    def serve(self, *names: str) -> None:
        self.dns.spawn(["/usr/bin/python3", PROGRAMS / "name_server.py", *names],
                       name="names").wait_line("listening")


def dig(host: Host, server: str, *words: str) -> tuple[str, list[str]]:
    """The code of the answer, "" for none, and what each record says."""
    asked = host.run(["dig", f"@{server}", "+time=3", "+tries=2", "+nocookie", *words],
                     check=False, quiet=True).out
    code = asked.partition("status: ")[2].partition(",")[0]
    records = [line.split()[-1] for line in asked.splitlines()
               if line and line[0] != ";" and "\tSOA\t" not in line]
    return code, records


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY) as lab:
        made = Site(lab, weft)
        made.serve("example.test=192.0.2.80", f"many.test={MANY}")
        made.wait_listening(made.n1)
        made.wait_listening(made.n2)
        yield made


def test_a_container_knows_the_nodes(site: Site) -> None:
    """By their names, forwards and backwards, over UDP and TCP, as any program asks."""
    server, n2 = site.address(site.n1), site.address(site.n2)
    wait_for(lambda: dig(site.box, server, "n2.default.weft") == ("NOERROR", [n2]), 20,
             "the node's name to be answered")
    assert dig(site.box, server, "+tcp", "N2.Default.Weft")[1] == [n2]
    assert dig(site.box, server, "n2.default.weft", "AAAA")[1] == [site.address(site.n2, 6)]
    assert dig(site.box, server, "-x", n2)[1] == ["n2.default.weft."]
    assert dig(site.box, server, "n9.default.weft") == ("NXDOMAIN", [])
    assert dig(site.box, server, "n2.default.weft", "MX") == ("NOERROR", [])
    # The C library's resolver, with the search list: a bare name, and then the node itself.
    found = site.box.run(["getent", "ahostsv4", "n2"]).out
    assert found.split()[0] == n2


def test_the_rest_goes_to_the_machines_servers(site: Site) -> None:
    server = site.address(site.n1)
    assert dig(site.box, server, "example.test") == ("NOERROR", ["192.0.2.80"])
    assert dig(site.box, server, "nobody.test")[0] == "NXDOMAIN"
    # More than a datagram holds: cut for who takes 512 bytes, whole over TCP and with EDNS.
    whole = MANY.split(",")
    assert dig(site.box, server, "+tcp", "many.test")[1] == whole
    assert dig(site.box, server, "+bufsize=1232", "many.test")[1] == whole
    cut = site.box.run(["dig", f"@{server}", "+noedns", "+ignore", "many.test"], quiet=True).out
    assert "flags: qr tc " in cut or " tc " in cut.partition("flags:")[2].partition(";")[0]
    assert dig(site.box, server, "+noedns", "many.test")[1] == whole


def test_members_get_the_networks_names_alone(site: Site) -> None:
    """Nobody asks another machine's name servers through its resolver."""
    server, n2 = site.address(site.n1), site.address(site.n2)
    for words in ([], ["+tcp"]):
        assert dig(site.n2, server, *words, "n2.default.weft") == ("NOERROR", [n2])
        assert dig(site.n2, server, *words, "example.test") == ("REFUSED", [])
    # On the machine itself, by its own overlay address, all is answered.
    assert dig(site.n1, server, "example.test") == ("NOERROR", ["192.0.2.80"])


def test_nowhere_else(site: Site) -> None:
    """Neither on the machine's other addresses nor on loopback."""
    for address in (site.n1.address(), "172.18.0.1"):
        assert dig(site.box, address, "n2.default.weft")[0] == ""
    assert dig(site.n1, "127.0.0.1", "n2.default.weft")[0] == ""


def test_strangers_get_nothing(site: Site) -> None:
    """A neighbour that routes its question to the overlay's address is no container."""
    server, n2 = site.address(site.n1), site.address(site.n2)
    wan = next(link["ifname"] for link in json.loads(
        site.n1.run(["ip", "-j", "-4", "addr"], quiet=True).out)
        if any(a["local"] == site.n1.address() for a in link["addr_info"]))
    site.n1.run(["ip", "route", "add", "default", "via", site.dns.address(), "dev", wan])
    site.dns.run(["ip", "route", "add", f"{server}/32", "via", site.n1.address()])
    for name in ("n2.default.weft", "example.test"):
        assert dig(site.dns, server, name) == ("REFUSED", [])
        assert dig(site.dns, server, "+tcp", name) == ("", [])
    # The box, and the machine itself from any of its addresses, still are no strangers.
    assert dig(site.box, server, "n2.default.weft") == ("NOERROR", [n2])
    for own in (site.n1.address(), "172.18.0.1"):
        assert dig(site.n1, server, "-b", own, "example.test") == ("NOERROR", ["192.0.2.80"])


# Asks over and over, and never reads what is answered.
FLOOD = """
import socket, struct
name = b''.join(bytes([len(x)]) + x for x in (b'n2', b'default', b'weft')) + bytes(1)
query = struct.pack('>6H', 7, 0x100, 1, 0, 0, 0) + name + struct.pack('>2H', 1, 1)
many = (struct.pack('>H', len(query)) + query) * 400
c = socket.create_connection(('{server}', 53))
c.settimeout(60)
sent = 0
try:
    while sent < 24 << 20:
        sent += c.send(many)
    print('all of it was taken')
except (ConnectionError, BrokenPipeError):
    print('ended')
"""

# Sends a byte now and then, and never a whole question.
TRICKLE = """
import select, socket, time
c = socket.create_connection(('{server}', 53))
c.send(bytes([4, 0]))
until = time.monotonic() + 60
try:
    while not select.select([c], [], [], 0.2)[0] and time.monotonic() < until:
        c.send(b'x')
    print('ended' if time.monotonic() < until else 'still there')
except (ConnectionError, BrokenPipeError):
    print('ended')
"""


def test_floods(site: Site) -> None:
    """Nobody's questions take more than their share of memory and of connections."""
    server = site.address(site.n1)
    for program in (FLOOD, TRICKLE):
        said = site.n2.run(["/usr/bin/python3", "-c", program.format(server=server)]).out
        assert said.strip() == "ended"
    # A member that takes all connections takes them from members alone.
    holder = site.n2.spawn(["/usr/bin/python3", "-c",
                            "import socket, sys\n"
                            f"held = [socket.create_connection(('{server}', 53))"
                            " for _ in range(80)]\n"
                            "print('held', flush=True)\n"
                            "sys.stdin.read()"], name="holder")
    holder.wait_line("held")
    assert dig(site.box, server, "+tcp", "n2.default.weft")[0] == "NOERROR"
    holder.stop()


# Asks for what nobody answers, more often than so many questions can be under way.
GREEDY = """
import socket, struct
c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
c.connect(('{server}', 53))
name = b''.join(bytes([len(x)]) + x for x in (b'x', b'silent')) + bytes(1)
for i in range(300):
    c.send(struct.pack('>6H', i, 0x100, 1, 0, 0, 0) + name + struct.pack('>2H', 1, 1))
c.settimeout(30)
code = c.recv(2048)[3] & 15
print('asked', code, flush=True)
c.recv(2048)
"""


def test_one_who_asks_much(site: Site) -> None:
    """Has its own questions refused, and leaves room for those of others."""
    server = site.address(site.n1)
    greedy = site.box.spawn(["/usr/bin/python3", "-c", GREEDY.format(server=server)], name="greedy")
    greedy.wait_line("asked 2")
    assert dig(site.n1, server, "example.test") == ("NOERROR", ["192.0.2.80"])
    greedy.stop()


def test_a_server_that_is_away_and_one_that_is_this(site: Site) -> None:
    """No answer is an answer, too; and a question never goes round."""
    server = site.address(site.n1)
    site.n1.run(["sh", "-c", f"echo nameserver {server} > /etc/resolv.conf"])
    wait_for(lambda: dig(site.box, server, "example.test")[0] == "SERVFAIL", 20,
             "a failure to be said at once where nobody else can be asked")
    site.n1.run(["sh", "-c", f"printf 'nameserver {server}\\nnameserver {site.dns.address()}\\n' "
                             "> /etc/resolv.conf"])
    wait_for(lambda: dig(site.box, server, "example.test")[1] == ["192.0.2.80"], 20,
             "the new file to be read")


def test_garbage(site: Site) -> None:
    """What is no question gets no answer over UDP and ends a connection, and nothing else."""
    server = site.address(site.n1)
    site.box.run(["sh", "-c", f"head -c 900 /dev/urandom | socat - UDP4:{server}:53; "
                              f"printf '\\0\\003abc' | socat - TCP4:{server}:53; "
                              f"printf '\\377\\377' | socat - TCP4:{server}:53"])
    # More connections than are held: the others are ended, and then there is room again.
    site.box.run(["/usr/bin/python3", "-c",
                  "import select, socket, time\n"
                  f"held = [socket.create_connection(('{server}', 53)) for _ in range(80)]\n"
                  "until = time.monotonic() + 8\n"
                  "while len(select.select(held, [], [], 0.1)[0]) < 80 - 64:\n"
                  "    assert time.monotonic() < until, 'none of 80 connections was ended'\n"])
    assert dig(site.box, server, "+tcp", "n2.default.weft")[0] == "NOERROR"


def test_a_port_that_is_taken(site: Site) -> None:
    """Said in the status, with the reason, and tried again; the hosts file goes on as before."""
    site.n2.run([site.weft, "leave"])
    taker = site.n2.spawn(["/usr/bin/python3", PROGRAMS / "name_server.py", "a.test=192.0.2.1"],
                          name="taker")
    taker.wait_line("listening")
    site.join(site.n2)
    wait_for(lambda: "Address already in use" in site.status(site.n2)["self"]["dns"]["why"], 20,
             "the status to name the port")
    assert site.status(site.n2)["self"]["dns"]["listening"] is False
    assert "names are not answered by DNS" in site.n2.run([site.weft, "status"]).out
    taker.stop()
    site.wait_listening(site.n2)
    assert dig(site.n2, site.address(site.n2), "n1.default.weft")[0] == "NOERROR"


def test_none_is_wanted(site: Site) -> None:
    site.n2.run([site.weft, "leave"])
    site.join(site.n2, "--no-dns")
    assert "dns" not in site.status(site.n2)["self"]
    assert dig(site.n2, site.address(site.n2), "n1.default.weft")[0] == ""
