"""The lab: hosts, switches, routers and NATs as network namespaces.  See README.md."""

from .support.network.laboratory import Host, Lab, LogError, unavailable
from .support.network.process import CommandError, Daemon, Result
from .support.network.topology import Topology, TopologyError
from .support.waiting import PATIENCE, ConditionError, wait_for

__all__ = [
    "PATIENCE", "CommandError", "ConditionError", "Daemon", "Host", "Lab", "LogError", "Result",
    "Topology", "TopologyError", "unavailable", "wait_for",
]
