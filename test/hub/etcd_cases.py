#!/usr/bin/python3
"""etcd_cases - what the v2 keys API answers, case by case, as one line of JSON.

    etcd_cases ADDRESS PORT

The same requests are sent to a real etcd and to the hub, and the lines compared. Indices are shown
as their distance from the first one, since etcd has used some for itself.
"""

from __future__ import annotations

import http.client
import json
import re
import sys
import threading
import time
import urllib.parse

HEADERS = ("Content-Type", "X-Etcd-Index", "Allow")


class Server:
    """Asks, and makes the answers comparable."""

    def __init__(self, address: str, port: str) -> None:
        self.at = (address, int(port))
        self.first = 0
        self.first = self.index()

    def raw(self, method: str, path: str, fields: dict | None = None, timeout: float = 60):
        connection = http.client.HTTPConnection(*self.at, timeout=timeout)
        body, headers = None, {}
        if fields is not None and method in ("PUT", "POST"):
            body = urllib.parse.urlencode(fields)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        elif fields:
            path += "?" + urllib.parse.urlencode(fields)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def index(self) -> int:
        return int(self.raw("GET", "/v2/keys/")[1]["X-Etcd-Index"])

    def plain(self, value: object, name: str = "") -> object:
        if isinstance(value, dict):
            return {key: self.plain(item, key) for key, item in sorted(value.items())}
        if isinstance(value, list):
            return sorted((self.plain(item) for item in value), key=json.dumps)
        if name in ("modifiedIndex", "createdIndex", "index") and value:
            return value - self.first
        if name == "expiration":
            return re.sub(r"\d", "0", value)[:20]
        if name == "ttl":
            return (value + 9) // 10 * 10  # a second or two are gone on a busy machine
        if isinstance(value, str):
            value = re.sub(r"/0{10}(\d{10})", lambda m: f"/order{int(m[1]) - self.first}", value)
            return re.sub(r"(?<=[\[ /])\d+(?=[\] /])", "N", value) if name == "cause" else value
        return value

    def send(self, method: str, path: str, body: bytes | None = None, kind: str | None = None):
        """A request as it is, with a Content-Type of its own."""
        connection = http.client.HTTPConnection(*self.at, timeout=60)
        try:
            connection.request(method, path, body, {} if kind is None else {"Content-Type": kind})
            answer = connection.getresponse()
            return self.shown(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def ask(self, method: str, key: str, /, **fields: object) -> list:
        return self.shown(*self.raw(method, "/v2/keys" + urllib.parse.quote(key),
                                    {n.rstrip("_"): v for n, v in fields.items()}))

    def shown(self, status: int, headers, body: bytes) -> list:
        shown = {name: headers[name] for name in HEADERS if headers[name]}
        if int(shown.get("X-Etcd-Index", 0)):
            shown["X-Etcd-Index"] = int(shown["X-Etcd-Index"]) - self.first
        try:
            return [status, shown, self.plain(json.loads(body))]
        except ValueError:
            return [status, shown, body.decode()]

    def modified(self, key: str) -> int:
        return json.loads(self.raw("GET", "/v2/keys" + key)[2])["node"]["modifiedIndex"]


def case_set(s: Server) -> object:
    return [s.ask("PUT", "/a", value="1"), s.ask("PUT", "/a", value="2"), s.ask("GET", "/a"),
            s.ask("PUT", "/deep/er/b", value=""), s.ask("GET", "/deep"),
            s.ask("GET", "/deep", recursive="true", sorted="true"),
            s.ask("PUT", "/a/b", value="1"), s.ask("PUT", "/deep", value="1"),
            s.ask("PUT", "/", value="1"), s.ask("GET", "/no"), s.ask("GET", "/deep/no/such"),
            s.ask("GET", "/a/b"), s.ask("PUT", "/ü ä+%", value="ö&=\n\"<>")]


def case_create(s: Server) -> object:
    return [s.ask("PUT", "/c", value="1", prevExist="false"),
            s.ask("PUT", "/c", value="2", prevExist="false"),
            s.ask("PUT", "/c", value="3", prevExist="true"),
            s.ask("PUT", "/none", value="3", prevExist="true"),
            s.ask("PUT", "/cd", dir="true", prevExist="false"),
            s.ask("PUT", "/cd", dir="true", prevExist="false"), s.ask("PUT", "/cd", dir="true"),
            s.ask("PUT", "/c", dir="true"), s.ask("PUT", "/c/in/it", value="x"),
            s.ask("PUT", "/c", value="y", prevExist="true"), s.ask("GET", "/c")]


def case_compare_and_swap(s: Server) -> object:
    s.ask("PUT", "/s", value="one")
    index = s.modified("/s")
    return [s.ask("PUT", "/s", value="x", prevValue="two"),
            s.ask("PUT", "/s", value="x", prevIndex=1),
            s.ask("PUT", "/s", value="x", prevValue="two", prevIndex=1),
            s.ask("PUT", "/s", value="two", prevValue="one"),
            s.ask("PUT", "/s", value="three", prevIndex=index),
            s.ask("PUT", "/s", value="three", prevIndex=index + 1),
            s.ask("PUT", "/s", value="four", prevIndex=index + 2, prevValue="three",
                  prevExist="true"),
            s.ask("PUT", "/not", value="x", prevValue="y"),
            s.ask("PUT", "/s", value="x", prevValue=""),
            s.ask("PUT", "/s", value="x", prevIndex="word"),
            s.ask("PUT", "/deep", value="x", prevIndex=1), s.ask("GET", "/s")]


def case_delete(s: Server) -> object:
    for key in ("/d/1", "/d/2", "/e/f/1", "/g"):
        s.ask("PUT", key, value=key)
    s.ask("PUT", "/empty", dir="true")
    index = s.modified("/g")
    return [s.ask("DELETE", "/d/1"), s.ask("DELETE", "/d/1"), s.ask("DELETE", "/d"),
            s.ask("DELETE", "/d", dir="true"), s.ask("DELETE", "/d", recursive="true"),
            s.ask("DELETE", "/empty", dir="true"), s.ask("DELETE", "/g", prevValue="x"),
            s.ask("DELETE", "/g", prevIndex=index + 7), s.ask("DELETE", "/g", prevIndex=index),
            s.ask("DELETE", "/e", prevIndex=index), s.ask("DELETE", "/"),
            s.ask("GET", "/", recursive="true")]


def case_in_order(s: Server) -> object:
    return [s.ask("POST", "/queue", value="first"), s.ask("POST", "/queue", value="second"),
            s.ask("POST", "/queue", value="", ttl=100), s.ask("GET", "/queue", sorted="true"),
            s.ask("POST", "/a", value="x"), s.ask("POST", "/", value="top")]


def case_hidden(s: Server) -> object:
    s.ask("PUT", "/_h/x", value="1")
    s.ask("PUT", "/h/_x/y", value="1")
    s.ask("PUT", "/h/z", value="1")
    return [s.ask("GET", "/h", recursive="true"), s.ask("GET", "/_h"), s.ask("GET", "/h/_x")]


def case_ttl(s: Server) -> object:
    answers = [s.ask("PUT", "/t", value="1", ttl=100), s.ask("GET", "/t"),
               s.ask("PUT", "/t", refresh="true", ttl=200, prevExist="true"),
               s.ask("PUT", "/t", refresh="true", ttl=50), s.ask("GET", "/t"),
               s.ask("PUT", "/t", refresh="true", value="2", ttl=9),
               s.ask("PUT", "/t", refresh="true"), s.ask("PUT", "/new", refresh="true", ttl=9),
               s.ask("PUT", "/t", value="2", prevExist="true"), s.ask("GET", "/t"),
               s.ask("PUT", "/t", value="3", ttl=""), s.ask("PUT", "/t", value="3", ttl="x"),
               s.ask("PUT", "/td", dir="true", ttl=60), s.ask("PUT", "/td/x", value="1"),
               s.ask("PUT", "/td", dir="true", ttl=70, prevExist="true"),
               s.ask("PUT", "/td", dir="true", ttl=80, prevExist="true", refresh="true"),
               s.ask("GET", "/td")]
    return answers


def case_expiry(s: Server) -> object:
    s.ask("PUT", "/x/y", value="1")
    since = s.index() + 1
    s.ask("PUT", "/x", dir="true", ttl=1, prevExist="true")
    gone = [s.ask("GET", "/x", wait="true", waitIndex=since + 1), s.ask("GET", "/x")]
    s.ask("PUT", "/x2", value="2", ttl=1)
    return [*gone, s.ask("GET", "/x2", wait="true", waitIndex=since + 3), s.ask("GET", "/x2")]


def later(*calls) -> threading.Timer:
    """Once the main thread waits for an answer, of which nothing can be seen from here."""
    timer = threading.Timer(0.6, lambda: [call() for call in calls])
    timer.start()
    return timer


def case_wait(s: Server) -> object:
    s.ask("PUT", "/w/1", value="0")
    answers = []
    for fields in ({"recursive": "true"}, {}):
        timer = later(lambda: s.ask("PUT", "/w/_hidden", value="x"),
                      lambda: s.ask("PUT", "/w/1", value="1"),
                      lambda: s.ask("PUT", "/w/2", value="2"),
                      lambda: s.ask("DELETE", "/w", recursive="true"))
        answers.append(s.ask("GET", "/w", wait="true", **fields))
        timer.join()
        s.ask("PUT", "/w/1", value="0")
    timer = later(lambda: s.ask("DELETE", "/w", recursive="true"))
    answers.append(s.ask("GET", "/w/1", wait="true"))
    timer.join()
    s.ask("PUT", "/w/1", value="0")
    timer = later(lambda: s.ask("PUT", "/w/1", refresh="true", ttl=100, prevExist="true"),
                  lambda: s.ask("PUT", "/w/1", value="9"))
    answers.append(s.ask("GET", "/w/1", wait="true"))
    timer.join()
    return answers


def case_wait_for_what_has_been(s: Server) -> object:
    first = s.index() + 1
    s.ask("PUT", "/p/1", value="1")
    s.ask("PUT", "/q", value="1")
    s.ask("PUT", "/p/1", value="2")
    s.ask("DELETE", "/p", recursive="true")
    return [s.ask("GET", "/p", wait="true", waitIndex=first, recursive="true"),
            s.ask("GET", "/p/1", wait="true", waitIndex=first + 1),
            s.ask("GET", "/p/1", wait="true", waitIndex=first + 3),
            s.ask("GET", "/q", wait="true", waitIndex=first),
            s.ask("PUT", "/p", wait="true"), s.ask("GET", "/p", wait="maybe"),
            s.ask("GET", "/p", wait="true", waitIndex="-1")]


def case_fields(s: Server) -> object:
    return [s.ask("PUT", "/n", value="1", noValueOnSuccess="true"),
            s.ask("PUT", "/n", value="2", noValueOnSuccess="true", prevValue="1"),
            s.ask("DELETE", "/n", noValueOnSuccess="true"),
            s.ask("PUT", "/n", value="1", dir="perhaps"), s.ask("GET", "/n", recursive=""),
            s.ask("PUT", "/n", value="1", prevExist="x"), s.ask("PUT", "/n", refresh="x"),
            s.ask("GET", "/deep", quorum="true"), s.ask("PATCH", "/n")[0]]


FORM = "application/x-www-form-urlencoded"


def case_forms(s: Server) -> object:
    """What is malformed, and what does not say that it is a form."""
    bodies = [b"value=%zz", b"value=%", b"value=%4", b"%=1&value=x", b"value=a;b=c", b"value",
              b"=x&value=1", b"value=1&value=2", b"&&value=x&", b"value=+%2b%20+"]
    kinds = ["text/plain", "application/json", "multipart/form-data", "garbage;;;", "", "a/b/c",
             "a/", "/b", "a b", FORM.upper(), FORM + "; charset=utf-8", FORM + ";", FORM + "; x",
             FORM + '; a="b c"', FORM + "; a=b c=d"]
    return [*[s.send("PUT", "/v2/keys/form", body, FORM) for body in bodies],
            *[s.send("PUT", "/v2/keys/kind", b"value=x", kind) for kind in kinds],
            s.send("PUT", "/v2/keys/both?value=query&ttl=", b"value=body", FORM),
            s.send("PUT", "/v2/keys/both?value=query", b"value=body", "text/plain"),
            s.send("PUT", "/v2/keys/both?value=%zz", b"value=body", FORM),
            s.send("PUT", "/v2/keys/both?value=%zz", b"value=%yy", FORM),
            s.send("GET", "/v2/keys/both?recursive=%g0"),
            s.send("DELETE", "/v2/keys/both?prevValue=query", b"prevValue=body", FORM)]


def case_bytes(s: Server) -> object:
    """Values are any bytes, and are shown as far as JSON can."""
    odd = b"value=a%00b%ffc%e2%82%acd%c3%28%ed%a0%80%f5%7f%01\xfe"
    return [s.send("PUT", "/v2/keys/bytes", odd, FORM), s.ask("GET", "/bytes"),
            s.send("PUT", "/v2/keys/bytes", b"value=n&prevValue=a%00b", FORM),
            s.send("PUT", "/v2/keys/bytes", b"value=%00&prev" + odd.replace(b"v", b"V", 1), FORM),
            s.send("PUT", "/v2/keys/bytes", b"value=%ff&prevValue=%00", FORM),
            s.send("PUT", "/v2/keys/bytes", b"value=x&prevValue=%fe", FORM),
            s.send("DELETE", "/v2/keys/bytes?prevValue=%ff"),
            s.send("PUT", "/v2/keys/bytes", b"dir=tr%00ue", FORM)]


def case_other_paths(s: Server) -> object:
    names = ["self", "leader", "store", "nope", ""]
    answers = [s.send("OPTIONS", path)[0] for path in ("/v2/keys/a", "/version", "/nope")]
    for path in [*("/v2/stats/" + name for name in names), "/v2/stats", "/v2/members/leader"]:
        status, shown, body = s.send("GET", path)
        answers.append([status, shown, sorted(body) if isinstance(body, dict) else body])
    s.ask("PUT", "/st", value="1")
    return [*answers, s.send("GET", "/v2/members/nope"), s.send("GET", "/v2/members/")[0],
            *[s.send(method, path) for method in ("POST", "PATCH")
              for path in ("/version", "/v2/machines", "/v2/stats/self", "/v2/keys/a", "/nope")],
            s.ask("GET", "/st", stream="true"), s.ask("GET", "/st", stream="maybe"),
            s.ask("PUT", "/st", value="2", stream="true")]


def case_history(s: Server) -> object:
    first = s.index() + 1

    def write() -> None:
        connection = http.client.HTTPConnection(*s.at, timeout=60)
        for _ in range(50):
            connection.request("PUT", "/v2/keys/many", "value=x",
                               {"Content-Type": "application/x-www-form-urlencoded"})
            connection.getresponse().read()
        connection.close()

    writers = [threading.Thread(target=write) for _ in range(22)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    start = s.index() - 999
    return [s.ask("GET", "/many", wait="true", waitIndex=first),
            s.ask("GET", "/many", wait="true", waitIndex=start - 1)[0],
            s.ask("GET", "/many", wait="true", waitIndex=start)]


def case_client(s: Server) -> object:
    import etcd
    client = etcd.Client(*s.at, allow_reconnect=True)
    client.write("/py/x", "1", prevExist=False)
    answers = [client.read("/py/x").value, len(client.machines) > 0, "/py/x" in client,
               client.leader["name"] != "", client.version.split(".")[:2]]
    try:
        client.write("/py/x", "1", prevExist=False)
    except etcd.EtcdAlreadyExist:
        answers.append("exists")
    try:
        client.test_and_set("/py/x", "2", "0")
    except etcd.EtcdCompareFailed:
        answers.append("compare failed")
    try:
        client.watch("/py/x", index=1)
    except etcd.EtcdEventIndexCleared:
        answers.append("cleared")
    start = time.monotonic()
    try:
        client.watch("/py/x", timeout=1)
    except etcd.EtcdWatchTimedOut:
        answers.append(0.5 < time.monotonic() - start < 30)
    client.refresh("/py/x", ttl=30)
    client.delete("/py", recursive=True)
    return answers


def main(address: str, port: str) -> None:
    server = Server(address, port)
    print(json.dumps({name[5:]: case(server) for name, case in list(globals().items())
                      if name.startswith("case_")}))


if __name__ == "__main__":
    main(*sys.argv[1:])
