"""Tests of a whole hub, through its three APIs."""
