"""Training jobs: weft run, preflight, and the job itself."""
