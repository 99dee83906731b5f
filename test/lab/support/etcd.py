"""One etcd for the hubs of a lab."""

from __future__ import annotations

from pathlib import Path

from lab import Host, wait_for


def start_etcd(host: Host, directory: Path, client: str, peer: str) -> None:
    """Alone in its cluster, with its data in `directory`; `client` and `peer` are its URLs."""
    host.spawn(["/usr/bin/etcd", "--name", "one", "--data-dir", directory,
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", f"one={peer}", "--logger=zap", "--log-level=error"],
               name="etcd")
    wait_for(lambda: "true" in host.run(["curl", "-s", f"{client}/health"], check=False,
                                        quiet=True).out, 10, "etcd to answer")
