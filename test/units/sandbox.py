"""What holds a process of a unit, as the kernel tells it."""

from __future__ import annotations

import re

from .machine import SystemdMachine

# The bits of linux/capability.h that a unit may have.
CAPABILITIES = {10: "cap_net_bind_service", 12: "cap_net_admin", 13: "cap_net_raw"}
SECCOMP_FILTER = "2"


def _status(machine: SystemdMachine, pid: int) -> dict[str, str]:
    text = machine.run(["cat", f"/proc/{pid}/status"], quiet=True).out
    return dict(re.findall(r"(?m)^(\w+):\s*(.*)$", text))


def capabilities(machine: SystemdMachine, pid: int) -> set[str]:
    """All that it could ever have; one that has no name here is a number."""
    bits = int(_status(machine, pid)["CapBnd"], 16)
    return {CAPABILITIES.get(i, str(i)) for i in range(64) if bits >> i & 1}


def assert_in_force(machine: SystemdMachine, pid: int, *, has_keys: bool = True) -> None:
    status = _status(machine, pid)
    assert status["Uid"].split()[0] == machine.run(["id", "-u", "weft"], quiet=True).out.strip()
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == SECCOMP_FILTER
    # What is locked is not swapped out.
    if machine.lifts_limits:
        assert (status["VmLck"] != "0 kB") == has_keys
    # Seen from where it is, by somebody with all capabilities.
    for path in ("/etc/passwd", "/usr/bin/wg", "/proc/sys/kernel/hostname"):
        refused = machine.run(["nsenter", "-t", pid, "-m", "sh", "-c", f": >> {path}"],
                              check=False)
        assert "Read-only file system" in refused.out
    machine.run(["touch", "/tmp/not-for-units"])
    assert machine.run(["nsenter", "-t", pid, "-m", "test", "-e", "/tmp/not-for-units"],
                       check=False).rc == 1
