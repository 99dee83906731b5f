"""What to do with each command line of the README and of docs/TRAINING.md.

A rule is found by the command's text. It either runs it, on the machine that it is for, and looks
at what came of it; or it names the test by which it is run. A command without a rule fails
golden/test_readme.py, which names it: add its rule here.

In a command only example values are replaced: tokens, the numbers of nodes and processes, names of
nodes where the README has A and B, and /root, which the machines of a lab share.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from lab import wait_for
from lab.support import ROOT
from lab.support.pages import Command

from .stage import Stage


@dataclass(frozen=True)
class Rule:
    """Runs a command."""

    pattern: re.Pattern
    on: str  # "hub" or "node", as the page has to say; "": it need not
    act: Callable[[Stage, str], None]


@dataclass(frozen=True)
class Elsewhere:
    """A command that another test runs: one line of `path` says so, it matches `proof`."""

    pattern: re.Pattern
    path: str  # below the root of the source
    proof: str


RULES: list[Rule] = []

ELSEWHERE = [Elsewhere(re.compile(pattern), path, proof) for pattern, path, proof in [
    (r"make demo", "test/readme/test_demo.py", r"lab/demo\.py"),
    # Whoever runs this test does so by it, or by what it runs.
    (r"make test", "Makefile", r"tools/run-tests"),
    (r"make install", "tools/test-install", r'"meson", "install"'),
    (r"make deb", "test/packages/build.py", r"tools/make-deb"),
    (r"make deb ARCH=arm64", "test/packages/test_arm64.py", r'WEFT_DEB_ARCH="arm64"'),
    (r"apt install \./weft(-hub)?_\*\.deb", "test/packages/machine.py", r'"apt-get"'),
    (r"man weft", "tools/test-install", r"\bman\b"),
    (r"systemctl enable --now weft-hub", "test/units/test_hub_unit.py", r'"enable", "--now", HUB'),
    (r"weft join --no-hosts", "test/lab/member/test_join.py", r'"--no-hosts"'),
    (r"weft join --endpoint ADDRESS\[:PORT\]", "test/lab/relay/test_relays.py", r'"--endpoint"'),
    (r"weft run --isolate --nnodes 4 -- torchrun --nproc_per_node 8 train\.py",
     "test/lab/jobs/test_isolated.py", r'"torchrun", "--rdzv_conf"'),
    (r"\* \* \* \* \* root .*wg syncconf.*", "test/lab/support/stock_recipe.py", r"\bCRON\b"),
]]


def rule(pattern: str, on: str = "") -> Callable:
    def register(act: Callable[[Stage, str], None]) -> Callable[[Stage, str], None]:
        RULES.append(Rule(re.compile(pattern), on, act))
        return act
    return register


def find(command: Command) -> Rule | Elsewhere | None:
    """The rule of a command; the first that has its whole text."""
    return next((r for r in [*RULES, *ELSEWHERE] if r.pattern.fullmatch(command.text)), None)


def is_mention(command: Command) -> bool:
    """A sentence that only names a command of weft, with no word of its own: `weft token new`."""
    return command.inline and bool(re.fullmatch(r"(weft|make)( [a-z]+)*", command.text))


# ---- the hub and its members --------------------------------------------------------------------

@rule(r"weft hub up --public 203\.0\.113\.10", on="hub")
def start_hub(stage: Stage, text: str) -> None:
    stage.spawn("hub", text).wait_line("weft hub is up", 20)


@rule(r"weft token new", on="hub")
def make_tokens(stage: Stage, text: str) -> None:
    """It admits one machine, so one for each."""
    stage.tokens = [stage.type("hub", text).out.strip() for _ in stage.nodes]
    assert all(token.startswith("weft1.") for token in stage.tokens)


@rule(r"weft join weft1\.\S+ --name gpu-1", on="node")
def join(stage: Stage, text: str) -> None:
    for name, token in zip(list(stage.nodes), stage.tokens):
        line = re.sub(r"weft1\.\S+", token, text).replace("gpu-1", name)
        assert f"{name} has joined the network default" in stage.type(name, line).out
    for name in stage.nodes:
        stage.wait_peers(name, set(stage.nodes) - {name})


@rule(r"ping gpu-1(\.default\.weft)?", on="node")
def ping(stage: Stage, text: str) -> None:
    wait_for(lambda: "bytes from" in stage.type("gpu-2", f"{text} -c 1 -W 2", check=False).out, 20,
             f"an answer to {text}")


@rule(r"weft status", on="node")
def status(stage: Stage, text: str) -> None:
    said = stage.type("gpu-1", text).out
    assert re.search(r"^gpu-2 +10\.77\.\d+\.\d+ +\w+", said, re.M), said
    assert re.search(r"^gpu-3 ", said, re.M), said


@rule(r"weft doctor", on="node")
def doctor(stage: Stage, text: str) -> None:
    """Whether notes are found is for the machine that the test runs on to decide."""
    assert stage.type("gpu-1", text).out.startswith("gpu-1 in the network default: ")


@rule(r"weft health", on="node")
def health(stage: Stage, text: str) -> None:
    """Whether it is well is for the machine that the test runs on to decide."""
    assert re.search(r"^overlay  ok$", stage.type("gpu-1", text, check=False).out, re.M)


@rule(r"weft top", on="node")
def top(stage: Stage, text: str) -> None:
    """Without a terminal it is printed once."""
    assert re.search(r"^gpu-2 +up ", stage.type("gpu-1", text).out, re.M)


@rule(r"weft paths gpu-2", on="node")
def paths(stage: Stage, text: str) -> None:
    wait_for(lambda: "203.0.113.12" in stage.type("gpu-1", text).out, 20, "the way to gpu-2")


@rule(r"weft probe", on="node")
def probe(stage: Stage, text: str) -> None:
    daemon = stage.spawn("gpu-1", text)
    for name in ("hub", "gpu-2", "gpu-3"):
        daemon.wait_line(f"{name} is reached over ipv4", 20)
    daemon.stop()


@rule(r"weft preflight", on="node")
def preflight(stage: Stage, text: str) -> None:
    """Whether it says yes is for the machine that the test runs on to decide."""
    done = stage.type("gpu-1", text, check=False)
    assert done.rc in (0, 3), done.err
    assert re.search(r"^3 members, 3 pairs, .* (yes|no)\b", done.out, re.M), done.out


@rule(r"weft bench", on="node")
def bench(stage: Stage, text: str) -> None:
    said = stage.type("gpu-1", text).out
    assert "gpu-2" in said and "bit/s" in said, said


@rule(r"weft tune", on="node")
def tune(stage: Stage, text: str) -> None:
    said = stage.type("gpu-1", text).out
    assert re.search(r"^net\.ipv4\.tcp_rmem +\d", said, re.M), said


@rule(r"weft nodes", on="hub")
def nodes(stage: Stage, text: str) -> None:
    said = stage.type("hub", text).out
    assert {line.split()[0] for line in said.splitlines()} >= {"hub", *stage.nodes}, said


@rule(r"weft node rm gpu-1", on="hub")
def remove(stage: Stage, text: str) -> None:
    stage.type("hub", text)
    stage.nodes.remove("gpu-1")
    stage.wait_peers("gpu-2", {"gpu-3"})
    assert "gpu-1" not in stage.type("hub", "weft nodes").out


@rule(r"weft edge set A B --path relay", on="hub")
def edge(stage: Stage, text: str) -> None:
    line = text.replace("A B", "gpu-2 gpu-3")
    stage.type("hub", line)
    wait_for(lambda: stage.peers("gpu-2")["gpu-3"]["path"] == "relay", 20, "the relay")
    stage.type("hub", line.replace("relay", "auto"))
    wait_for(lambda: stage.peers("gpu-2")["gpu-3"]["path"] != "relay", 30, "a better path")


@rule(r"weft token new --relay", on="hub")
def relay_token(stage: Stage, text: str) -> None:
    stage.tokens = [stage.type("hub", text).out.strip()]


@rule(r"weft hub up --relay-only --token weft1\.\S+ --public 198\.51\.100\.7")
def relay(stage: Stage, text: str) -> None:
    [token] = stage.tokens
    stage.spawn("relay", re.sub(r"weft1\.\S+", token, text))
    wait_for(lambda: stage.nodes_of_hub().get("relay", {}).get("reachable"), 20, "the relay")
    assert stage.nodes_of_hub()["relay"]["spec"]["relay"] is True


@rule(r"weft render NAME", on="hub")
def render(stage: Stage, text: str) -> None:
    said = stage.type("hub", text.replace("NAME", "gpu-2")).out
    assert "[Interface]" in said and said.count("[Peer]") >= 2


@rule(r"weft node add nas --public-key KEY > wg0\.conf", on="hub")
def add_stock(stage: Stage, text: str) -> None:
    key = stage.type("gpu-3", "wg genkey | wg pubkey").out.strip()
    stage.type("hub", text.replace("KEY", key))
    said = (stage.folder / "wg0.conf").read_text(encoding="utf-8")
    assert "[Interface]" in said and "[Peer]" in said
    assert stage.nodes_of_hub()["nas"]["spec"]["publicKey"] == key


@rule(r"weft node add phone --qr", on="hub")
def add_phone(stage: Stage, text: str) -> None:
    assert "\N{FULL BLOCK}" in stage.type("hub", text).out
    assert "phone" in stage.nodes_of_hub()


@rule(r"weft join weft1\.\S+ --route 10\.9\.0\.0/24")
def join_with_route(stage: Stage, text: str) -> None:
    token = stage.type("hub", "weft token new").out.strip()
    stage.type("gw-1", re.sub(r"weft1\.\S+", token, text))
    wait_for(lambda: stage.nodes_of_hub()["gw-1"]["status"].get("routes") == ["10.9.0.0/24"], 20,
             "the hub to hear of the route")


@rule(r"weft node set gw-1 --route 10\.9\.0\.0/24")
def admit_route(stage: Stage, text: str) -> None:
    stage.type("hub", text)
    assert stage.nodes_of_hub()["gw-1"]["spec"]["routes"] == ["10.9.0.0/24"]


# ---- jobs ---------------------------------------------------------------------------------------

@rule(r"weft run --nnodes (4|2:4) -- torchrun --nproc_per_node 8 train\.py", on="node")
def run_job(stage: Stage, text: str) -> None:
    """On two nodes, where four are meant, and with one process a node."""
    line = text.replace("--nnodes 4", "--nnodes 2").replace("2:4", "1:2")
    stage.run_job(line.replace("--nproc_per_node 8", "--nproc_per_node 1"), ["gpu-2", "gpu-3"])


@rule(r"weft run --explain -- torchrun train\.py", on="node")
def explain(stage: Stage, text: str) -> None:
    assert "NCCL_SOCKET_IFNAME==weft0" in stage.type("gpu-2", text).out


@rule(r'eval "\$\(weft env\)"')
def env(stage: Stage, text: str) -> None:
    assert "NCCL_SOCKET_IFNAME==weft0\n" in stage.type("gpu-2", f"{text}; env").out


@rule(r"weft env --table")
def table(stage: Stage, text: str) -> None:
    said = stage.type("gpu-2", text).out
    assert said in (ROOT / "docs/TRAINING.md").read_text(encoding="utf-8")


# ---- administration -----------------------------------------------------------------------------

@rule(r"weft admin new alice --role operator --ttl 30d", on="hub")
def new_admin(stage: Stage, text: str) -> None:
    assert stage.type("hub", text).out.startswith("weft-admin1.")
    assert re.search(r"^alice +operator ", stage.type("hub", "weft admin ls").out, re.M)


@rule(r"weft audit -f", on="hub")
def audit(stage: Stage, text: str) -> None:
    daemon = stage.spawn("hub", text)
    daemon.wait_line("create admin/alice")
    stage.type("hub", "weft token new")
    daemon.wait_line(r"create token/\w+")
    daemon.stop()


@rule(r"weft token ls", on="hub")
def list_tokens(stage: Stage, text: str) -> None:
    lines = stage.type("hub", text).out.splitlines()
    assert lines[0].startswith("ID ") and len(lines) > len(stage.nodes), lines


@rule(r"weft hub backup /root/weft-backup", on="hub")
def backup(stage: Stage, text: str) -> None:
    folder = stage.folder / "weft-backup"
    stage.type("hub", text.replace("/root/weft-backup", str(folder)))
    subprocess.run(["ls", folder / "hub.db", folder / "keys/default.key"], check=True)
