"""`make demo`, but for the packages and the build that come before it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lab.support import ROOT


@pytest.mark.namespaces
@pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/torch").exists(),
                    reason="python3-torch is not installed")
def test_demo(weft: Path) -> None:
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)[1]
    assert "test/lab/demo.py" in recipe
    done = subprocess.run([sys.executable, ROOT / "test/lab/demo.py"], text=True, timeout=600,
                          capture_output=True, check=False,
                          env={**os.environ, "WEFT": str(weft), "KEEP": ""})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Cleaned up" in done.stdout
    assert re.search(r"It trained: loss .* on all 4 ranks", done.stdout)
