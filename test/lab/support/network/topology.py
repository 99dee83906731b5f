"""What a topology file says: switches, hosts, routers, NATs, links and routes.

The language is one statement a line and is described in README.md.  Reading a file touches
nothing; an error names the file, the line and what is allowed.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Prefix = ipaddress.IPv4Network | ipaddress.IPv6Network

NAT_KINDS = ("full-cone", "address-restricted", "port-restricted", "masquerade", "symmetric",
             "counting")
NAME = re.compile(r"[a-z]([a-z0-9-]{0,13}[a-z0-9])?")
SECONDS = re.compile(r"([1-9][0-9]{0,5})s")
EMULATION = {
    "delay": (re.compile(r"[0-9.]+(ns|us|ms|s)"), "a time, such as 20ms"),
    "jitter": (re.compile(r"[0-9.]+(ns|us|ms|s)"), "a time, such as 500us"),
    "rate": (re.compile(r"[0-9.]+[kmg]bit"), "bits per second, such as 100mbit"),
    "queue": (re.compile(r"[0-9]+[km]?"), "bytes, such as 256k"),
    "loss": (re.compile(r"[0-9.]+%"), "a percentage, such as 0.5%"),
    "reorder": (re.compile(r"[0-9.]+%"), "a percentage, such as 1%"),
    "mtu": (re.compile(r"[0-9]+"), "bytes, such as 1400"),
}


class TopologyError(Exception):
    """A topology file that cannot be understood; the text starts with file:line."""


@dataclass
class Switch:
    """One layer-2 segment and the prefixes that are used on it."""

    name: str
    prefixes: list[Prefix]
    gateway: str | None = None
    mtu: int = 1500

    def prefix_of(self, address: Address) -> Prefix | None:
        return next((prefix for prefix in self.prefixes if address in prefix), None)


@dataclass
class Node:
    """A machine: a network namespace of its own."""

    name: str
    role: str  # host, router, nat or firewall
    kind: str | None = None  # one of NAT_KINDS; only a nat has one
    outside: str | None = None  # the switch that a nat or firewall protects from
    udp_idle_s: int = 30  # a mapping that was never answered
    udp_stream_idle_s: int = 120  # a mapping with traffic both ways
    blocks_udp: bool = False
    has_v6: bool = True

    @property
    def forwards(self) -> bool:
        return self.role != "host"

    @property
    def filters(self) -> bool:
        return self.role in ("nat", "firewall")


@dataclass
class Link:
    """A node's interface on a switch; the interface has the switch's name."""

    node: str
    switch: str
    addresses: list[ipaddress.IPv4Interface | ipaddress.IPv6Interface]
    mtu: int  # of the interface
    emulation: list[str]  # words for weft-linkem
    emulated: bool

    @property
    def name(self) -> str:
        return f"{self.node}/{self.switch}"

    def address(self, version: int) -> Address | None:
        return next((a.ip for a in self.addresses if a.version == version), None)


@dataclass
class Route:
    """A static route of one node."""

    node: str
    prefix: Prefix
    via: str


@dataclass
class Topology:
    """A whole network, in the order in which the file names things."""

    source: str
    text: str
    switches: dict[str, Switch] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    seed: int = 1

    @classmethod
    def from_file(cls, path: str | Path) -> Topology:
        return cls.from_text(Path(path).read_text(encoding="utf-8"), str(path))

    @classmethod
    def from_text(cls, text: str, source: str = "<text>") -> Topology:
        topology = cls(source, text)
        _Reader(topology).read(text)
        return topology

    def links_of(self, node: str) -> list[Link]:
        return [link for link in self.links if link.node == node]

    def links_on(self, switch: str) -> list[Link]:
        return [link for link in self.links if link.switch == switch]

    def next_hop(self, node: str, via: str, version: int) -> Address | None:
        """The address of `via` on a switch that it shares with `node`."""
        near = {link.switch for link in self.links_of(node)}
        addresses = (link.address(version) for link in self.links_of(via) if link.switch in near)
        return next((address for address in addresses if address), None)


class _Reader:
    """Reads the statements into a Topology; `self.where` is the line being read."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.where = topology.source
        self.checks = []  # what can only be checked when everything has been read

    def fail(self, message: str) -> TopologyError:
        return TopologyError(f"{self.where}: {message}")

    def read(self, text: str) -> None:
        statements = {
            "switch": self.read_switch,
            "host": self.read_node,
            "router": self.read_node,
            "nat": self.read_node,
            "firewall": self.read_node,
            "link": self.read_link,
            "route": self.read_route,
            "seed": self.read_seed,
        }
        for number, line in enumerate(text.splitlines(), 1):
            self.where = f"{self.topology.source}:{number}"
            words = line.partition("#")[0].split()
            if not words:
                continue
            if words[0] not in statements:
                known = ", ".join(statements)
                raise self.fail(f"{words[0]!r} is not a statement; they are: {known}")
            statements[words[0]](*self.split(words))
        for where, check in self.checks:
            self.where = where
            check()

    def split(self, words: list[str]) -> tuple[str, list[str], dict[str, str]]:
        """A statement's keyword, plain words and KEY=VALUE words."""
        plain = [word for word in words[1:] if "=" not in word]
        keyed = {}
        for word in words[1:]:
            key, is_keyed, value = word.partition("=")
            if is_keyed and key in keyed:
                raise self.fail(f"{key}= is given twice")
            if is_keyed:
                keyed[key] = value
        return words[0], plain, keyed

    def check_later(self, check) -> None:
        self.checks.append((self.where, check))

    def refuse_keys(self, keyed: dict[str, str], allowed: str) -> None:
        for key in keyed:
            raise self.fail(f"{key}= is not known here; known are: {allowed}")

    # Names and values

    def new_name(self, plain: list[str], what: str) -> str:
        if not plain or not NAME.fullmatch(plain[0]):
            raise self.fail(
                f"{what} needs a name of at most 15 of a-z, 0-9 and '-' that starts with a letter"
            )
        name = plain[0]
        if name in self.topology.nodes or name in self.topology.switches:
            raise self.fail(f"{name} is already the name of something")
        if name in ("lo", "all", "default"):
            raise self.fail(f"{name} cannot be a name: it means something to the kernel")
        return name

    def known(self, name: str, things: dict, what: str) -> str:
        if name not in things:
            names = ", ".join(things) or "none so far"
            raise self.fail(f"there is no {what} {name!r}; there are: {names}")
        return name

    def mtu(self, text: str) -> int:
        if not text.isdecimal() or not 576 <= int(text) <= 65535:
            raise self.fail(f"mtu={text} is not a number of bytes from 576 to 65535")
        return int(text)

    def seconds(self, text: str) -> int:
        match = SECONDS.fullmatch(text)
        if not match:
            raise self.fail(f"{text!r} is not a time in whole seconds, such as 30s")
        return int(match[1])

    def address(self, text: str) -> Address:
        try:
            return ipaddress.ip_address(text)
        except ValueError:
            raise self.fail(f"{text!r} is not an IPv4 or IPv6 address") from None

    def prefix(self, text: str) -> Prefix:
        try:
            return ipaddress.ip_network(text)
        except ValueError as error:
            raise self.fail(f"{text!r} is not a prefix such as 10.1.0.0/24: {error}") from None

    # Statements

    def read_switch(self, _keyword: str, plain: list[str], keyed: dict[str, str]) -> None:
        switch = Switch(self.new_name(plain, "a switch"), [self.prefix(p) for p in plain[1:]])
        if len({prefix.version for prefix in switch.prefixes}) != len(switch.prefixes):
            raise self.fail("a switch has at most one IPv4 and one IPv6 prefix")
        if "mtu" in keyed:
            switch.mtu = self.mtu(keyed.pop("mtu"))
        if "gateway" in keyed:
            switch.gateway = keyed.pop("gateway")
            self.check_later(lambda: self.check_gateway(switch))
        self.refuse_keys(keyed, "gateway=NODE and mtu=BYTES")
        self.topology.switches[switch.name] = switch

    def check_gateway(self, switch: Switch) -> None:
        gateway = self.known(switch.gateway, self.topology.nodes, "node")
        if switch.name not in [link.switch for link in self.topology.links_of(gateway)]:
            raise self.fail(f"the gateway {gateway} has no link to {switch.name}")

    def read_node(self, role: str, plain: list[str], keyed: dict[str, str]) -> None:
        node = Node(self.new_name(plain, f"a {role}"), role)
        words = plain[1:]
        if "no-v6" in words:
            words.remove("no-v6")
            node.has_v6 = False
        if role == "nat":
            node.kind = words.pop(0) if words else None
            if node.kind not in NAT_KINDS:
                raise self.fail(f"a nat needs a kind; they are: {', '.join(NAT_KINDS)}")
        if words:
            raise self.fail(f"{words[0]!r} is not understood here")
        if node.forwards and "udp" in keyed:
            if keyed.pop("udp") != "blocked":
                raise self.fail("udp= can only be udp=blocked")
            node.blocks_udp = True
        if node.filters:
            self.read_filter(node, keyed)
        self.refuse_keys(keyed, {
            "host": "none",
            "router": "udp=blocked",
        }.get(role, "out=SWITCH, udp-idle=SECONDS[/SECONDS] and udp=blocked"))
        self.topology.nodes[node.name] = node

    def read_filter(self, node: Node, keyed: dict[str, str]) -> None:
        if "out" not in keyed:
            raise self.fail(f"a {node.role} needs out=SWITCH, the switch that it protects from")
        node.outside = keyed.pop("out")
        if "udp-idle" in keyed:
            first, _, both = keyed.pop("udp-idle").partition("/")
            node.udp_idle_s = self.seconds(first)
            node.udp_stream_idle_s = self.seconds(both) if both else node.udp_idle_s
        self.check_later(lambda: self.check_outside(node))

    def check_outside(self, node: Node) -> None:
        self.known(node.outside, self.topology.switches, "switch")
        if node.outside not in [link.switch for link in self.topology.links_of(node.name)]:
            raise self.fail(f"out={node.outside}, but {node.name} has no link to it")

    def read_link(self, _keyword: str, plain: list[str], keyed: dict[str, str]) -> None:
        if len(plain) < 2:
            raise self.fail("a link is: link NODE SWITCH [ADDRESS]... [KEY=VALUE]...")
        node = self.known(plain[0], self.topology.nodes, "node")
        switch = self.topology.switches[self.known(plain[1], self.topology.switches, "switch")]
        if switch.name in [link.switch for link in self.topology.links_of(node)]:
            raise self.fail(f"{node} already has a link to {switch.name}")
        words = plain[2:]
        emulated = "emulated" in words
        if emulated:
            words.remove("emulated")
        addresses = [self.interface(word, switch) for word in words]
        if not self.topology.nodes[node].has_v6 and any(a.version == 6 for a in addresses):
            raise self.fail(f"{node} is no-v6, so it cannot have an IPv6 address")
        if len({a.version for a in addresses}) != len(addresses):
            raise self.fail("a link has at most one IPv4 and one IPv6 address")
        mtu = self.mtu(keyed.pop("mtu")) if "mtu" in keyed else switch.mtu
        if mtu > switch.mtu:
            raise self.fail(f"mtu={mtu} is more than the {switch.mtu} of {switch.name}")
        emulation = [self.emulation(key, value) for key, value in keyed.items()]
        self.topology.links.append(
            Link(node, switch.name, addresses, mtu, emulation, emulated or bool(emulation)))

    def interface(self, text: str, switch: Switch):
        address = self.address(text)
        prefix = switch.prefix_of(address)
        if not prefix:
            prefixes = " and ".join(map(str, switch.prefixes)) or "none"
            raise self.fail(f"{address} is not in a prefix of {switch.name} ({prefixes})")
        for link in self.topology.links_on(switch.name):
            if address in (link.address(4), link.address(6)):
                raise self.fail(f"{address} is already the address of {link.node}")
        return ipaddress.ip_interface(f"{address}/{prefix.prefixlen}")

    def emulation(self, key: str, value: str) -> str:
        """A word for weft-linkem.  The interface's own MTU was taken before; the path's is left."""
        name = key.removeprefix("in.").removeprefix("out.").replace("path-mtu", "mtu")
        if name not in EMULATION or key in ("in.mtu", "out.mtu"):
            raise self.fail(
                f"{key}= is not known here; known are: mtu= path-mtu= and, also with in. or out. "
                "before them, delay= jitter= loss= reorder= rate= queue=")
        pattern, example = EMULATION[name]
        if not pattern.fullmatch(value):
            raise self.fail(f"{key}={value} is not {example}")
        return key.replace("path-mtu", "mtu") + "=" + value

    def read_route(self, _keyword: str, plain: list[str], keyed: dict[str, str]) -> None:
        if len(plain) != 2 or "via" not in keyed:
            raise self.fail("a route is: route NODE PREFIX via=NODE")
        route = Route(plain[0], self.prefix(plain[1]), keyed.pop("via"))
        self.refuse_keys(keyed, "via=NODE")
        self.check_later(lambda: self.check_route(route))
        self.topology.routes.append(route)

    def check_route(self, route: Route) -> None:
        for name in (route.node, route.via):
            self.known(name, self.topology.nodes, "node")
        if not self.topology.next_hop(route.node, route.via, route.prefix.version):
            raise self.fail(
                f"{route.via} has no IPv{route.prefix.version} address on a switch of {route.node}")

    def read_seed(self, _keyword: str, plain: list[str], keyed: dict[str, str]) -> None:
        self.refuse_keys(keyed, "none")
        if len(plain) != 1 or not plain[0].isdecimal():
            raise self.fail("seed needs one whole number")
        self.topology.seed = int(plain[0])
