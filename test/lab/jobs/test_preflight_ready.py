"""What is wrong with a member itself, one thing at a time: weft preflight names it, and no other.

    hub ── [ wan ] ──┬── n1   asks
                     ├── n2
                     └── n3   has each fault in turn

The packages of torch that they have are folders of the tests, and so is a verbs device of n3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support.agents import Site
from lab.support.devices import VERBS, Devices
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

NO = 3  # exit status of a job that would not run
NODES = ("n1", "n2", "n3")
TOPOLOGY = one_switch("wan", "203.0.113",
                      {"hub": 10, **{name: 11 + i for i, name in enumerate(NODES)}})
# Where a virtual environment of the machine is looked for; each machine has one of its own.
PACKAGES = "/opt/venv/lib/python3.11/site-packages"
# So that a job without weft run would take the overlay.
PLAIN = {"NCCL_SOCKET_IFNAME": "=weft0", "GLOO_SOCKET_IFNAME": "weft0"}


def install_torch(host: Host, version: str) -> None:
    host.run(["sh", "-c", f"rm -rf {PACKAGES}/torch-*; "
                          f"mkdir -p {PACKAGES}/torch-{version}.dist-info"], quiet=True)


class Members(Site):
    def __init__(self, lab: Lab, weft: Path) -> None:
        super().__init__(lab, weft, versions=(4,))
        for name in NODES:
            lab.host(name).run(["mount", "-t", "tmpfs", "-o", "mode=0755", "none", "/opt"],
                               quiet=True)
            install_torch(lab.host(name), "2.6.0")
        self.devices = Devices(lab.host("n3"))
        # n3 says what names lead elsewhere, and what its machine is called.
        self.join(*NODES, allow={"n3": [".*"]})
        wait_for(lambda: len(self.nodes["n1"].peers()) == len(NODES) - 1, 20, "n1 to know all")

    def start_n3(self, *before: str) -> None:
        """Its agent anew, with these words before its command."""
        node = self.nodes["n3"]
        node.agent.stop()
        node.agent = node.host.spawn([*before, self.weft, "agent"], name="agent", allow=[".*"])
        node.agent.wait_line("the hub answers", 20)

    def preflight(self, *words: str, env: Mapping[str, str] | None = None) -> dict:
        """What is graver than a note, with what is seen, by fault, code and node."""
        done = self.lab.host("n1").run([self.weft, "preflight", "--json", "--quick", *words],
                                       check=False, env=env, timeout_s=120)
        assert done.rc in (0, NO), done.err
        report = json.loads(done.out)
        assert (done.rc == NO) == (report["verdict"] == "no")
        return {(one["fault"], one["code"], one["level"], *one["nodes"]): one["text"]
                for one in report["findings"] if one["level"] in ("warn", "no")}

    def wait_found(self, wanted: tuple[str, ...] | None, *words: str,
                   env: Mapping[str, str] | None = None) -> str:
        """Until that alone is found, None: nothing; gives what is said of it. What is written in
        the hosts file beside it takes some seconds."""
        found: dict = {}

        def look() -> bool:
            found.clear()
            found.update(self.preflight(*words, env=env))
            return set(found) == ({wanted} if wanted else set())

        wait_for(look, 30, f"what is found to be {wanted}")
        return found.get(wanted, "")


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Members]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Members(lab, weft)
        site.wait_found(None)
        site.wait_found(None, "--plain", env=PLAIN)
        yield site


def test_a_name_that_leads_elsewhere(site: Members) -> None:
    n3 = site.lab.host("n3")
    n3.run(["sh", "-c", "cp /etc/hosts /run/before; echo 203.0.113.10 n2 >> /etc/hosts"])
    assert site.wait_found(("names", "WEFT-READY-003", "warn", "n3")) == \
        "on n3 n2 leads to 203.0.113.10, which is not its overlay address"
    n3.run(["cp", "/run/before", "/etc/hosts"])
    site.wait_found(None)


def test_a_host_name_that_nobody_knows(site: Members) -> None:
    """Since it is none of DNS. It matters to who starts a job without weft run."""
    n3 = site.lab.host("n3")
    n3.run(["sysctl", "-q", "-w", "kernel.hostname=gpu_17"])
    said = site.wait_found(("host-name", "WEFT-READY-004", "no", "n3"), "--plain", env=PLAIN)
    assert said == ('torch 2.6.0 has rank 0 announce its host name, and that of n3, "gpu_17", '
                    "is no name that others are told")
    site.wait_found(None)
    n3.run(["sysctl", "-q", "-w", "kernel.hostname=n3"])
    site.wait_found(None, "--plain", env=PLAIN)


def test_memory_that_cannot_be_locked(site: Members) -> None:
    """It matters to a machine that has a verbs device."""
    site.start_n3("prlimit", "--memlock=65536:65536")
    site.wait_found(None)
    site.devices.add_port("mlx5_0")
    said = site.wait_found(("memlock", "WEFT-READY-006", "warn", "n3"))
    assert said.startswith("on n3 a program may lock 65536 bytes of memory, and its RDMA device ")
    site.devices.take_away(f"{VERBS}/mlx5_0")
    site.start_n3()
    site.wait_found(None)


def test_versions_that_differ(site: Members) -> None:
    install_torch(site.lab.host("n3"), "2.5.1")
    assert site.wait_found(("versions", "WEFT-READY-007", "warn", "n3")) == \
        "n3 has torch 2.5.1, and n1 has 2.6.0"
    install_torch(site.lab.host("n3"), "2.6.0")
    site.wait_found(None)
