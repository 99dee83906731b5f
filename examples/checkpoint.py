"""Checkpoints that are whole or not there, that one job alone uses, and that a key can protect.

Each node keeps its own file. After a restart the ranks compare how far theirs goes, and the one
that is furthest hands its to the others: a node that is new, or has lost its disk, just follows.

A file says which job of which network wrote it, by what `weft run` has put into WEFT_JOB and
WEFT_NETWORK, and another job's is neither read nor replaced. It is made with mode 0600, its folder,
if that is missing, with 0700; a folder in which everybody may rename files is refused.

With a key the file is encrypted and authenticated by age, and nothing unencrypted is ever on the
disk. The key is the secret key of age-keygen: in a file (--checkpoint-key), or printed by a command
(--checkpoint-key-command), which asks a key management service. Without this program, `age
--decrypt -i KEY job.pt` gives what torch.load() reads: {"of": the job, "state": what was saved}.
"""
from __future__ import annotations

import argparse
import contextlib
import io
import os
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

try:
    import torch
    import torch.distributed as dist
except ModuleNotFoundError as missing:
    sys.exit(f"{Path(sys.argv[0]).stem}: {sys.executable} has no {missing.name}: PyTorch is needed")

MAGIC = b"age-encryption.org/"
KEY_COMMAND_S = 60
KEY_MAX = 1 << 16
# Tensors and plain values alone, so that a file cannot run code; torch 1.13 reads no numbers so.
ONLY_VALUES = int(torch.__version__.split(".", maxsplit=1)[0]) >= 2


class Refused(Exception):
    """A sentence that says what is wrong with a checkpoint or its key."""


def or_refused(main: Callable[[], int]) -> int | str:
    """For sys.exit(): the status of main(), or the sentence."""
    try:
        return main()
    except Refused as e:
        return f"{Path(sys.argv[0]).stem}: {e}"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--checkpoint", type=Path, help="a file of this node; resumed from")
    parser.add_argument("--checkpoint-key", type=Path, metavar="FILE",
                        default=os.environ.get("WEFT_CHECKPOINT_KEY_FILE") or None,
                        help="encrypt by the key in it (age-keygen -o FILE); "
                             "default: $WEFT_CHECKPOINT_KEY_FILE")
    parser.add_argument("--checkpoint-key-command", metavar="COMMAND",
                        default=os.environ.get("WEFT_CHECKPOINT_KEY_COMMAND") or None,
                        help="a shell command that prints the key instead; "
                             "default: $WEFT_CHECKPOINT_KEY_COMMAND")


# ---- the key -----------------------------------------------------------------------------------

class Key:
    """A secret key of age, kept in memory: it is in no file of ours and in no command line."""

    def __init__(self, name: str, text: bytes) -> None:
        self.name = name
        if not shutil.which("age"):
            raise Refused("checkpoints are encrypted by age, which is not installed: "
                          "apt install age")
        self._fd = os.memfd_create("checkpoint-key")
        os.write(self._fd, text)
        # A key that is none is found before the training, not after an hour of it.
        age = self.start("--encrypt", stdin=subprocess.DEVNULL)
        said = age.communicate()[1]
        if age.returncode != 0:
            raise Refused(f"{name} holds no secret key of age, as age-keygen makes it: "
                          f"{last_line(said)}")

    def start(self, mode: str, stdin: int, stdout: int = subprocess.DEVNULL) -> subprocess.Popen:
        return subprocess.Popen(["age", mode, "-i", f"/proc/self/fd/{self._fd}"],
                                pass_fds=[self._fd], stdin=stdin, stdout=stdout,
                                stderr=subprocess.PIPE)


def last_line(said: bytes) -> str:
    """What age says at the end, without its advice to report a bug."""
    lines = [line for line in said.decode(errors="replace").splitlines() if "error: " in line]
    return lines[-1].split("error: ", 1)[1][:80] if lines else "it says nothing"


def key_from_file(path: Path) -> Key:
    try:
        with open(path, "rb") as f:
            mode = stat.S_IMODE(os.fstat(f.fileno()).st_mode)
            if mode & 0o026:
                raise Refused(f"the checkpoint key {path} is open to others (mode {mode:04o}): "
                              f"chmod 600 {path}")
            return Key(f"the checkpoint key {path}", f.read(KEY_MAX))
    except OSError as e:
        raise Refused(f"the checkpoint key {path} cannot be read: {e.strerror}") from e


