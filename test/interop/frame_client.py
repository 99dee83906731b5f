"""A client of a data plane's frame socket, as an agent is one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lab import Daemon

from .wgpeer import WgPeer

CLIENT = Path(__file__).with_name("frame_client_program.py")


class FrameClient:
    """A client of an end's frame socket."""

    def __init__(self, end: WgPeer) -> None:
        self.host = end.machine
        self.fifo = f"/run/{end.interface}.commands"
        self.daemon: Daemon = self.host.spawn([sys.executable, CLIENT, end.interface, self.fifo])
        self.daemon.wait_line("^open$")

    def send(self, address: str, frame: str, *words: str) -> None:
        command = " ".join(["send", address, "51820", frame, *words])
        self.host.run(["sh", "-c", f"echo {command} > {self.fifo}"], quiet=True)

    def wait_frame(self, frame: str) -> dict:
        return json.loads(self.daemon.wait_line(f'^{{.*"frame": "{frame}"}}$').string)

    def close(self) -> None:
        self.daemon.kill9()
        self.host.run(["rm", self.fifo], quiet=True)
