"""A stock WireGuard as a node: an administrator adds it by its key, and it asks for its peers."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import struct
import subprocess
import termios
from fcntl import ioctl
from pathlib import Path

import pytest
from lab import wait_for

from .hub import Hub, member_call, new_key, plain_call
from .test_audit import admin_token, changes, entries

pytestmark = pytest.mark.namespaces

NODES = "/v1/networks/default/nodes"
WG = "/v1/wg"


def add(hub: Hub, name: str, key: str = "", **fields: object) -> tuple[int, dict]:
    return hub.admin("POST", NODES, {"name": name, "publicKey": key or new_key()} | fields)


def peers(lab, host: str, *more: str) -> tuple[int, str]:
    """What a machine is told at the hub's overlay address: the status and the text."""
    done = lab.host(host).run(["curl", "-s", "-m", 60, "-w", "\n%{http_code}", *more,
                               f"http://10.42.0.1:8443{WG}"], quiet=True)
    text, _, status = done.out.rpartition("\n")
    return int(status), text


def names_in(text: str) -> list[str]:
    return re.findall(r"^\[Peer\]\n# (\S+)$", text, re.MULTILINE)


def peer_sections(text: str) -> dict[str, str]:
    """What wg(8) is told of each peer, without the keepalive, which may be said elsewhere."""
    said = re.findall(r"\[Peer\]\n# (\S+)\n((?:\w+ = .*\n)*)", text)
    return {name: re.sub("PersistentKeepalive.*\n", "", rows) for name, rows in said}


def test_the_file_is_that_of_render(hub):
    key = new_key()
    assert hub.enrol(hub.lab.host("b"), hub.secret(), name="gpu-1")[0] == 200
    told = hub.run("node", "add", "nas", "--public-key", key, "--label", "site=b",
                   "--label", "kind=disk").out
    assert told == hub.run("render", "nas").out
    assert names_in(told) == ["gpu-1", "hub"]
    assert "Address = 10.42.0.3/16, " in told and "PrivateKey" not in told
    assert "PostUp = wg set %i private-key /etc/wireguard/%i.key\n" in told
    node = hub.nodes()["nas"]
    assert node["spec"]["publicKey"] == key and node["spec"]["stock"] is True
    assert node["spec"]["labels"] == {"site": "b", "kind": "disk"}
    assert node["status"]["engine"] == "stock" and node["reachable"] is False
    rows = {line.split()[0]: line.split() for line in hub.run("nodes").out.splitlines()}
    assert rows["NAME"][3] == "ENGINE" and rows["nas"][3:6] == ["stock", "no", "never"]
    # The others hear of it at once, and that no agent is there.
    seen = json.loads(hub.run("get", "Node", "nas").out)
    assert seen["spec"]["stock"] is True
    hub.run("node", "rm", "nas")
    assert "nas" not in hub.nodes()


def test_json_and_what_is_to_be_in_the_file(hub):
    for name in ("n1", "n2", "n3"):
        assert add(hub, name)[0] == 201
    key = new_key()
    assert hub.run("node", "set", "n3", "--route", "10.9.0.0/24").rc == 0
    told = json.loads(hub.run("node", "add", "nas", "--public-key", key, "--json", "--peer", "n3",
                              "--peer", "n1", "--listen-port", "51000").out)
    assert {k: told[k] for k in ("name", "network", "publicKey")} == {
        "name": "nas", "network": "default", "publicKey": key}
    assert told["address4"] == "10.42.0.5" and told["address6"].endswith("::5")
    assert names_in(told["config"]) == ["hub", "n1", "n3"]
    assert "ListenPort = 51000\n" in told["config"]
    assert "AllowedIPs = 10.9.0.0/24, 10.42.0.4/32, " in told["config"]  # what is behind n3
    told = hub.run("node", "add", "gate", "--public-key", new_key(), "--route", "10.8.0.0/24").out
    assert "10.8.0.0/24" not in told and "10.8.0.0/24" in hub.run("render", "nas").out
    refused = hub.run("render", "nas", "--peer", "nobody", check=False)
    assert refused.rc == 1 and 'no node "nobody" that nas may talk to' in refused.err


