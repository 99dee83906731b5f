"""What the daemons keep of root's rights, and that they do their work with it.

      hub  n1  n2
       |    |   |
    ---+----+---+--- wan
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support.agents import ENGINE_AWAY, Site
from lab.support.network.process import Result
from lab.support.topologies import one_switch

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12}, v6=True)

WEFT_USER = 777  # as the lab's machines have it
NET_BIND_SERVICE, NET_BROADCAST, NET_ADMIN = 1 << 10, 1 << 11, 1 << 12
SYS_RESOURCE = 1 << 24
WG_ALONE = NET_ADMIN | NET_BIND_SERVICE | NET_BROADCAST

pytestmark = pytest.mark.namespaces


@dataclass(frozen=True)
class Process:
    """Of /proc/PID/status."""

    pid: int
    fields: dict[str, str]

    @classmethod
    def of(cls, pid: int) -> Process:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        return cls(pid, dict(line.split(":\t", 1) for line in lines if ":\t" in line))

    @property
    def users(self) -> set[int]:
        return {int(word) for word in (self.fields["Uid"] + "\t" + self.fields["Gid"]).split()}

    def capabilities(self) -> int:
        """That it has, and could ever have."""
        assert self.fields["CapPrm"] == self.fields["CapEff"] == self.fields["CapBnd"]
        return int(self.fields["CapEff"], 16)

    def assert_confined(self) -> None:
        assert self.fields["NoNewPrivs"] == "1"
        if not os.environ.get("WEFT_SANITIZER"):
            assert self.fields["Seccomp"] == "2", "no list of system calls"
            # Of a process that cannot be dumped or traced these files are root's.
            assert os.stat(f"/proc/{self.pid}/environ").st_uid == 0
        limits = Path(f"/proc/{self.pid}/limits").read_text(encoding="utf-8")
        assert "Max core file size        0                    0" in limits


def find_all(host: Host, *words: str) -> list[Process]:
    """The processes of a machine whose command line, but for its path, begins with these."""
    mine = os.stat(f"/proc/{host.namespace.pid}/ns/net").st_ino
    found = []
    for entry in Path("/proc").iterdir():
        try:
            argv = (entry / "cmdline").read_bytes().decode().split("\0")
            argv[0] = Path(argv[0]).name
            if entry.name.isdigit() and argv[: len(words)] == list(words) and \
                    os.stat(entry / "ns/net").st_ino == mine:
                found.append(Process.of(int(entry.name)))
        except (OSError, ValueError):
            continue
    return found


def find(host: Host, *words: str) -> Process:
    """The only one of them that is no child of another."""
    found = find_all(host, *words)
    own = [one for one in found if one.fields["PPid"] not in {str(each.pid) for each in found}]
    assert len(own) == 1, [one.fields for one in found]
    return own[0]


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield Site(lab, weft)


def may_lift_limits() -> bool:
    """Whether root here may lift the limit of locked memory; in some containers it may not."""
    return bool(int(Process.of(os.getpid()).fields["CapEff"], 16) & SYS_RESOURCE)


def owner(host: Host, path: str) -> str:
    return host.run(["stat", "-c", "%U:%G %a", path], quiet=True).out.strip()


def test_daemons_run_as_weft(site: Site, weft: Path) -> None:
    """As a user, with what is needed for the network, and with everything working."""
    n1, n2 = site.join("n1", "n2", words={"n1": ["--engine", "userspace"],
                                          "n2": ["--engine", "userspace"]})
    n1.reaches(n2)
    n1.reaches(n2, version=6)
    for host, words, capabilities in (
            (site.hub, ("weft", "hub"), NET_ADMIN),
            (n1.host, ("weft", "agent"), NET_ADMIN | NET_BIND_SERVICE),
            (n1.host, ("wg",), NET_ADMIN | NET_BIND_SERVICE)):
        process = find(host, *words)
        process.assert_confined()
        assert process.users == {WEFT_USER}, words
        assert process.capabilities() == capabilities, words
        if may_lift_limits() and not os.environ.get("WEFT_SANITIZER"):
            assert process.fields["VmLck"].strip() != "0 kB", "keys could be swapped out"
        assert process.fields["Groups"].strip() == ""
    assert owner(site.hub, "/var/lib/weft/hub") == "weft:weft 700"
    assert owner(site.hub, "/var/lib/weft/hub/hub.db").startswith("weft:weft ")
    assert owner(n1.host, "/var/lib/weft/node/node.json") == "weft:weft 600"
    assert owner(n1.host, "/run/weft/agent.sock") == "weft:weft 600"
    # Names come from the helper, which is root, and nothing else.
    wait_for(lambda: "n2.default.weft" in n1.host.run(["cat", "/etc/hosts"], quiet=True).out, 10,
             "the names")
    assert owner(n1.host, "/etc/hosts").startswith("root:root ")
    agent = find(n1.host, "weft", "agent")
    children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text(encoding="utf-8")
    helpers = [Process.of(int(pid)) for pid in children.split()]
    helpers = [one for one in helpers if one.fields["Name"] == "weft-hosts"]
    assert len(helpers) == 1 and helpers[0].users == {0} and helpers[0].capabilities() == 0
    helpers[0].assert_confined()
    n1.host.run([weft, "leave"])
    assert "n2.default.weft" not in n1.host.run(["cat", "/etc/hosts"], quiet=True).out


def test_agent_comes_back(site: Site) -> None:
    """Also after a kill, with files that root has touched meanwhile, and with its engine gone."""
    n1, n2 = site.join("n1", "n2", words={"n1": ["--engine", "userspace"]})
    n1.reaches(n2)
    n1.agent.kill9()
    n1.host.run(["chown", "-R", "root:root", "/var/lib/weft/node", "/run/weft"])
    n1.host.run(["chmod", "700", "/var/lib/weft/node"])
    n1.start()
    n1.reaches(n2)
    n1.agent.allow(ENGINE_AWAY)
    os.kill(find(n1.host, "wg").pid, 9)
    n1.reaches(n2, within_s=20)
    assert find(n1.host, "wg").users == {WEFT_USER}


def test_group_reads_and_runs(site: Site, weft: Path) -> None:
    """Members of the group weft look, measure and run jobs; they do not administer."""
    n1, n2 = site.join("n1", "n2")
    n1.reaches(n2)
    site.wait_paths({("n1", "n2"): {"lan", "direct"}}, 20)

    def member(host: Host, *words: object, groups: str = "777", rc: int = 0) -> Result:
        argv = ["setpriv", "--reuid=4242", "--regid=4242", f"--groups={groups}", weft, *words]
        done = host.run(argv, check=False, timeout_s=60)
        assert done.rc == rc, done.err
        return done

    assert owner(n1.host, "/run/weft/agent.sock.users") == "weft:weft 660"
    assert "n2" in member(n1.host, "status").out
    assert "n2" in member(n1.host, "paths", "n2").out
    assert "weft0" in member(n1.host, "env").out
    assert member(n1.host, "run", "--nnodes", "1", "--quiet", "--", "id", "-u").out == "4242\n"
    assert "n2" in member(n1.host, "preflight").out
    assert "n1" in member(site.hub, "nodes").out
    # Nothing is changed by them, and others see nothing.
    assert "role" in member(site.hub, "token", "new", rc=1).err
    member(n1.host, "leave", rc=1)
    refused = member(n1.host, "status", groups="4343", rc=1)
    assert "become a member of the group weft" in refused.err
    assert n1.status()["self"]["name"] == "n1"


def test_probe_has_nothing(site: Site, weft: Path) -> None:
    n1, n2 = site.join("n1", "n2")
    n1.reaches(n2)
    probe = n1.host.spawn([weft, "probe"], name="probe")
    probe.wait_line("n2 is reached over ipv4")
    process = find(n1.host, "weft", "probe")
    process.assert_confined()
    assert process.users == {WEFT_USER} and process.capabilities() == 0


MEASURING = ("exe", "measuring")


def threads(process: Process) -> set[str]:
    return {(task / "comm").read_text(encoding="utf-8").strip()
            for task in Path(f"/proc/{process.pid}/task").iterdir()}


def test_measuring_has_nothing(site: Site, weft: Path) -> None:
    """Members are served by a process without capabilities, which is there again when it dies."""
    killed = ["lets members measure this node has ended; it is started again"]
    n1, n2 = site.join("n1", "n2", words={"n2": ["--engine", "userspace"]},
                       allow={"n1": killed, "n2": killed})
    n1.reaches(n2)
    for node in (n1, n2):
        process = find(node.host, *MEASURING)
        process.assert_confined()
        assert process.users == {WEFT_USER}
        assert {int(process.fields[f"Cap{which}"], 16) for which in ("Prm", "Eff", "Inh", "Amb")} \
            == {0}
        agent = find(node.host, "weft", "agent")
        assert process.fields["PPid"] == str(agent.pid)
        assert "measure" in threads(process) and "measure" not in threads(agent)
        environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        assert not [word for word in environment if word.startswith(b"PATH=")]
    assert owner(n1.host, "/run/weft/agent.sock.measure") == "weft:weft 660"
    assert "n2" in n1.host.run([weft, "preflight"], timeout_s=60).out
    # One that ends is started again, and is told everything again: here, and at who is asked.
    for node in (n1, n2):
        before = find(node.host, *MEASURING).pid
        os.kill(before, 9)
        node.agent.wait_line(killed[0])
        wait_for(lambda node=node, before=before: [
            one.pid for one in find_all(node.host, *MEASURING) if one.pid != before], 10,
            "another process")

    def is_measured() -> bool:
        done = n1.host.run([weft, "preflight"], check=False, timeout_s=60)
        return done.rc == 0 and "n2" in done.out

    wait_for(is_measured, 30, "a pre-flight with both")
    # It does not outlive its agent, however that ends, and leaves no socket when all is well.
    n1.agent.kill9()
    wait_for(lambda: not find_all(n1.host, *MEASURING), 10, "the end of its measuring process")
    n1.start()
    wait_for(is_measured, 30, "a pre-flight after the agent's new start")
    n2.agent.stop()
    assert not find_all(n2.host, *MEASURING)
    assert n2.host.run(["test", "-e", "/run/weft/agent.sock.measure"], check=False).rc == 1


def test_no_measuring_process(site: Site, weft: Path) -> None:
    """Who does not let itself be measured has none; and none does anything without its agent."""
    n1, = site.join("n1")
    find(n1.host, *MEASURING)
    n1.agent.stop()
    n1.host.spawn([weft, "agent", "--no-measure"], name="agent").wait_line("the hub answers", 20)
    assert not find_all(n1.host, *MEASURING)
    refused = n1.host.run([weft, "measuring"], check=False)
    assert refused.rc != 0 and '"weft agent" starts this by itself' in refused.err


def test_wg_alone(site: Site, weft: Path) -> None:
    """For wg(8) and wg-quick(8): ports below 1024 can be set at any time."""
    n1 = site.lab.host("n1")
    n1.run([weft, "wg", "wg0"])
    process = find(n1, "wg")
    process.assert_confined()
    assert process.users == {WEFT_USER}
    assert process.capabilities() == WG_ALONE
    n1.run(["wg", "set", "wg0", "listen-port", "443"])
    assert n1.run(["wg", "show", "wg0", "listen-port"]).out.strip() == "443"
    n1.run(["ip", "link", "del", "wg0"])


def test_low_port_of_hub(weft: Path) -> None:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft, "--api", ":443")
        assert find(site.hub, "weft", "hub").capabilities() == NET_ADMIN | NET_BIND_SERVICE
        site.hub.run([weft, "network", "add", "other", "--cidr4", "10.43.0.0/16"])
        site.join("n1")


def test_no_such_user(site: Site, weft: Path) -> None:
    """Root stays root, without root's capabilities, and says so; a user of one's own must exist."""
    n1 = site.lab.host("n1")
    n1.run(["sed", "-i", "/^weft:/d", "/etc/passwd"])
    daemon = n1.spawn([weft, "wg", "-f", "wg0"], env={"LOG_LEVEL": "info"})
    daemon.wait_line('stays root, as there is no user "weft"')
    process = find(n1, "wg")
    process.assert_confined()
    assert process.users == {0} and process.capabilities() == WG_ALONE
    refused = n1.run([weft, "wg", "-f", "wg1", "--user", "nobody-at-all"], check=False)
    assert refused.rc == 1
    assert '--user "nobody-at-all": there is no such user' in refused.err


def test_user_without_a_way_to_the_state(site: Site, weft: Path) -> None:
    """What only root can reach is named with the user."""
    n1 = site.lab.host("n1")
    n1.run(["install", "-d", "-m", "700", "/run/closed"])
    daemon = n1.spawn([weft, "hub", "up", "--state", "/run/closed/hub", "--public", n1.address()],
                      name="closed")
    daemon.wait_line('stays root, as the user "weft" cannot use "/run/closed/hub"')


def test_restored_on_another_machine(site: Site, weft: Path) -> None:
    """Where there was no state that somebody owned, root restores it, and the hub can read it."""
    hub = site.hub
    site.join("n1")
    hub.run([weft, "hub", "backup", "/var/lib/weft/copy"])
    site.daemon.stop()
    hub.run(["rm", "-r", "/var/lib/weft/hub"])
    hub.run([weft, "hub", "restore", "/var/lib/weft/copy"])
    assert owner(hub, "/var/lib/weft/hub/keys") == "root:root 700"
    site.start_hub()
    assert find(hub, "weft", "hub").users == {WEFT_USER}
    assert owner(hub, "/var/lib/weft/hub/keys/default.key") == "weft:weft 600"
    assert set(site.hub_nodes()) == {"hub", "n1"}


def test_started_without_root(site: Site, weft: Path) -> None:
    """By a service manager that has made it a user with ambient capabilities already."""
    hub = site.hub
    site.daemon.stop()
    hub.run(["chown", "-R", "weft:weft", "/var/lib/weft", "/run/weft", "/run/wireguard"])
    again = hub.spawn(["setpriv", "--reuid=777", "--regid=777", "--clear-groups",
                       "--inh-caps=-all,+net_admin", "--ambient-caps=-all,+net_admin",
                       weft, "hub", "up", "--public", hub.address(4)], name="unprivileged")
    again.wait_line("weft hub is up")
    process = find(hub, "weft", "hub")
    assert process.users == {WEFT_USER}
    assert int(process.fields["CapEff"], 16) == NET_ADMIN
    site.join("n1")


def test_foreign_directory_stays(site: Site, weft: Path, tmp_path: Path) -> None:
    """A directory that others may enter is perhaps not the daemon's, and is not given away."""
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    n1 = site.lab.host("n1")
    daemon = n1.spawn([weft, "hub", "up", "--public", "203.0.113.11", "--state", shared,
                       "--no-dataplane"], name="hub")
    daemon.wait_line("stays root, as others may enter")
    daemon.wait_line("weft hub is up")
    info = shared.stat()
    assert info.st_uid == 0 and stat.S_IMODE(info.st_mode) == 0o755
