"""What image, portable and sbom share: a program's libraries, the packages that they are of."""
import functools
import os
import pathlib
import re
import subprocess


def output(*words, check=True, **options):
    """What a program prints; what it says besides is not shown where it may fail."""
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          stderr=None if check else subprocess.DEVNULL, check=check,
                          **options).stdout


def in_a_sentence(error):
    """Why a program that was run, or a file that was opened, was of no use."""
    if isinstance(error, subprocess.CalledProcessError):
        words = [str(word) for word in error.cmd]
        return f"{words[0]} failed: {' '.join(words)}"
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}"
    return str(error.args[0])


def check_built(build):
    """LookupError where a folder has no program in it."""
    if not (build / "weft").is_file():
        raise LookupError(f"{build} has no program weft; it is not a build folder, or not built")


def is_elf(path):
    with pathlib.Path(path).open("rb") as f:
        return f.read(4) == b"\x7fELF"


@functools.cache
def needed(path):
    """The names of the libraries that a program or library asks for itself."""
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-dW", path))


def loaded(program):
    """Where the loader finds each library of a program, by name; without the kernel's own."""
    found = re.findall(r"^\s*(\S+)(?: => (\S+))? \(0x", output("ldd", program), re.MULTILINE)
    return {pathlib.Path(name).name: path or name for name, path in found
            if path or name.startswith("/")}


def packages_of(paths):
    """The packages that files are of, by path; LookupError for a file that no package has."""
    names = {}
    for path in paths:
        # dpkg knows some libraries by their name from before /lib moved.
        real = os.path.realpath(path)
        for name in (path, real, real.removeprefix("/usr"), f"/usr{path}"):
            names.setdefault(name, path)
    # It fails for the names that it does not know, and tells of the others.
    told = output("dpkg-query", "-S", *names, check=False) if names else ""
    found = {names[name]: package.partition(":")[0] for package, name in
             (line.split(": ", 1) for line in told.splitlines()) if name in names}
    for path in paths:
        if path not in found:
            raise LookupError(f"no package has {path}")
    return found
