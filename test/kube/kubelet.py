"""A kubelet of Kubernetes 1.20 on a host of a lab, and containerd, which runs its pods.

`make kube` with KUBE_KUBELET=1 builds the one and fetches the other. The pods' network is a link
for each pod, with addresses of the Node's podCIDR, by plug-ins of CNI. Pods have an image, IMAGE,
with busybox and nothing else, or one with a build's programs.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import tarfile
from pathlib import Path

from lab import wait_for
from lab.support.network.laboratory import Host

from .cluster import programs

IMAGE = "docker.io/test/box:1"
# Their complaints, which come while all is well, too, are not ours to judge.
NOT_OURS = ["."]
SOCKET = "/run/containerd/containerd.sock"

# A private place for logs, and the cgroups, which a lab's host does not have.
PREPARE = """
set -e
mount -t tmpfs tmpfs /var/log
mount -t tmpfs tmpfs /sys/fs/cgroup
for c in cpu cpuacct cpuset memory devices freezer blkio pids; do
    mkdir /sys/fs/cgroup/$c
    mount -t cgroup -o $c cgroup /sys/fs/cgroup/$c
done
mkdir /sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
echo 1 > /proc/sys/net/ipv4/ip_forward
"""

CONTAINERD = """
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs"]
[grpc]
address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{image}"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{bin}"
conf_dir = "/run/cni"
conf_template = "{folder}/cni.template"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""

# containerd writes the Node's podCIDR into it, as soon as the kubelet has read that.
CNI = """{"cniVersion": "0.4.0", "name": "pods", "plugins": [{
"type": "ptp", "mtu": 1420, "ipMasq": false,
"ipam": {"type": "host-local", "subnet": "{{.PodCIDR}}", "dataDir": "/run/cni-addresses",
"routes": [{"dst": "0.0.0.0/0"}]}}]}
"""


def has_cgroups() -> bool:
    """The kubelet of 1.20 needs those of version 1."""
    return all(Path(f"/sys/fs/cgroup/{name}").is_dir() for name in ("cpu", "memory", "pids"))


def make_image(folder: Path) -> Path:
    """IMAGE, for `ctr images import`."""
    texts = {"www/index.html": b"this is a pod\n", "etc/passwd": b""}
    return pack_image(folder / "image.tar", IMAGE, {"bin/busybox": programs() / "busybox"}, texts,
                      ["/bin/busybox", "sleep", "1000000"])


def make_weft_image(folder: Path, weft: Path, name: str) -> Path:
    """The programs of a build and the libraries that they are linked with, as an image."""
    files = {"usr/bin/weft": weft, "usr/bin/weft-wg": weft.parent / "weft-wg"}
    for program in list(files.values()):
        said = subprocess.run(["ldd", program], check=True, stdout=subprocess.PIPE, text=True)
        for path in re.findall(r"(/\S+) \(0x", said.stdout):
            files[path.lstrip("/")] = Path(path).resolve()
    texts = {"etc/passwd": b"root:x:0:0:root:/root:/usr/sbin/nologin\n",
             "etc/nsswitch.conf": b"hosts: files dns\n"}
    return pack_image(folder / "weft.tar", name, files, texts, ["/usr/bin/weft"])


def pack_image(path: Path, name: str, files: dict[str, Path], texts: dict[str, bytes],
               entrypoint: list[str]) -> Path:
    """An image of one layer, in the form of `docker save`."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for inside, source in files.items():
            tar.add(source, arcname=inside)
        for inside, text in texts.items():
            member = tarfile.TarInfo(inside)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    config = json.dumps({
        "architecture": "amd64", "os": "linux",
        "config": {"Entrypoint": entrypoint, "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}).encode()
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [name],
                            "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as tar:
        for inside, data in (("config.json", config), ("layer.tar", layer.getvalue()),
                             ("manifest.json", manifest)):
            member = tarfile.TarInfo(inside)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


class Kubelet:
    """Both, on one host, as the Node of that name; the pods end with stop()."""

    def __init__(self, host: Host, folder: Path, *images: Path) -> None:
        self.host, self.folder, self.bin = host, folder, programs()
        folder.mkdir()
        host.run(["sh", "-c", PREPARE])
        (folder / "cni.template").write_text(CNI)
        (folder / "containerd.toml").write_text(CONTAINERD.format(
            folder=folder, socket=SOCKET, image=IMAGE, bin=self.bin))
        path = {"PATH": f"{self.bin}:/usr/sbin:/usr/bin:/sbin:/bin"}
        self.containerd = host.spawn([self.bin / "containerd", "--config",
                                      folder / "containerd.toml"], name="containerd", env=path,
                                     allow=NOT_OURS)
        wait_for(lambda: self._ctr("version").rc == 0, 30, "containerd to answer")
        for image in images:
            self._ctr("images", "import", image).check()
        self.kubelet = None

    def _ctr(self, *words: object):
        return self.host.run([self.bin / "ctr", "-a", SOCKET, "-n", "k8s.io", *words], check=False,
                             quiet=True, timeout_s=60)

    def start(self, kubeconfig: Path, address: str, *words: str) -> None:
        """@address: the Node's InternalIP."""
        self.kubelet = self.host.spawn([
            self.bin / "kubelet", "--kubeconfig", kubeconfig, "--hostname-override",
            self.host.name, "--node-ip", address, "--container-runtime=remote",
            f"--container-runtime-endpoint=unix://{SOCKET}", "--cgroups-per-qos=false",
            "--enforce-node-allocatable=", "--fail-swap-on=false", "--anonymous-auth=true",
            "--authorization-mode=AlwaysAllow", "--node-status-update-frequency=1s",
            "--eviction-hard=", "--root-dir", self.folder / "kubelet", "--cert-dir",
            self.folder / "pki", *words], name="kubelet", allow=NOT_OURS)

    def stop(self) -> None:
        """Pods are in network namespaces of their own, so that the end of the lab is not theirs."""
        if self.kubelet:
            self.kubelet.stop()
        runc = [self.bin / "runc", "--root", "/run/containerd/runc/k8s.io"]
        for name in self.host.run([*runc, "list", "-q"], check=False, quiet=True).out.split():
            self.host.run([*runc, "delete", "--force", name], check=False, quiet=True)
        self.containerd.stop()
        for pid in self.host.pids("containerd-shim-runc-v2"):
            self.host.run(["kill", pid], check=False, quiet=True)