def listen_to(command: subprocess.Popen, within_s: float) -> tuple[bytes, bytes]:
    """What it prints, up to a byte more than a key may have, and its last complaint: a command that
    never stops talking fills no memory."""
    said = {command.stdout: b"", command.stderr: b""}
    deadline = time.monotonic() + within_s
    with selectors.DefaultSelector() as waits:
        for pipe in said:
            waits.register(pipe, selectors.EVENT_READ)
        while waits.get_map() and len(said[command.stdout]) <= KEY_MAX:
            ready = waits.select(deadline - time.monotonic())
            if not ready:
                raise subprocess.TimeoutExpired(command.args, within_s)
            for key, _ in ready:
                data = os.read(key.fd, KEY_MAX)
                said[key.fileobj] += data
                if not data:
                    waits.unregister(key.fileobj)
            said[command.stderr] = said[command.stderr][-KEY_MAX:]
    return said[command.stdout], said[command.stderr]


def key_from_command(command: str) -> Key:
    with subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as run:
        try:
            text, complaint = listen_to(run, KEY_COMMAND_S)
            if len(text) > KEY_MAX:
                raise Refused(f"the checkpoint key's command prints more than {KEY_MAX} bytes, "
                              "which is no key")
            status = run.wait(KEY_COMMAND_S)
        except BaseException as e:
            os.killpg(run.pid, signal.SIGKILL)
            if isinstance(e, subprocess.TimeoutExpired):
                raise Refused("the checkpoint key's command has not ended after "
                              f"{KEY_COMMAND_S} s") from e
            raise
    if status != 0:
        lines = complaint.decode(errors="replace").strip().splitlines() or ["it says nothing"]
        raise Refused(f"the checkpoint key's command ended with {status}: {lines[-1]}")
    return Key("what the checkpoint key's command prints", text)


def key_of(args: argparse.Namespace) -> Key | None:
    # What is said in the command line counts more than what the environment says.
    if args.checkpoint_key and args.checkpoint_key_command:
        raise Refused("the checkpoint key is to come from a file and from a command: "
                      "give one of --checkpoint-key and --checkpoint-key-command")
    if args.checkpoint_key:
        return key_from_file(Path(args.checkpoint_key))
    return key_from_command(args.checkpoint_key_command) if args.checkpoint_key_command else None


# ---- the file ----------------------------------------------------------------------------------

def this_job() -> dict[str, str]:
    return {"network": os.environ.get("WEFT_NETWORK", ""), "job": os.environ.get("WEFT_JOB", "")}


def called(job: dict[str, str]) -> str:
    if not job["job"]:
        return "no job of weft run"
    return f"the job {job['job']} of the network {job['network']}"


class Sink:
    """Takes what torch.save() writes. An error on the way would abort the whole process there."""

    def __init__(self, file: io.BufferedIOBase) -> None:
        self.file = file
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            if not self.error:
                self.file.write(data)
        except OSError as e:
            self.error = e
        return len(data)

    def flush(self) -> None:
        try:
            if not self.error:
                self.file.flush()
        except OSError as e:
            self.error = e


