"""Runs a program to which the kernel has no packet filter: without_nftables.py COMMAND...

Its sockets of NETLINK_NETFILTER are refused, as a kernel without nf_tables refuses them; so are
those of the programs that it starts.
"""

import ctypes
import os
import platform
import struct
import sys

AF_NETLINK, NETLINK_NETFILTER, EPROTONOSUPPORT = 16, 12, 93
# seccomp(2): the number of socket(2), by machine.
SOCKET = {"x86_64": 41, "aarch64": 198}[platform.machine()]
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ALLOW, ERRNO = 0x7fff0000, 0x00050000
# Classic BPF (linux/filter.h): load a word, compare, return.
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER, FIRST, THIRD = 0, 16, 32  # in struct seccomp_data


def filter_of() -> bytes:
    steps = [(LOAD, 0, 0, NUMBER), (EQUAL, 0, 5, SOCKET), (LOAD, 0, 0, FIRST),
             (EQUAL, 0, 3, AF_NETLINK), (LOAD, 0, 0, THIRD), (EQUAL, 0, 1, NETLINK_NETFILTER),
             (RETURN, 0, 0, ERRNO | EPROTONOSUPPORT), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def main() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    steps = filter_of()
    text = ctypes.create_string_buffer(steps, len(steps))
    program = struct.pack("HxxxxxxP", len(steps) // 8, ctypes.addressof(text))
    # Who is root here may do it without, so that what the program starts keeps its privileges.
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) != 0:
        raise OSError(ctypes.get_errno(), "the system call cannot be refused")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
