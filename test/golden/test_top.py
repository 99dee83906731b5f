"""weft top in a real terminal: keys, sizes, signals, and a hub that goes away.

A server of the answers in test/corpus/top is in the place of a hub, and of an agent. The terminal
is a pseudo-terminal whose session is led by a shell, so that it is as weft left it when weft has
ended.
"""

from __future__ import annotations

import fcntl
import http.server
import json
import os
import pty
import re
import select
import signal
import socketserver
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[1] / "corpus" / "top"
# All that is sent beside text: a line, what is behind, the screen, the cursor, colours.
SEQUENCE = re.compile(r"\x1b\[(?:(\d+);1H|K|2J|\?1049[hl]|\?25[hl]|(?:0|1|7|31|33)m)")
DEADLINE = 30


# ---- who is asked -------------------------------------------------------------------------------

def serve(path: str, sample: str) -> None:
    """Answers of a sample, for ever."""
    facts = json.loads((SAMPLES / sample).read_text())
    answers = {f"/v1/networks/default/{what}": facts[what]
               for what in ("nodes", "edges", "jobs", "findings") if what in facts}
    answers["/v1/networks/default/traffic"] = {"rows": []}
    if "status" in facts:
        answers["/v1/status"] = facts["status"]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 - its name in http.server
            body = answers.get(self.path)
            text = json.dumps(body or {"error": "there is none"}).encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def address_string(self) -> str:
            return "a unix socket"

        def log_message(self, *_: object) -> None:
            pass

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True

    Path(path).unlink(missing_ok=True)
    with Server(path, Handler) as server:
        server.serve_forever()


class Asked:
    """A hub, or an agent, in a process that can be killed."""

    def __init__(self, path: Path, sample: str) -> None:
        self.path, self.sample = path, sample
        self.start()

    def start(self) -> None:
        self.path.unlink(missing_ok=True)
        self.process = subprocess.Popen([sys.executable, __file__, self.path, self.sample])
        until = time.monotonic() + DEADLINE
        while not self.path.exists():
            assert time.monotonic() < until and self.process.poll() is None
            select.select([], [], [], 0.05)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Callable[[str], Asked]]:
    made = []

    def make(sample: str) -> Asked:
        made.append(Asked(tmp_path / f"{sample}.sock", sample))
        return made[-1]

    yield make
    for each in made:
        each.kill()


# ---- the terminal -------------------------------------------------------------------------------

class Terminal:
    """A terminal with a shell that runs a script, in which "$@" is the program."""

    def __init__(self, script: tuple[str, str], *words: object, size: tuple[int, int] = (80, 24),
                 **env: str) -> None:
        self.master, self.slave = pty.openpty()
        self.resize(*size)
        self.before = termios.tcgetattr(self.slave)
        self.raw = self.pending = ""
        self.lines: dict[int, str] = {}
        self.at = 1
        self.is_alternate = self.is_hidden = False
        environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
        self.shell = subprocess.Popen(
            ["bash", *script, "bash", *map(str, words)],
            stdin=self.slave, stdout=self.slave, stderr=self.slave, close_fds=True,
            env={**environment, "TERM": "xterm", **env}, preexec_fn=self._lead)

    def _lead(self) -> None:
        # Who started the tests may ignore some, as nohup does.
        for taken in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(taken, signal.SIG_DFL)
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def _show(self, text: str) -> None:
        """What the terminal makes of it. A sequence may come in two parts."""
        self.raw += text
        self.pending += text
        while self.pending:
            found = SEQUENCE.match(self.pending)
            if found:
                self._obey(found)
                self.pending = self.pending[found.end():]
            elif self.pending[0] == "\x1b" and len(self.pending) < 12:
                return
            else:
                assert self.pending[0] != "\x1b", f"unknown: {self.pending[:20]!r}"
                self.lines[self.at] = self.lines.get(self.at, "") + self.pending[0]
                self.pending = self.pending[1:]

    def _obey(self, found: re.Match[str]) -> None:
        if found[1]:
            self.at = int(found[1])
        elif found[0] == "\x1b[K":
            self.lines[self.at] = ""
        elif found[0] == "\x1b[2J":
            self.lines = {}
        elif "?1049" in found[0]:
            self.is_alternate = found[0].endswith("h")
        elif "?25" in found[0]:
            self.is_hidden = found[0].endswith("l")

    def text(self) -> str:
        return "\n".join(self.lines.get(n, "") for n in range(1, max(self.lines, default=0) + 1))

    def wait_for(self, is_so: Callable[[], bool] | str, seconds: float = DEADLINE) -> None:
        until = time.monotonic() + seconds
        what = is_so
        if isinstance(is_so, str):
            def is_so() -> bool:
                return what in self.text()
        while not is_so():
            assert time.monotonic() < until, f"{what} did not come:\n{self.text()}"
            ready, _, _ = select.select([self.master], [], [], 0.2)
            if ready:
                self._show(os.read(self.master, 65536).decode())

    def program(self) -> int:
        """The process that the shell has started."""
        children = Path(f"/proc/{self.shell.pid}/task/{self.shell.pid}/children").read_text()
        return int(children.split()[0])

    def is_restored(self) -> bool:
        return (termios.tcgetattr(self.slave) == self.before and not self.is_alternate and
                not self.is_hidden)

    def is_raw(self) -> bool:
        local = termios.tcgetattr(self.slave)[3]
        return not local & (termios.ICANON | termios.ECHO)

    def close(self) -> None:
        self.shell.kill()
        self.shell.wait()
        os.close(self.master)
        os.close(self.slave)


