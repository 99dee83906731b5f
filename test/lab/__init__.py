"""The lab: hosts, switches, routers and NATs as network namespaces.  See README.md."""

from .condition import PATIENCE, ConditionError, wait_for
from .laboratory import Host, Lab, LogError, unavailable
from .process import CommandError, Daemon, Result
from .topology import Topology, TopologyError

__all__ = [
    "PATIENCE", "CommandError", "ConditionError", "Daemon", "Host", "Lab", "LogError", "Result",
    "Topology", "TopologyError", "unavailable", "wait_for",
]
