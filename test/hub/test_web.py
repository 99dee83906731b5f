"""The hub's page as a browser asks for it: logins, sessions, from where they count, and events."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from lab import Lab, wait_for

from .hub import Hub

pytestmark = pytest.mark.namespaces

ORIGIN = ("-H", "Origin: https://192.0.2.1:8443")
NET = "/v1/networks/default"


@pytest.fixture
def web(lab: Lab, weft: Path, tmp_path: Path) -> Hub:
    """A hub with a page."""
    return Hub(lab, weft, tmp_path).start("--web")


def secret_in(url: str) -> str:
    return re.fullmatch(r"https://192\.0\.2\.1:8443/web/#login=([A-Za-z0-9_-]{43})", url.strip())[1]


def log_in(hub: Hub, secret: str, *more: str, host: str = "c") -> tuple[int, object, str]:
    """The status, the answer, and the cookie that is set, if any."""
    machine = hub.lab.host(host)
    done = machine.run(
        ["curl", "-skD", "-", "-X", "POST", *(more or ORIGIN), "--data-binary", "@-",
         "https://192.0.2.1:8443/v1/web/login"], stdin=json.dumps({"login": secret}))
    head, _, body = done.out.replace("\r", "").partition("\n\n")
    cookie = re.search(r"^Set-Cookie: (__Host-weft=[^;]+); (.*)$", head, re.M | re.I)
    if cookie:
        assert cookie[2] == "Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=43200"
    return (int(head.split()[1]), json.loads(body) if body else None,
            cookie[1] if cookie else "")


def ask(hub: Hub, cookie: str, method: str, path: str, *more: str, body: object = None):
    return hub.public(hub.lab.host("c"), method, path, body, "-H", f"Cookie: {cookie}", *more)


def test_a_login(web: Hub) -> None:
    """It is printed, used once, and opens what its role may."""
    secret = secret_in(web.daemon.wait_line(r"^https://\S+#login=\S+")[0])
    status, answer, cookie = log_in(web, secret)
    assert (status, answer["role"], answer["name"]) == (200, "admin", "page:hub")
    assert ask(web, cookie, "GET", "/v1/web/session")[1]["role"] == "admin"
    assert ask(web, cookie, "GET", f"{NET}/nodes")[0] == 200
    status, answer, again = log_in(web, secret)
    assert (status, again) == (401, "") and "used already" in answer["error"]
    # What was refused is in the audit log, and what a session changes, too.
    assert ask(web, cookie, "POST", f"{NET}/tokens", *ORIGIN, body={})[0] == 201
    _, log = web.admin("GET", "/v1/audit")
    assert any(e["actor"] == "page:hub" and e["operation"] == "create" for e in log["entries"])
    assert ask(web, cookie, "DELETE", "/v1/web/session", *ORIGIN)[0] == 204
    assert ask(web, cookie, "GET", "/v1/web/session")[0] == 401


def test_from_where_a_session_counts(web: Hub) -> None:
    """Another site's page gets nothing by it, whatever the browser sends along."""
    cookie = log_in(web, secret_in(web.run("web").out))[2]
    for site, status in (("same-origin", 200), ("none", 200), ("same-site", 401),
                         ("cross-site", 401)):
        assert ask(web, cookie, "GET", f"{NET}/nodes", "-H", f"Sec-Fetch-Site: {site}")[0] == status
    for origin in ((), ("-H", "Origin: https://evil.example"), ("-H", "Origin: null"),
                   ("-H", "Origin: http://192.0.2.1:8443"), ("-H", "Origin: https://192.0.2.1")):
        assert ask(web, cookie, "POST", f"{NET}/tokens", *origin, body={})[0] == 401, origin
    assert ask(web, cookie, "POST", f"{NET}/tokens", *ORIGIN, body={})[0] == 201
    # What is not the page's to change stays as it is.
    status, answer = ask(web, cookie, "DELETE", NET, *ORIGIN)
    assert status == 403 and "not for the page" in answer["error"]
    # A wrong session is none, and a login from elsewhere is not looked at.
    assert ask(web, "__Host-weft=" + "A" * 43, "GET", f"{NET}/nodes")[0] == 401
    secret = secret_in(web.run("web").out)
    assert log_in(web, secret, "-H", "Origin: https://evil.example")[0] == 403
    assert log_in(web, secret)[0] == 200


def test_roles_and_makers(web: Hub) -> None:
    """A login gives what its maker has, or less, and ends with the maker's token."""
    cookie = log_in(web, secret_in(web.run("web", "--role", "viewer").out))[2]
    assert ask(web, cookie, "GET", "/v1/web/session")[1]["role"] == "viewer"
    assert ask(web, cookie, "POST", f"{NET}/tokens", *ORIGIN, body={})[0] == 403
    _, made = web.admin("POST", "/v1/admin-tokens", {"name": "ops", "role": "operator",
                                                      "network": "default"})
    host = web.lab.host("c")
    status, answer = web.public(host, "POST", "/v1/web/logins", {"role": "admin"},
                                bearer=made["token"])
    assert status == 403 and "operator" in answer["error"]
    status, answer = web.public(host, "POST", "/v1/web/logins", {}, bearer=made["token"])
    assert (status, answer["role"], answer["network"]) == (201, "operator", "default")
    cookie = log_in(web, secret_in(answer["url"]))[2]
    assert ask(web, cookie, "GET", f"{NET}/nodes")[0] == 200
    assert ask(web, cookie, "GET", "/v1/admin-tokens")[0] == 403
    web.run("admin", "rm", "ops")
    assert ask(web, cookie, "GET", f"{NET}/nodes")[0] == 401


