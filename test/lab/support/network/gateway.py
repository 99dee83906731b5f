"""NATs and firewalls: the nftables rules and conntrack settings that make them, and a handle.

In the words of RFC 4787, with Linux doing the work:

  kind                mapping                filtering                   made by
  full-cone           endpoint-independent   endpoint-independent        masquerade + map of ports
  address-restricted  endpoint-independent   address-dependent           masquerade + map of both
  port-restricted     endpoint-independent   address- and port-dependent masquerade
  masquerade          endpoint-independent   address- and port-dependent masquerade, no filter
  symmetric           address- and port-d.   address- and port-dependent masquerade fully-random
  counting            address- and port-d.   address- and port-dependent masquerade to the next port

Mapping is endpoint-independent as long as the source port is free outside: a second inside host
with the same port may get another one for each destination, as with any Linux masquerade, and
the two cone kinds treat it as port-restricted.  None of them hairpins.

The kind masquerade is the usual Linux gateway or Docker host, with no chain that drops anything.
What nobody inside has asked for goes to the gateway itself, and connection tracking remembers it:
if somebody inside sends to that stranger afterwards, from that port, the mapping gets another port.
The other kinds drop such a packet, and what is dropped is not remembered.  IPv6 is never
translated, but filtered: only what was asked for from inside comes in.
"""

from __future__ import annotations

from dataclasses import dataclass

from .namespace import Namespace
from .topology import Node

FILTER = """
table inet filter {{
    chain forward {{
        type filter hook forward priority filter; policy drop;
        {blocked}
        ct state established,related accept
        ct status dnat accept
        iifname != "{out}" accept
    }}
    chain input {{
        type filter hook input priority filter; policy drop;
        ct state established,related accept
        iifname != "{out}" accept
        icmp type echo-request accept
        icmpv6 type {{ echo-request, nd-neighbor-solicit, nd-neighbor-advert }} accept
    }}
}}
"""

NO_FILTER = """
table inet filter {{
    chain forward {{
        type filter hook forward priority filter;
        {blocked}
    }}
}}
"""

TRANSLATE = """
table ip nat {{
    chain postrouting {{
        type nat hook postrouting priority srcnat;
        oifname "{out}" meta l4proto udp masquerade {how_udp}
        oifname "{out}" meta l4proto tcp masquerade {how}
        oifname "{out}" masquerade
    }}
}}
"""

# Remembers who sent from which port (and whereto), and lets others in by the same way.
CONE = """
table ip cone {{
    map opened {{
        type {key_type} : ipv4_addr . inet_service
        flags dynamic, timeout
        size 65536
    }}
    chain remember {{
        type filter hook forward priority filter - 1;
        oifname "{out}" update @opened {{ {sent_key} timeout {idle}s : ip saddr . udp sport }}
    }}
    chain prerouting {{
        type nat hook prerouting priority dstnat;
        iifname "{out}" dnat ip to {received_key} map @opened
    }}
}}
"""

# A mapping for each flow, with ports that follow each other.
NEXT_PORT = ("numgen inc mod 4000 map { "
             + ", ".join(f"{i} : {30000 + i}" for i in range(4000)) + " }")

CONE_KEYS = {
    "full-cone": ("inet_service", "udp sport", "udp dport"),
    "address-restricted": (
        "ipv4_addr . inet_service", "ip daddr . udp sport", "ip saddr . udp dport"),
}

ROUTER_BLOCK = """
table inet filter {
    chain forward {
        type filter hook forward priority filter;
        meta l4proto udp drop
    }
}
"""


BLOCKED = {
    False: "",
    True: "meta l4proto udp drop",
    "in": 'iifname "{out}" meta l4proto udp drop',
    "out": 'oifname "{out}" meta l4proto udp drop',
}


