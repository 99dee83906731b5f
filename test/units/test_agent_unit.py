"""weft-agent.service and weft-probe.service, on both engines, from `weft join` to `weft leave`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from lab import Result, wait_for
from lab.support.agents import STATE
from lab.support.pinging import LONGEST_GAP_S, Pings

from .conftest import Site
from .machine import SystemdMachine
from .sandbox import assert_in_force, capabilities

pytestmark = pytest.mark.namespaces

AGENT, PROBE = "weft-agent.service", "weft-probe.service"


@dataclass(frozen=True)
class Node:
    """The machine as a node."""

    site: Site
    engine: str
    said: str  # by `weft join`

    @property
    def m(self) -> SystemdMachine:
        return self.site.m

    def run(self, *words: str, check: bool = True) -> Result:
        return self.m.run(["weft", *words], check=check, timeout_s=60)

    def status(self) -> dict:
        return json.loads(self.m.run(["weft", "status", "--json"], quiet=True).out)

    def address_of(self, name: str) -> str:
        """As the machine's own programs would find it; "" when they do not."""
        found = self.m.run(["getent", "ahostsv4", name], check=False, quiet=True).out.split()
        return found[0] if found else ""

    def reaches(self, name: str) -> bool:
        return self.m.run(["ping", "-c1", "-W2", name], check=False, quiet=True).rc == 0

    def data_plane(self) -> str:
        """What makes the interface: a process, or the link in the kernel."""
        if self.engine == "userspace":
            return self.m.run(["pgrep", "-x", "weft-wg"], quiet=True).out
        return self.m.run(["ip", "-o", "link", "show", "weft0"], quiet=True).out.split(":")[0]

    def wait_agent(self) -> None:
        wait_for(lambda: self.run("status", check=False).rc == 0, 20, "the agent to answer")


# Of what does not depend on the engine, one says enough; the virtual machine takes its time.
ON_ONE_ENGINE = pytest.mark.parametrize("node", ["userspace"], indirect=True)


@pytest.fixture(scope="module", params=["userspace", "kernel"])
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    site: Site = request.getfixturevalue(
        "kernel_site" if request.param == "kernel" else "site")
    said = site.m.run(["weft", "join", site.token(), "--name", "m", "--engine", request.param],
                      timeout_s=240).out
    node = Node(site, request.param, said)
    yield node
    if node.m.run(["test", "-e", f"{STATE}/node.json"], check=False).rc == 0:
        node.run("leave", check=False)


def pings_go_on(node: Node, harm: Callable[[], None]) -> None:
    """From another machine, through the tunnel, while `harm` is done to the agent."""
    pings = Pings(node.site.u, node.status()["self"]["address4"])
    data_plane = node.data_plane()
    harm()
    pings.wait_more()
    pings.stop()
    assert pings.longest_gap_s() < LONGEST_GAP_S
    assert node.data_plane() == data_plane


def test_join_starts_the_unit(node: Node) -> None:
    assert f"the agent runs the {node.engine} engine under systemd" in node.said
    assert node.m.property(AGENT, "UnitFileState") == "enabled"
    assert node.status()["self"]["engine"] == node.engine
    wait_for(lambda: node.reaches(node.address_of("u")), 30, "m to reach u by name")


def test_sandbox_is_in_force(node: Node) -> None:
    pid = node.m.main_pid(AGENT)
    assert_in_force(node.m, pid)
    # The last is for port 53 of its resolver.
    assert capabilities(node.m, pid) <= {"cap_net_admin", "cap_net_raw", "cap_net_bind_service"}
    if node.engine == "userspace":
        assert_in_force(node.m, int(node.data_plane()))


@pytest.mark.parametrize("node", ["kernel"], indirect=True)  # Its root may lift limits anywhere.
def test_members_hear_of_the_limit_that_others_have(node: Node) -> None:
    """An agent that root starts lifts its own limit of locked memory, and does not report that."""
    m = node.m

    def limit(pid: int) -> list[str]:
        text = m.run(["grep", "^Max locked memory", f"/proc/{pid}/limits"], quiet=True).out
        return text.split()[3:5]

    def children() -> list[str]:
        return m.run(["pgrep", "-P", m.main_pid("by-hand.service"), "-f", "measuring"],
                     check=False, quiet=True).out.split()

    m.run(["systemctl", "stop", AGENT])
    # As the unit has it: otherwise its child may end before it, which it would complain about.
    m.run(["systemd-run", "-q", "-p", "LimitMEMLOCK=8M", "-p", "KillMode=process",
           "--unit", "by-hand", "weft", "agent"])
    node.wait_agent()
    wait_for(children, 10, "the measuring process")
    assert limit(m.main_pid("by-hand.service")) == ["unlimited", "unlimited"]
    assert limit(int(children()[0])) == ["8388608", "8388608"]
    m.run(["systemctl", "stop", "by-hand"])
    m.run(["systemctl", "start", AGENT])
    node.wait_agent()


