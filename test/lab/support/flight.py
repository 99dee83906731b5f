"""Records of PyTorch's flight recorder, as a stand-in for a rank with NCCL writes them.

The values are those of torch/csrc/distributed/c10d/FlightRecorder*, version 2.9 of the record, and
the bytes those of torch::jit::Pickler: protocol 2, in which each text is remembered by its value,
and a dictionary that is in several lists by its place. It imports nothing of the lab, since ranks
of a job import it.
"""

from __future__ import annotations

import os
import struct
import threading
import time


class Pickler:
    def __init__(self) -> None:
        self.out = bytearray(b"\x80\x02")
        self.texts: dict[str, int] = {}
        self.shared: dict[int, int] = {}
        self.n = 0

    def put(self) -> int:
        self.out += b"q" + bytes([self.n]) if self.n < 256 else b"r" + struct.pack("<I", self.n)
        self.n += 1
        return self.n - 1

    def get(self, slot: int) -> None:
        self.out += b"h" + bytes([slot]) if slot < 256 else b"j" + struct.pack("<I", slot)

    def number(self, value: int) -> None:
        if 0 <= value < 1 << 8:
            self.out += b"K" + struct.pack("<B", value)
        elif 0 <= value < 1 << 16:
            self.out += b"M" + struct.pack("<H", value)
        elif -(1 << 31) <= value < 1 << 31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            self.out += b"\x8a\x08" + struct.pack("<q", value)

    def text(self, value: str) -> None:
        if value in self.texts:
            self.get(self.texts[value])
            return
        data = value.encode()
        self.out += b"X" + struct.pack("<I", len(data)) + data
        self.texts[value] = self.put()

    def frame(self, value: dict) -> None:
        if id(value) in self.shared:
            self.get(self.shared[id(value)])
            return
        self.dictionary(value)
        self.shared[id(value)] = self.put()

    def dictionary(self, value: dict) -> None:
        self.out += b"}("
        for key, one in value.items():
            self.add(key)
            if key == "frames":
                self.out += b"]("
                for frame in one:
                    self.frame(frame)
                self.out += b"e"
            else:
                self.add(one)
        self.out += b"u"

    def add(self, value: object) -> None:
        if value is None:
            self.out += b"N"
        elif isinstance(value, bool):
            self.out += b"\x88" if value else b"\x89"
        elif isinstance(value, int):
            self.number(value)
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif isinstance(value, str):
            self.text(value)
        elif isinstance(value, dict):
            self.dictionary(value)
        elif isinstance(value, list):
            self.out += b"]("
            for one in value:
                self.add(one)
            self.out += b"e"
        else:
            assert isinstance(value, tuple) and len(value) == 2
            for one in value:
                self.add(one)
            self.out += b"\x86"


def torch_pickle(value: object) -> bytes:
    pickler = Pickler()
    pickler.add(value)
    return bytes(pickler.out) + b"."


# In each record they are the same objects, as in PyTorch.
FRAMES = [{"name": "all_reduce", "filename": "torch/distributed/distributed_c10d.py", "line": 2806},
          {"name": "<module>", "filename": "train.py", "line": 41}]


def entry(number: int, operation: str, elements: int, state: str, *, created: int,
          group: tuple[str, str] = ("0", "default_pg"), paired: bool = False) -> dict:
    """An operation: @created in nanoseconds since 1970."""
    found = {"scheduled": None, "started": created + 1000, "completed": created + 1000}
    return {
        "frames": FRAMES, "record_id": number - 1, "pg_id": int(group[0]), "process_group": group,
        "thread_name": "python3", "thread_id": "140234", "collective_seq_id": number,
        "p2p_seq_id": 0, "op_id": number, "profiling_name": f"nccl:{operation}",
        "time_created_ns": created, "duration_ms": 1.25, "input_sizes": [[elements]],
        "input_dtypes": ["Float"], "output_sizes": [[elements]], "output_dtypes": ["Float"],
        "state": state, "time_discovered_started_ns": found[state],
        "time_discovered_completed_ns": created + 2000 if state == "completed" else None,
        "retired": state == "completed", "timeout_ms": 600000, "is_p2p": paired}


def record(entries: list[dict], groups: dict[str, tuple[str, list[int]]]) -> dict:
    """What a rank writes; @groups: of each name the description and the ranks."""
    return {
        "version": "2.9", "comm_lib_version": "2.27.3",
        "pg_config": {name: {"name": name, "desc": description, "ranks": str(ranks)}
                      for name, (description, ranks) in groups.items()},
        "pg_status": {"0": {"last_enqueued_collective": len(entries),
                            "last_started_collective": len(entries),
                            "last_completed_collective": len(entries) - 1}},
        "entries": entries}


class Recorder:
    """The recorder of a rank: writes when somebody writes to its pipe, which it looks at each
    second, as PyTorch's does."""

    def __init__(self, rank: int, size: int) -> None:
        self.groups = {"0": ("default_pg", list(range(size)))}
        self.entries: list[dict] = []
        self.lock = threading.Lock()
        self.file = os.environ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"] + str(rank)
        self.limit = int(os.environ["TORCH_NCCL_TRACE_BUFFER_SIZE"])
        pipe = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + f"{rank}.pipe"
        os.mkfifo(pipe, 0o666)
        self.pipe = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        threading.Thread(target=self.listen, daemon=True).start()

    def enter(self, number: int, operation: str, elements: int) -> None:
        """Asks for an operation, or for another one under the same number."""
        one = entry(number, operation, elements, "started", created=time.time_ns())
        with self.lock:
            if self.entries and self.entries[-1]["collective_seq_id"] == number:
                self.entries.pop()
            self.entries = [*self.entries, one][-self.limit:]

    def complete(self) -> None:
        with self.lock:
            self.entries[-1]["state"] = "completed"

    def listen(self) -> None:
        while True:
            time.sleep(1)
            try:
                asked = os.read(self.pipe, 128)
            except BlockingIOError:
                asked = b""
            if asked:
                with self.lock:
                    data = torch_pickle(record(self.entries, self.groups))
                with open(self.file, "wb") as file:
                    file.write(data)