def test_guesses(web: Hub) -> None:
    for _ in range(10):
        assert log_in(web, "A" * 43)[0] == 401
    assert log_in(web, "A" * 43)[0] == 429
    secret = secret_in(web.run("web").out)
    assert log_in(web, secret)[0] == 429
    assert log_in(web, secret, host="d")[0] == 200
    _, log = web.admin("GET", "/v1/audit")
    assert any(e["operation"] == "POST /v1/web/login" and e["status"] == 401
               for e in log["entries"] if e["answer"] == "refused") or wait_for(
        lambda: "POST /v1/web/login" in json.dumps(web.admin("GET", "/v1/audit")[1]), 20,
        "the refusals in the audit log")


def test_files(web: Hub) -> None:
    """They come with a strict policy, and are small."""
    host = web.lab.host("c")
    page = host.run(["curl", "-skD", "-", "https://192.0.2.1:8443/web/"]).out
    head = page.replace("\r", "").partition("\n\n")[0].lower()
    for wanted in ("content-security-policy: default-src 'none'; script-src 'self'; ",
                   "trusted-types 'none'", "frame-ancestors 'none'",
                   "x-content-type-options: nosniff", "referrer-policy: no-referrer",
                   "cache-control: no-store",
                   "cross-origin-opener-policy: same-origin"):
        assert wanted in head, wanted
    assert "unsafe" not in head
    size = len(page)
    for name in set(re.findall(r'"/web/([a-z]+\.[a-z]+)"', page)):
        text = host.run(["curl", "-skf", f"https://192.0.2.1:8443/web/{name}"], quiet=True).out
        size += len(text.encode())
    assert 50_000 < size < 300_000
    assert web.public(host, "GET", "/web/codes.json")[1]["WEFT-NODE-001"]["means"]
    assert web.public(host, "GET", "/web/passwd")[0] == 404


def test_without_it(hub: Hub) -> None:
    host = hub.lab.host("c")
    status, answer = hub.public(host, "GET", "/web/")
    assert status == 404 and "--web" in answer["error"]
    assert hub.run("web", check=False).rc != 0


def events_of(daemon) -> list[tuple[str, dict]]:
    """The events of a stream: (id, data)."""
    lines = [line for line in daemon.lines() if line.startswith(("id: ", "data: "))]
    found = [(i[4:], json.loads(d[6:])) for i, d in zip(lines[::2], lines[1::2], strict=False)]
    for _, data in found:
        # As docs/schema/api/live-event.json says; the rows are between the page and its hub.
        assert set(data) <= {"all", "rows"} and all(isinstance(key, str) for key in data["rows"])
    return found


def test_events(web: Hub, lab: Lab) -> None:
    """All at first, then what changes, and after a break from where it was."""
    host = lab.host("c")
    cookie = log_in(web, secret_in(web.run("web").out))[2]
    assert web.enrol(lab.host("a"), web.secret(), name="a")[0] == 200
    url = f"https://192.0.2.1:8443{NET}/live"

    def stream(name: str, *more: str):
        return host.spawn(["curl", "-skN", "-H", f"Cookie: {cookie}", *more, url], name=name)

    first = stream("first")
    first.wait_line(r"^data: ")
    (last, data), = events_of(first)
    assert data["all"] and data["rows"]["names"] == ["a", "hub"]
    assert data["rows"]["n/a"]["address4"] == "10.42.0.2"
    assert web.enrol(lab.host("b"), web.secret(), name="b")[0] == 200
    first.wait_line(r'^data: .*"n/b"')
    last, data = events_of(first)[-1]
    assert "all" not in data and "n/a" not in data["rows"]
    first.stop()
    second = stream("second", "-H", f"Last-Event-ID: {last}")
    second.wait_line(r"^:$|^data: ")
    web.run("node", "rm", "b")
    second.wait_line(r'^data: .*"n/b":null')
    assert not any("all" in data for _, data in events_of(second))
    # So many pages of one session, and no more; and with its end they are over.
    for i in range(7):
        stream(f"more{i}").wait_line(r"^data: ")
    status, answer = ask(web, cookie, "GET", f"{NET}/live")
    assert status == 503 and "close one" in answer["error"]
    assert ask(web, cookie, "DELETE", "/v1/web/session", *ORIGIN)[0] == 204
    assert second.wait(10) == 0
    assert web.public(host, "GET", f"{NET}/live")[0] == 401
