"""Links carry frames as they were told to, and can be cut.

    x ──link── [ s ] ──link── y          10.9.0.1 and 10.9.0.2

The link of x is the one under test.  Times have generous upper bounds, for the machine may be
busy, and exact lower ones, for no frame may be early.
"""

from __future__ import annotations

import json
import re

import pytest
from lab import CommandError, Lab, wait_for
from lab.support.prober import Prober

pytestmark = pytest.mark.namespaces


def line(words: str = "", seed: int = 1) -> Lab:
    return Lab.from_text(f"""
switch s 10.9.0.0/24
host x
host y
link x s 10.9.0.1 {words}
link y s 10.9.0.2
seed {seed}
""")


def ping(lab: Lab, count: int, interval_s: float = 0.01, *options: str) -> list[float]:
    """Round-trip times in ms of the pings from x to y that came back."""
    argv = ["ping", "-n", "-c", count, "-i", interval_s, "-W", 2, *options, "10.9.0.2"]
    said = lab.host("x").run(argv, check=False).out
    return [float(time) for time in re.findall(r"time=([0-9.]+) ms", said)]


def quickest_ms(lab: Lab, below_ms: float) -> float:
    """The shortest round trip of a few, and of more while all of them are too long."""
    shortest = float("inf")
    for _ in range(10):
        shortest = min([shortest, *ping(lab, 20)])
        if shortest < below_ms:
            break
    return shortest


def is_reachable(lab: Lab) -> bool:
    return len(ping(lab, 1)) == 1


def wait_reachable(lab: Lab) -> None:
    """After an outage the hosts may take a second to ask for each other again."""
    wait_for(lambda: is_reachable(lab), 10, "y to be reachable")


def test_delay_of_both_directions():
    with line("delay=20ms") as lab:
        assert len(ping(lab, 10)) == 10
        assert 40 <= quickest_ms(lab, 60) < 60


def test_delay_of_one_direction():
    with line("in.delay=30ms") as lab:
        assert 30 <= quickest_ms(lab, 50) < 50


def test_small_delay_is_precise():
    with line("delay=1ms") as lab:
        assert 2 <= quickest_ms(lab, 3) < 3


def test_jitter_spreads():
    with line("delay=20ms jitter=10ms") as lab:
        times = ping(lab, 40)
        assert min(times) >= 20
        assert max(times) - min(times) > 8


def test_loss():
    with line("out.loss=20%") as lab:
        n_back = len(ping(lab, 500, 0.002))
        assert 500 * 0.7 < n_back < 500 * 0.9
        assert lab.link("x").counters()["in"]["loss"] == 0


def test_loss_of_everything_can_be_ended():
    with line("loss=100%") as lab:
        assert not is_reachable(lab)
        lab.link("x").set(loss="0%")
        wait_reachable(lab)


def test_same_seed_same_loss():
    """Frames are numbered as they enter, so only x's own may do: hence no ARP, and no IPv6."""
    def lost(seed: int) -> list[str]:
        with line("out.loss=30%", seed) as lab:
            x, y = lab.host("x"), lab.host("y")
            mac = json.loads(y.run(["ip", "-j", "link", "show", "s"]).out)[0]["address"]
            x.run(["ip", "neigh", "replace", "10.9.0.2", "lladdr", mac, "dev", "s"])
            with Prober(x, port=1) as sender, Prober(y, port=2) as receiver:
                for number in range(40):
                    sender.send(receiver.endpoint, str(number))
                lab.link("x").set(loss="0%")
                sender.send(receiver.endpoint, "end")
                arrived = []
                while "end" not in arrived:
                    arrived.append(receiver.receive()[0])
        return arrived

    first = lost(7)
    assert 10 < len(first) < 40
    assert lost(7) == first
    assert lost(8) != first


