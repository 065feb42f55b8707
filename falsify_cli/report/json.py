"""A Judgement -> one JSON object, as schema.json describes it."""

from __future__ import annotations

import json

from falsify_cli.judgement import Judgement


def render(judgement: Judgement, *, per_query: bool, exit_code: int) -> str:
    """The report as JSON, numbers at 12 significant digits, never NaN."""
    plain = judgement.to_dict(per_query=per_query, exit_code=exit_code)
    return json.dumps(plain, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
