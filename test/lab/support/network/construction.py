"""How a topology becomes namespaces: the machines, the fabric between them, and their setup.

The fabric is one more namespace.  It holds a bridge for each switch, the switch's end of each
link (portN) and the link emulator.  The other end of a link is moved into its machine, where it
gets the switch's name.
"""

from __future__ import annotations

from pathlib import Path

from ..waiting import wait_for
from .emulator import Emulator, EmulatorError, program
from .namespace import Namespace
from .topology import Link, Node, Topology

FABRIC = ".fabric"  # no machine can have this name


def start_machines(topology: Topology, tag: str) -> dict[str, Namespace]:
    """Namespaces for the fabric and all nodes, with nothing in them yet."""
    machines = {FABRIC: Namespace("fabric", tag, private_files=False)}
    for name in topology.nodes:
        machines[name] = Namespace(name, tag, private_files=True)
    for machine in machines.values():
        machine.wait_ready()
    return machines


def start_emulator(topology: Topology, fabric: Namespace, control: Path, log: Path) -> Emulator:
    """Start weft-linkem in the fabric, with no links yet."""
    argv = [program(), "--control", control, "--seed", topology.seed]
    process = fabric.start(argv, log, quiet=True)
    emulator = Emulator(control)
    wait_for(
        lambda: emulator.is_listening() or process.poll() is not None, 5, "weft-linkem to listen")
    if process.poll() is not None:
        raise EmulatorError(f"weft-linkem did not start: {log.read_text(encoding='utf-8')}")
    return emulator


def connect(topology: Topology, machines: dict[str, Namespace], emulator: Emulator | None,
            ports: dict[str, str]) -> None:
    """Build the switches, and lay the links from them to the machines."""
    fabric = machines[FABRIC]
    lines = []
    for switch in topology.switches.values():
        lines.append(
            f"ip link add {switch.name} mtu {switch.mtu} type bridge mcast_snooping 0")
        lines.append(f"ip link set {switch.name} addrgenmode none up")
    for number, link in enumerate(topology.links):
        ports[link.name] = f"port{number}"
        lines += lay(link, ports[link.name], f"node{number}", machines[link.node].pid)
        if link.emulated:
            emulator.ask("add", link.name, f"node{number}", ports[link.name], *link.emulation)
    run_script(fabric, lines)


def lay(link: Link, port: str, end: str, pid: int) -> list[str]:
    """The commands that lay one link, given where an emulated one's TAP devices are already."""
    lines = []
    if link.emulated:
        lines.append(f"ip link set {end} mtu {link.mtu}")
        lines.append(f"ip link set {end} netns {pid} name {link.switch}")
        lines.append(f"ip link set {port} mtu {link.mtu}")
    else:
        lines.append(
            f"ip link add {port} mtu {link.mtu} type veth"
            f" peer name {link.switch} mtu {link.mtu} netns {pid}")
    lines.append(f"ip link set {port} addrgenmode none alias {link.name}")
    lines.append(f"ip link set {port} master {link.switch} up")
    return lines


def settings(topology: Topology, node: Node) -> list[str]:
    """The commands that give a machine its addresses and routes."""
    lines = [] if node.has_v6 else ["sysctl -q -w net.ipv6.conf.all.disable_ipv6=1"]
    if node.forwards:
        lines.append("sysctl -q -w net.ipv4.ip_forward=1")
    if node.forwards and node.has_v6:
        lines.append("sysctl -q -w net.ipv6.conf.all.forwarding=1")
    for link in topology.links_of(node.name):
        if not link.address(6):
            lines.append(f"sysctl -q -w net/ipv6/conf/{link.switch}/disable_ipv6=1")
        for address in link.addresses:
            nodad = "nodad" if address.version == 6 else ""
            lines.append(f"ip address add {address} dev {link.switch} {nodad}")
        lines.append(f"ip link set {link.switch} up")
    return lines + routes(topology, node)


def routes(topology: Topology, node: Node) -> list[str]:
    """The commands for a node's default routes and its static ones."""
    lines = []
    for link in topology.links_of(node.name):
        gateway = topology.switches[link.switch].gateway
        if not gateway or gateway == node.name:
            continue
        for address in link.addresses:
            hop = topology.next_hop(node.name, gateway, address.version)
            if hop:
                lines.append(f"ip route add default via {hop} dev {link.switch}")
    for route in topology.routes:
        if route.node == node.name:
            hop = topology.next_hop(route.node, route.via, route.prefix.version)
            lines.append(f"ip route add {route.prefix} via {hop}")
    return lines


def run_script(machine: Namespace, lines: list[str]) -> None:
    """Run setup commands in one shell that stops at the first failure and names it."""
    machine.run(["sh", "-e", "-x"], stdin="\n".join(lines) + "\n", quiet=True)