def test_a_key_that_is_made_here(hub):
    """It works, it is in the output, and it is nowhere else."""
    done = hub.run("node", "add", "desk", "--new-key")
    private = re.search(r"^PrivateKey = (\S+)$", done.out, re.MULTILINE)[1]
    public = subprocess.run(["wg", "pubkey"], input=private, capture_output=True, text=True,
                            check=True).stdout.strip()
    assert hub.nodes()["desk"]["spec"]["publicKey"] == public
    assert "PostUp" not in done.out and "PersistentKeepalive = 10\n" in done.out
    assert "neither this machine nor the hub keeps it" in done.err
    assert hub.daemon.stop() == 0
    kept = [f for f in hub.state.rglob("*") if f.is_file()]
    assert kept and not any(private.encode() in f.read_bytes() for f in kept)
    assert not any(private in line for line in hub.daemon.lines())


def test_refusals(hub):
    key, hub_key = new_key(), hub.nodes()["hub"]["spec"]["publicKey"]
    assert add(hub, "nas", key, routes=["10.9.0.0/24"])[0] == 201
    none = base64.b64encode(bytes(32)).decode()
    small = base64.b64encode(bytes([1, *bytes(31)])).decode()  # a point of small order
    for status, words, fields in (
            (409, 'has a node "nas" already', {"name": "nas"}),
            (409, 'node "nas" of network "default" has this public key', {"publicKey": key}),
            (400, "the public key is that of hub", {"publicKey": hub_key}),
            (400, "belongs to no private key", {"publicKey": small}),
            (400, "publicKey", {"publicKey": none}),
            (400, "publicKey", {"publicKey": "x" * 44}),
            (400, "publicKey", {"publicKey": None}),
            (400, "localhost", {"name": "localhost"}),
            (400, "two '-' in a row", {"name": "a--b"}),
            (400, "name", {"name": "Bad_Name"}),
            (400, '"name" is missing', {"name": ""}),
            (400, "label", {"labels": {"k": "x" * 64}}),
            (400, "label", {"labels": {"k" * 64: "x"}}),
            (400, "33 labels, and 32 are allowed", {"labels": {f"k{i}": "" for i in range(33)}}),
            (400, "route 10.42.1.0/24 overlaps", {"routes": ["10.42.1.0/24"]}),
            (409, "10.9.0.0/24", {"routes": ["10.9.0.0/25"]}),
            (400, "relay", {"relay": True})):
        got, answer = hub.admin("POST", NODES, {"name": "n", "publicKey": new_key()} | fields)
        assert (got, words in answer["error"]) == (status, True), (fields, got, answer)
    status, answer = hub.admin("POST", "/v1/networks/none/nodes", {})
    assert status == 404 and '"none"' in answer["error"]
    assert set(hub.nodes()) == {"hub", "nas"}
    # What it is was said when it was added, and stays so, also if a file does not say it.
    path = "/v1/networks/default/objects/Node/nas"
    node = hub.admin("GET", path)[1]
    del node["spec"]["stock"], node["metadata"]["resourceVersion"]
    assert hub.admin("PUT", path, node)[1]["spec"]["stock"] is True
    assert hub.enrol(hub.lab.host("b"), hub.secret(), name="gpu-1")[0] == 200
    agent = hub.admin("GET", path.replace("nas", "gpu-1"))[1]
    agent["spec"]["stock"] = True
    status, answer = hub.admin("PUT", path.replace("nas", "gpu-1"), agent)
    assert status == 400 and "whether it is stock" in answer["error"]


def test_no_address_is_left(hub):
    hub.run("network", "add", "tiny", "--cidr4", "10.60.0.0/30")
    made = hub.admin("POST", "/v1/networks/tiny/nodes", {"name": "one", "publicKey": new_key()})
    assert made[0] == 201
    status, answer = hub.admin("POST", "/v1/networks/tiny/nodes",
                               {"name": "two", "publicKey": new_key()})
    assert status == 507 and "no address left" in answer["error"]


def test_who_may_and_who_did(hub, weft, tmp_path):
    """An operator, from elsewhere; and the log says so."""
    c = hub.lab.host("c")
    eyes, hands = admin_token(hub, "eyes", "viewer"), admin_token(hub, "hands", "operator")
    body = {"name": "nas", "publicKey": new_key()}
    status, answer = hub.public(c, "POST", NODES, body, bearer=eyes)
    assert status == 403 and 'role "operator"' in answer["error"]
    file = tmp_path / "token"
    file.write_text(hands + "\n")
    far = ["--hub", "192.0.2.1:8443", "--pin", hub.pin, "--admin-token-file", file]
    told = c.run([weft, "node", "add", "nas", "--public-key", new_key(), *far]).out
    assert names_in(told) == ["hub"]
    c.run([weft, "node", "rm", "nas", *far])
    assert changes(hub)[-2:] == [("admin:hands", "create", "node/default/nas"),
                                 ("admin:hands", "remove", "node/default/nas")]
    wait_for(lambda: any(e["operation"] == f"POST {NODES.replace('default', '{network}')}"
                         and e["actor"] == "admin:eyes" for e in entries(hub)), 20,
             "the refusal to be in the log")


