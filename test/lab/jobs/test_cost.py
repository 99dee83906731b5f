"""weft cost: a job moves known bytes between two nodes, and the hub says so, by edge and by job,
and that its budget is spent.

    hub        203.0.113.10
     |
   [ wan ]
    |   |
   a     b     203.0.113.11, .12
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support import schemas
from lab.support.agents import AgentNode, Site
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "a": 11, "b": 12})
SENT = 20_000_000
PRICES = {"currency": "EUR", "islands": [{"name": "a", "egressPerGB": 100, "crossZonePerGB": 100}]}

# What stands in for torchrun: b takes what a sends, once both agents know who is in the job.
JOB = r"""#!/usr/bin/env python3
import json, socket, subprocess, sys, time
weft, me, address, n = sys.argv[1:5]
deadline = time.monotonic() + 60
def nodes():
    status = json.loads(subprocess.run([weft, "status", "--json"], capture_output=True).stdout)
    return [name for job in status["jobs"] for name in job["nodes"]]
while sorted(nodes()) != ["a", "b"]:
    assert time.monotonic() < deadline, nodes()
    time.sleep(0.1)
if me == "b":
    with socket.create_server((address, 7000)) as server:
        taken = 0
        peer, _ = server.accept()
        while data := peer.recv(1 << 16):
            taken += len(data)
        assert taken == int(n), taken
        peer.sendall(b".")
else:
    while True:
        try:
            peer = socket.create_connection((address, 7000))
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    peer.sendall(bytes(int(n)))
    peer.shutdown(socket.SHUT_WR)
    assert peer.recv(1) == b"."
"""


def most_on_the_wire(n: int, mtu: int) -> int:
    """Bytes of WireGuard's messages for n bytes in one TCP stream: what the overhead comes to.

    A segment has 52 bytes of IP and TCP (with timestamps), is padded to 16, and gets 32 bytes. A
    fifth of the segments more, for those that are short or sent again, and 64 KiB for what else two
    nodes say: handshakes, keepalives, path frames.
    """
    payload = mtu - 52
    packets = -(-n // payload)
    return packets * (-(-mtu // 16) * 16 + 32) * 6 // 5 + 65536


def cost(site: Site, *words: str) -> dict:
    out = site.hub.run([site.weft, "cost", "--json", *words], quiet=True).out
    answer = json.loads(out)
    assert schemas.errors("cost", answer) == []
    return answer


def run_job(site: Site, a: AgentNode, b: AgentNode, script: Path) -> None:
    address = b.address()
    command = lambda me: [site.weft, "run", "--nnodes", "2", "--job", "llama", script,  # noqa: E731
                          site.weft, me, address, SENT]
    other = b.host.spawn(command("b"), name="job-b")
    a.host.run(command("a"), timeout_s=90)
    assert other.wait(30) == 0


def set_budget(site: Site) -> None:
    network = json.loads(site.hub.run([site.weft, "get", "Network", "default"], quiet=True).out)
    network["spec"]["budgets"] = [{"job": "llama", "costPerDay": 1.9}]
    site.hub.run([site.weft, "apply", "-f", "-"], stdin=json.dumps(network))


def events(site: Site) -> list[tuple[str, str]]:
    out = site.hub.run([site.weft, "get", "events", "--json"], quiet=True).out
    return [(event["type"], event["object"]) for event in json.loads(out)["events"]]


def edge(answer: dict, sender: str, receiver: str) -> dict:
    return next((e for e in answer["edges"] if (e["from"], e["to"]) == (sender, receiver)),
                {"bytes": 0})


def browse(site: Site, a: AgentNode) -> None:
    """The page, as `weft page` has it and as a browser is shown it, by a viewer's token only."""
    page = site.hub.run([site.weft, "page"], quiet=True).out
    assert page.startswith("<!doctype html>") and "<td>llama</td>" in page
    token = site.hub.run([site.weft, "admin", "new", "browser", "--role", "viewer"], quiet=True).out
    url = "https://203.0.113.10:8443/v1/networks/default/page"
    curl = ["curl", "-k", "-s", "-i", "-m", "20", url]
    shown = a.host.run([*curl, "-u", f"me:{token.strip()}"], quiet=True).out
    assert shown.startswith("HTTP/1.1 200") and "<td>llama</td>" in shown
    assert "Content-Security-Policy: default-src 'none';" in shown
    for more in [["-u", "me:guess"], []]:
        refused = a.host.run([*curl, *more], quiet=True).out
        assert refused.startswith("HTTP/1.1 401") and "WWW-Authenticate: Basic" in refused
    # A password changes nothing: another site's page could have the browser send it along.
    changed = a.host.run(["curl", "-k", "-s", "-i", "-m", "20", "-X", "POST", "-u",
                          f"me:{token.strip()}", url.replace("page", "tokens")], quiet=True).out
    assert changed.startswith("HTTP/1.1 401")


