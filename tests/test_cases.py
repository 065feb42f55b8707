"""The shared awkward files through the command: the right score, or the right words."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from conftest import ROOT, SHARED

from falsify_cli.__main__ import main

CASES = SHARED / "cases"
ENTRIES: list[dict[str, Any]] = (
    json.loads((CASES / "cases.json").read_text("utf-8")) if CASES.is_dir() else []
)

pytestmark = pytest.mark.shared


def named(entry: dict[str, Any]) -> str:
    return " ".join([entry["name"], entry["metric"], *entry["args"]])


def arguments(entry: dict[str, Any]) -> list[str]:
    folder = CASES / entry["name"]
    (run,) = folder.glob("run.txt*")
    (qrels,) = folder.glob("qrels.txt*")
    options = ["--metric", entry["metric"], *entry["args"], "--format", "json"]
    return ["gate", str(run), str(qrels), *options]


def check(entry: dict[str, Any], code: int, output: str, errors: str) -> None:
    """Compare what the command did with what is right for the case."""
    expect, said = entry["expect"], (output + errors).casefold()
    for mention in expect.get("mentions", []):
        assert mention.casefold() in said, errors or entry["why"]
    assert "traceback" not in said
    if expect["kind"] == "error":
        assert code == 2
        assert output == ""
        assert re.fullmatch(r"[^\n]+\n", errors)
        return
    # PASS, FAIL and UNDER-NS: so few queries settle nothing, but all can be judged.
    assert code in (0, 1, 3)
    (scored,) = json.loads(output)["results"]
    assert round(scored["score"], 4) == expect["value"], entry["why"]
    if expect["kind"] == "warning":
        notices = " ".join(scored["notices"]).casefold()
        assert all(mention.casefold() in notices for mention in expect["mentions"])


@pytest.mark.parametrize("entry", ENTRIES, ids=named)
def test_awkward_files_give_the_right_score_or_the_right_words(
    entry: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    # The process's own entry point: an interpreter for each takes half a minute.
    monkeypatch.setattr(sys, "argv", ["falsify", *arguments(entry)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    check(entry, ended.value.code, *capfd.readouterr())


@pytest.mark.parametrize("kind", ["score", "warning", "error"])
def test_the_command_itself_does_the_same(kind: str) -> None:
    entry = next(entry for entry in ENTRIES if entry["expect"]["kind"] == kind)
    result = subprocess.run(
        [sys.executable, "-m", "falsify_cli", *arguments(entry)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    check(entry, result.returncode, result.stdout, result.stderr)


def test_every_folder_is_a_case() -> None:
    assert len(ENTRIES) > 50
    assert {path.name for path in CASES.iterdir() if path.is_dir()} == {
        entry["name"] for entry in ENTRIES
    }
