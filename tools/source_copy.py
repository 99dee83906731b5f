"""What the tests of packaging share: this source in a repository of its own, and what is in it."""
import fnmatch
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Neither the machine's nor the user's configuration of git has a say, nor the time of day.
ENVIRONMENT = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null",
                   GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@example.org",
                   GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@example.org",
                   GIT_AUTHOR_DATE="1750000000 +0000", GIT_COMMITTER_DATE="1750000000 +0000")
# What a build leaves at the top, and what only a tarball has; git ignores the rest itself.
NOT_SOURCE = ("build", "build-*", "dist", ".git", "VERSION")


def not_source(folder, names):
    """shutil.copytree()'s question: which of the names there are not to be copied?"""
    top = pathlib.Path(folder) == ROOT
    return [name for name in names
            if top and any(fnmatch.fnmatch(name, pattern) for pattern in NOT_SOURCE)]


def git(folder, *words):
    """Runs git there; returns what it printed."""
    return subprocess.run(["git", "-C", folder, *words], check=True, text=True, env=ENVIRONMENT,
                          stdout=subprocess.PIPE).stdout.strip()


def repository(folder):
    """Makes @folder a repository with the files of this source, as they are now, in one commit."""
    shutil.copytree(ROOT, folder, ignore=not_source, symlinks=True)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")
    return pathlib.Path(folder)
