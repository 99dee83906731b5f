#!/usr/bin/python3
"""store_cases - what a TCPStore answers, case by case, as one line of JSON.

    store_cases ADDRESS PORT [own]    with "own" the store is PyTorch's, made here

The same cases are run against PyTorch's server and the hub's, and the lines compared. They use
PyTorch's own client where it can ask, and bytes on a socket where it cannot.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
from datetime import timedelta

import torch
from torch.distributed import TCPStore

# torch 2 numbers requests from 1, behind a magic number; it has no WATCH_KEY.
IS_VALIDATED = int(torch.__version__.split(".", maxsplit=1)[0]) >= 2
SET, COMPARE_SET, GET, ADD, CHECK, WAIT, NUM_KEYS = range(IS_VALIDATED, 7 + IS_VALIDATED)
WATCH_KEY = 7
HELLO = b"\0" + struct.pack("<I", 0x3C85F7CE)


def u64(number: int) -> bytes:
    return struct.pack("<Q", number & (2**64 - 1))


def text(data: bytes) -> bytes:
    return u64(len(data)) + data


class Raw:
    """A connection that is asked with bytes."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.sock = socket.create_connection(address, timeout=60)
        if IS_VALIDATED:
            self.ask(HELLO)

    def ask(self, *parts: bytes) -> None:
        self.sock.sendall(b"".join(parts))

    def take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.sock.recv(size - len(data))
            if not more:
                return data
            data += more
        return data

    def take_text(self) -> str:
        return self.take(struct.unpack("<Q", self.take(8))[0]).decode()

    def is_silent(self) -> bool:
        """Nothing comes, though whatever was asked before has been answered elsewhere."""
        self.sock.settimeout(0.2)
        try:
            return self.sock.recv(1) is None
        except TimeoutError:
            return True
        finally:
            self.sock.settimeout(60)


def case_set_get(store, other, raw) -> object:
    store.set("a", "1")
    store.set("a", "22")
    store.set("bytes", bytes(range(256)).decode("latin1"))
    return [other.get("a").decode(), list(other.get("bytes")), other.num_keys()]


def case_long_value(store, other, raw) -> object:
    store.set("long", "x" * 300000)
    value = other.get("long")
    return [len(value), set(value) == {ord("x")}]


def case_add(store, other, raw) -> object:
    store.set("text", "40")
    return [store.add("n", 5), other.add("n", -7), store.get("n").decode(), store.add("text", 2)]


def case_add_to_what_is_no_number(store, other, raw) -> object:
    store.set("word", "forty")
    conn = raw()
    conn.ask(bytes([ADD]), text(b"/word"), u64(1))
    return len(conn.take(8))


def case_compare_set(store, other, raw) -> object:
    return [store.compare_set("c", "x", "y").decode(), store.compare_set("c", "", "first").decode(),
            other.compare_set("c", "", "second").decode(),
            other.compare_set("c", "first", "third").decode(), store.get("c").decode()]


def case_delete(store, other, raw) -> object:
    store.set("d", "1")
    return [store.delete_key("d"), store.delete_key("d"), other.num_keys()]


def case_wait(store, other, raw) -> object:
    order = []

    def late() -> None:
        order.append("set one")
        other.set("w1", "1")
        order.append("set two")
        other.set("w2", "2")

    timer = threading.Timer(0.2, late)
    timer.start()
    store.wait(["w1", "w2"], timedelta(seconds=10))
    order.append("woken")
    timer.join()
    return order


def case_get_waits(store, other, raw) -> object:
    timer = threading.Timer(0.2, lambda: other.set("later", "here"))
    timer.start()
    value = store.get("later").decode()
    timer.join()
    return value


def case_wait_ends(store, other, raw) -> object:
    conn = raw()
    try:
        store.wait(["never"], timedelta(milliseconds=300))
    except RuntimeError as error:
        word = "timeout" if "timeout" in str(error).lower() else str(error)
    conn.ask(bytes([NUM_KEYS]))
    return [word, len(conn.take(8))]


def case_raw_wait(store, other, raw) -> object:
    conn = raw()
    conn.ask(bytes([WAIT]), u64(2), text(b"/r1"), text(b"/r2"))
    store.set("r1", "")
    silent = conn.is_silent()
    store.set("r2", "")
    return [silent, conn.take(1).hex()]


def case_check(store, other, raw) -> object:
    store.set("there", "1")
    conn = raw()
    answers = []
    for keys in ([b"/there"], [b"/there", b"/not"], [b"/not"]):
        conn.ask(bytes([CHECK]), u64(len(keys)), *map(text, keys))
        answers.append(conn.take(1).hex())
    return answers


def case_get_of_nothing(store, other, raw) -> object:
    conn = raw()
    conn.ask(bytes([GET]), text(b"/nothing"))
    return len(conn.take(8))


def case_no_operation(store, other, raw) -> object:
    conn = raw()
    conn.ask(b"\x1f")
    return len(conn.take(1))


def case_in_pieces(store, other, raw) -> object:
    conn = raw()
    for byte in bytes([COMPARE_SET]) + text(b"/p") + text(b"") + text(b"v") + bytes([NUM_KEYS]):
        conn.ask(bytes([byte]))
    return [conn.take_text(), len(conn.take(8)), store.get("p").decode()]


def case_many_at_once(store, other, raw) -> object:
    conn = raw()
    conn.ask(*[bytes([SET]) + text(b"/m%d" % i) + text(b"%d" % i) + bytes([ADD]) + text(b"/sum") +
               u64(i) for i in range(1000)])
    sums = [struct.unpack("<q", conn.take(8))[0] for _ in range(1000)]
    return [sums[-1], store.get("m999").decode()]


def case_watch(store, other, raw) -> object:
    conn = raw()
    conn.ask(bytes([WATCH_KEY]), text(b"/seen"))
    events = [conn.take(1).hex()]
    store.set("seen", "1")
    store.set("seen", "2")
    store.add("seen", 40)
    store.compare_set("seen", "42", "43")
    store.delete_key("seen")
    for _ in range(5):
        kind = conn.take(1).hex()
        events.append([kind, conn.take_text(), conn.take_text(), conn.take_text()])
    return events


def case_extended(store, other, raw) -> object:
    """What torch 2 has besides."""
    if not hasattr(store, "multi_get"):
        return None
    store.append("x", "ab")
    store.append("x", "cd")
    store.multi_set(["y", "z"], ["1", "22"])
    return [value.decode() for value in other.multi_get(["x", "y", "z"])] + [
        store.check(["x", "y"]), store.check(["x", "nothing"])]


def main(address: str, port: str, own: str = "") -> None:
    options = {"timeout": timedelta(seconds=10), "wait_for_workers": False}
    server = TCPStore(address, int(port), is_master=True, **options) if own else None
    del options["wait_for_workers"]
    at = (address, server.port if server else int(port))
    store = TCPStore(*at, is_master=False, wait_for_workers=False, **options)
    other = TCPStore(*at, is_master=False, wait_for_workers=False, **options)
    answers = {"server": server and ("libuv" if getattr(server, "libuvBackend", False) else "own")}
    for name, case in list(globals().items()):
        if name == "case_watch" and IS_VALIDATED:
            continue
        if name.startswith("case_"):
            before = other.num_keys()
            answers[name[5:]] = case(store, other, lambda: Raw(at))
            answers[name[5:] + ": keys"] = other.num_keys() - before
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
