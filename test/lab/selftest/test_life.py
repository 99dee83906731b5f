"""A lab comes up, keeps to itself, tells what went wrong, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lab import PATIENCE, CommandError, ConditionError, Lab, LogError, wait_for
from lab.support import ROOT
from lab.support.network import record
from lab.support.network.process import tagged_pids

pytestmark = pytest.mark.namespaces

PROGRAM = ROOT / "test/lab/lab.py"
PAIR = """
switch s 10.9.0.0/24
host x
host y
link x s 10.9.0.1 delay=1ms
link y s 10.9.0.2
"""
SLEEPER = ["sleep", "1000"]


def say(*lines: str) -> list[str]:
    """A daemon that says something and goes on."""
    return ["sh", "-c", "printf '%s\\n' \"$@\"; exec sleep 1000", "sh", *lines]


def outside_world() -> tuple[list[str], str]:
    """What a lab must not change: interfaces and mounts of the machine."""
    interfaces = sorted(os.listdir("/sys/class/net"))
    return interfaces, Path("/proc/self/mounts").read_text(encoding="utf-8")


def assert_gone(tag: str) -> None:
    assert tagged_pids(tag) == []
    assert tag not in record.tags()


@pytest.fixture(autouse=True)
def logs_of_expected_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_LAB_LOGS", str(tmp_path / "logs"))


@pytest.fixture
def pair_file(tmp_path: Path) -> Path:
    path = tmp_path / "pair.topo"
    path.write_text(PAIR, encoding="utf-8")
    return path


@pytest.fixture
def tag():
    """A tag for a lab that the test does not end itself."""
    name = f"life{os.getpid()}"
    yield name
    if name in record.tags():
        record.erase(name)


def test_it_leaves_nothing():
    before = outside_world()
    with Lab.from_text(PAIR) as lab:
        lab.host("x").spawn(SLEEPER)
        assert len(tagged_pids(lab.tag)) >= 4  # three holders and the sleeper
        assert outside_world() == before
    assert_gone(lab.tag)
    assert outside_world() == before
    assert not lab.logs.exists()


def test_a_daemon_that_hides_is_ended():
    with Lab.from_text(PAIR) as lab:
        lab.host("x").run(["sh", "-c", "setsid sh -c 'sleep 1000 & sleep 1001 &' &"])
        wait_for(lambda: b"1001" in commands(lab.tag), 5, "the hidden ones to start")
    assert_gone(lab.tag)


def commands(tag: str) -> bytes:
    return b"".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in tagged_pids(tag))


def test_failure_keeps_logs_and_packets():
    class Boom(Exception):
        pass

    with pytest.raises(Boom):
        with Lab.from_text(PAIR) as lab:
            lab.host("x").spawn(say("all is well"), name="talker").wait_line("well")
            lab.host("x").run(["ping", "-c1", "10.9.0.2"])
            captured = lab.logs / "s.pcap0"
            wait_for(lambda: captured.exists() and captured.stat().st_size > 24, 5, "packets")
            raise Boom
    assert_gone(lab.tag)
    assert (lab.logs / "x-talker.log").read_text() == "all is well\n"
    assert captured.stat().st_size > 24


@pytest.fixture
def tool(tag: str):
    """A process that has a lab of that tag up, and waits."""
    script = (
        "import sys, signal; sys.path.insert(0, sys.argv[1]); from lab import Lab\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have ignored it\n"
        "with Lab.from_text(sys.argv[2], tag=sys.argv[3]) as lab:\n"
        "    lab.host('x').spawn(['sleep', '1000'])\n"
        "    print('ready', flush=True)\n"
        "    signal.pause()\n")
    argv = [sys.executable, "-c", script, PROGRAM.parents[1], PAIR, tag]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert any(line == b"ready\n" for line in process.stdout)
        process.stdout.close()
        yield process
        process.kill()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(stop, tag, tool):
    tool.send_signal(stop)
    tool.wait(60)
    assert_gone(tag)


def test_what_a_killed_tool_leaves_can_be_ended(tag, tool):
    tool.kill()
    tool.wait(60)
    assert tagged_pids(tag)
    subprocess.run([sys.executable, PROGRAM, "down", tag], check=True)
    assert_gone(tag)


def test_a_failure_to_build_leaves_nothing(tag, monkeypatch):
    monkeypatch.setenv("WEFT_LINKEM", "/bin/false")
    with pytest.raises(Exception, match="weft-linkem did not start"):
        with Lab.from_text(PAIR, tag=tag):
            pass
    assert_gone(tag)


def test_a_tag_is_used_once():
    with Lab.from_text(PAIR) as lab:
        with pytest.raises(record.RecordError, match="exists already"):
            with Lab.from_text(PAIR, tag=lab.tag):
                pass
        lab.host("x").run(["ping", "-c1", "10.9.0.2"])


def test_two_at_once_do_not_meet():
    with Lab.from_text(PAIR) as one, Lab.from_text(PAIR) as two:
        two.link("x").down()
        one.host("x").run(["ping", "-c1", "10.9.0.2"])
        assert two.host("x").run(["ping", "-c1", "-W1", "10.9.0.2"], check=False).rc == 1


def test_a_host_has_a_name_and_files_of_its_own():
    with Lab.from_text(PAIR) as lab:
        x, y = lab.host("x"), lab.host("y")
        assert x.run(["hostname"]).out == "x\n"
        assert x.run(["getent", "hosts", "x"]).out.split() == ["127.0.1.1", "x"]
        assert x.run(["getent", "hosts", "elsewhere"], check=False, timeout_s=2).rc == 2
        for path in ("/run/weft-lab-test", "/etc/weft-lab-test", "/var/lib/weft-lab-test"):
            x.run(["touch", path])
            assert y.run(["test", "-e", path], check=False).rc == 1
            assert not Path(path).exists()


@pytest.mark.parametrize("line", ["warning: low on luck", "weft: error: no", "2026 WARNING: x"])
def test_an_unexpected_complaint_fails(line):
    with pytest.raises(LogError, match=line):
        with Lab.from_text(PAIR) as lab:
            lab.host("x").spawn(say(line), name="grumbler").wait_line(line)


def test_an_expected_complaint_does_not():
    with Lab.from_text(PAIR) as lab:
        daemon = lab.host("x").spawn(
            say("warning: low on luck", "error: late", "no warning here"), allow=["low on luck"])
        daemon.wait_line("no warning")
        assert daemon.complaints() == ["error: late"]
        daemon.allow("^error: late$")


def test_daemons_end_as_asked():
    with Lab.from_text(PAIR) as lab:
        polite, killed = (lab.host("x").spawn(SLEEPER) for _ in range(2))
        assert polite.log != killed.log
        assert polite.running
        assert polite.stop() == -signal.SIGTERM
        killed.kill9()
        assert killed.rc == -signal.SIGKILL
        stubborn = lab.host("y").spawn(
            ["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"])
        stubborn.wait_line("deaf")
        assert stubborn.stop(deadline_s=0.2) == -signal.SIGKILL


def test_waiting_for_a_dead_daemon_fails_at_once_with_its_words():
    with Lab.from_text(PAIR) as lab:
        daemon = lab.host("x").spawn(["sh", "-c", "echo giving up; exit 3"])
        with pytest.raises(CommandError, match="(?s)3 without saying 'ready'.*giving up"):
            daemon.wait_line("ready", deadline_s=60)


def test_a_failed_command_is_told_in_full():
    with Lab.from_text(PAIR) as lab:
        with pytest.raises(CommandError, match=r"(?s)x\$ sh -c .*ended with 4.*out.*err"):
            lab.host("x").run(["sh", "-c", "echo out; echo err >&2; exit 4"])
        with pytest.raises(CommandError, match=rf"did not end within {PATIENCE} s\nearly"):
            lab.host("x").run(["sh", "-c", "echo early; sleep 100"], timeout_s=1)
        assert lab.host("x").run(["false"], check=False).rc == 1
        assert lab.host("x").run(["cat"], stdin="text").out == "text"


def test_a_condition_in_vain_says_what_it_was():
    with pytest.raises(ConditionError, match=f"waited {PATIENCE} s for the moon, in vain"):
        wait_for(lambda: False, 1, "the moon")


def test_command_line(pair_file, tag):
    def lab_py(*args: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, PROGRAM, *args], capture_output=True, encoding="utf-8", check=False)

    assert "lab.py exec " + tag in lab_py("up", str(pair_file), "--tag", tag).stdout
    assert tag in lab_py("list").stdout.split()
    assert "exists already" in lab_py("up", str(pair_file), "--tag", tag).stderr
    done = lab_py("exec", tag, "x", "--", "sh", "-c", "hostname; ping -c1 10.9.0.2; exit 5")
    assert done.stdout.startswith("x\n")
    assert " 0% packet loss" in done.stdout
    assert done.returncode == 5
    assert "there is no machine 'z'" in lab_py("exec", tag, "z", "--", "true").stderr
    attached = Lab.attach(tag)
    attached.link("x").down()
    assert attached.host("x").run(["ping", "-c1", "-W1", "10.9.0.2"], check=False).rc == 1
    assert lab_py("down", tag).returncode == 0
    assert "there is no lab" in lab_py("down", tag).stderr
    assert_gone(tag)


def test_command_line_names_a_wrong_file(tmp_path):
    path = tmp_path / "wrong.topo"
    path.write_text("host x\nhots y\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, PROGRAM, "show", path], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"lab.py: {path}:2: 'hots' is not a statement")
