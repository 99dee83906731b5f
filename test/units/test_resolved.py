"""Where systemd-resolved resolves names: it takes the network's to the node, and no others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for

from . import container
from .conftest import TOPOLOGY, Site, running
from .container import Container

pytestmark = pytest.mark.namespaces

LINK_FILE = "/run/weft/resolved.json"
HELPER = "weft-resolved.service"
PATH_UNIT = "weft-resolved.path"
DOMAIN = "~default.weft"


class Resolved(Container):
    packages = ("dbus", "systemd-resolved")

    def join(self, site: Site, *words: str) -> None:
        """Without lines in the hosts file, which systemd-resolved would answer from."""
        self.run(["weft", "join", site.token(), "--name", "m", "--engine", "userspace",
                  "--no-hosts", *words], timeout_s=60)

    def address(self) -> str:
        said = self.run(["weft", "status", "--json"], quiet=True).out
        return json.loads(said)["self"]["address4"]

    def link(self, what: str) -> str:
        """What systemd-resolved has for weft0, as "dns"; "" where it has nothing."""
        said = self.run(["resolvectl", what, "weft0"], check=False, quiet=True)
        return said.out.partition(": ")[2].strip() if said.rc == 0 else ""

    def query(self, name: str) -> str:
        return self.run(["resolvectl", "query", "--legend=no", name], check=False).out

    def wait_told(self) -> None:
        # An agent's unit counts as started before its socket is there.
        wait_for(lambda: self.run(["weft", "status"], check=False, quiet=True).rc == 0, 20,
                 "the agent to answer")
        wait_for(lambda: self.address() in self.link("dns").split(), 40,
                 "systemd-resolved to be told")


@pytest.fixture(scope="module")
def machine(weft: Path) -> Iterator[tuple[Site, Resolved]]:
    reason = container.why_not(weft, Resolved.packages)
    if reason:
        pytest.skip(reason)
    with Lab.from_text(TOPOLOGY, capture=False) as lab, Resolved(lab.host("m"), weft) as m:
        m.run(["systemctl", "is-active", "--wait", "systemd-resolved"])
        with running(weft, lab, m) as site:
            yield site, m


@pytest.fixture
def joined(machine: tuple[Site, Resolved]) -> Iterator[tuple[Site, Resolved]]:
    site, m = machine
    m.join(site)
    yield machine
    m.run(["weft", "leave"], timeout_s=60)


def test_is_asked_for_the_names_of_the_network_alone(joined: tuple[Site, Resolved]) -> None:
    site, m = joined
    far = site.status_of_u()["self"]["address4"]
    m.wait_told()
    assert m.link("domain") == DOMAIN
    assert m.link("default-route") == "no"
    assert far in m.query("u.default.weft")
    # As a program asks, by the name server that systemd-resolved itself is.
    found = m.run(["getent", "ahostsv4", "u.default.weft"], check=False).out
    assert found.startswith(far)
    assert "not found" in m.query("nobody.default.weft")
    # There is no other name server, and the node is none for these.
    for name in ("nobody.weft", "example.com"):
        assert "No appropriate name servers" in m.query(name)
    assert m.run(["journalctl", "--output=cat", f"--unit={HELPER}", "--priority=warning"],
                 check=False).out.strip() in ("", "-- No entries --")


def test_follows_the_interface(joined: tuple[Site, Resolved]) -> None:
    site, m = joined
    m.wait_told()
    m.run(["systemctl", "stop", "weft-agent"])
    m.run(["weft", "agent", "--take-down"])
    assert m.link("dns") == ""
    assert DOMAIN not in m.run(["resolvectl", "domain"]).out
    m.run(["systemctl", "start", "weft-agent"])
    wait_for(lambda: m.run(["weft", "status"], check=False, quiet=True).rc == 0, 20,
             "the agent to answer")
    m.wait_told()
    assert site.status_of_u()["self"]["address4"] in m.query("u.default.weft")


def test_survives_a_new_start_of_systemd_resolved(joined: tuple[Site, Resolved]) -> None:
    _, m = joined
    m.wait_told()
    m.run(["systemctl", "restart", "systemd-resolved"])
    m.wait_told()
    assert m.link("domain") == DOMAIN


def test_believes_no_other_address(joined: tuple[Site, Resolved]) -> None:
    """The agent's user may write what it likes."""
    site, m = joined
    m.wait_told()
    real = m.link("dns")
    lie = json.loads(m.run(["cat", LINK_FILE]).out)
    lie["address4"] = site.status_of_u()["self"]["address4"]
    m.run(["sh", "-e", "-c", f"cat > {LINK_FILE}.new; mv {LINK_FILE}.new {LINK_FILE}"],
          stdin=json.dumps(lie))
    refusal = f"{lie['address4']} is no address of weft0"
    wait_for(lambda: any(refusal in line for line in m.journal(HELPER)), 20,
             "root's side to refuse it")
    assert m.link("dns") == real
    m.run(["systemctl", "reset-failed", HELPER], check=False)


def test_the_unit_does_nothing_else(joined: tuple[Site, Resolved]) -> None:
    """It has the agent's options, which say there how an agent is started."""
    _, m = joined
    m.wait_told()
    m.run(["resolvectl", "revert", "weft0"])
    m.run(["weft", "agent", "--tell-resolved", "--watched", "--background"], timeout_s=60)
    assert m.address() in m.link("dns").split()


def test_is_told_of_no_node_without_a_resolver(machine: tuple[Site, Resolved]) -> None:
    site, m = machine
    m.run(["rm", "-f", LINK_FILE])
    m.join(site, "--no-dns")
    try:
        assert m.link("dns") == ""
        assert DOMAIN not in m.run(["resolvectl", "domain"]).out
        assert m.run(["test", "-e", LINK_FILE], check=False).rc != 0
    finally:
        m.run(["weft", "leave"], timeout_s=60)


def test_nothing_is_left_after_leaving(machine: tuple[Site, Resolved]) -> None:
    site, m = machine
    m.join(site)
    m.wait_told()
    m.run(["weft", "leave"], timeout_s=60)
    assert "weft" not in m.run(["resolvectl", "domain"]).out
    assert "weft" not in m.run(["resolvectl", "dns"]).out


def test_is_told_by_the_unit_alone(machine: tuple[Site, Resolved]) -> None:
    """The agent, which is not root, cannot tell it."""
    site, m = machine
    m.run(["rm", "-f", LINK_FILE])
    m.run(["systemctl", "mask", "--runtime", "--now", PATH_UNIT])
    m.join(site)
    try:
        # The agent has done its part.
        wait_for(lambda: m.run(["test", "-s", LINK_FILE], check=False, quiet=True).rc == 0, 60,
                 "the agent to write down what is to be told")
        assert m.link("dns") == ""
        assert "No appropriate name servers" in m.query("u.default.weft")
        m.run(["systemctl", "unmask", "--runtime", PATH_UNIT])
        m.run(["systemctl", "restart", "weft-agent"])
        assert m.property(PATH_UNIT, "ActiveState") == "active"
        m.wait_told()
        assert site.status_of_u()["self"]["address4"] in m.query("u.default.weft")
    finally:
        m.run(["systemctl", "unmask", "--runtime", PATH_UNIT])
        m.run(["weft", "leave"], timeout_s=60)
