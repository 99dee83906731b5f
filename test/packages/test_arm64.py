"""What is made for arm64 on another machine: the package, the portable folder and the image.

`make arm64` gets what that takes. All is compiled once more, and the image's packages are
downloaded, so it runs only where WEFT_ARM64=1 asks for it. The programs run in qemu-user.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from . import build

ROOT = Path(__file__).resolve().parents[2]
ARM64 = ROOT / "tools/arm64"
AARCH64 = 183  # e_machine in the header of an ELF file


def output(*words: str | Path) -> str:
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.environ.get("WEFT_ARM64") != "1":
        pytest.skip("compiling for arm64 takes minutes: WEFT_ARM64=1 has it done")
    if subprocess.run([ARM64, "have"], check=False).returncode != 0:
        pytest.skip("what a build for arm64 needs is not there: make arm64")
    reason = build.why_not()
    if reason:
        pytest.skip(reason)
    return build.build(tmp_path_factory.mktemp("arm64"), WEFT_DEB_ARCH="arm64").weft


@pytest.fixture(scope="module")
def programs(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the package's programs, which is as good as a build folder."""
    folder = tmp_path_factory.mktemp("unpacked")
    subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
    return folder / "usr/bin"


def is_for_arm64(data: bytes) -> bool:
    return data[:4] == b"\x7fELF" and int.from_bytes(data[18:20], "little") == AARCH64


def test_package(package: Path, programs: Path) -> None:
    assert output("dpkg-deb", "--field", package, "Architecture").strip() == "arm64"
    needs = output("dpkg-deb", "--field", package, "Depends")
    assert all(f"{name} (>=" in needs for name in ("libc6", "libssl3", "libcurl4", "libuv1"))
    bill = package.with_suffix(".spdx.json").read_text(encoding="utf-8")
    assert "?arch=arm64&" in bill and "?arch=amd64&" not in bill
    said = output("qemu-aarch64-static", "-L", output(ARM64, "where").strip(),
                  programs / "weft", "version")
    assert said.startswith("weft ")


def test_portable_folder(programs: Path, tmp_path: Path) -> None:
    made = tmp_path / "portable.tar.gz"
    output(ROOT / "tools/portable", programs, made)
    with tarfile.open(made) as tar:
        files = {Path(each.name).name: tar.extractfile(each).read()
                 for each in tar if "licences" not in each.name}
    assert {"weft", "weft-wg", "ld-linux-aarch64.so.1", "libsodium.so.23"} <= set(files)
    assert [name for name, data in files.items() if not is_for_arm64(data)] == ["VERSION"]
    tar_root = tmp_path / "root"
    with tarfile.open(made) as tar:
        tar.extractall(tar_root)
    said = output("qemu-aarch64-static", "-L", tar_root, tar_root / "opt/weft/weft", "version")
    assert said.startswith("weft ")


def test_image(programs: Path, tmp_path: Path) -> None:
    made = tmp_path / "image.tar"
    output(ROOT / "tools/image", programs, made)
    with tarfile.open(made) as tar:
        def blob(of: dict) -> bytes:
            return tar.extractfile("blobs/sha256/" + of["digest"].removeprefix("sha256:")).read()

        [manifest] = json.load(tar.extractfile("index.json"))["manifests"]
        layers = json.loads(blob(manifest))
        assert manifest["platform"]["architecture"] == "arm64"
        assert json.loads(blob(layers["config"]))["architecture"] == "arm64"
        names = set()
        for layer in layers["layers"]:
            with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob(layer)))) as inner:
                names |= set(inner.getnames())
    # The kernel opens it by this name, which is the program's.
    assert {"usr/bin/weft", "usr/lib/ld-linux-aarch64.so.1"} <= names
