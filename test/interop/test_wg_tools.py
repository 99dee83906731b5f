"""wg(8) and wg-quick(8) drive `weft wg` as they drive any WireGuard."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for

from .wgpeer import WgPeer

pytestmark = pytest.mark.namespaces

TWO_CLIENTS = Path(__file__).with_name("two_clients_program.py")

ONE = """
switch s 192.0.2.0/24
host u
host g
link u s 192.0.2.1
link g s 192.0.2.2
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.from_text(ONE, capture=False) as lab:
        yield lab


@pytest.fixture
def end(lab: Lab, weft: Path) -> Iterator[WgPeer]:
    peer = WgPeer.userspace(lab.host("u"), [weft, "wg"])
    yield peer
    peer.remove()


def keys(n: int) -> list[tuple[str, str]]:
    """Private and public keys, base64."""
    pairs = []
    for _ in range(n):
        private = subprocess.run(
            ["wg", "genkey"], capture_output=True, text=True, check=True).stdout
        public = subprocess.run(
            ["wg", "pubkey"], input=private, capture_output=True, text=True, check=True).stdout
        pairs.append((private.strip(), public.strip()))
    return pairs


def random_key() -> str:
    return subprocess.run(
        ["wg", "genpsk"], capture_output=True, text=True, check=True).stdout.strip()


def show(end: WgPeer, *words: str) -> str:
    return end.machine.run(["wg", *words], quiet=True).out


def normal(conf: str) -> list[list[str]]:
    """A configuration whose order of peers, lines and allowed IPs does not matter."""
    def line(text: str) -> str:
        name, _, value = text.partition(" = ")
        return f"{name} = {', '.join(sorted(value.split(', ')))}"

    return sorted(sorted(map(line, section.strip().splitlines())) for section in conf.split("\n\n"))


def conf_text(private: str, peers: list[tuple[str, list[str]]]) -> str:
    text = f"[Interface]\nListenPort = 51820\nFwMark = 0x2a\nPrivateKey = {private}\n"
    for public, lines in peers:
        text += f"\n[Peer]\nPublicKey = {public}\n" + "".join(f"{line}\n" for line in lines)
    return text


def test_setconf_showconf_round_trip(end: WgPeer, tmp_path: Path):
    (private, _), (_, a), (_, b) = keys(3)
    text = conf_text(private, [
        (a, ["PresharedKey = " + random_key(), "AllowedIPs = 10.1.0.0/16, fd01::/16, 10.9.9.9/32",
             "Endpoint = 192.0.2.9:7", "PersistentKeepalive = 25"]),
        (b, ["AllowedIPs = 0.0.0.0/0, ::/0", "Endpoint = [2001:db8::9]:65535"])])
    conf = tmp_path / "wg0.conf"
    conf.write_text(text)
    end.machine.run(["wg", "setconf", "wg0", conf])
    assert normal(show(end, "showconf", "wg0")) == normal(text)
    assert show(end, "show", "wg0", "fwmark").strip() == "0x2a"
    # The same again, and by its own output: nothing changes.
    conf.write_text(show(end, "showconf", "wg0"))
    end.machine.run(["wg", "setconf", "wg0", conf])
    assert normal(show(end, "showconf", "wg0")) == normal(text)


def test_syncconf_leaves_what_is_the_same(end: WgPeer, tmp_path: Path):
    (private, _), (_, a), (_, b) = keys(3)
    conf = tmp_path / "wg0.conf"
    conf.write_text(conf_text(private, [(a, ["AllowedIPs = 10.1.0.0/16"]),
                                        (b, ["AllowedIPs = 10.2.0.0/16"])]))
    end.machine.run(["wg", "setconf", "wg0", conf])
    conf.write_text(conf_text(private, [(b, ["AllowedIPs = 10.2.0.0/16, 10.1.0.0/16"])]))
    end.machine.run(["wg", "syncconf", "wg0", conf])
    assert show(end, "show", "wg0", "peers").split() == [b]
    assert sorted(show(end, "show", "wg0", "allowed-ips").split()[1:]) == [
        "10.1.0.0/16", "10.2.0.0/16"]