def test_a_job_costs_what_it_has_moved(weft: Path, tmp_path: Path) -> None:
    script = tmp_path / "torchrun"
    script.write_text(JOB)
    script.chmod(0o755)
    (tmp_path / "prices.json").write_text(json.dumps(PRICES))
    with Lab.from_text(TOPOLOGY) as lab:
        site = Site(lab, weft, "--price-table", str(tmp_path / "prices.json"))
        a, b = site.join("a", "b")
        a.reaches(b)
        set_budget(site)
        run_job(site, a, b, script)
        most = most_on_the_wire(SENT, a.status()["self"]["mtu"])
        job = ["--job", "llama"]
        # The agents report when the command has ended.
        wait_for(lambda: SENT <= edge(cost(site, *job), "a", "b")["bytes"], 30,
                 "the hub to know what the job has moved")
        answer = cost(site, *job)
        sent = edge(answer, "a", "b")
        print(f"FIGURE {SENT} bytes of a job are {sent['bytes']} in weft cost "
              f"(to be at most {most})")
        assert SENT < sent["bytes"] <= most
        assert sent["cost"] == pytest.approx(sent["bytes"] / 1e7, abs=1e-5)
        assert sent["unpricedBytes"] == 0
        # b's acknowledgements have no price.
        assert edge(answer, "b", "a")["unpricedBytes"] == edge(answer, "b", "a")["bytes"] > 0
        assert [line["job"] for line in answer["jobs"]] == ["llama"]
        # It was to cost 1.90 a day.
        wait_for(lambda: ("BudgetSpent", "llama") in events(site), 30, "the event of the budget")
        assert site.found() == {("WEFT-COST-002", "llama")}
        share, = (budget["share"] for budget in cost(site)["budgets"])
        assert share == pytest.approx(sent["cost"] / 1.9, abs=0.05)
        # Of a budget that is a little more than that most is spent.
        change_network(site, budgets=[{"job": "llama", "costPerDay": round(sent["cost"] / 0.9, 2)}])
        wait_for(lambda: site.found("note") & {("WEFT-COST-001", "llama"),
                                               ("WEFT-COST-002", "llama")}
                 == {("WEFT-COST-001", "llama")}, 60, "the other finding of the budget")
        browse(site, a)
        # What is of no job is there as well, and all of it survives the hub.
        whole = cost(site)
        assert whole["total"]["bytes"] > answer["total"]["bytes"]
        site.daemon.stop()
        for node in (a, b):
            node.agent.allow("the hub does not answer")
        site.start_hub()
        assert edge(cost(site, *job), "a", "b")["bytes"] >= sent["bytes"]
        table = site.hub.run([weft, "cost", *job]).out
        assert "llama" in table and "EUR" in table


def change_network(site: Site, **spec: object) -> None:
    network = json.loads(site.hub.run([site.weft, "get", "Network", "default"], quiet=True).out)
    network["spec"].update(spec)
    site.hub.run([site.weft, "apply", "-f", "-"], stdin=json.dumps(network))


def budgets(site: Site) -> list[dict]:
    network = json.loads(site.hub.run([site.weft, "get", "Network", "default"], quiet=True).out)
    return network["spec"].get("budgets", [])


def far_hub(site: Site, file: Path) -> list[object]:
    """The options by which a node's command is an administrator's."""
    token = site.hub.run([site.weft, "admin", "new", "jobs", "--role", "admin"], quiet=True).out
    file.write_text(token)
    file.chmod(0o600)
    hub = site.hub_nodes()["hub"]["spec"]["hub"]
    return ["--hub", f"{site.hub.address()}:8443", "--admin-token-file", file, "--pin",
            hub["tlsPin"]]


