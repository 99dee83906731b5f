"""Faults, one at a time: what is found of each, and that nothing else is."""
