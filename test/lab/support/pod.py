"""A pod of deploy/kubernetes in a lab's host, run by crun as a kubelet would have it run.

    pod = Pod(image, host, folder / "hub", spec, {"state": folder / "disk"}, WEFT_PUBLIC="...")
    pod.start()

What its manifest says is done: user, capabilities, a read-only root, mounts and their modes, its
arguments with $(NAME) replaced. A volume is a folder of the host's, given by its name, or else a
new and empty one.
"""

from __future__ import annotations

import re
from pathlib import Path

from .container import TUN, Container, Image, bind
from .network.laboratory import Host


class Pod(Container):
    """The only container of a pod."""

    def __init__(self, image: Image, host: Host, folder: Path, pod: dict,
                 volumes: dict[str, Path], **env: str) -> None:
        assert pod["hostNetwork"], "the network here is the host's"
        [self.container] = pod["containers"]
        words = [re.sub(r"\$\((\w+)\)", lambda found: env[found[1]], word)
                 for word in self.container["args"]]
        super().__init__(image, host, folder, words)
        self.volumes = dict(volumes)
        for mount in self.container["volumeMounts"]:
            if mount["name"] not in self.volumes:
                self.volumes[mount["name"]] = folder / f"volume-{mount['name']}"
            self.volumes[mount["name"]].mkdir(exist_ok=True)

    def _config(self) -> dict:
        security = self.container["securityContext"]
        config = super()._config()
        every = [f"CAP_{name}" for name in security["capabilities"]["add"]]
        assert security["capabilities"]["drop"] == ["ALL"]
        config["root"]["readonly"] = security["readOnlyRootFilesystem"]
        config["process"] |= {
            "user": {"uid": security["runAsUser"], "gid": security["runAsGroup"]},
            "noNewPrivileges": not security["allowPrivilegeEscalation"],
            "capabilities": {kind: every for kind in ("bounding", "effective", "permitted")}}
        mounts = self.container["volumeMounts"]
        has_tunnel = any(mount["mountPath"] == TUN["path"] for mount in mounts)
        config["linux"]["devices"] = [TUN] if has_tunnel else []
        config["mounts"] = config["mounts"][:2] + [
            bind(mount["mountPath"], self.volumes[mount["name"]],
                 "ro" if mount.get("readOnly") else "rw")
            for mount in mounts if mount["mountPath"] != TUN["path"]]
        return config
