"""What image, portable and sbom share: a program's libraries, the packages that they are of."""
import dataclasses
import functools
import os
import pathlib
import re
import subprocess

ARM64 = pathlib.Path(__file__).resolve().parent / "arm64"


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


@dataclasses.dataclass(frozen=True)
class Machine:
    """Where a program runs: here, or where the files lie that tools/arm64 has fetched."""
    arch: str           # as dpkg has it
    root: str = ""      # the folder with that machine's files; "": this machine's own
    triplet: str = ""   # of its libraries' folder, and before the names of its tools

    def path(self, *parts):
        """A file of that machine, as it is found here."""
        return pathlib.Path(self.root + "/", *parts)

    def query(self, *words, check=True):
        """dpkg-query of that machine's packages."""
        where = ["--admindir", self.path("var/lib/dpkg")] if self.root else []
        return output("dpkg-query", *where, *words, check=check)

    def strip(self, program, to):
        """The program without what only debuggers read, in the file @to."""
        output(f"{self.triplet}-strip" if self.triplet else "strip", "-o", to, program)

    def find(self, name):
        """The library of that name in that machine's folder of them; None: it is not there."""
        path = self.path("usr/lib", self.triplet, name)
        return str(path) if path.exists() else None

    def loaded(self, program):
        """Where the loader finds each library of a program, by name; without the kernel's own."""
        if self.root:
            return self._loaded_there(program)
        found = re.findall(r"^\s*(\S+)(?: => (\S+))? \(0x", output("ldd", program), re.MULTILINE)
        return {pathlib.Path(name).name: path or name for name, path in found
                if path or name.startswith("/")}

    def _loaded_there(self, program):
        """The same for another processor's programs, which the loader of this one cannot open."""
        found, ask = {}, [program]
        while ask:
            for name in needed(ask.pop()):
                if name in found:
                    continue
                found[name] = self.find(name)
                if not found[name]:
                    raise LookupError(f"{self.root} has no library {name}")
                ask.append(found[name])
        return found

    def packages_of(self, paths):
        """The packages that files are of, by path; LookupError for a file that no package has."""
        names = {}
        for path in paths:
            # dpkg knows some libraries by their name from before /lib moved.
            real = os.path.realpath(path)
            for name in (path, real, real.removeprefix("/usr"), f"/usr{path}"):
                names.setdefault(name, path)
        # It fails for the names that it does not know, and tells of the others.
        told = self.query("-S", *names, check=False) if names else ""
        found = {names[name]: package.partition(":")[0] for package, name in
                 (line.split(": ", 1) for line in told.splitlines()) if name in names}
        for path in paths:
            if path not in found:
                raise LookupError(f"no package has {path}")
        return found


def this_machine():
    return Machine(output("dpkg", "--print-architecture").strip())


AARCH64 = 183  # e_machine in the header of an ELF file


def machine_of(program):
    """The machine that a program is for."""
    here = this_machine()
    with pathlib.Path(program).open("rb") as f:
        kind = int.from_bytes(f.read(20)[18:], "little")
    if kind != AARCH64 or here.arch == "arm64":
        return here
    root = output(ARM64, "where").strip()
    if not pathlib.Path(root, ".built").exists():
        raise LookupError(f"{program} is for arm64, whose libraries are not here: make arm64")
    return Machine("arm64", root, "aarch64-linux-gnu")
