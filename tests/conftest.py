"""What the tests share: the folder of real data beside the repository, if any."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings

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
