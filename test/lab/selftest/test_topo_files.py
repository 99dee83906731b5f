"""The topologies that tests and the demo share do what their heads say."""

from __future__ import annotations


import pytest
from lab import Lab
from lab.support import TOPOLOGIES
from lab.support.prober import Prober

pytestmark = pytest.mark.namespaces

NODES = ("n1", "n2", "n3", "n4")


def test_two_providers():
    with Lab.from_file(TOPOLOGIES / "two-providers.topo") as lab:
        hub = lab.host("hub")
        for name in NODES:
            lab.host(name).run(["ping", "-c1", "-W15", hub.address()])
            v6 = lab.host(name).run(["ip", "-6", "route", "show", "default"]).out
            assert v6 == "", f"{name} should have IPv4 only"
        with Prober(lab.host("n1")) as n1, Prober(lab.host("n3")) as n3, \
                Prober(hub, port=51820) as asked, Prober(hub, port=51821) as other:
            assert seen(n1, asked) == seen(n1, other) == ("203.0.113.10", n1.port)
            assert seen(n3, asked)[0] == "192.0.2.10"
            assert seen(n3, asked) != seen(n3, other)
        done = lab.host("n1").run(["ping", "-c1", "-W1", "10.2.0.13"], check=False)
        assert done.rc != 0, "providers must not reach each other's inside"


def test_two_providers_with_v6():
    with Lab.from_file(TOPOLOGIES / "two-providers-v6.topo") as lab:
        hub6 = lab.host("hub").address(6)
        for name in NODES:
            lab.host(name).run(["ping", "-c1", "-W15", lab.host("hub").address()])
            lab.host(name).run(["ping", "-c1", "-W15", hub6])
        with Prober(lab.host("n1"), lab.host("n1").address(6)) as n1, \
                Prober(lab.host("hub"), hub6) as asked:
            assert seen(n1, asked) == n1.endpoint
        unasked = ["ping", "-c1", "-W1", lab.host("n1").address(6)]
        assert lab.host("hub").run(unasked, check=False).rc == 1
        assert lab.host("n3").run(unasked, check=False).rc == 1


def seen(sender: Prober, receiver: Prober) -> tuple[str, int]:
    """The endpoint from which the receiver sees the sender."""
    sender.send(receiver.endpoint, "hello")
    return receiver.receives("hello")
