"""Topologies that many tests share; those with more to them are files in topo/."""

from __future__ import annotations

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
