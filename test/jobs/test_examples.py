"""Why a script in examples/ ends with a status other than 0: it says that in one sentence."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lab.support.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 180

pytest.importorskip("torch", reason="python3-torch is not installed")


def start(world: int, script: str, *words: object, **env: str) -> list[subprocess.Popen]:
    """A process for each rank, as torchrun starts them on as many nodes."""
    meeting = {"WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_ports(1),
               "LOCAL_RANK": 0, "OMP_NUM_THREADS": 1, "GLOO_SOCKET_IFNAME": "lo"}
    return [subprocess.Popen(
        [sys.executable, ROOT / "examples" / script, *map(str, words)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=os.environ | {k: str(v) for k, v in {**meeting, "RANK": rank, **env}.items()})
        for rank in range(world)]


def end_of(rank: subprocess.Popen) -> tuple[int, list[str]]:
    """Its status, and what it has said of itself."""
    _, said = rank.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in said, said
    # Torch's own log begins its lines with a level.
    return rank.returncode, [line for line in said.splitlines()
                             if not re.match(r"\[[WEI]|[WEI]\d{8} |WARNING: Logging", line)]


@pytest.mark.parametrize(("script", "words"), [
    ("train_ddp.py", ["--steps", 10]),
    ("train_diloco.py", ["--rounds", 4]),
    ("train_hierarchical.py", ["--steps", 20]),
    ("speedtest.py", ["--size", "1M", "--rounds", 1]),
])
def test_a_short_job_that_learns_is_no_failure(script: str, words: list) -> None:
    for rank in start(2, script, *words):
        assert end_of(rank) == (0, [])


@pytest.mark.parametrize(("script", "words"), [
    ("train_ddp.py", ["--steps", 1]),
    ("train_diloco.py", ["--rounds", 2, "--outer-lr", 90]),
    ("train_hierarchical.py", ["--steps", 2, "--lr", 90, "--warmup", 1]),
])
def test_a_job_that_does_not_learn(script: str, words: list) -> None:
    for rank in start(2, script, *words):
        status, [why] = end_of(rank)
        assert status == 1
        assert re.fullmatch(r"\w+: the loss did not fall: it began at \d+\.\d+ and is [\d.]+|nan",
                            why)


@pytest.mark.parametrize(("script", "words", "env", "why"), [
    ("train_ddp.py", [], {"RANK": ""}, "train_ddp: the ranks do not meet: .*RANK.*"),
    ("train_ddp.py", [], {"WORLD_SIZE": "2", "RANK": "1"},
     "train_ddp: the ranks do not meet: .*"),
    ("train_ddp.py", ["--steps", "0"], {}, '.* argument --steps: "0" is no number from 1 on'),
    ("train_diloco.py", ["--timeout", "0"], {}, '.*: "0" is no time in seconds above 0'),
    ("train_diloco.py", ["--rounds", "1", "--checkpoint", "/proc/none/job.pt"], {},
     "train_diloco: /proc/none/job.pt cannot be written: No such file or directory"),
    ("train_ddp.py", ["--checkpoint", "/proc/1/mem"], {},
     "train_ddp: /proc/1/mem .*"),
    ("train_hierarchical.py", ["--islands", "a/b"], {}, '.*: "a/b" is no list of ranks such as .*'),
    ("train_hierarchical.py", ["--islands", "0/1"], {},
     r"train_hierarchical: rank 0: the islands \[\[0\], \[1\]\] are not the 1 ranks, each once"),
    ("train_hierarchical.py", [], {"WEFT_PLAN": "/nowhere"},
     r"train_hierarchical: the plan /nowhere \(WEFT_PLAN\) cannot be read: No such file .*"),
    ("train_hierarchical.py", [], {"WEFT_PLAN": "/dev/null"},
     r"train_hierarchical: /dev/null \(WEFT_PLAN\) is no plan of weft plan --json"),
    ("speedtest.py", ["--size", "1"], {}, '.*: "1" is no size from 1K to 64G, such as 256M'),
    ("speedtest.py", [], {}, "speedtest: 1 ranks are here, and it is for two"),
])
def test_what_it_was_given_is_wrong(script: str, words: list, env: dict, why: str) -> None:
    [rank] = start(1, script, *words, *(["--timeout", 3] if "WORLD_SIZE" in env else []), **env)
    status, said = end_of(rank)
    assert status in (1, 2)
    assert re.fullmatch(why, said[-1]), said
    assert all(line.startswith(("usage:", " ")) for line in said[:-1]), said


@pytest.mark.parametrize("script", ["train_ddp.py", "train_diloco.py", "train_hierarchical.py"])
def test_another_rank_is_lost(script: str) -> None:
    many = {"train_diloco.py": "--rounds"}.get(script, "--steps")
    ranks = start(2, script, many, 100000, "--pause", "0.05")
    ranks[0].stdout.readline()
    ranks[1].send_signal(signal.SIGKILL)
    ranks[1].communicate()
    status, said = end_of(ranks[0])
    assert status == 1
    # Torch may say something of its own besides.
    [why] = [line for line in said if line.startswith(f"{script.removesuffix('.py')}: ")]
    assert re.match(r"\w+: another rank has ended or is not reached any more: .", why), said


def test_python_without_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('no torch', name='torch')\n")
    for script in sorted((ROOT / "examples").glob("*.py")):
        if script.name in ("checkpoint.py", "task.py", "weft.py"):
            continue
        [rank] = start(1, script.name, PYTHONPATH=str(tmp_path))
        # The folder of the script comes first in its path, then this one.
        status, [why] = end_of(rank)
        assert status == 1
        assert re.fullmatch(rf"{script.stem}: .* has no torch: PyTorch is needed", why)
