"""What goes wrong in a job by the log of its NCCL, one at a time: what is found, and of which rank,
and that nothing else is.

The network is that of net.py. A job runs on a and b by weft run. Its command writes what NCCL would
write, and on b then what NCCL says of a fault, word for word as its source has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, Lab

from .net import QUARTET, Net, fault

pytestmark = pytest.mark.namespaces

# From the line in the log to the finding, and from the job's end until it is gone.
BOUND_S = 30
ANY = [".*"]
BEGINS = """gpu-1:7:7 [0] NCCL INFO Bootstrap: Using weft0:10.42.0.2<0>
gpu-1:7:7 [0] NCCL INFO NET/IB : No device found.
gpu-1:7:7 [0] NCCL INFO NET/Socket : Using [0]{}:10.42.0.2<0>
gpu-1:7:7 [0] NCCL INFO Using network Socket
"""
WORKER = """
log=$(echo $NCCL_DEBUG_FILE | sed s/%p/$$/)
printf "%s" "$BEGINS" > $log
echo "it runs"
while ! test -e $FAULT; do sleep 0.1; done
cat $FAULT >> $log
exec sleep 600
"""
WARN = "gpu-1:7:9 [0] {} NCCL WARN {}\n"
# By the finding: where NCCL says it, and what.
SAYS = {
    "WEFT-NCCL-001": ("misc/ibvwrap.cc:190", "Call to ibv_poll_cq() returned -1"),
    "WEFT-NCCL-002": ("transport/net_ib.cc:1310",
                      "NET/IB: Got completion from peer 10.42.0.3<49210> with "
                      "status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) reqSize=0 "
                      "vendor_err=129 req_type=Recv hca mlx5_0"),
    "WEFT-NCCL-003": ("misc/socket.cc:544",
                      "socketPollConnect: connect to 10.0.0.7<57943> returned Connection refused, "
                      "exceeded error retry count after 35 attempts"),
    "WEFT-NCCL-005": ("misc/socket.cc:62",
                      "socketProgressOpt: Call to recv from 10.42.0.3<3335> failed : Connection "
                      "timed out"),
}


@pytest.fixture(scope="module")
def net(weft: Path) -> Iterator[Net]:
    with Lab.from_text(QUARTET, capture=False) as lab:
        made = Net(lab, weft)
        for node in made.nodes.values():
            node.agent.allow(*ANY)
        yield made


class Job:
    """That on a and b; on b NCCL takes that interface."""

    def __init__(self, net: Net, folder: Path, interface: str = "weft0") -> None:
        self.says = folder / "says"
        words = [net.site.weft, "run", "--nnodes", 2, "--job", "train", "sh", "-c", WORKER]
        self.parts: dict[str, Daemon] = {}
        for name, taken in (("a", "weft0"), ("b", interface)):
            # On a nothing goes wrong. Logs of a job whose network was not wanted are kept.
            env = {"BEGINS": BEGINS.format(taken), "TMPDIR": str(folder),
                   "FAULT": str(self.says if name == "b" else folder / "never")}
            self.parts[name] = net.lab.host(name).spawn(words, name="job", env=env, allow=ANY)
        for part in self.parts.values():
            part.wait_line("it runs", 30)

    def fail(self, text: str) -> None:
        """Written whole."""
        unseen = self.says.with_suffix(".new")
        unseen.write_text(text, encoding="ascii")
        unseen.rename(self.says)

    def end(self) -> None:
        for part in self.parts.values():
            part.stop()


@pytest.mark.parametrize("code", SAYS)
def test_what_nccl_says(net: Net, tmp_path: Path, code: str) -> None:
    """It is what holds the job up; and gone with the job, which has to be started anew."""
    where, text = SAYS[code]
    job = Job(net, tmp_path)
    with fault(net, code, "train/b", BOUND_S, over_s=BOUND_S) as found:
        job.fail(WARN.format(where, text))
        said = found()
        assert said["about"] == "rank" and said["severity"] == "critical"
        assert said["text"] == f'b: NCCL says "{text}"'
        jobs = net.site.hub.run([net.site.weft, "jobs"], quiet=True).out
        assert f'    HELD UP BY b: NCCL says "{text}", for ' in jobs
        job.parts["b"].wait_line("weft run: note: NCCL says ")
        job.end()


def test_a_watchdog(net: Net, tmp_path: Path) -> None:
    """PyTorch's, where its output goes to the same file."""
    text = ("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=18, OpType=ALLREDUCE, "
            "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600073 milliseconds before timing "
            "out.")
    job = Job(net, tmp_path)
    with fault(net, "WEFT-NCCL-005", "train/b", BOUND_S, over_s=BOUND_S) as found:
        job.fail(f"[rank1]:[E1129 10:01:02.003 ProcessGroupNCCL.cpp:629] [Rank 1] {text}\n")
        assert found()["text"] == f'b: NCCL says "{text}"'
        job.end()


def test_another_network(net: Net, tmp_path: Path) -> None:
    """It holds up nobody, and is said all the same, of the node that it is so of."""
    with fault(net, "WEFT-NCCL-006", "train/b", BOUND_S, over_s=BOUND_S) as found:
        job = Job(net, tmp_path, "eth0")
        said = found()
        assert said["about"] == "rank" and said["severity"] == "warning"
        assert said["text"] == ("b: NCCL was to use weft0, and uses sockets on eth0, whose "
                                "addresses other nodes may not reach")
        jobs = net.site.hub.run([net.site.weft, "jobs"], quiet=True).out
        assert "b: NCCL was to use weft0, and uses sockets on eth0" in jobs
        assert "HELD UP BY" not in jobs
        job.end()
