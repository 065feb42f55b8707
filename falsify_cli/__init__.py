"""falsify: does a retrieval score mean anything? A gate of four null models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falsify_cli.errors import FalsifyError, InputError, InternalError, UsageError
from falsify_cli.version import __version__

if TYPE_CHECKING:
    from falsify_cli.judge import gate
    from falsify_cli.verdict import Verdict

__all__ = [
    "FalsifyError",
    "InputError",
    "InternalError",
    "UsageError",
    "Verdict",
    "__version__",
    "gate",
]


def __getattr__(name: str) -> object:
    """Import the API when it is asked for: `falsify --version` needs no numpy."""
    if name == "gate":
        from falsify_cli.judge import gate

        return gate
    if name == "Verdict":
        from falsify_cli.verdict import Verdict

        return Verdict
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
