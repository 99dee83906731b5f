"""Topologies that many tests share; those with more to them are files in topo/."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping


def one_switch(switch: str, net4: str, hosts: Mapping[str, int], v6: bool = False) -> str:
    """Hosts on one switch, each with the last number of its addresses: {"hub": 10, "n1": 11}.

    `net4` is the first three numbers, "192.0.2"; with `v6` there is 2001:db8::/64 as well.
    """
    text = f"switch {switch} {net4}.0/24{' 2001:db8::/64' if v6 else ''}\n"
    for host, last in hosts.items():
        address6 = f" 2001:db8::{last}" if v6 else ""
        text += f"host {host}\nlink {host} {switch} {net4}.{last}{address6}\n"
    return text


def two_islands(
    line: str, own: str = "", nets: tuple[str, str] = ("10.1.0.0/24", "10.2.0.0/24")
) -> str:
    """n1, n2 and n3, n4 on the networks behind a and b, which route; the hub beside these.

    `line` is what the topology says of the two links to the rest: "emulated", "delay=10ms"; `own`
    of those of the nodes; `nets` are private unless others are given.
    """
    net_a, net_b = map(ipaddress.ip_network, nets)
    return f"""
switch wan 198.51.100.0/24
switch lan-a {net_a} gateway=a
switch lan-b {net_b} gateway=b
host hub
router a
router b
host n1
host n2
host n3
host n4
link hub wan 198.51.100.10
link a wan 198.51.100.20 {line}
link b wan 198.51.100.30 {line}
link a lan-a {net_a[1]}
link b lan-b {net_b[1]}
link n1 lan-a {net_a[11]} {own}
link n2 lan-a {net_a[12]} {own}
link n3 lan-b {net_b[13]} {own}
link n4 lan-b {net_b[14]} {own}
route hub {net_a} via=a
route hub {net_b} via=b
route a {net_b} via=b
route b {net_a} via=a
"""
