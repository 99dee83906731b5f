#!/usr/bin/python3
"""Run the lab from a shell:  lab.py up FILE [--tag T] | exec T HOST -- CMD | shell | down | show

This file is only the entry; the package that it stands in is the lab.  Tests say
`from lab import Lab`.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # As a program we are not part of the package yet: make its parent folder the import path.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from lab.support.network.command import main

    sys.exit(main())