# A signal for all in the foreground does not end the shell; what the shell says comes at the end.
PLAIN = "-c", 'trap : INT QUIT HUP TERM; "$@"; echo "ended $?"; exec sleep 1000'
# With job control; it goes on when a line is typed.
JOBS = "-mc", '"$@"; echo "stopped"; read -r line; fg >/dev/null; echo "ended $?"; exec sleep 1000'


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    made = []

    def make(*words: object, script: tuple[str, str] = PLAIN, **more: object) -> Terminal:
        made.append(Terminal(script, *words, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


def selected(shown: Terminal) -> str:
    """The first word of the selected row; "" while it is being drawn."""
    rows = [line[2:].split() for line in shown.text().splitlines() if line.startswith(">")]
    return rows[0][0] if len(rows) == 1 and rows[0] else ""


# ---- tests --------------------------------------------------------------------------------------

def test_keys(weft: Path, asked, terminal) -> None:
    hub = asked("hub")
    shown = terminal(weft, "top", "--socket", hub.path)
    shown.wait_for("network default, hub hub-1   3 up, 1 down   2 critical, 1 warning")
    shown.wait_for(lambda: selected(shown) == "gpu-1")
    assert shown.is_raw() and shown.is_alternate and shown.is_hidden
    assert len(shown.text().splitlines()) == 24
    shown.type("jj")
    shown.wait_for(lambda: selected(shown) == "gpu-3")
    shown.wait_for("-> Start the machine, or look at its line")
    shown.type("\x1b[A")
    shown.wait_for(lambda: selected(shown) == "gpu-2")
    shown.type("\t")
    shown.wait_for("LOSS>")
    shown.wait_for(lambda: selected(shown) == "gpu-1--gpu-3")
    shown.type("/lapt\r")
    shown.wait_for(lambda: selected(shown) == "gpu-1--laptop")
    shown.type("\x1b")
    shown.wait_for("gpu-1--gpu-2")
    shown.type("f\x1b[B\x1b[B\r")
    shown.wait_for("SEVERITY     warning")
    shown.wait_for("-> Look at the line in that direction.")
    shown.type("\x1b")
    shown.wait_for("WEFT-RANK-003")
    shown.type("?")
    shown.wait_for("ask again now")
    shown.type("?J")
    shown.wait_for("HELD UP BY")
    shown.type("q")
    shown.wait_for("ended 0")
    assert shown.is_restored()


def test_sizes(weft: Path, asked, terminal) -> None:
    shown = terminal(weft, "top", "--socket", asked("hub").path)
    shown.wait_for("gpu-3")
    assert "LOSS>" not in shown.text()
    shown.resize(100, 50)
    shown.wait_for("LOSS>")
    shown.wait_for("HELD UP BY")
    shown.wait_for(lambda: len(shown.text().splitlines()) == 50)
    shown.resize(30, 5)
    shown.wait_for("the terminal is too small")
    shown.resize(80, 24)
    shown.wait_for("gpu-3")
    shown.type("q")
    shown.wait_for("ended 0")
    assert shown.is_restored()


@pytest.mark.parametrize(("how", "status"), [
    (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131), ("\x03", 130)])
def test_ends(weft: Path, asked, terminal, how: signal.Signals | str, status: int) -> None:
    """By a signal it ends as others do, and the terminal is as it was."""
    shown = terminal(weft, "top", "--socket", asked("hub").path)
    shown.wait_for("gpu-3")
    assert shown.is_raw()
    if isinstance(how, str):
        shown.type(how)
    else:
        os.kill(shown.program(), how)
    shown.wait_for(f"ended {status}")
    assert shown.is_restored()


def test_stop_and_continue(weft: Path, asked, terminal) -> None:
    shown = terminal(weft, "top", "--socket", asked("hub").path, script=JOBS)
    shown.wait_for("gpu-3")
    shown.type("\x1a")
    shown.wait_for("stopped")
    assert not shown.is_raw() and not shown.is_alternate and not shown.is_hidden
    shown.type("\r")
    shown.wait_for(lambda: shown.is_alternate and "gpu-3" in shown.text())
    shown.wait_for(shown.is_raw)
    shown.type("q")
    shown.wait_for("ended 0")
    assert not shown.is_raw() and not shown.is_alternate


def test_a_hub_that_is_killed(weft: Path, asked, terminal) -> None:
    """What it said last goes, and comes back with the hub. Keys work meanwhile."""
    hub = asked("hub")
    shown = terminal(weft, "top", "--socket", hub.path)
    shown.wait_for("gpu-3")
    hub.kill()
    shown.wait_for("no answer for ")
    shown.wait_for("nothing is known now", 60)
    assert "gpu-3" not in shown.text() and "10.77.0.2" not in shown.text()
    shown.type("f")
    shown.wait_for("[f:FINDINGS 0]")
    hub.start()
    shown.wait_for("WEFT-LOSS-001")
    assert "no answer" not in shown.text()
    hub.kill()
    shown.wait_for("no answer for ")
    shown.type("q")
    shown.wait_for("ended 0")
    assert shown.is_restored()


def test_a_hub_that_is_not_there(weft: Path, terminal, tmp_path: Path) -> None:
    shown = terminal(weft, "top", "--socket", tmp_path / "none")
    shown.wait_for("no hub answers at")
    assert shown.text().startswith("network default\n")
    shown.type("q")
    shown.wait_for("ended 0")
    assert shown.is_restored()


def test_a_node(weft: Path, asked, terminal) -> None:
    shown = terminal(weft, "top", "--agent", asked("agent").path, size=(100, 30))
    shown.wait_for("network lab, node n2   3 up, 2 down   1 warning")
    shown.wait_for("silent 33 s")
    shown.type("p")
    shown.wait_for("n1--n2")
    shown.type("q")
    shown.wait_for("ended 0")


@pytest.mark.parametrize("no_color", ["1", ""])
def test_colours(weft: Path, asked, terminal, no_color: str) -> None:
    shown = terminal(weft, "top", "--socket", asked("hub").path, NO_COLOR=no_color)
    shown.wait_for("gpu-3")
    assert bool(re.search(r"\x1b\[(1|7|31|33)m", shown.raw)) == (no_color == "")


def test_what_a_terminal_would_obey(weft: Path, asked, terminal) -> None:
    """A sequence that weft does not send itself fails in _show()."""
    shown = terminal(weft, "top", "--socket", asked("evil").path)
    shown.wait_for(r"network default, hub x\x1b[2J\xc2\x9b31m")
    shown.type("pJf\rq?")
    shown.wait_for("ask again now")
    shown.type("?q")
    shown.wait_for("ended 0")


def test_no_terminal(weft: Path, asked) -> None:
    """As text, once, whether that is asked for or not."""
    for words in (["--once"], []):
        done = subprocess.run([weft, "top", "--socket", asked("hub").path, *words],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                              check=True)
        assert "\x1b" not in done.stdout and done.stderr == ""
        assert done.stdout.startswith("network default, hub hub-1   3 up, 1 down")
        for head in ("\nNODES\n", "\nPAIRS\n", "\nJOBS\n", "\nFINDINGS\n", "HELD UP BY"):
            assert head in done.stdout
        assert re.search(r"^gpu-3 +down +- +- +- ", done.stdout, re.MULTILINE)


def test_mistakes(weft: Path, tmp_path: Path) -> None:
    for words, said in (
            (["--agent", "/x", "--network", "n"], "--agent is of a node, and --network of a hub"),
            (["--interval", "10ms"], "--interval"),
            (["--hub", "h"], "needs --admin-token-file and --pin"),
            (["--once", "--socket", str(tmp_path / "none")], "no hub answers at"),
            (["--once", "--agent", str(tmp_path / "none")], "no agent on")):
        done = subprocess.run([weft, "top", *words], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60, check=False)
        assert done.returncode == (1 if "--once" in words else 2), words
        assert said in done.stderr and done.stdout == "", (words, done.stderr)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
