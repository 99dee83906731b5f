"""A hub in a lab, and nodes that are stock WireGuards: no agent, nothing of Weft on them.

    hub = Hub(lab.host("hub"), weft)
    n1 = hub.add_node(lab.host("n1"), ["wireguard-go"])
    n2 = hub.add_node(lab.host("n2"), [weft, "wg"])
    n1.meet(n2)            # each gets the other as a peer, at the hub's address
    n1.wg.ping(n2.wg)      # relayed

A node is enrolled as an agent would do it, over HTTPS with a token, and then configured with wg(8).
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from collections.abc import Sequence
from pathlib import Path

from interop.wgpeer import WgPeer

from . import PROGRAMS
from .network.laboratory import Host
from .schemas import check_answer
from .waiting import wait_for

ASK = PROGRAMS / "ask.py"
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
PORT = 51820
API_PORT = 8443


def ask(host: Host, method: str, url: str, body: object = None, socket: str = "") -> str:
    """The answer to a request that `host` makes; it must be a success."""
    argv = ["/usr/bin/python3", ASK, method, url, *([socket] if socket else [])]
    done = host.run(argv, stdin="" if body is None else json.dumps(body), quiet=True)
    status, _, text = done.out.partition("\n")
    assert status.startswith("2"), f"{method} {url}: {status} {text}"
    if text.startswith("{"):
        check_answer(method, "/" + url.split("/", 3)[3], int(status[:3]), json.loads(text))
    return text


class Hub:
    """`weft hub up` on a host."""

    def __init__(self, host: Host, weft: Path, *words: str) -> None:
        self.host = host
        self.weft = weft
        self.argv = [weft, "hub", "up", "--public", host.address(), "--cidr4",
                     "10.42.0.0/16", *words]
        self.start()

    def start(self) -> None:
        self.start_allowing()

    def start_allowing(self, *complaints: str) -> None:
        """Start, and expect it to complain in these words."""
        self.daemon = self.host.spawn(self.argv, allow=complaints)
        self.daemon.wait_line("weft hub is up")

    @property
    def endpoint(self) -> str:
        return f"{self.host.address()}:{PORT}"

    def run(self, *words: object) -> str:
        """Run a command of weft on the hub's machine."""
        return self.host.run([self.weft, *words]).out

    def add_network(self, name: str, cidr4: str) -> None:
        self.run("network", "add", name, "--cidr4", cidr4)

    def enrol(self, host: Host, public_key: str, name: str, network: str = "default") -> dict:
        """Make the owner of a key a member, as an agent would; gives the snapshot."""
        token = self.run("token", "new", "--network", network).split()[-1].partition(".")[2]
        said = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return json.loads(ask(host, "POST", f"https://{said['a'][0]}/v1/enrol", {
            "secret": said["s"], "publicKey": public_key, "name": name}))

    def add_node(self, host: Host, argv: Sequence[str | Path], network: str = "default",
                 keepalive_s: int = 5) -> Node:
        """Enrol `host`, and run the WireGuard `argv` on it with the hub as its peer."""
        wg = WgPeer.userspace(host, argv)
        return Node(self, wg, self.enrol(host, wg.public_key, host.name, network), keepalive_s)

    def metrics(self) -> dict[str, float]:
        """All samples, by name; those with a label by name and the label's value: "drops/tag"."""
        text = ask(self.host, "GET", "http://hub/v1/metrics", socket="/run/weft/hub.sock")
        return {name + (f"/{labels.split('=')[1].strip(chr(34))}" if labels else ""): float(value)
                for name, labels, value in SAMPLE.findall(text)}

    def drops(self, reason: str) -> float:
        """How many packets the hub has dropped for that reason."""
        return self.metrics()[f"weft_drops_total/{reason}"]

    def relayed(self) -> float:
        return self.metrics()["weft_relay_packets_total"]


class Node:
    """A member with a stock WireGuard; made by Hub.add_node()."""

    def __init__(self, hub: Hub, wg: WgPeer, snapshot: dict, keepalive_s: int) -> None:
        self.hub = hub
        self.wg = wg
        self.host = wg.machine
        self.name = snapshot["self"]
        network = snapshot["network"]["spec"]
        nodes = {node["metadata"]["name"]: node["spec"] for node in snapshot["nodes"]}
        self.hub_spec = next(spec for spec in nodes.values() if "hub" in spec)
        own = nodes[self.name]
        length4, length6 = (ipaddress.ip_network(network[c]).prefixlen for c in ("cidr4", "cidr6"))
        wg.configure([f"{own['address4']}/{length4}", f"{own['address6']}/{length6}"])
        wg.set("peer", self.hub_spec["publicKey"], "endpoint", hub.endpoint,
               "persistent-keepalive", keepalive_s,
               "allowed-ips", f"{self.hub_spec['address4']},{self.hub_spec['address6']}")

    def meet(self, other: Node) -> None:
        """Each becomes the other's peer, reached through the hub."""
        self.wg.add_peer(other.wg, endpoint=self.hub.endpoint)
        other.wg.add_peer(self.wg, endpoint=self.hub.endpoint)

    def can_ping(self, address: str, size: int = 56) -> bool:
        """One try, one second: to see that something does not get through."""
        argv = ["ping", "-c", 1, "-W", 1, "-s", size, address]
        return self.host.run(argv, check=False, quiet=True).rc == 0

    def insist_ping(self, address: str, size: int = 56, within_s: float = 10) -> None:
        wait_for(lambda: self.can_ping(address, size), within_s, f"{address} to answer {self.name}")

    @property
    def address4(self) -> str:
        return str(self.wg.addresses[0].ip)
