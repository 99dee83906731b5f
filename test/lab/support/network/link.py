"""A link of a running lab: cut it, mend it, change how it carries frames."""

from __future__ import annotations

from .emulator import Emulator
from .namespace import Namespace
from .topology import Link as LinkPlan


class Link:
    """One node's cable to a switch.

    An emulated link passes through weft-linkem, a plain one is a veth pair.  Both can be cut
    without the ends noticing: interfaces stay up and frames vanish, as on a line that is dug up.
    """

    def __init__(self, plan: LinkPlan, port: str, fabric: Namespace, emulator: Emulator) -> None:
        self.plan = plan
        self.name = plan.name
        self.port = port  # the interface at the switch's side
        self._fabric = fabric
        self._emulator = emulator

    def down(self) -> None:
        """Cut the link: frames are lost both ways, also those in flight."""
        print(f"{self.name}: cut", flush=True)
        if self.plan.emulated:
            self._emulator.ask("down", self.name)
        else:
            self._fabric.run(["ip", "link", "set", self.port, "nomaster"], quiet=True)

    def up(self) -> None:
        """Mend the link."""
        print(f"{self.name}: mended", flush=True)
        if self.plan.emulated:
            self._emulator.ask("up", self.name)
        else:
            argv = ["ip", "link", "set", self.port, "master", self.plan.switch]
            self._fabric.run(argv, quiet=True)

    def set(self, **parameters: str) -> None:
        """Change parameters of both directions, e.g. set(delay="50ms", loss="1%").

        For one direction write out_delay= (from the node to the switch) or in_delay=.
        The link must be an emulated one: say `emulated` in the topology if it has no parameter.
        """
        if not self.plan.emulated:
            raise ValueError(
                f"{self.name} is a plain link; write `emulated` on it in the topology to change it")
        words = [f"{self._key(name)}={value}" for name, value in parameters.items()]
        print(f"{self.name}: {' '.join(words)}", flush=True)
        self._emulator.ask("set", self.name, *words)

    @staticmethod
    def _key(name: str) -> str:
        direction, _, rest = name.partition("_")
        key = f"{direction}.{rest}" if direction in ("in", "out") else name
        return key.replace("path_mtu", "mtu")

    def counters(self) -> dict[str, dict[str, int]]:
        """An emulated link's frame counters: {"out": {"entered": 5, "loss": 1, ...}, "in": ...}."""
        counters = {}
        for line in self._emulator.ask("show", self.name).splitlines():
            direction, *words = line.split()
            pairs = (word.split("=") for word in words)
            counters[direction] = {name: int(value) for name, value in pairs}
        return counters
