"""What the tests share: the folder of real data beside the repository, if any."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from falsify_cli import defaults

# As the command line does it, before anything loads numpy: its BLAS would start a
# thread a core, and a process of several threads is not forked.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples every time: a red test is red for the next person, too.
settings.register_profile("falsify", deadline=None, derandomize=True)
# A mutant has to fail and no more: its failure need not be made small first.
settings.register_profile(
    "mutant",
    settings.get_profile("falsify"),
    phases=(Phase.explicit, Phase.generate),
    database=None,
)
settings.load_profile("mutant" if "MUTANT_UNDER_TEST" in os.environ else "falsify")

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that need the shared folder where there is none, saying so."""
    if SHARED.is_dir():
        return
    for item in items:
        if item.get_closest_marker("shared"):
            item.add_marker(pytest.mark.skip(reason=f"no {SHARED.name}/ beside it"))


@pytest.fixture
def shared() -> Path:
    """The folder of real runs, cases and worked examples."""
    return SHARED


@pytest.fixture(scope="module")
def small_work_is_shared() -> Iterator[None]:
    """Have processes and threads share however little there is to do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(defaults, "SHARED_BYTES", 0)
        patch.setattr(defaults, "SHARED_CELLS", 0)
        patch.setattr("falsify_cli.read.pieces._AHEAD", 4)
        yield


def read_in_chunks(patch: pytest.MonkeyPatch, size: int) -> None:
    """Have files cut into chunks of so many bytes where nothing is said."""
    from falsify_cli.read import read_qrels, read_run

    for reader in (read_run, read_qrels):
        assert reader.__kwdefaults__ is not None
        patch.setitem(reader.__kwdefaults__, "chunk_bytes", size)
