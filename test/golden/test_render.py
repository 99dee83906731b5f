"""What `weft render` makes of the snapshots beside this file: of render-NAME.json, render-NAME.txt.

wg-quick strips the text as it would a file of its own, so a stock WireGuard takes each of them.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from test_golden import HERE, compare, told

SNAPSHOTS = sorted(HERE.glob("render-*.json"))


def test_render(weft: Path) -> None:
    texts = {}
    for snapshot in SNAPSHOTS:
        text = told(weft, "render", "--snapshot", str(snapshot))
        texts[snapshot.stem] = text.replace(f"{HERE}/", "")
    compare(texts, "render")


@pytest.mark.skipif(not shutil.which("wg-quick"), reason="wg-quick is not installed")
def test_wg_quick_takes_it(weft: Path, tmp_path: Path) -> None:
    for snapshot in SNAPSHOTS:
        rendered = subprocess.run([weft, "render", "--snapshot", snapshot], check=False, timeout=60,
                                  capture_output=True, text=True)
        if rendered.returncode != 0:
            assert rendered.stderr
            continue
        conf = tmp_path / "wgtest0.conf"
        conf.write_text(rendered.stdout)
        conf.chmod(0o600)
        stripped = subprocess.run(["wg-quick", "strip", conf], check=True, timeout=60,
                                  capture_output=True, text=True).stdout
        # What wg-quick handles itself is gone; every peer, and all that wg(8) reads, is left.
        assert stripped.count("[Peer]") == rendered.stdout.count("[Peer]") > 0
        assert "Address" not in stripped
        assert "PostUp" not in stripped
