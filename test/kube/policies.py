"""An API server that enforces our ValidatingAdmissionPolicy, though the cluster's core is too old.

The server of custom resources is a current one, and has the admission plug-in. The policies
themselves are objects of the core, which is Kubernetes 1.20 and does not know them. So a second
server of custom resources is started beside the first one, on the same etcd, and what it takes for
the core is a proxy here that answers for the policies and passes everything else on:

      test ──► second server, with the plug-in ──► proxy ──► kube-apiserver 1.20
                  │                                  └── policies of deploy/kubernetes
                  └── etcd

Requests go there as the aggregation would hand them on: with its certificate, and with the user's
name, groups and claims in headers.
"""

from __future__ import annotations

import copy
import http.client
import json
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from lab.support.ports import free_ports

from .cluster import Cluster

GROUP = "/apis/admissionregistration.k8s.io/v1/"
KINDS = {"validatingadmissionpolicies": "ValidatingAdmissionPolicy",
         "validatingadmissionpolicybindings": "ValidatingAdmissionPolicyBinding"}
READY_S = 120
NODE_NAME = "authentication.kubernetes.io%2Fnode-name"


def trusting() -> ssl.SSLContext:
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    return trust


class Front(ThreadingHTTPServer):
    """The core as that server sees it."""
    daemon_threads = True

    def __init__(self, cluster: Cluster, policies: list[dict]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.cluster, self.policies, self.has_ended = cluster, policies, threading.Event()

    def items(self, kind: str) -> list[dict]:
        """With what an API server fills in."""
        made = copy.deepcopy([item for item in self.policies if item["kind"] == kind])
        for item in made:
            item["metadata"] |= {"uid": item["metadata"]["name"], "resourceVersion": "1",
                                 "generation": 1}
            constraints = item["spec"].get("matchConstraints", {})
            for rule in constraints.get("resourceRules", []):
                rule.setdefault("scope", "*")
            if constraints:
                item["spec"]["matchConstraints"] = {
                    "matchPolicy": "Equivalent", "objectSelector": {},
                    "namespaceSelector": {}} | constraints
        return made


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Front

    def log_message(self, *_: object) -> None:
        """The server's own log has what it asks."""

    def answer(self, status: int, body: dict) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def answer_policies(self, kind: str, query: dict[str, list[str]]) -> None:
        if "sendInitialEvents" in query:
            self.answer(422, {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                              "reason": "Invalid", "code": 422, "message": "list them"})
        elif "watch" in query:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            self.server.has_ended.wait()
            self.close_connection = True
        else:
            self.answer(200, {"kind": f"{kind}List", "apiVersion": GROUP[6:-1],
                              "metadata": {"resourceVersion": "1"},
                              "items": self.server.items(kind)})

    def pass_on(self) -> None:
        cluster = self.server.cluster
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        core = http.client.HTTPSConnection("127.0.0.1", cluster.port, context=trusting())
        headers = {name: value for name, value in self.headers.items()
                   if name.lower() not in ("host", "connection", "accept-encoding")}
        # Nobody sends a token without TLS.
        headers["Authorization"] = "Bearer admintoken"
        core.request(self.command, self.path, body, headers)
        got = core.getresponse()
        self.send_response(got.status)
        for name, value in got.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while chunk := got.read1(65536):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            core.close()

    def do_any(self) -> None:
        asked = urlsplit(self.path)
        kind = KINDS.get(asked.path.removeprefix(GROUP).strip("/"))
        if self.command == "GET" and kind:
            self.answer_policies(kind, parse_qs(asked.query))
        else:
            self.pass_on()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_any


class Enforcing:
    """The second server, and what it is asked."""

    def __init__(self, cluster: Cluster, policies: list[dict]) -> None:
        self.cluster, self.folder = cluster, cluster.folder / "enforcing"
        self.folder.mkdir(exist_ok=True)
        self.front = Front(cluster, policies)
        threading.Thread(target=self.front.serve_forever, daemon=True).start()
        self.port = free_ports(1)
        self.log = (self.folder / "log").open("w")
        self.process = subprocess.Popen(self.command(), stdout=self.log, stderr=self.log)

    def command(self) -> list[str | Path]:
        proxy, config = self.cluster.folder / "proxy", self.folder / "kubeconfig"
        config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": {
                "server": f"http://127.0.0.1:{self.front.server_port}"}}],
            "users": [{"name": "u", "user": {"token": "admintoken"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}))
        return [self.cluster.bin / "apiextensions-apiserver",
                "--etcd-servers", f"http://127.0.0.1:{self.cluster.port + 1}",
                "--cert-dir", self.folder / "certs", "--bind-address", "127.0.0.1",
                "--secure-port", str(self.port), "--kubeconfig", config,
                "--authentication-kubeconfig", config, "--authorization-kubeconfig", config,
                "--authentication-skip-lookup",
                "--authorization-webhook-cache-unauthorized-ttl", "1ms",
                "--authorization-webhook-cache-authorized-ttl", "1ms",
                "--enable-priority-and-fairness=false",
                "--disable-admission-plugins", "MutatingAdmissionPolicy",
                "--requestheader-client-ca-file", proxy / "ca.crt",
                "--requestheader-allowed-names", "front-proxy",
                "--requestheader-username-headers", "X-Remote-User",
                "--requestheader-group-headers", "X-Remote-Group",
                "--requestheader-extra-headers-prefix", "X-Remote-Extra-"]

    def ask(self, method: str, path: str, user: str, groups: list[str], node: str | None = None,
            body: dict | None = None) -> tuple[int, dict]:
        trust = trusting()
        proxy = self.cluster.folder / "proxy"
        trust.load_cert_chain(proxy / "proxy.crt", proxy / "proxy.key")
        server = http.client.HTTPSConnection("127.0.0.1", self.port, context=trust, timeout=30)
        server.putrequest(method, path)
        headers = [("X-Remote-User", user), *(("X-Remote-Group", group) for group in groups)]
        if node:
            headers.append((f"X-Remote-Extra-{NODE_NAME}", node))
        text = json.dumps(body).encode() if body is not None else b""
        headers += [("Content-Type", "application/apply-patch+yaml"),
                    ("Content-Length", str(len(text)))]
        for name, value in headers:
            server.putheader(name, value)
        server.endheaders(text)
        got = server.getresponse()
        said = got.read()
        server.close()
        return got.status, json.loads(said) if said.startswith(b"{") else {"message": said.decode()}

    def wait_ready(self) -> None:
        until = time.monotonic() + READY_S
        while True:
            try:
                if self.ask("GET", "/readyz", "admin", ["system:masters"])[0] == 200:
                    return
            except OSError:
                pass
            assert self.process.poll() is None and time.monotonic() < until, \
                (self.folder / "log").read_text()[-3000:]
            time.sleep(0.2)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self.front.has_ended.set()
        self.front.shutdown()
        self.front.server_close()
        self.log.close()
