"""What the README shows is what the program prints.

`python tests/test_readme.py` writes the present output into the README.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
_EXAMPLE = re.compile(r"```console\n\$ falsify (.*)\n((?:.*\n)*?)```")


def printed(arguments: str) -> str:
    """What a command prints, started where the README's reader starts it."""
    command = [sys.executable, "-m", "falsify_cli", *arguments.split()]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert not done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize("example", _EXAMPLE.findall(README.read_text("utf-8")))
def test_the_readme_shows_what_the_command_prints(example: tuple[str, str]) -> None:
    arguments, shown = example
    assert shown == printed(arguments)


def test_make_demo_runs_what_the_readme_shows() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for arguments, _ in _EXAMPLE.findall(README.read_text("utf-8")):
        if not arguments.startswith("gate "):
            continue
        name = Path(arguments.split()[1]).stem
        template = arguments.replace(f"{name}.run", "$$run.run")
        assert template in makefile
        assert name in makefile


def test_the_readme_has_examples() -> None:
    assert len(_EXAMPLE.findall(README.read_text("utf-8"))) >= 2


def test_the_python_examples_of_the_readme_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testfile(str(README), module_relative=False)
    assert tried >= 4
    assert not failed


def test_the_readme_lists_every_exit_code() -> None:
    from falsify_cli.verdict import ExitCode

    text = README.read_text("utf-8")
    for code in ExitCode:
        assert re.search(rf"^\| {int(code)} \|", text, re.MULTILINE), code


if __name__ == "__main__":
    updated = _EXAMPLE.sub(
        lambda m: f"```console\n$ falsify {m[1]}\n{printed(m[1])}```",
        README.read_text("utf-8"),
    )
    README.write_text(updated, "utf-8")
