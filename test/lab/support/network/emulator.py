"""The link emulator weft-linkem: where its program is, and how it is told what to do."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

from .. import ROOT

SOURCES = ROOT / "test/lab/linkem"
# What it uses of src/.
BORROWED = ("core/base/containers.c", "core/base/secret.c", "host/os/clock.c")


class EmulatorError(Exception):
    """The emulator refused a command, or could not be built."""


def program() -> Path:
    """The path of weft-linkem: $WEFT_LINKEM, or what meson built, or else built here and now."""
    if "WEFT_LINKEM" in os.environ:
        return Path(os.environ["WEFT_LINKEM"]).resolve()
    built = ROOT / "build/test/lab/linkem/weft-linkem"
    return built if built.exists() else _compile()


def _compile() -> Path:
    sources = sorted(path for path in SOURCES.glob("*.[ch]") if not path.name.startswith("test-"))
    sources += [ROOT / "src" / name for name in BORROWED]
    content = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    target = ROOT / "build/lab/cache" / f"weft-linkem-{content}"
    if target.exists():
        return target
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        raise EmulatorError("weft-linkem is not built, and there is no C compiler to build it with")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    units = [path for path in sources if path.suffix == ".c"]
    done = subprocess.run(
        [compiler, "-std=gnu11", "-D_GNU_SOURCE", "-O2", f"-I{ROOT}/src/core",
         f"-I{ROOT}/src/host", "-o", draft, *units],
        capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise EmulatorError(f"weft-linkem does not compile:\n{done.stderr}")
    draft.rename(target)  # at once, for others may be doing the same
    return target


class Emulator:
    """A running weft-linkem, reached through its control socket."""

    def __init__(self, control: Path) -> None:
        self.control = control

    def is_listening(self) -> bool:
        try:
            self._connect().close()
        except OSError:
            return False
        return True

    def ask(self, *words: str) -> str:
        """Send one command and return its answer without the "ok"."""
        with self._connect() as client:
            client.send(" ".join(words).encode())
            answer = client.recv(4096).decode()
        if not answer.startswith("ok"):
            raise EmulatorError(f"weft-linkem: {' '.join(words)}: {answer}")
        return answer.removeprefix("ok").strip()

    def _connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.settimeout(60)
        try:
            client.connect(str(self.control))
        except OSError:
            client.close()
            raise
        return client
