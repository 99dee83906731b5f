"""An API server for all tests of this folder, or the words why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from .cluster import Cluster, is_built

NUMBERS = count(1)


@pytest.fixture(scope="session", params=["1.20", "modern"])
def cluster(request: pytest.FixtureRequest,
            tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Kubernetes 1.20; and custom resources as a current one serves them."""
    variant = request.param
    if not is_built(variant):
        pytest.skip("kube-apiserver is not built: \"make kube\" builds it once" +
                    (", with KUBE_MODERN=1" if variant == "modern" else ""))
    made = Cluster(Path(tmp_path_factory.mktemp(f"kube-{variant}")), variant)
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    """An empty one for each test."""
    return cluster.namespace(f"test-{next(NUMBERS)}")
