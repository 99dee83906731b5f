"""What the lab's tests share: networks (network/), programs in them (programs/), and what to watch.

Tests say `from lab import Lab` for what almost all of them need, and name the module for the rest.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
# Topologies that several tests share.
TOPOLOGIES = ROOT / "test/lab/topo"
# Programs that are run inside a host of a lab.
PROGRAMS = Path(__file__).resolve().parent / "programs"
