"""A topology as a picture of text: switches, what hangs on them, and what hangs on that."""

from __future__ import annotations

from .topology import Link, Node, Topology


def draw(topology: Topology) -> str:
    """Start at the first switch and follow every link; a thing met again is only named."""
    lines: list[str] = []
    seen: set[str] = set()
    for switch in topology.switches:
        if switch not in seen:
            lines.append(_switch_title(topology, switch))
            _draw_switch(topology, switch, None, "", seen, lines)
    for name in topology.nodes:
        if name not in seen:
            lines.append(f"{_node_title(topology.nodes[name])} (no link)")
    return "\n".join(lines) + "\n"


def _draw_switch(topology: Topology, switch: str, came_from: str | None, indent: str,
                 seen: set[str], lines: list[str]) -> None:
    seen.add(switch)
    links = [link for link in topology.links_on(switch) if link.node != came_from]
    for link in links:
        branch, below = ("└─ ", "   ") if link is links[-1] else ("├─ ", "│  ")
        known = link.node in seen
        title = _node_title(topology.nodes[link.node])
        lines.append(f"{indent}{branch}{title}  {_link_title(link)}{' (above)' if known else ''}")
        if not known:
            _draw_node(topology, link, indent + below, seen, lines)


def _draw_node(topology: Topology, via: Link, indent: str, seen: set[str],
               lines: list[str]) -> None:
    seen.add(via.node)
    links = [link for link in topology.links_of(via.node) if link is not via]
    for link in links:
        branch, below = ("└─ ", "   ") if link is links[-1] else ("├─ ", "│  ")
        known = link.switch in seen
        title = f"{_link_title(link)}  {_switch_title(topology, link.switch)}"
        lines.append(f"{indent}{branch}{title}{' (above)' if known else ''}")
        if not known:
            _draw_switch(topology, link.switch, via.node, indent + below, seen, lines)


def _switch_title(topology: Topology, name: str) -> str:
    switch = topology.switches[name]
    words = [f"[{name}]", *map(str, switch.prefixes)]
    if switch.mtu != 1500:
        words.append(f"mtu={switch.mtu}")
    return " ".join(words)


def _node_title(node: Node) -> str:
    words = [node.name]
    if node.role == "nat":
        words.append(f"({node.kind} nat)")
    elif node.role != "host":
        words.append(f"({node.role})")
    if node.blocks_udp:
        words.append("udp=blocked")
    if not node.has_v6:
        words.append("no-v6")
    return " ".join(words)


def _link_title(link: Link) -> str:
    return " ".join([*(str(address.ip) for address in link.addresses), *link.emulation])
