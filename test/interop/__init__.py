"""Tests of Weft against other implementations of WireGuard."""
