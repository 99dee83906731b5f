"""What a container and a virtual machine have in common that stand in the place of a lab's host."""

from __future__ import annotations

from typing import Self

from lab import Host


class Guest:
    """A machine that boots at the beginning of a `with`, and ends with it, whatever happens."""

    host: Host

    def address(self, version: int = 4) -> str:
        return self.host.address(version)

    def __enter__(self) -> Self:
        try:
            self.boot()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def boot(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        """Also of one that has not booted."""
        raise NotImplementedError