@pytest.mark.parametrize(("words", "said"), [
    (["--budget", "much"], '--budget "much" is neither money, such as 20 or 12.5, nor bytes'),
    (["--budget", "-1"], '--budget "-1" is neither'),
    (["--budget", "0x10"], '--budget "0x10" is neither'),
    (["--budget", "20/week"], '--budget "20/week" is neither'),
    (["--budget", "2XB"], '--budget "2XB" is neither'),
    (["--budget", "0"], '--budget "0" is neither'),
    (["--budget", "0.1B"], '--budget "0.1B" is neither'),
    (["--budget", "2e3PB"], '--budget "2e3PB" is neither'),
    (["--pin", "x"], "--hub, --admin-token-file and --pin are for --budget"),
])
def test_a_wrong_budget_is_refused(weft: Path, words: list[str], said: str) -> None:
    done = subprocess.run([weft, "run", *words, "true"], capture_output=True, text=True,
                          timeout=20, check=False)
    assert done.returncode == 2 and done.stderr.startswith(f"weft run: {said}"), done.stderr


MATRIX = Path(__file__).parents[2] / "golden/plan/two-islands.json"


def test_prices_of_the_network(weft: Path) -> None:
    """In YAML, where 0.09 is a text; for weft cost, and for weft plan on a node."""
    with Lab.from_text(one_switch("wan", "203.0.113", {"hub": 10, "a": 11}), capture=False) as lab:
        site = Site(lab, weft)
        a, = site.join("a")
        plan = [weft, "plan", "--params", "7B", "--matrix", MATRIX, "--json"]
        assert not json.loads(a.host.run(plan, check=False).out)["money"]["tableGiven"]
        network = json.loads(site.hub.run([weft, "get", "Network", "default"], quiet=True).out)
        cidrs = network["spec"]["cidr4"], network["spec"]["cidr6"]
        site.hub.run([weft, "apply", "-f", "-"], stdin=f"""
kind: Network
metadata:
  name: default
spec:
  cidr4: {cidrs[0]}
  cidr6: "{cidrs[1]}"
  prices:
    currency: EUR
    islands:
      - egressPerGB: 0.09
        gpuPerHour: 7.5
""")
        prices = {"currency": "EUR", "islands": [{"egressPerGB": 0.09, "zones": 1,
                                                  "gpuPerHour": 7.5}]}
        network = json.loads(site.hub.run([weft, "get", "Network", "default"], quiet=True).out)
        assert network["spec"]["prices"] == prices
        assert cost(site)["currency"] == "EUR"

        def money() -> dict:
            return json.loads(a.host.run(plan, check=False, quiet=True).out)["money"]
        wait_for(lambda: money()["tableGiven"], 10, "a to know the prices")
        assert money()["currency"] == "EUR"
        refused = site.hub.run([weft, "apply", "-f", "-"], check=False, stdin=json.dumps(
            {**network, "spec": {**network["spec"], "prices": {"islands": [{"natPerGB": -1}]}}}))
        assert refused.rc != 0
        assert '"natPerGB" is no number from 0 to 1e+09' in refused.err


def test_a_job_brings_its_budget(weft: Path, tmp_path: Path) -> None:
    """It is written before the command starts, in place of the job's one that is there."""
    with Lab.from_text(one_switch("wan", "203.0.113", {"hub": 10, "a": 11}), capture=False) as lab:
        site = Site(lab, weft)
        a, = site.join("a")
        options = far_hub(site, tmp_path / "token")
        for amount, said, spec in (("1MB/day", "1.00 MB a day", {"bytesPerDay": 1_000_000}),
                                   ("2.5", "2.50 a day", {"costPerDay": 2.5})):
            done = a.host.run([weft, "run", "--nnodes", "1:2", "--job", "llama", *options,
                               "--budget", amount, "true"])
            assert f"weft run: job llama has a budget of {said}\n" in done.err
            assert budgets(site) == [{"job": "llama", **spec}]
