"""Who may import whom; who may open files, print, and talk to the shell."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGE = "falsify_cli"

# The modules of the package, lowest first: each imports only what stands above it.
LAYERS = (
    *(
        "errors",
        "defaults",
        "version",
        "columns",
        "words",
        "key_table",
        "ids",
        "helper",
        "threads",
    ),
    *("read.numbers", "read.pieces", "read.source", "read.fields", "read.layout"),
    *("read.lines",),
    *("read.mapping", "read.facts", "read.growing", "read.numbering"),
    *("read.in_order", "read.kept_lines", "read.run_block"),
    *("read.run_parts", "read.run", "read.qrels", "read.lists_of_ids", "read"),
    *("diagnose", "benchmark", "gold", "hits", "metrics", "trec_scorer", "grading"),
    *("second_opinion", "ties"),
    *("nulls.draws", "nulls.relabelled", "nulls.closed_forms"),
    *("nulls.random_lists", "nulls.marginals"),
    *("nulls", "interval", "hint", "verdict", "judgement", "texts"),
    *("power", "settings", "notices", "judge", "systems", "controls", "inspection"),
    *("report.json", "report.table", "report.controls_table"),
    *("report.inspection_table", "report", "output", "cli", "__main__"),
)

# One opens what is read, one what is written, one pipes, one only the null device.
MAY_OPEN = ("read.source", "output", "helper", "__main__")
MAY_DRAW = ("report", "cli")


def name_of(path: Path) -> str:
    """A module's name inside the package; "" for the package itself."""
    parts = path.relative_to(ROOT / PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


FILES = {name_of(path): path for path in sorted((ROOT / PACKAGE).rglob("*.py"))}
MODULES = [name for name in FILES if name]


def tree_of(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Every import, also those in functions: full names, of modules where they are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            assert node.module is not None
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                is_module = name.removeprefix(f"{PACKAGE}.") in FILES
                yield name if is_module else node.module


def own_imports_of(module: str) -> set[str]:
    names = set(imports_of(tree_of(module)))
    return {n.removeprefix(f"{PACKAGE}.") for n in names if n.split(".")[0] == PACKAGE}


def third_parties_of(module: str) -> set[str]:
    tops = {name.split(".")[0] for name in imports_of(tree_of(module))}
    return tops - set(sys.stdlib_module_names) - {PACKAGE, "__future__"}


def test_every_module_has_its_layer() -> None:
    assert sorted(MODULES) == sorted(LAYERS)
    assert len(set(LAYERS)) == len(LAYERS)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_modules_above_it(module: str) -> None:
    assert module in LAYERS
    above = LAYERS[: LAYERS.index(module)]
    assert own_imports_of(module) <= set(above)


def test_the_package_itself_needs_its_version_alone() -> None:
    # Its functions import the rest when they are asked for it.
    top = [
        node
        for node in tree_of("").body
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    found = {name for node in top for name in imports_of(node)}
    ours = {f"{PACKAGE}.version", f"{PACKAGE}.errors"}
    assert found == {"__future__", "typing", *ours}
    code = (
        f"import sys, {PACKAGE}; print({PACKAGE}.__version__, 'numpy' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT
    )
    assert answer.stdout.split()[1:] == ["False"], answer.stderr


@pytest.mark.parametrize("module", MODULES)
def test_only_the_command_talks_to_the_shell_and_only_reports_draw(module: str) -> None:
    found = third_parties_of(module)
    if module != "cli":
        assert "typer" not in found
    if module.split(".")[0] not in MAY_DRAW:
        assert "rich" not in found


def test_the_package_needs_no_more_than_it_says() -> None:
    found = set().union(*(third_parties_of(module) for module in MODULES))
    zstd = {"zstandard", "compression"}  # an extra, and Python 3.14's own
    assert found <= {"numpy", "pytrec_eval", "rich", "typer", *zstd}


OPENERS = {
    *("open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes"),
    *("load", "loadtxt", "genfromtxt", "fromfile", "memmap", "mkstemp", "GzipFile"),
    *("LZMAFile", "BZ2File", "ZstdFile", "NamedTemporaryFile"),
}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_that_need_not_open_files_does_not(
    module: str,
) -> None:
    calls = [node for node in ast.walk(tree_of(module)) if isinstance(node, ast.Call)]
    names = {
        node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        for node in calls
        if isinstance(node.func, ast.Name | ast.Attribute)
    }
    if module not in MAY_OPEN:
        assert not names & OPENERS


@pytest.mark.parametrize("module", MODULES)
def test_only_the_command_prints_or_exits(module: str) -> None:
    # A helper process has to end where it stands.
    if module in ("cli", "__main__", "helper"):
        return
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("print", "exit", "quit"), node.lineno
        if isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            assert name not in ("SystemExit", "_exit"), node.lineno


@pytest.mark.parametrize("module", MODULES)
def test_randomness_comes_in_as_an_argument(module: str) -> None:
    # One function makes generators, from a seed and a tag; nobody uses the global one.
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Attribute):
            is_global = node.attr == "seed" and ast.unparse(node) == "np.random.seed"
            assert not is_global, node.lineno
            if node.attr in ("default_rng", "RandomState"):
                assert module == "nulls.draws", node.lineno
    assert "random" not in set(imports_of(tree_of(module)))
