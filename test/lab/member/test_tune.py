"""weft tune: what it would set on a node, sets, and sets back.

    hub ── [ wan ] ── n1

The settings of TCP are the network namespace's own here; those of net.core are the whole machine's,
and are only shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from lab.support.agents import AgentNode, Site

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch wan 203.0.113.0/24
host hub
link hub wan 203.0.113.10
host n1 no-v6
link n1 wan 203.0.113.11
"""
BOOT_FILE = "/etc/sysctl.d/90-weft.conf"
LINE = ("--rate", "10Gbit", "--rtt", "20")
# Twice 25 MB, in whole MiB.
BUFFER = 48 << 20
OWN = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_slow_start_after_idle",
       "net.ipv4.tcp_mtu_probing")


@pytest.fixture(scope="module")
def n1(weft: Path) -> Iterator[AgentNode]:
    with Lab.from_text(TOPOLOGY) as lab:
        [node] = Site(lab, weft).join("n1")
        # A machine whose own is BBR has nothing to gain over a pause.
        node.host.run(["sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"])
        yield node


def read(node: AgentNode) -> dict[str, list[str]]:
    said = node.host.run(["sysctl", *OWN], quiet=True).out
    return {line.split(" = ")[0]: line.split(" = ")[1].split() for line in said.splitlines()}


def settings(node: AgentNode, *words: str) -> dict[str, dict]:
    found = json.loads(node.run("tune", "--json", *words).out)
    return {setting["name"]: setting for setting in found["settings"]}


def has_boot_file(node: AgentNode) -> bool:
    return node.host.run(["test", "-e", BOOT_FILE], check=False, quiet=True).rc == 0


def test_it_is_shown(n1: AgentNode) -> None:
    """And nothing is changed."""
    before = read(n1)
    found = settings(n1, *LINE)
    for name in OWN:
        assert found[name]["now"].split() == before[name]
    assert found["net.ipv4.tcp_rmem"]["wanted"].split() == [
        *before["net.ipv4.tcp_rmem"][:2], str(BUFFER)]
    assert found["net.ipv4.tcp_rmem"]["changes"]
    assert "25.0 MB are under way" in found["net.ipv4.tcp_rmem"]["why"]
    # The whole machine's, of which a namespace has none, or may not change it.
    for name in ("net.core.rmem_max", "net.core.wmem_max", "net.core.netdev_max_backlog",
                 "net.core.default_qdisc"):
        assert not found[name]["changes"]
    said = n1.run("tune", *LINE).out
    assert "For 10.000 Gbit/s with an RTT of 20.0 ms, as --rate and --rtt say." in said
    assert "weft tune --apply sets" in said
    assert read(n1) == before and not has_boot_file(n1)


def test_without_a_measurement(n1: AgentNode) -> None:
    found = settings(n1)
    assert not found["net.ipv4.tcp_rmem"]["changes"]
    assert "weft preflight measures them" in found["net.ipv4.tcp_rmem"]["why"]


def test_apply_and_undo(n1: AgentNode) -> None:
    """What was there before is there again, to the last number, and no file is left."""
    n1.host.run(["sysctl", "-qw", "net.ipv4.tcp_rmem=4097 131073 6291457"])
    before = read(n1)
    assert json.loads(n1.run("tune", "--apply", "--json", *LINE).out)["applied"]
    after = read(n1)
    assert after["net.ipv4.tcp_rmem"] == ["4097", "131073", str(BUFFER)]
    assert after["net.ipv4.tcp_slow_start_after_idle"] == ["0"]
    # At a boot the machine does the same.
    n1.host.run(["sysctl", "-qw", "net.ipv4.tcp_rmem=4096 131072 6291456"])
    n1.host.run(["sysctl", "-q", "-p", BOOT_FILE])
    assert read(n1) == after
    assert "There is nothing to be changed." in n1.run("tune", "--apply", *LINE).out
    # For a faster line there is; and back it goes to what was there before the first time.
    n1.run("tune", "--apply", "--rate", "20Gbit", "--rtt", "20")
    assert read(n1)["net.ipv4.tcp_rmem"] == ["4097", "131073", str(2 * BUFFER)]
    restored = json.loads(n1.run("tune", "--undo", "--json").out)["restored"]
    assert {"name": "net.ipv4.tcp_rmem", "value": "4097 131073 6291457"} in restored
    assert read(n1) == before
    assert not has_boot_file(n1)
    again = n1.run("tune", "--undo", check=False)
    assert again.rc == 1 and "weft tune has changed nothing here" in again.err


def test_who_may_not(n1: AgentNode) -> None:
    """Neither who is not root, nor where /proc/sys is read-only: each is told so, in a sentence."""
    before = read(n1)
    done = n1.host.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                        n1.weft, "tune", "--apply", *LINE], check=False)
    assert done.rc == 1 and "only root may change the kernel's settings" in done.err
    done = n1.host.run(
        ["unshare", "-m", "sh", "-c",
         'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec "$@"',
         "sh", n1.weft, "tune", "--apply", *LINE], check=False)
    assert done.rc == 1 and "/proc/sys is mounted read-only here" in done.err
    assert read(n1) == before and not has_boot_file(n1)