def test_rate_limits_throughput():
    with line("rate=20mbit") as lab:
        server = lab.host("y").spawn(["iperf3", "-s", "-1", "--forceflush"])
        server.wait_line("listening")
        client = ["iperf3", "-c", "10.9.0.2", "-n", "3M", "-J"]
        report = json.loads(lab.host("x").run(client).out)
        rate = report["end"]["sum_received"]["bits_per_second"]
        # Whoever takes the processors away makes it slower, and nobody faster.
        assert 2e6 < rate <= 20e6


def test_queue_before_a_rate_is_bounded():
    with line("out.rate=20kbit out.queue=5k") as lab:
        with Prober(lab.host("x")) as sender, Prober(lab.host("y")) as receiver:
            for _ in range(20):
                sender.send(receiver.endpoint, "z" * 1000)
        wait_for(lambda: lab.link("x").counters()["out"]["queue"] >= 10, 5, "frames to be dropped")
        assert lab.link("x").counters()["out"]["queue"] <= 15


def test_reorder_lets_frames_overtake():
    with line("emulated") as lab:
        with Prober(lab.host("x")) as sender, Prober(lab.host("y")) as receiver:
            sender.send(receiver.endpoint, "first")  # so that neighbours know each other
            receiver.receives("first")
            lab.link("x").set(out_delay="2s")
            sender.send(receiver.endpoint, "slow")
            lab.link("x").set(out_reorder="100%")
            sender.send(receiver.endpoint, "fast")
            receiver.receives("fast")
            receiver.receives("slow")


def test_mtu_is_known_to_the_host():
    with line("mtu=1400") as lab:
        assert ping(lab, 3, 0.2, "-M", "do", "-s", "1372")
        with pytest.raises(CommandError, match="message too long, mtu=1400"):
            lab.host("x").run(["ping", "-c1", "-M", "do", "-s", "1373", "10.9.0.2"])


def test_path_mtu_is_a_black_hole():
    with line("path-mtu=1400") as lab:
        assert ping(lab, 3, 0.2, "-M", "do", "-s", "1372")
        assert len(ping(lab, 1, 1, "-M", "do", "-s", "1373")) == 0
        assert lab.link("x").counters()["out"]["mtu"] == 1


def test_jumbo_frames_pass_where_the_switch_allows():
    with Lab.from_text("""
switch s 10.9.0.0/24 mtu=9000
host x
host y
link x s 10.9.0.1 delay=1ms
link y s 10.9.0.2
""") as lab:
        assert ping(lab, 3, 0.2, "-M", "do", "-s", "8972")


@pytest.mark.parametrize("words", ["", "delay=1ms"], ids=["plain", "emulated"])
def test_a_cut_link_carries_nothing_and_can_be_mended(words):
    with line(words) as lab:
        wait_reachable(lab)
        lab.link("x").down()
        assert not is_reachable(lab)
        state = json.loads(lab.host("x").run(["ip", "-j", "link", "show", "s"]).out)[0]
        assert "LOWER_UP" in state["flags"], "the host should not notice the cut"
        lab.link("x").up()
        wait_reachable(lab)


def test_a_cut_loses_what_is_in_flight():
    with line("emulated") as lab:
        with Prober(lab.host("x")) as sender, Prober(lab.host("y")) as receiver:
            sender.send(receiver.endpoint, "before")
            receiver.receives("before")
            lab.link("x").set(delay="20s")
            sender.send(receiver.endpoint, "in-flight")
            lab.link("x").down()
            lab.link("x").up()
            lab.link("x").set(delay="0ms")
            sender.send(receiver.endpoint, "after")
            receiver.receives("after")


def test_a_plain_link_cannot_be_changed():
    with line() as lab:
        with pytest.raises(ValueError, match="write `emulated` on it"):
            lab.link("x").set(delay="5ms")


def test_a_wrong_parameter_is_refused_and_changes_nothing():
    with line("delay=1ms") as lab:
        with pytest.raises(Exception, match="loss is a percentage"):
            lab.link("x").set(delay="5s", loss="many")
        wait_reachable(lab)
