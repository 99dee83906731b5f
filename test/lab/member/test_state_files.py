"""The files in which a node keeps what it is: damaged ones, and a disk without room."""

from __future__ import annotations

import pytest
from lab.support.agents import STATE

from .conftest import Pair

pytestmark = pytest.mark.namespaces


@pytest.mark.parametrize("file", ["node.json", "snapshot.json"])
def test_damaged_file_is_named_and_kept(site: Pair, file: str) -> None:
    site.n1.join(site.token())
    site.n1.agent.stop()
    path = f"{STATE}/{file}"
    half = site.n1.host.run(["sh", "-c", f"head -c 150 {path}"], quiet=True).out
    site.n1.host.run(["sh", "-c", f"cat > {path}"], stdin=half, quiet=True)
    agent = site.n1.host.spawn([site.weft, "agent"], name="agent", allow=[path])
    agent.wait_line(rf"{path} is damaged: ")
    if file == "node.json":
        assert agent.wait() == 1
        refused = site.n1.run("join", site.token(), check=False)
        assert refused.rc == 1
        assert f"{path} is damaged" in refused.err
    else:
        # The node is known without it, and the hub tells the rest.
        agent.wait_line("the hub answers")
        agent.stop()
    assert site.n1.host.run(["cat", path], quiet=True).out == half


def test_full_disk(site: Pair) -> None:
    """A join that cannot keep its key does not enrol; it succeeds once there is room."""
    site.n1.host.run(["mkdir", "-p", STATE])
    site.n1.host.run(["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=20", "none", STATE])
    site.n1.host.run(["sh", "-c", f"head -c 4096 /dev/zero > {STATE}/ballast"])
    token = site.token()
    refused = site.n1.run("join", token, "--name", "n1", check=False)
    assert refused.rc == 1
    assert "No space left on device" in refused.err
    assert STATE in refused.err
    assert "n1" not in site.node_names()
    site.n1.host.run(["mount", "-o", "remount,size=1m", STATE])
    site.n1.join(token)