# ---- its peers -------------------------------------------------------------------------------


def test_peers_by_its_address_alone(hub, lab):
    assert add(hub, "nas")[0] == 201  # 10.42.0.2, which is the address of machine a
    assert hub.enrol(lab.host("b"), hub.secret(), name="gpu-1")[0] == 200
    status, text = peers(lab, "a")
    assert status == 200 and names_in(text) == ["gpu-1", "hub"]
    assert peer_sections(text) == peer_sections(hub.run("render", "nas").out)
    assert text.count("PersistentKeepalive = 10\n") == 1 and "[Interface]" not in text
    assert abs(hub.nodes()["nas"]["status"]["lastSeen"] - hub.nodes()["gpu-1"]["status"][
        "lastSeen"]) < 60
    # A page in a browser of that machine has no business here, and nobody may do more.
    assert peers(lab, "a", "-H", "Origin: http://10.42.0.1:8443")[0] == 403
    assert peers(lab, "a", "-H", "Host: evil.example.org")[0] == 403
    for method, path in (("GET", "/v1/watch"), ("PUT", "/v1/status"), ("POST", "/v1/leave")):
        assert plain_call(lab.host("a"), method, path, {} if method == "PUT" else None)[0] == 401
    # A node with an agent proves that it is that.
    assert peers(lab, "b")[0] == 401
    hub.run("edge", "set", "nas", "gpu-1", "--path", "off")
    assert names_in(peers(lab, "a")[1]) == ["hub"]
    hub.run("node", "rm", "nas")
    status, text = peers(lab, "a")
    assert status == 403 and "is the address of no node" in text


def test_enrolled_as_stock(hub, lab):
    """One HTTPS request with a token does as well, and says that there is no agent."""
    assert hub.enrol(lab.host("a"), hub.secret(), name="nas", engine="stock")[0] == 200
    assert hub.nodes()["nas"]["spec"]["stock"] is True
    status, text = peers(lab, "a")
    assert status == 200 and names_in(text) == ["hub"]
    # Who has its key may do more: an agent on that machine.
    assert member_call(lab.host("a"), "POST", "/v1/leave")[0] == 204


def test_it_may_not_ask_without_end(hub, lab):
    assert add(hub, "nas")[0] == 201
    urls = " ".join([f"http://10.42.0.1:8443{WG}"] * 40)
    done = lab.host("a").run(["sh", "-c", f"curl -s -w '%{{http_code}}\\n' {urls} | grep -c 429$"],
                             check=False, quiet=True)
    assert int(done.out) > 0
    wait_for(lambda: peers(lab, "a")[0] == 200, 20, "the hub to answer again")


# ---- the code for a phone ----------------------------------------------------------------------


def picture(text: str, path: Path) -> Path:
    """The terminal's characters as a bitmap (PBM), eight pixels a module."""
    lines = re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()
    light = {"█": (1, 1), "▀": (1, 0), "▄": (0, 1), " ": (0, 0)}
    rows = [[light[c][half] for c in line] for line in lines for half in (0, 1)]
    assert len({len(row) for row in rows}) == 1
    with path.open("w") as f:
        f.write(f"P1\n{8 * len(rows[0])} {8 * len(rows)}\n")
        for row in rows:
            f.write(("".join(str(1 - cell) * 8 for cell in row) + "\n") * 8)
    return path