def test_addconf_and_set(end: WgPeer, tmp_path: Path):
    (private, public), (_, a), (_, b) = keys(3)
    conf = tmp_path / "wg0.conf"
    conf.write_text(conf_text(private, [(a, ["AllowedIPs = 10.1.0.0/16"])]))
    end.machine.run(["wg", "setconf", "wg0", conf])
    conf.write_text(f"[Peer]\nPublicKey = {b}\nAllowedIPs = 10.1.2.0/24\n")
    end.machine.run(["wg", "addconf", "wg0", conf])
    assert show(end, "show", "wg0", "peers").split() == [a, b]
    assert show(end, "show", "wg0", "public-key").strip() == public
    # An address block has one owner: the last who claimed it.
    end.set("peer", b, "allowed-ips", "10.1.0.0/16")
    assert "(none)" in show(end, "show", "wg0", "allowed-ips")
    end.set("peer", a, "persistent-keepalive", 7, "peer", b, "remove")
    assert show(end, "show", "wg0", "persistent-keepalive").split() == [a, "7"]
    end.set("peer", a, "persistent-keepalive", "off")
    assert show(end, "show", "wg0", "persistent-keepalive").split() == [a, "off"]
    # Our own key as a peer is passed over, so that one file can serve all nodes.
    end.set("peer", public, "allowed-ips", "10.7.0.0/16")
    assert show(end, "show", "wg0", "peers").split() == [a]
    # No key: there is none to show any more.
    end.set("private-key", "/dev/null")
    assert show(end, "show", "wg0", "private-key").strip() == "(none)"


def test_a_peer_is_removed_in_the_midst_of_a_request(lab: Lab, weft: Path):
    """The lines about it that another client sends afterwards are passed over."""
    # What was freed is filled, so that whoever uses it is found out.
    end = WgPeer.userspace(lab.host("g"), [weft, "wg"], env={"MALLOC_PERTURB_": "165"})
    key = base64.b64decode(keys(1)[0][1]).hex()
    said = end.machine.run([sys.executable, TWO_CLIENTS, "/run/wireguard/wg0.sock", key]).out
    assert said.splitlines()[:2] == ["removed errno=0", "went on errno=0"]
    assert "public_key" not in said and "allowed_ip" not in said
    assert end.daemon.running
    end.remove()


def test_a_taken_port_is_refused(lab: Lab, end: WgPeer):
    end.configure(["10.7.0.1/24"])
    holder = lab.host("u").spawn(["socat", "-u", "UDP4-RECV:4444", "STDOUT"])
    wait_for(lambda: end.machine.run(["ss", "-Hlun", "sport = :4444"], quiet=True).out, 5, "socat")
    end.daemon.allow("Address already in use")
    result = end.machine.run(["wg", "set", "wg0", "listen-port", "4444"], check=False)
    assert result.rc != 0
    assert "in use" in result.err
    assert end.port() == 51820
    holder.stop()
    end.set("listen-port", 4444)
    assert end.port() == 4444
    end.set("listen-port", 0)
    assert end.port() not in (0, 4444, 51820)


def test_a_thousand_peers(end: WgPeer, tmp_path: Path):
    private = keys(1)[0][0]
    publics = sorted({random_key() for _ in range(1000)})
    lines = {key: f"10.{i >> 8}.{i & 255}.0/24" for i, key in enumerate(publics)}
    conf = tmp_path / "wg0.conf"
    conf.write_text(conf_text(private, [(k, [f"AllowedIPs = {ip}"]) for k, ip in lines.items()]))
    end.machine.run(["wg", "setconf", "wg0", conf])
    shown = dict(line.split("\t") for line in show(end, "show", "wg0", "allowed-ips").splitlines())
    assert shown == lines
    conf.write_text(conf_text(private, []))
    end.machine.run(["wg", "setconf", "wg0", conf])
    assert show(end, "show", "wg0", "peers") == ""


def quick_up(host: Host, weft: Path, address: str, conf: str) -> None:
    env = {"WG_QUICK_USERSPACE_IMPLEMENTATION": str(weft.with_name("weft-wg")),
           "LOG_LEVEL": "", "PATH": os.environ["PATH"]}
    host.run(["sh", "-c", "mkdir -p /etc/wireguard && umask 077 && cat > /etc/wireguard/wg0.conf"],
             stdin=conf)
    host.run(["wg-quick", "up", "wg0"], env=env)
    assert address in host.run(["ip", "address", "show", "dev", "wg0"]).out


def test_wg_quick(lab: Lab, weft: Path):
    (private_u, public_u), (private_g, public_g) = keys(2)
    u, g = lab.host("u"), lab.host("g")
    psk = random_key()
    for host, n, private, other, public in ((u, 1, private_u, g, public_g),
                                            (g, 2, private_g, u, public_u)):
        quick_up(host, weft, f"10.7.0.{n}", f"""
[Interface]
Address = 10.7.0.{n}/24, fd07::{n}/64
ListenPort = 51820
PrivateKey = {private}
MTU = 1400
[Peer]
PublicKey = {public}
PresharedKey = {psk}
AllowedIPs = 10.7.0.{3 - n}/32, fd07::{3 - n}/128
Endpoint = {other.address()}:51820
""")
    u.run(["ping", "-c1", "-W15", "10.7.0.2"])
    g.run(["ping", "-c1", "-W15", "fd07::1"])
    for host in (u, g):
        host.run(["wg-quick", "down", "wg0"])
        wait_for(lambda host=host: host.run(["ls", "/run/wireguard"], quiet=True).out == "", 5,
                 "the socket to go")
        assert host.run(["ip", "link", "show", "wg0"], check=False).rc != 0
