"""examples/checkpoint.py: whole or not there, of one job, encrypted, and what it refuses."""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
TORCH = "python3-torch is not installed"
needs_age = pytest.mark.skipif(not shutil.which("age"), reason="age is not installed")
STATE = {"step": 3, "losses": [0.5, 0.25]}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.setenv("WEFT_NETWORK", "default")
    monkeypatch.setenv("WEFT_JOB", "train")
    for name in ("WEFT_CHECKPOINT_KEY_FILE", "WEFT_CHECKPOINT_KEY_COMMAND"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def checkpoint(environment: None) -> ModuleType:
    pytest.importorskip("torch", reason=TORCH)
    return importlib.import_module("checkpoint")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs" / "train.pt"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return new_key(tmp_path / "key")


def new_key(path: Path) -> Path:
    subprocess.run(["age-keygen", "-o", path], check=True, capture_output=True)
    return path


def of(checkpoint: ModuleType, path: Path, *words: str):  # noqa: ANN201 - a class of the example
    """Checkpoints by the options that a job is given."""
    parser = argparse.ArgumentParser()
    checkpoint.add_options(parser)
    return checkpoint.Checkpoints(parser.parse_args(["--checkpoint", str(path), *words]))


def refusal(checkpoint: ModuleType, path: Path, *words: str) -> str:
    with pytest.raises(checkpoint.Refused) as told:
        of(checkpoint, path, *words).load()
    assert "\n" not in str(told.value)
    return str(told.value)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_what_is_saved_is_loaded(checkpoint: ModuleType, path: Path) -> None:
    torch = importlib.import_module("torch")
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(3)).sum().backward()
    optimizer.step()
    assert of(checkpoint, path).load() is None
    state = {**STATE, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    of(checkpoint, path).save(state)
    found = of(checkpoint, path).load()
    assert torch.equal(found["model"]["weight"], model.weight) and found["losses"] == [0.5, 0.25]
    optimizer.load_state_dict(found["optimizer"])
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert list(path.parent.iterdir()) == [path]


def test_without_a_path_there_is_none(checkpoint: ModuleType) -> None:
    parser = argparse.ArgumentParser()
    checkpoint.add_options(parser)
    none = checkpoint.Checkpoints(parser.parse_args([]))
    none.save(STATE)
    assert none.load() is None


def test_another_jobs_is_neither_read_nor_replaced(
        checkpoint: ModuleType, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = of(checkpoint, path)
    ours.save(STATE)
    for name, value in (("WEFT_JOB", "other"), ("WEFT_NETWORK", "theirs"), ("WEFT_JOB", "")):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            assert (f"{path} is a checkpoint of the job train of the network default, and this is "
                    in refusal(checkpoint, path))
            with pytest.raises(checkpoint.Refused, match="give this one a file of its own"):
                of(checkpoint, path).save({"step": 9})
    assert of(checkpoint, path).load() == STATE
    # One that has come while ours ran is not replaced either.
    with monkeypatch.context() as changed:
        changed.setenv("WEFT_JOB", "other")
        theirs = of(checkpoint, path.with_name("other.pt"))
        theirs.save({"step": 9})
        os.replace(theirs.path, path)
    with pytest.raises(checkpoint.Refused, match="of the job other of the network default"):
        ours.save({"step": 4})


def test_folders_and_owners(checkpoint: ModuleType, path: Path) -> None:
    of(checkpoint, path).save(STATE)
    path.parent.chmod(0o777)
    assert f"everybody may replace files in {path.parent} (mode 0777)" in refusal(checkpoint, path)
    path.parent.chmod(0o1777)  # as /tmp: nobody replaces ours, anybody may have put his there
    assert of(checkpoint, path).load() == STATE
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)
        assert "belongs to another user (uid 12345)" in refusal(checkpoint, path)
        path.parent.chmod(0o755)
        assert of(checkpoint, path).load() == STATE


def test_a_save_that_fails_leaves_the_old_one(checkpoint: ModuleType, path: Path) -> None:
    of(checkpoint, path).save(STATE)
    before = path.read_bytes()
    torch = importlib.import_module("torch")
    # Where the disk is full; torch.save() on the file itself would abort the process.
    script = (f"import resource, signal, sys; sys.path.insert(0, '{ROOT}/examples')\n"
              "import argparse, checkpoint, torch\n"
              "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
              "resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))\n"
              "p = argparse.ArgumentParser(); checkpoint.add_options(p)\n"
              f"c = checkpoint.Checkpoints(p.parse_args(['--checkpoint', '{path}']))\n"
              "def main(): c.save({'step': 4, 'model': torch.zeros(1000000)})\n"
              "sys.exit(checkpoint.or_refused(main))\n")
    done = subprocess.run(["/usr/bin/python3", "-c", script], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr.strip()) == (
        1, f"-c: {path} cannot be written: File too large"), torch.__version__
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_a_file_that_is_no_checkpoint(checkpoint: ModuleType, path: Path, tmp_path: Path) -> None:
    torch = importlib.import_module("torch")

    class Evil:
        def __reduce__(self) -> tuple:
            return os.mkdir, (str(tmp_path / "ran"),)

    path.parent.mkdir()
    if checkpoint.ONLY_VALUES:
        torch.save({"of": {"network": "default", "job": "train"}, "state": Evil()}, path)
        assert "is no checkpoint: " in refusal(checkpoint, path)
        assert not (tmp_path / "ran").exists()
    path.write_bytes(b"not one")
    assert "is no checkpoint: " in refusal(checkpoint, path)
    torch.save({"step": 3}, path)
    assert "does not say which job it is of" in refusal(checkpoint, path)


@needs_age
def test_encrypted(checkpoint: ModuleType, path: Path, key: Path,
                   monkeypatch: pytest.MonkeyPatch) -> None:
    torch = importlib.import_module("torch")
    words = ("--checkpoint-key", str(key))
    state = {**STATE, "weights": torch.arange(300000.0)}
    of(checkpoint, path, *words).save(state)
    assert mode(path) == 0o600 and path.read_bytes().startswith(b"age-encryption.org/v1\n")
    assert b"losses" not in path.read_bytes()
    assert torch.equal(of(checkpoint, path, *words).load()["weights"], state["weights"])
    # From the environment, and by a command, as of a key management service.
    with monkeypatch.context() as changed:
        changed.setenv("WEFT_CHECKPOINT_KEY_FILE", str(key))
        assert of(checkpoint, path).load()["step"] == 3
    monkeypatch.setenv("WEFT_CHECKPOINT_KEY_COMMAND", f"base64 {key} | base64 -d")
    assert of(checkpoint, path).load()["step"] == 3
    # By age alone, without this program.
    plain = subprocess.run(["age", "--decrypt", "-i", key, path], check=True, capture_output=True)
    (path.parent / "plain").write_bytes(plain.stdout)
    assert torch.load(path.parent / "plain")["state"]["losses"] == STATE["losses"]


@needs_age
def test_a_wrong_key_and_what_was_changed(checkpoint: ModuleType, path: Path, key: Path,
                                          tmp_path: Path) -> None:
    words = ("--checkpoint-key", str(key))
    of(checkpoint, path, *words).save({**STATE, "long": [0.5] * 50000})
    other = new_key(tmp_path / "other")
    assert (refusal(checkpoint, path, "--checkpoint-key", str(other)) ==
            f"{path} was encrypted with another key than the checkpoint key {other}")
    assert f"{path} is encrypted, and no key is given" in refusal(checkpoint, path)
    whole = path.read_bytes()
    for at in (5, 40, 120, 300, 70000, len(whole) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        said = refusal(checkpoint, path, *words)
        assert ("is not as it was written" in said or "was encrypted with another key" in said
                or "is not encrypted" in said), (at, said)
    for length in (100, 65536, len(whole) - 1, len(whole) - 65536):
        path.write_bytes(whole[:length])
        assert "is not as it was written" in refusal(checkpoint, path, *words), length
    # One that is not encrypted does not take its place.
    path.unlink()
    of(checkpoint, path).save(STATE)
    assert "is not encrypted, though this job has a key" in refusal(checkpoint, path, *words)


@needs_age
def test_a_new_key(checkpoint: ModuleType, path: Path, key: Path, tmp_path: Path) -> None:
    of(checkpoint, path, "--checkpoint-key", str(key)).save(STATE)
    new = new_key(tmp_path / "new")
    both = tmp_path / "both"
    both.touch(0o600)
    both.write_text(new.read_text() + key.read_text())
    jobs = of(checkpoint, path, "--checkpoint-key", str(both))
    assert jobs.load() == STATE
    jobs.save({"step": 4})
    assert of(checkpoint, path, "--checkpoint-key", str(new)).load() == {"step": 4}
    assert of(checkpoint, path, "--checkpoint-key", str(key)).load() == {"step": 4}


@needs_age
def test_keys_that_are_none(checkpoint: ModuleType, path: Path, key: Path) -> None:
    key.chmod(0o644)
    assert (refusal(checkpoint, path, "--checkpoint-key", str(key)) ==
            f"the checkpoint key {key} is open to others (mode 0644): chmod 600 {key}")
    key.chmod(0o600)
    key.write_text("secret\n")
    assert "holds no secret key of age" in refusal(checkpoint, path, "--checkpoint-key", str(key))
    assert "cannot be read: No such file" in refusal(checkpoint, path, "--checkpoint-key", "/none")
    command = "--checkpoint-key-command"
    assert (refusal(checkpoint, path, command, "echo no access to the key >&2; exit 4") ==
            "the checkpoint key's command ended with 4: no access to the key")
    assert (refusal(checkpoint, path, command, "exec yes") ==
            "the checkpoint key's command prints more than 65536 bytes, which is no key")
    assert "holds no secret key of age" in refusal(checkpoint, path, command, "true")
    assert "give one of" in refusal(checkpoint, path, command, "true", "--checkpoint-key", str(key))


def test_age_is_not_there(checkpoint: ModuleType, path: Path, tmp_path: Path,
                          monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "key"
    key.touch(0o600)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "age, which is not installed: apt install age" in refusal(
        checkpoint, path, "--checkpoint-key", str(key))