def rules(node: Node, blocks_udp: bool | str, ports: str) -> str:
    """The whole rule set of a router, firewall or NAT.

    `blocks_udp` is one of BLOCKED.
    `ports` is "" to keep source ports where possible, else a range that mappings come from.
    """
    if not node.filters:
        return ROUTER_BLOCK if blocks_udp else ""
    blocked = BLOCKED[blocks_udp].format(out=node.outside)
    how_filtered = NO_FILTER if node.kind == "masquerade" else FILTER
    text = how_filtered.format(out=node.outside, blocked=blocked)
    if node.role == "firewall":
        return text
    how = f"to :{ports}" if ports else ""
    if node.kind == "symmetric":
        how += " fully-random"
    how_udp = f"to : {NEXT_PORT}" if node.kind == "counting" else how
    text += TRANSLATE.format(out=node.outside, how=how, how_udp=how_udp)
    if node.kind in CONE_KEYS:
        key_type, sent_key, received_key = CONE_KEYS[node.kind]
        text += CONE.format(
            out=node.outside, idle=node.udp_stream_idle_s,
            key_type=key_type, sent_key=sent_key, received_key=received_key)
    return text


@dataclass(frozen=True)
class Mapping:
    """One flow that a NAT keeps: who sent from where inside, to whom, and how that sees it."""

    inside: tuple[str, int]
    remote: tuple[str, int]
    outside: tuple[str, int]


class Filter:
    """A running router, firewall or NAT: change what it lets through, look at what it keeps."""

    def __init__(self, node: Node, namespace: Namespace) -> None:
        self.node = node
        self._namespace = namespace
        self._blocks_udp: bool | str = node.blocks_udp
        self._ports = ""
        self._n_moves = 0

    def start(self) -> None:
        self._load()  # first, for it is what makes the kernel track connections
        if self.node.filters:
            self.set_udp_idle(self.node.udp_idle_s, self.node.udp_stream_idle_s)

    def _load(self) -> None:
        text = "flush ruleset\n" + rules(self.node, self._blocks_udp, self._ports)
        self._namespace.run(["nft", "-f", "-"], stdin=text, quiet=True)

    def set_udp_idle(self, idle_s: int, stream_idle_s: int | None = None) -> None:
        """How long a UDP mapping lives unused: before an answer, and after one."""
        stream_idle_s = stream_idle_s or idle_s
        prefix = "net.netfilter.nf_conntrack_udp_timeout"
        self._namespace.run(
            ["sysctl", "-q", "-w", f"{prefix}={idle_s}", f"{prefix}_stream={stream_idle_s}"],
            quiet=True)

    def block_udp(self, blocked: bool | str = True) -> None:
        """Let no UDP through any more, in neither direction and neither family; or again.

        "in" and "out" block only what comes in, or goes out, through a NAT or firewall.
        """
        what = {False: "let through", True: "blocked"}.get(blocked, f"blocked {blocked}")
        print(f"{self.node.name}: UDP {what}", flush=True)
        self._blocks_udp = blocked
        self._load()

    def flush_mappings(self, new_ports: bool = False) -> None:
        """Forget all flows, as a restart does.

        A NAT that keeps source ports then gives each inside socket the same outside port again;
        with `new_ports` it takes them from another range from now on, which the two cone kinds
        cannot, for they let strangers in by the inside port.
        """
        if new_ports and self.node.kind in CONE_KEYS:
            raise ValueError(f"{self.node.name} is {self.node.kind}, so it keeps its ports")
        print(f"{self.node.name}: mappings flushed", flush=True)
        if new_ports:
            first = 20000 + 4000 * (self._n_moves % 10)
            self._n_moves += 1
            self._ports = f"{first}-{first + 3999}"
        self._load()  # also empties the maps of the cone kinds
        self._namespace.run(["conntrack", "-F"], quiet=True)

    def mappings(self) -> list[Mapping]:
        """The UDP flows that go through just now."""
        listing = self._namespace.run(["conntrack", "-L", "-p", "udp"], quiet=True)
        return [_mapping(line) for line in listing.out.splitlines() if line.startswith("udp")]


def _mapping(line: str) -> Mapping:
    """Read a line of conntrack(8): the original direction's fields come first, then the reply's."""
    fields = {}
    for word in line.split():
        key, has_value, value = word.partition("=")
        if has_value:
            fields.setdefault(key, []).append(value)
    (src, _), (dst, reply_dst) = fields["src"], fields["dst"]
    (sport, _), (dport, reply_dport) = fields["sport"], fields["dport"]
    return Mapping((src, int(sport)), (dst, int(dport)), (reply_dst, int(reply_dport)))
