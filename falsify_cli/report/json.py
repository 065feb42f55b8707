"""A report -> one JSON object; that of the gate as schema.json describes it."""

from __future__ import annotations

import json
from typing import Any

from falsify_cli.judgement import Judgement


def render(judgement: Judgement, *, per_query: bool, exit_code: int) -> str:
    """The report as JSON, numbers at 12 significant digits, never NaN."""
    return _dumped(judgement.to_dict(per_query=per_query, exit_code=exit_code))


def render_plain(plain: dict[str, Any]) -> str:
    """Any plain values as JSON, rounded as those of the gate are."""
    exact = json.dumps(plain, allow_nan=False)
    return _dumped(json.loads(exact, parse_float=lambda t: float(f"{float(t):.12g}")))


def _dumped(plain: dict[str, Any]) -> str:
    return json.dumps(plain, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
