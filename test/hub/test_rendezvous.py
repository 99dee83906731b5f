"""The jobs of a network: which there are, who sees them, and when a new run begins."""

from __future__ import annotations

from .hub import Hub, member_call


def join(host, job: str) -> dict:
    status, answer = member_call(host, "POST", f"/v1/jobs/{job}/rendezvous")
    assert status == 200, answer
    return answer


def members(hub: Hub, *names: str) -> list:
    """These machines of the lab, enrolled in this order, so that their addresses fit."""
    hosts = [hub.lab.host(name) for name in names]
    for host in hosts:
        status, answer = hub.enrol(host, hub.secret(), name=host.name)
        assert status == 200, answer
    return hosts


def test_jobs_are_made_kept_and_shared(hub: Hub) -> None:
    a, b = members(hub, "a", "b")
    train = join(a, "train")
    assert train["run"] == "train.1" and train["job"] == "train"
    assert train["c10d"]["endpoint"] == f"10.42.0.1:{train['c10d']['port']}"
    assert join(b, "train") == train, "everybody meets at one place"
    other = join(b, "other")
    assert other["c10d"]["port"] != train["c10d"]["port"], "jobs are separate"
    hub.restart()
    assert join(b, "train") == train, "and the hub remembers it"
    _, answer = member_call(a, "GET", "/v1/jobs")
    assert [job["job"] for job in answer["jobs"]] == ["default", "other", "train"]


def test_a_run_ends_when_somebody_says_so(hub: Hub) -> None:
    (a,) = members(hub, "a")
    assert member_call(a, "GET", "/v1/jobs/train/rendezvous")[0] == 404
    join(a, "train")
    assert member_call(a, "DELETE", "/v1/jobs/train/rendezvous") == (204, None)
    again = join(a, "train")
    assert again["run"] == "train.2"
    assert member_call(a, "GET", "/v1/jobs/train/rendezvous") == (200, again)
    status, answer = member_call(a, "POST", "/v1/jobs/No_Name/rendezvous")
    assert status == 400 and "No_Name" in answer["error"]