@ON_ONE_ENGINE
def test_names_come_and_go(node: Node) -> None:
    m, u = node.m, node.site.u
    far = node.site.status_of_u()["self"]["address4"]
    wait_for(lambda: node.address_of("u") == far, 20, "the name of u")
    u.run([node.site.weft, "leave"])
    wait_for(lambda: node.address_of("u") == "", 20, "the name to go")
    u.run([node.site.weft, "join", node.site.token(), "--name", "u"])
    far = node.site.status_of_u()["self"]["address4"]
    wait_for(lambda: node.address_of("u") == far, 20, "the name to be back")
    assert m.run(["cat", "/etc/hosts"]).out.startswith("127.0.0.1 localhost")


@ON_ONE_ENGINE
def test_names_survive_who_replaces_the_file(node: Node) -> None:
    """As editors and cloud-init do."""
    node.m.run(["sh", "-e", "-c", "sed 's/localhost/localhost anew/' /etc/hosts > /etc/hosts.new; "
                "sed -i '/weft/d' /etc/hosts.new; mv /etc/hosts.new /etc/hosts"])
    wait_for(lambda: node.address_of("u") != "", 20, "the name to be written again")
    assert node.address_of("anew") == "127.0.0.1"


@ON_ONE_ENGINE
def test_names_when_their_writer_ends(node: Node) -> None:
    node.m.run(["pkill", "-9", "-x", "weft-hosts"])
    node.m.run(["sed", "-i", "/weft/d", "/etc/hosts"])
    wait_for(lambda: node.address_of("u") != "", 20, "the name to be written again")


@ON_ONE_ENGINE
def test_roots_word_on_addresses_is_kept_from_the_agents_user(node: Node) -> None:
    """Beside the state, where the agent's user writes nothing; and only its own is given to it."""
    m = node.m
    assert json.loads(m.run(["cat", f"{STATE}.blocks"], quiet=True).out)["node"] == "m"
    before = m.run(["cat", "/etc/hosts"], quiet=True).out
    m.run(["sh", "-e", "-c", f"echo x > /root/victim; ln /root/victim {STATE}/second-name"])
    said = m.run(["setpriv", "--reuid=weft", "--regid=weft", "--clear-groups", "sh", "-c",
                  f"rm -f {STATE}.blocks; echo '{{}}' > {STATE}.blocks"], check=False)
    assert said.rc != 0
    # What an earlier version left: the state is given, root has written no blocks.
    m.run(["rm", f"{STATE}.blocks"])
    m.run(["systemctl", "restart", AGENT])
    node.wait_agent()
    assert json.loads(m.run(["cat", f"{STATE}.blocks"], quiet=True).out)["network"] == "default"
    assert m.run(["stat", "-c", "%U", f"{STATE}.blocks"], quiet=True).out.strip() == "root"
    # Another name of a file of root's is not given away with the state.
    assert m.run(["stat", "-c", "%U", "/root/victim"], quiet=True).out.strip() == "root"
    assert m.run(["stat", "-c", "%U", f"{STATE}/node.json"], quiet=True).out.strip() == "weft"
    m.run(["rm", "/root/victim", f"{STATE}/second-name"])
    wait_for(lambda: m.run(["cat", "/etc/hosts"], quiet=True).out == before, 20,
             "the names to be as they were")


def test_killed(node: Node) -> None:
    before = node.m.main_pid(AGENT)

    def kill() -> None:
        node.m.run(["kill", "-9", before])
        node.m.wait_other_pid(AGENT, before)
        node.wait_agent()

    pings_go_on(node, kill)


def test_killed_soon_after_a_node_has_joined(node: Node) -> None:
    """Before it has kept the snapshot: the next agent leaves that node's session alone."""
    u = node.site.u
    u.run([node.site.weft, "leave"])
    u.run([node.site.weft, "join", node.site.token(), "--name", "u"])
    test_killed(node)


def test_upgraded(node: Node) -> None:
    def upgrade() -> None:
        node.m.replace_program()
        node.m.run(["systemctl", "restart", AGENT])
        node.wait_agent()

    pings_go_on(node, upgrade)
    assert node.m.runs_present_program(node.m.main_pid(AGENT))


@ON_ONE_ENGINE
def test_probe(node: Node) -> None:
    node.m.run(["systemctl", "start", PROBE])
    wait_for(lambda: any("u is reached over ipv4" in line for line in node.m.journal(PROBE)), 20,
             "the probe to reach u")
    pid = node.m.main_pid(PROBE)
    assert_in_force(node.m, pid, has_keys=True)
    assert capabilities(node.m, pid) <= {"cap_net_raw"}
    node.m.run(["kill", "-9", pid])
    node.m.wait_other_pid(PROBE, pid)
    node.m.run(["systemctl", "stop", PROBE])


def test_leave(node: Node) -> None:
    said = node.run("leave").out
    assert said.startswith("Left the network default; the interface weft0 is gone.")
    assert node.address_of("u") == ""
    assert "weft" not in node.m.run(["cat", "/etc/hosts"]).out
    assert "weft0" not in node.m.run(["ip", "link"]).out
    wait_for(lambda: node.m.property(AGENT, "ActiveState") == "inactive", 20, "the unit to rest")
    assert node.site.status_of_u()["peers"] == []