class Checkpoints:
    """The checkpoint of this node, as the options of add_options() say. Without one, nothing."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.path: Path | None = args.checkpoint
        self.key = key_of(args) if self.path else None
        self._seen: tuple[int, int] | None = (-1, -1)  # the file that is known to be this job's

    def save(self, state: dict) -> None:
        """Replace the file by a rename: a crash leaves the old one or the new one."""
        if self.path is None:
            return
        try:
            self._save(state)
        except OSError as e:
            raise Refused(f"{self.path} cannot be written: {e.strerror}") from e

    def _save(self, state: dict) -> None:
        if self._stamp() != self._seen:
            self.load()  # Refuses to replace what another job has written.
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_folder()
        fresh = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        try:
            fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(fd, "wb") as f:
                self._write(f, {"of": this_job(), "state": state})
                f.flush()
                os.fsync(f.fileno())
            os.replace(fresh, self.path)
            self._seen = self._stamp()
        except BaseException:
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def load(self) -> dict | None:
        if self.path is None:
            return None
        try:
            if not self.path.parent.exists():
                return None
            is_shared = self._check_folder()
            stamp = self._stamp()
            with open(self.path, "rb") as f:
                owner = os.fstat(f.fileno()).st_uid
                if is_shared and owner not in (os.geteuid(), 0):
                    raise Refused(f"{self.path} belongs to another user (uid {owner})")
                found = self._read(f)
        except FileNotFoundError:
            self._seen = None
            return None
        except OSError as e:
            raise Refused(f"{self.path} cannot be read: {e.strerror}") from e
        if found["of"] != this_job():
            raise Refused(f"{self.path} is a checkpoint of {called(found['of'])}, and this is "
                          f"{called(this_job())}: give this one a file of its own, or the name of "
                          "that job (weft run --job)")
        self._seen = stamp
        return found["state"]

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def _check_folder(self) -> bool:
        """May others make files in it? Refused when they may also rename ours."""
        mode = self.path.parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise Refused(f"everybody may replace files in {self.path.parent} (mode "
                          f"{stat.S_IMODE(mode):04o}): checkpoints need a folder of their own")
        return bool(mode & stat.S_IWOTH)

    def _write(self, file: io.BufferedWriter, what: dict) -> None:
        if not self.key:
            self._pour(what, file)
            return
        age = self.key.start("--encrypt", stdin=subprocess.PIPE, stdout=file.fileno())
        try:
            self._pour(what, age.stdin)
        finally:
            with contextlib.suppress(BrokenPipeError):
                age.stdin.close()
            with age.stderr:
                said = age.stderr.read()
            age.wait()
        if age.returncode != 0:
            raise Refused(f"{self.path} cannot be written: age: {last_line(said)}")

    def _pour(self, what: dict, file: io.BufferedIOBase) -> None:
        sink = Sink(file)
        torch.save(what, sink)
        if sink.error and not isinstance(sink.error, BrokenPipeError):  # age's status says more
            raise Refused(f"{self.path} cannot be written: {sink.error.strerror}")

    def _read(self, file: io.BufferedReader) -> dict:
        is_encrypted = os.pread(file.fileno(), len(MAGIC), 0) == MAGIC
        if is_encrypted and not self.key:
            raise Refused(f"{self.path} is encrypted, and no key is given: --checkpoint-key or "
                          "WEFT_CHECKPOINT_KEY_FILE")
        if self.key and not is_encrypted:
            # Or whoever cannot encrypt puts a file of his own in its place.
            raise Refused(f"{self.path} is not encrypted, though this job has a key: encrypt it "
                          "with age, or move it away")
        with self._decrypted(file) if is_encrypted else file as plain:
            return self._unpacked(plain)

    def _decrypted(self, file: io.BufferedReader) -> io.BufferedRandom:
        """In memory, all of it, and only when age has found it authentic to its end."""
        plain = open(os.memfd_create("checkpoint"), "w+b")
        age = self.key.start("--decrypt", stdin=file.fileno(), stdout=plain.fileno())
        said = age.communicate()[1]
        if age.returncode == 0:
            plain.seek(0)
            return plain
        plain.close()
        if b"no identity matched" in said:
            raise Refused(f"{self.path} was encrypted with another key than {self.key.name}")
        raise Refused(f"{self.path} is not as it was written, something has changed it or cut it "
                      f"off: age: {last_line(said)}")

    def _unpacked(self, plain: io.BufferedIOBase) -> dict:
        try:
            found = torch.load(plain, map_location="cpu", weights_only=ONLY_VALUES)
        except Exception as e:  # torch promises no kind.
            raise Refused(f"{self.path} is no checkpoint: {str(e).splitlines()[0]}") from e
        of = found.get("of") if isinstance(found, dict) else None
        if not isinstance(of, dict) or sorted(of) != ["job", "network"] or "state" not in found:
            raise Refused(f"{self.path} does not say which job it is of: it was not written here")
        return found


def agree(mine: dict | None, device: torch.device) -> dict | None:
    """The state with the largest "step" of all ranks', on all ranks; None when nobody has one."""
    steps = torch.full((dist.get_world_size(),), -1, dtype=torch.int64, device=device)
    steps[dist.get_rank()] = mine["step"] if mine else -1
    dist.all_reduce(steps, dist.ReduceOp.MAX)
    if steps.max().item() < 0:
        return None
    # Pickled, which is fine for a small model; a large one is better sent tensor by tensor.
    box = [mine]
    dist.broadcast_object_list(box, src=int(steps.argmax().item()))
    return box[0]
