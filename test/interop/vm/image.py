"""What the virtual machine boots: Debian's cloud kernel, and an initramfs made for the tests.

The kernel package is downloaded with apt-get and unpacked, not installed.  The initramfs has
busybox, the modules that were asked for with all that they need, and a few of this machine's own
programs with their libraries.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

# What has this tree's programs in it.
CACHE = Path(__file__).resolve().parents[3] / "build/vm"
# What has Debian's packages alone, and serves every tree.
KEPT = Path(os.environ.get("VM_CACHE") or Path(
    os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "weft/vm")).resolve()
HERE = Path(__file__).resolve().parent
INIT = HERE / "init.sh"
SERVE = HERE / "serve.sh"
# Of one program, for it may have to download and install a system beside other tests: it only ends
# what hangs.
DEADLINE_S = 900
METAPACKAGE = "linux-image-cloud-amd64"
PROGRAMS = ("sh", "ip", "tc", "wg")
TOOLS = ("qemu-system-x86_64", "apt-get", "dpkg", "busybox", "cpio", *PROGRAMS)


class ImageError(Exception):
    """The virtual machine's parts cannot be had; the text says which and why."""


class Kernel:
    """A kernel package, unpacked."""

    def __init__(self, root: Path) -> None:
        self.vmlinuz = next((root / "boot").glob("vmlinuz-*"))
        self._modules = {path.stem: path for path in (root / "lib/modules").rglob("*.ko")}

    def module(self, name: str) -> Path:
        if name not in self._modules:
            raise ImageError(f"the kernel {self.vmlinuz.name} has no module {name}")
        return self._modules[name]

    def with_dependencies(self, names: tuple[str, ...]) -> list[str]:
        """The modules and all that they need, in the order in which they can be loaded."""
        order: list[str] = []

        def add(name: str) -> None:
            if name in order:
                return
            info = re.search(rb"\0depends=([^\0]*)\0", self.module(name).read_bytes())
            for needed in info[1].decode().split(",") if info and info[1] else []:
                add(needed)
            order.append(name)

        for name in names:
            add(name)
        return order


def why_not() -> str | None:
    """Why no virtual machine can be had here, or None if one can."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        return f"the virtual machine needs {', '.join(missing)}"
    try:
        kernel()
    except ImageError as error:
        return f"there is no kernel for the virtual machine: {error}"
    return None


def kernel() -> Kernel:
    """The kernel from the cache, or else from Debian."""
    return Kernel(once(KEPT / "kernel", _fetch_kernel))


def once(path: Path, make: Callable[[Path], None]) -> Path:
    """@path, which `make` has made in another place the first time; others wait for it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(f".{path.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                _make(path, make)
    return path


def _make(path: Path, make: Callable[[Path], None]) -> None:
    draft = path.with_name(f"{path.name}.draft")
    try:
        _remove(draft)  # of a run that was ended
        make(draft)
        draft.rename(path)
    finally:
        _remove(draft)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _fetch_kernel(draft: Path) -> None:
    draft.mkdir()
    package = _download(draft)
    run(["dpkg", "-x", package, draft])
    package.unlink()


def _download(folder: Path) -> Path:
    depends = run(["apt-cache", "depends", METAPACKAGE])
    package = re.search(r"Depends: (linux-image-\S+)", depends)
    if not package:
        raise ImageError(f"apt-cache does not know {METAPACKAGE}; run apt-get update")
    run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package[1]], cwd=folder)
    return next(folder.glob("*.deb"))


def initramfs(
    the_kernel: Kernel, modules: tuple[str, ...], programs: tuple[Path, ...] = ()
) -> Path:
    """An initramfs with these modules and more programs, from the cache or made now."""
    files = {"init": INIT, "serve.sh": SERVE}
    for path in [*(Path(shutil.which(program)) for program in PROGRAMS), *programs]:
        files[f"usr/bin/{path.name}"] = path
        for library in re.findall(r"(/\S+)", run(["ldd", path])):
            files[library.lstrip("/")] = Path(library)
    return pack(the_kernel, modules, files)


def pack(the_kernel: Kernel, modules: tuple[str, ...], files: dict[str, Path]) -> Path:
    """An initramfs of these modules, busybox, and `files`, which has its /init."""
    order = the_kernel.with_dependencies(modules)
    files = {f"lib/modules/{name}.ko": the_kernel.module(name) for name in order} | files
    files["bin/busybox"] = Path(shutil.which("busybox"))
    module_list = "".join(f"{name}\n" for name in order)
    content = module_list + repr([(to, path.stat().st_mtime_ns) for to, path in files.items()])
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    image = CACHE / f"initramfs-{digest}.gz"
    if not image.exists():
        _pack(image, files, module_list)
    return image


def _pack(image: Path, files: dict[str, Path], module_list: str) -> None:
    tree = CACHE / f"tree.{os.getpid()}"
    shutil.rmtree(tree, ignore_errors=True)
    for name, source in files.items():
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    (tree / "init").chmod(0o755)
    (tree / "modules").write_text(module_list, encoding="utf-8")
    names = "".join(f"{path.relative_to(tree)}\n" for path in sorted(tree.rglob("*")))
    archive = subprocess.run(
        ["cpio", "--create", "--quiet", "--format=newc", "--owner=0:0"],
        cwd=tree, input=names.encode(), capture_output=True, check=True).stdout
    draft = image.with_suffix(f".{os.getpid()}")
    draft.write_bytes(gzip.compress(archive, compresslevel=1))
    draft.rename(image)
    shutil.rmtree(tree)


def run(argv: list, cwd: Path | None = None, stdin: str = "") -> str:
    """What a program says; an ImageError, with its words, if it fails."""
    try:
        done = subprocess.run(
            argv, cwd=cwd, input=stdin, capture_output=True, encoding="utf-8",
            timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired as expired:
        raise ImageError(str(expired)) from None
    if done.returncode != 0:
        raise ImageError(f"{' '.join(map(str, argv))} failed: {done.stderr.strip()}")
    return done.stdout
