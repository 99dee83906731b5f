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
from contextlib import contextmanager
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


# Opens connections from each of its addresses, and asks on all that are still there, again and
# again, so that none of them is idle: until the resolver has left it no more than it may have.
HOLDER = """
import signal, socket, struct
name = b''.join(bytes([len(x)]) + x for x in (b'n2', b'default', b'weft')) + bytes(1)
query = struct.pack('>6H', 7, 0x100, 1, 0, 0, 0) + name + struct.pack('>2H', 1, 1)
def is_answered(c):
    try:
        c.sendall(struct.pack('>H', len(query)) + query)
        return len(c.recv(2048)) > 0
    except ConnectionError:
        return False
held = [socket.create_connection(('{server}', 53), source_address=(address, 0))
        for address in {addresses} for _ in range({each})]
while len(held) > {most}:
    held = [c for c in held if is_answered(c)]
print('held', len(held), flush=True)
signal.pause()
"""


@contextmanager
def more_addresses(host: Host, addresses: list[str]) -> Iterator[None]:
    """@host takes them besides its own: nobody hinders a container."""
    for address in addresses:
        host.run(["ip", "addr", "add", f"{address}/24", "dev", "bridge"])
    try:
        yield
    finally:
        for address in addresses:
            host.run(["ip", "addr", "del", f"{address}/24", "dev", "bridge"])


def test_connections_are_shared(site: Site) -> None:
    """One asker has eight of them, and nobody has those that another one needs."""
    server = site.address(site.n1)
    many = [f"172.18.0.{i}" for i in range(11, 21)]
    own = [f"127.0.1.{i}" for i in range(1, 11)]
    with more_addresses(site.box, many):
        # A member, a container, a user of the machine by whichever of its addresses, and one with
        # as many addresses as take all connections.
        for host, addresses, each, most, other in (
                (site.n2, [site.address(site.n2)], 80, 8, site.n1),
                (site.box, ["172.18.0.2"], 80, 8, site.n1),
                (site.n1, own, 8, 8, site.box),
                (site.box, many, 8, 64, site.n1)):
            holder = host.spawn(
                ["/usr/bin/python3", "-c",
                 HOLDER.format(server=server, addresses=addresses, each=each, most=most)],
                name=f"holder-{addresses[-1]}")
            holder.wait_line("held", 60)
            assert dig(other, server, "+tcp", "n2.default.weft")[0] == "NOERROR"
            # The one that was idle longest gives way: another program there is served, too.
            assert dig(host, server, "+tcp", "n2.default.weft")[0] == "NOERROR"
            holder.stop()


# Asks for what nobody answers, more often than so many questions can be under way: 80 times from
# each of its addresses. In between it asks for a node's name and waits for the answer, so that no
# question is lost for being too many at once, and all were taken in at the end.
GREEDY = """
import socket, struct
def query(i, *labels):
    name = b''.join(bytes([len(x)]) + x for x in labels) + bytes(1)
    return struct.pack('>6H', i, 0x100, 1, 0, 0, 0) + name + struct.pack('>2H', 1, 1)
MARK = 0xffff
refused = 0
def wait_taken(c):
    global refused
    while True:
        c.send(query(MARK, b'n2', b'default', b'weft'))
        try:
            while True:
                i, flags = struct.unpack('>2H', c.recv(2048)[:4])
                if i == MARK:
                    return
                refused += flags & 15 == 2
        except TimeoutError:
            pass
for address in {addresses}:
    c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    c.bind((address, 0))
    c.connect(('{server}', 53))
    c.settimeout(5)
    for i in range(80):
        c.send(query(i, b'x', b'silent'))
        if i % 16 == 15:
            wait_taken(c)
print('some refused' if refused else 'all taken', flush=True)
c.settimeout(None)
while True:
    c.recv(2048)
"""


def test_one_who_asks_much(site: Site) -> None:
    """Has its own questions refused, and leaves room for those of others."""
    server = site.address(site.n1)
    # A user of the machine has all of loopback, and a container may take more addresses.
    own = [f"127.0.1.{i}" for i in range(1, 7)]
    more = [f"172.18.0.{i}" for i in range(11, 17)]
    with more_addresses(site.box, more):
        for host, addresses, other in ((site.box, ["172.18.0.2"], site.n1),
                                       (site.n1, own, site.box), (site.box, more, site.n1)):
            greedy = host.spawn(["/usr/bin/python3", "-c",
                                 GREEDY.format(server=server, addresses=addresses)],
                                name=f"greedy-{addresses[-1]}")
            greedy.wait_line("some refused", 60)
            assert dig(other, server, "example.test") == ("NOERROR", ["192.0.2.80"])
            greedy.stop()
            # What it has asked is given up after some seconds.
            wait_for(lambda asker=host: dig(asker, server, "example.test")[0] == "NOERROR", 30,
                     "room again")


def test_a_bridge_that_leads_elsewhere(site: Site) -> None:
    """Who is behind a bridge with a port that leaves the machine may be a neighbour."""
    server = site.address(site.n1)
    site.n1.run(["sh", "-ec",
                 "ip link add br1 address 02:00:00:00:00:01 type bridge\n"
                 "ip addr del 172.18.0.1/24 dev bridge\n"
                 "ip link set bridge master br1\n"
                 "ip link set br1 up\n"
                 "ip addr add 172.18.0.1/24 dev br1\n"])
    site.box.run(["ip", "neigh", "flush", "all"])
    wait_for(lambda: dig(site.box, server, "example.test")[0] == "NOERROR", 20,
             "a container behind the bridge to be answered")
    site.n1.run(["ip", "link", "add", "card", "master", "br1", "type", "vxlan", "id", "4",
                 "dstport", "4789"])
    for name in ("n2.default.weft", "example.test"):
        assert dig(site.box, server, name) == ("REFUSED", [])
        assert dig(site.box, server, "+tcp", name) == ("", [])
    site.n1.run(["sh", "-ec",
                 "ip link del card\n"
                 "ip link del br1\n"
                 "ip addr add 172.18.0.1/24 dev bridge\n"])
    site.box.run(["ip", "neigh", "flush", "all"])
    wait_for(lambda: dig(site.box, server, "example.test")[0] == "NOERROR", 20,
             "the box to be reached as before")


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
