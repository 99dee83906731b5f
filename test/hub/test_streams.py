"""Streams at the public API: who gets one, what goes through, and what ends it.

The hub has no data half here, so its UDP port is free for an echo that tells from where it was
asked.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path

import pytest

from .streamer import public_of
from .test_doors import join

pytestmark = pytest.mark.namespaces

STREAMER = Path(__file__).resolve().parent / "streamer.py"
ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 51820))
print("echo is up", flush=True)
while True:
    data, source = s.recvfrom(65536)
    s.sendto(data + b"@" + source[0].encode(), source)
"""


@pytest.fixture
def echo(hub, lab):
    daemon = lab.host("hub").spawn([sys.executable, "-c", ECHO], name="echo")
    daemon.wait_line("echo is up")
    return daemon


def member(hub, lab, name: str, host: str) -> list:
    """Enrol a node; the arguments of its streamer."""
    secret = os.urandom(32)
    key = base64.b64encode(public_of(secret)).decode()
    snapshot = join(hub, lab, name, host, publicKey=key)
    [hub_key] = [node["spec"]["publicKey"] for node in snapshot["nodes"]
                 if node["metadata"]["name"] == "hub"]
    return ["192.0.2.1", "default", base64.b64encode(secret).decode(), hub_key]


def converse(lab, host: str, who: list, *lines: str) -> list[dict]:
    """What the streamer of a host answers to these commands."""
    said = lab.host(host).run([sys.executable, STREAMER, *who], stdin="\n".join(lines) + "\n")
    return [json.loads(line) for line in said.out.splitlines()]


def test_who_gets_one(hub, lab, echo):
    who = member(hub, lab, "gpu-1", "a")
    answers = converse(lab, "a", who, "open good", "say good hello", "beat good",
                       "open bad stranger", "open bad forged", "open bad elsewhere",
                       "open bad plain", "say good again")
    assert answers[0] == {"status": 101, "upgrade": True}
    text, _, source = answers[1]["said"].partition("@")
    assert text == "hello" and source.startswith("127.87.")
    assert answers[2] == {"beat": True}
    assert [answer["status"] for answer in answers[3:7]] == [401, 401, 401, 426]
    assert answers[7]["said"] == f"again@{source}"
    status, answer = hub.public(lab.host("a"), "GET", "/v1/stream/default")
    assert status == 401 and "proves no membership" in answer["error"]
    assert hub.admin("GET", "/v1/stream/default")[0] == 403


def test_garbage_ends_only_its_own(hub, lab, echo):
    one = member(hub, lab, "gpu-1", "a")
    two = member(hub, lab, "gpu-2", "b")
    answers = converse(lab, "a", one, "open x", "open y", "raw x ffff00", "gone x", "say y on",
                       "raw y 0003616263000261", "beat y")
    assert answers[3] == {"gone": True}
    assert answers[4]["said"].startswith("on@")
    # The first frame of three bytes is a datagram; the second waits for its last byte.
    assert answers[6] == {"beat": False}
    assert converse(lab, "b", two, "open z", "say z fine")[1]["said"].startswith("fine@")


def test_a_third_one_ends_the_oldest(hub, lab, echo):
    who = member(hub, lab, "gpu-1", "a")
    answers = converse(lab, "a", who, "open one", "open two", "say one 1", "open three",
                       "gone one", "say two 2", "say three 3")
    assert answers[4] == {"gone": True}
    sources = [answers[i]["said"].partition("@")[2] for i in (2, 5, 6)]
    assert len(set(sources)) == 3  # each has an address of its own


def test_removal_ends_it(hub, lab, echo):
    who = member(hub, lab, "gpu-1", "a")
    talk = lab.host("a").spawn(
        ["sh", "-c", f"(printf 'open s\\nsay s here\\ngone s\\n'; exec sleep 60) | "
         f"{sys.executable} {STREAMER} {' '.join(who)}"], name="talk")
    talk.wait_line("here@")
    hub.run("node", "rm", "gpu-1")
    talk.wait_line('"gone": true')
    assert converse(lab, "a", who, "open s")[0]["status"] == 401
    assert hub.daemon.running
