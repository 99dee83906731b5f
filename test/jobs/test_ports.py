"""Which ports the templates, manifests and pages open for a hub: those of `weft hub up --ports`."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from lab.support.pages import blocks

from .hcl import read

ROOT = Path(__file__).resolve().parents[2]
SSH = ("tcp", 22)
Ports = list[tuple[str, int]]  # sorted: protocol and number


def wanted(weft: Path, *words: str) -> Ports:
    told = subprocess.run([weft, "hub", "up", *words, "--ports"], stdout=subprocess.PIPE,
                          text=True, timeout=60, check=True).stdout
    found = [re.fullmatch(r"(tcp|udp) (\d+)\t\S.*", line) for line in told.splitlines()]
    return sorted((match[1], int(match[2])) for match in found if match)


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def of_aws() -> Ports:
    rules = [body.arguments for labels, body in read(ROOT / "deploy/terraform/aws").of("resource")
             if labels[0] == "aws_vpc_security_group_ingress_rule"]
    hubs = [rule for rule in rules if rule["security_group_id"] == "aws_security_group.hub.id"]
    for rule in hubs:
        assert rule["cidr_ipv4"] == '"0.0.0.0/0"' and rule["from_port"] == rule["to_port"]
    return sorted((ast.literal_eval(rule["ip_protocol"]), int(rule["to_port"])) for rule in hubs)


def of_gcp() -> Ports:
    [hub] = [body for labels, body in read(ROOT / "deploy/terraform/gcp").of("resource")
             if labels == ["google_compute_firewall", "hub"]]
    assert hub.arguments["source_ranges"] == '["0.0.0.0/0"]'
    return sorted((ast.literal_eval(allow.arguments["protocol"]), int(port))
                  for _, allow in hub.of("allow")
                  for port in ast.literal_eval(allow.arguments["ports"]))


def of_manifest(path: str, key: str) -> Ports:
    """Of a manifest of the hub's, or a template of it."""
    ports = re.findall(rf"\b{key}: (\d+)\n +protocol: (\w+)", text_of(path))
    return sorted((protocol.lower(), int(port)) for port, protocol in ports)


def of_policy(path: str) -> Ports:
    hub = text_of(path).split("name: weft-hub\n")[1].split("\n  # To nodes")[0]
    return sorted((protocol.lower(), int(port)) for port, protocol in
                  re.findall(r"- port: (\d+)\n +protocol: (\w+)", hub))


def of_table() -> Ports:
    rows = re.findall(r"^\| hub \| (TCP|UDP) (\d+)[^|]*\| in \|", text_of("docs/OPERATIONS.md"),
                      re.MULTILINE)
    return sorted((protocol.lower(), int(port)) for protocol, port in rows)


def of_packet_filter() -> Ports:
    rules = re.findall(r"(tcp|udp) dport \{ ([\d, ]+) \} accept",
                       blocks("OPERATIONS.md", "nft")["hub"])
    return sorted({(protocol, int(port)) for protocol, ports in rules
                   for port in ports.split(",")} - {SSH})


def of_sentence(path: str, pattern: str) -> Ports:
    [words] = re.findall(pattern, text_of(path))
    found = []
    for protocol, numbers in re.findall(r"(TCP|UDP) (\d+(?: and \d+)*)", words):
        found += [(protocol.lower(), int(number)) for number in numbers.split(" and ")]
    return sorted(found)


def of_engine(path: str) -> Ports:
    """What an engine of containers is told to publish, by -p."""
    published = re.findall(r"-p (\d+):\1/(tcp|udp)", text_of(path))
    return sorted((protocol, int(port)) for port, protocol in published)


def of_image() -> Ports:
    [line] = re.findall(r'"ExposedPorts": (\{.*\}),', text_of("tools/image"))
    words = (word.split("/") for word in ast.literal_eval(line))
    return sorted((protocol, int(port)) for port, protocol in words)


KUBERNETES = "deploy/kubernetes"
OPENED: dict[str, Callable[[], Ports]] = {
    "Terraform on AWS": of_aws,
    "Terraform on Google Cloud": of_gcp,
    **{f"{file} {key}": lambda file=file, key=key: of_manifest(f"{KUBERNETES}/{file}", key)
       for file in ("base/hub.yaml", "chart/templates/hub.yaml")
       for key in ("port", "containerPort")},
    **{file: lambda file=file: of_policy(f"{KUBERNETES}/{file}")
       for file in ("base/policies.yaml", "chart/templates/policies.yaml")},
    "the table of OPERATIONS": of_table,
    "the packet filter of OPERATIONS": of_packet_filter,
    "the security group of OPERATIONS": lambda: of_sentence(
        "docs/OPERATIONS.md", r"for the hub: inbound (.*?) from `0"),
    "the recipe for Terraform": lambda: of_sentence(
        "docs/recipes/terraform.md", r"prints: the hub's (.*?);"),
    "KUBERNETES.md": lambda: sorted(
        (protocol.lower(), int(port)) for port, protocol in re.findall(
            r"(\d+)/(TCP|UDP)", re.findall(r"which is open at (.*?)\.", text_of(
                "docs/KUBERNETES.md"))[0])),
    "the README": lambda: of_sentence(
        "README.md", r"On a machine with a public address \((.*?) open\)"),
    "CONTAINERS.md": lambda: of_engine("docs/CONTAINERS.md"),
    "the image": of_image,
}


@pytest.mark.parametrize("place", OPENED)
def test_what_is_opened_for_a_hub(place: str, weft: Path) -> None:
    assert OPENED[place]() == wanted(weft)


def test_other_ports(weft: Path) -> None:
    assert wanted(weft) == [("tcp", 8443), ("udp", 8443), ("udp", 51820)]
    assert wanted(weft, "--listen", ":443", "--api", ":443") == [("tcp", 443), ("udp", 443)]
    assert wanted(weft, "--relay-only", "--listen", ":4500") == [("udp", 4500)]
    unknown = subprocess.run([weft, "hub", "up", "--api", ":0", "--ports"], stderr=subprocess.PIPE,
                             text=True, timeout=60, check=False)
    assert unknown.returncode != 0 and "port 0 of --api" in unknown.stderr