def read_code(text: str, tmp_path: Path) -> str:
    done = subprocess.run(["zbarimg", "--quiet", "--raw", "--oneshot",
                           picture(text, tmp_path / "code.pbm")],
                          capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.rstrip("\n") + "\n"


def test_qr_code(hub, tmp_path):
    """A decoder of other people reads it, and it is all that a phone needs."""
    for name in ("n1", "n2", "n3"):
        assert add(hub, name)[0] == 201
    done = hub.run("node", "add", "phone", "--qr")
    assert "neither this machine nor the hub keeps it" in done.err
    config = read_code(done.out, tmp_path)
    interface, *sections = config.split("[Peer]\n")
    said = dict(line.split("=", 1) for line in interface.splitlines()[1:])
    public = subprocess.run(["wg", "pubkey"], input=said["PrivateKey"], capture_output=True,
                            text=True, check=True).stdout.strip()
    node = hub.nodes()["phone"]["spec"]
    assert public == node["publicKey"]
    assert said["Address"] == f"{node['address4']}/16,{node['address6']}/64"
    # Every peer as the file has it, and one keepalive.
    keys = [re.search("PublicKey=(.*)", s)[1] for s in sections]
    assert set(keys) == {n["spec"]["publicKey"] for n in hub.nodes().values()} - {public}
    assert all("Endpoint=192.0.2.1:51820\n" in s for s in sections)
    assert config.count("PersistentKeepalive=10\n") == 1
    conf = tmp_path / "wgtest0.conf"
    conf.write_text(config)
    conf.chmod(0o600)
    subprocess.run(["wg-quick", "strip", conf], check=True, capture_output=True, timeout=60)


def test_qr_code_as_an_image(hub, tmp_path):
    """For terminals that it does not fit; a file that only its owner reads, and a new one."""
    for name in ("n1", "n2", "n3", "n4", "n5", "n6"):
        assert add(hub, name)[0] == 201
    image = tmp_path / "phone.png"
    done = hub.run("node", "add", "phone", "--png", str(image))
    assert f"the code is in {image}" in done.out
    assert image.stat().st_mode & 0o777 == 0o600
    config = subprocess.run(["zbarimg", "--quiet", "--raw", "--oneshot", image], text=True,
                            capture_output=True, check=True, timeout=60).stdout
    assert config.count("[Peer]") == 7
    private = re.search("PrivateKey=(.*)", config)[1]
    public = subprocess.run(["wg", "pubkey"], input=private, capture_output=True, text=True,
                            check=True).stdout.strip()
    assert public == hub.nodes()["phone"]["spec"]["publicKey"]
    before = image.read_bytes()
    refused = hub.run("node", "add", "tablet", "--png", str(image), check=False)
    assert refused.rc == 1 and "File exists" in refused.err
    assert "tablet" not in hub.nodes() and image.read_bytes() == before


def test_a_code_holds_so_much(hub, tmp_path):
    """Too many nodes: a sentence with the way out, and nothing is left behind."""
    for i in range(20):
        assert add(hub, f"node-with-a-name-{i}")[0] == 201
    refused = hub.run("node", "add", "phone", "--qr", check=False)
    assert refused.rc == 1 and refused.out == ""
    assert re.search(r"the file has \d{4} bytes, and a QR code holds 2953: name those", refused.err)
    assert "so node phone is not added" in refused.err and "phone" not in hub.nodes()
    few = hub.run("node", "add", "phone", "--qr", "--peer", "node-with-a-name-7")
    config = read_code(few.out, tmp_path)
    assert config.count("[Peer]") == 2
    missing = hub.run("node", "add", "tablet", "--qr", "--peer", "nobody", check=False)
    assert missing.rc == 1 and "so node tablet is not added" in missing.err
    assert set(hub.nodes()) >= {"phone"} and "tablet" not in hub.nodes()


def test_a_small_terminal(hub, weft):
    """It is said, with both sizes and the way out; on a larger one the code is shown."""
    def at(columns: int, lines: int, name: str) -> tuple[int, str]:
        main, end = pty.openpty()
        ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        done = subprocess.run([weft, "node", "add", name, "--qr", "--socket", hub.socket],
                              stdout=end, stderr=subprocess.PIPE, text=True, timeout=60,
                              check=False)
        os.close(end)
        os.set_blocking(main, False)
        shown = os.read(main, 65536) if done.returncode == 0 else b""
        os.close(main)
        return done.returncode, done.stderr + shown.decode(errors="replace")

    status, said = at(40, 50, "phone")
    assert status == 1 and "columns wide, and this terminal has 40: --png FILE" in said
    assert "phone" not in hub.nodes()
    status, said = at(120, 50, "phone")
    assert status == 0 and "█" in said and "phone" in hub.nodes() and "--png" not in said
    # Wide enough, and part of it has scrolled out of sight.
    status, said = at(80, 24, "tablet")
    assert status == 0 and "█" in said and "lines, and this terminal 24" in said
    assert "--png FILE" in said
    for i in range(7):
        assert add(hub, f"n{i}")[0] == 201
    status, said = at(80, 24, "watch")
    assert status == 1 and "this terminal has 80: --png FILE" in said and "watch" not in hub.nodes()
