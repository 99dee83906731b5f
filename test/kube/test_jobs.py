"""Real torchrun jobs on hubs that share a Kubernetes cluster as their store.

Three hubs, as in lab/jobs/test_hub_owner_loss.py, each of which reaches the API server at a port of
its own host. The one that serves the jobs is killed: another one takes them over with all that was
in them, out of the Records.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.three_hubs import (
    HUBS, NODES, ThreeHubs, finish_after_takeover, topology, wait_training,
)

from .cluster import SERVER_AWAY, Cluster
from .test_agents import fixture_socket, reach_api  # noqa: F401 (pytest takes it by its name)

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/torch").exists(),
                       reason="python3-torch is not installed"),
]


@pytest.fixture(name="site")
def fixture_site(cluster: Cluster, namespace: str, socket: Path, weft: Path) -> Iterator[ThreeHubs]:
    url = f"kubernetes:?namespace={namespace}&kubeconfig={cluster.kubeconfig()}"
    with Lab.from_text(topology(), capture=False) as lab:
        for name in HUBS:
            reach_api(lab, name, cluster, socket)
        site = ThreeHubs(lab, weft, url, allow=[SERVER_AWAY])
        yield site
        site.stop()


def keep(site: ThreeHubs, *words: str) -> dict:
    """A call of etcd's keys at whichever hub serves them."""
    url = "http://rendezvous.default.weft:2379/v2/keys/step"
    said = site.lab.host("a").run(["curl", "-s", "-m", "2", *words, url], check=False, quiet=True)
    return json.loads(said.out or "{}").get("node", {})


# Jobs know nothing of the server's version.
@pytest.mark.parametrize("cluster", ["1.20"], indirect=True)
def test_the_owner_of_the_jobs_rendezvous_is_killed(site: ThreeHubs, cluster: Cluster,
                                                    namespace: str) -> None:
    wait_for(lambda: all(map(site.knows_all, NODES)), 30, "each node to know each hub")
    owner = wait_for(site.owner, 10, "a hub to serve the rendezvous")
    wait_for(lambda: keep(site, "-X", "PUT", "-d", "value=41").get("value") == "41", 20,
             "a key to be kept")
    jobs = {"fixed": site.start_job("2", "fixed"),
            "etcd": site.start_job("2:3", "etcd", "--rendezvous", "etcd-v2")}
    for job in jobs.values():
        wait_training(job)
    listed = json.loads(site.lab.host(owner).run([site.weft, "jobs", "--json"], quiet=True).out)
    assert {"fixed", "etcd"} <= {job["job"] for job in listed["jobs"]}
    site.hubs[owner].kill9()
    lost_at = time.monotonic()
    finish_after_takeover(site, owner, jobs, lost_at)
    wait_for(lambda: keep(site).get("value") == "41", 20, "the other hub to have the key")
    # All of it is in the cluster, and nowhere else.
    assert cluster.get("-n", namespace, "records.weft.dev")["items"]
