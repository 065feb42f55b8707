"""Time and memory of whole processes, ours against pytrec_eval and bare imports.

    python tests/bench.py [--runs 5] [--only L S ...] [--huge]

Inputs are made by seed in a temporary folder and never kept. The sides run in turn,
and the table gives medians: of the processor time where the goal is a ratio.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
PYTHON = sys.executable

PYTREC_EVAL = """
import sys, pytrec_eval
with open(sys.argv[2]) as file: qrels = pytrec_eval.parse_qrel(file)
with open(sys.argv[1]) as file: run = pytrec_eval.parse_run(file)
scores = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(run)
print(sum(row["ndcg_cut_10"] for row in scores.values()) / len(qrels))
"""
IMPORTS = "import numpy, numpy.random, typer, rich.console, rich.table, pytrec_eval"
# Bytecode is written, as at everybody's second run, whatever this one was told.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
# numpy's threads are switched off as the command line does it.
READING = """
import os, sys
os.environ["OPENBLAS_NUM_THREADS"] = "1"
from falsify_cli.read import Keep, read_run
read_run(sys.argv[1], Keep(int(sys.argv[2]) or None), processes=int(sys.argv[3]))
"""


# --- inputs ---


@dataclass(frozen=True)
class Shape:
    """A benchmark to make: N queries, K documents a list, relevant ones a query.

    shuffled: also the run with its lines in random order.
    """

    queries: int
    depth: int
    relevant: tuple[int, int] = (1, 1)
    judged: int = 0
    grades: int = 1
    corpus: int = 8_841_823
    shuffled: bool = False


SHAPES = {
    "L": Shape(6980, 1000, shuffled=True),
    "M2": Shape(10_000, 100, (1, 3)),
    "M1": Shape(323, 100, (10, 64), grades=2, corpus=3633),
    "S": Shape(50, 1000, (20, 60), judged=200, grades=2, corpus=500_000),
    "100k": Shape(100_000, 10),
    "dense": Shape(7000, 100, (30, 46), corpus=4000),
    "1M": Shape(1_000_000, 10),
}


def make(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a run and its qrels, and the shuffled run where it is wanted.

    In a process of its own: on Linux a child's peak memory begins at its parent's,
    so this one has to stay small.
    """
    command = [PYTHON, __file__, "--make", name, "--folder", str(folder)]
    subprocess.run(command, check=True)
    return folder / f"{name}.run", folder / f"{name}.qrels"


def write(folder: Path, name: str) -> None:
    """Write a run and its qrels; half the relevant documents stand in the lists."""
    shape, rng = SHAPES[name], np.random.default_rng(len(name))
    run, qrels = folder / f"{name}.run", folder / f"{name}.qrels"
    ids = np.sort(rng.choice(10 * shape.queries, shape.queries, replace=False))
    with run.open("w") as run_file, qrels.open("w") as qrels_file:
        for query in ids.tolist():
            listed = _different(rng, shape.corpus, shape.depth)
            scores = np.sort(rng.gamma(2, 4, shape.depth) + 5)[::-1].tolist()
            run_file.write(
                "".join(
                    f"{query} Q0 {document} {rank} {score:.6f} anserini\n"
                    for rank, (document, score) in enumerate(
                        zip(listed, scores, strict=True), 1
                    )
                )
            )
            count = int(rng.integers(shape.relevant[0], shape.relevant[1] + 1))
            found = rng.integers(0, min(shape.depth, 5 * count), count).tolist()
            gold = {
                listed[place] if rng.random() < 0.5 else int(rng.integers(shape.corpus))
                for place in found
            }
            others = _different(rng, shape.corpus, max(shape.judged - count, 0))
            lines = dict.fromkeys(others, 0)
            lines |= {d: int(rng.integers(1, shape.grades + 1)) for d in gold}
            qrels_file.writelines(f"{query} 0 {d} {g}\n" for d, g in lines.items())
    if shape.shuffled:
        shuffle(run, folder / f"{name}.shuffled")


def shuffle(run: Path, target: Path) -> None:
    """Write the lines of a run in random order."""
    lines = run.read_bytes().splitlines(keepends=True)
    order = np.random.default_rng(7).permutation(len(lines))
    with target.open("wb") as file:
        file.writelines(lines[place] for place in order.tolist())


def _different(rng: np.random.Generator, corpus: int, count: int) -> list[int]:
    drawn = np.unique(rng.integers(0, corpus, 2 * count + 20))
    if len(drawn) < count:
        drawn = np.arange(corpus)
    chosen: list[int] = rng.permutation(drawn)[:count].tolist()
    return chosen


# --- measurements ---


@dataclass(frozen=True)
class Cost:
    """What one process took: seconds of processor and of clock, bytes at the peak."""

    cpu: float
    wall: float
    memory: int


def cost(command: list[str]) -> Cost:
    """Run a process to its end; what it prints is thrown away."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env=ENVIRONMENT,
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1, 3):
        raise SystemExit(f"exit code {process.returncode}: {' '.join(command)}")
    scale = 1 if sys.platform == "darwin" else 1024
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * scale)


def medians(commands: dict[str, list[str]], runs: int) -> dict[str, Cost]:
    """The median cost of each command; they run in turn, after one round unseen."""
    seen: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(runs + 1):
        for name, command in commands.items():
            found = cost(command)
            if number:
                seen[name].append(found)
    return {
        name: Cost(
            statistics.median(c.cpu for c in costs),
            statistics.median(c.wall for c in costs),
            int(statistics.median(c.memory for c in costs)),
        )
        for name, costs in seen.items()
    }


def memory_of_all(command: list[str]) -> int:
    """Bytes at the peak of a process and its helpers together, what they share once.

    Looked at every 10 ms, and only on Linux; elsewhere there are no helpers.
    """
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, cwd=ROOT, env=ENVIRONMENT
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    most = 0
    while process.poll() is None:
        try:
            all_of_them = [process.pid, *map(int, children.read_text().split())]
            most = max(most, sum(map(_proportional_bytes, all_of_them)))
        except OSError:
            pass  # one of them has just ended
        time.sleep(0.01)
    return most


def _proportional_bytes(process: int) -> int:
    text = Path(f"/proc/{process}/smaps_rollup").read_text()
    line = next((line for line in text.splitlines() if line.startswith("Pss:")), "0 0")
    return int(line.split()[1]) * 1024


def gate(run: Path, qrels: Path, *options: str) -> list[str]:
    """Our command."""
    return [PYTHON, "-m", "falsify_cli", "gate", str(run), str(qrels), *options]


# --- the table ---


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, and what it may be."""

    what: str
    found: float
    goal: float
    unit: str
    detail: str

    def __str__(self) -> str:
        mark = "" if self.found <= self.goal else "  MISSED"
        return (
            f"{self.what:44} {self.found:8.2f} {self.unit:10} goal {self.goal:<6g}"
            f"{self.detail}{mark}"
        )


def _against(what: str, ours: Cost, theirs: Cost, goal: float, unit: str) -> Row:
    detail = f" {ours.cpu:.2f} s, {ours.memory / 1e6:.0f} MB"
    return Row(what, ours.cpu / theirs.cpu, goal, unit, detail)


def bench_l(folder: Path, runs: int) -> Iterator[Row]:
    """6,980 queries x 1000 documents, as the dev set of MS MARCO."""
    run, qrels = make(folder, "L")
    size = run.stat().st_size
    theirs = [PYTHON, "-c", PYTREC_EVAL, str(run), str(qrels)]
    read = [PYTHON, "-c", READING, str(run)]
    mixed = [PYTHON, "-c", READING, str(folder / "L.shuffled")]
    found = medians(
        {
            "pytrec_eval": theirs,
            "one": gate(run, qrels, "--threads", "1"),
            "two": gate(run, qrels, "--threads", "2"),
            "AP": gate(run, qrels, "--threads", "1", "-m", "AP"),
            "RR": gate(run, qrels, "--threads", "1", "-m", "RR"),
            "read": [*read, "10", "1"],
            "shuffled": [*mixed, "10", "1"],
        },
        runs,
    )
    base = found["pytrec_eval"]
    yield _against("L: gate", found["one"], base, 0.20, "x pytrec")
    memory = found["one"].memory / size
    yield Row("L: gate, peak memory, one process", memory, 0.35, "x file", "")
    memory = memory_of_all(gate(run, qrels, "--threads", "2")) / size
    yield Row("L: gate, peak memory, two together", memory, 0.35, "x file", "")
    wall = found["two"].wall / base.wall
    yield Row("L: gate, two processes, wall", wall, 0.15, "x pytrec", "")
    yield _against("L: reading", found["read"], base, 0.16, "x pytrec")
    yield _against(
        "L: reading, lines shuffled", found["shuffled"], base, 0.48, "x pytrec"
    )
    memory = found["shuffled"].memory / size
    yield Row("L: reading, lines shuffled, peak memory", memory, 2.5, "x file", "")
    for metric in ("AP", "RR"):
        yield _against(f"L: {metric} to nDCG@10", found[metric], found["one"], 1.5, "x")


def bench_ratio(name: str, goal: float, *, to_imports: bool) -> Bench:
    """One shape against pytrec_eval, or against the bare imports."""

    def bench(folder: Path, runs: int) -> Iterator[Row]:
        run, qrels = make(folder, name)
        theirs = [PYTHON, "-c", PYTREC_EVAL, str(run), str(qrels)]
        base = [PYTHON, "-c", IMPORTS] if to_imports else theirs
        found = medians({"ours": gate(run, qrels), "base": base}, runs)
        unit = "x imports" if to_imports else "x pytrec"
        yield _against(f"{name}: gate", found["ours"], found["base"], goal, unit)

    return bench


def bench_absolute(name: str, seconds: float, megabytes: float) -> Bench:
    """One shape against seconds and megabytes."""

    def bench(folder: Path, runs: int) -> Iterator[Row]:
        run, qrels = make(folder, name)
        found = medians({"ours": gate(run, qrels)}, min(runs, 3))["ours"]
        yield Row(f"{name}: gate, processor time", found.cpu, seconds, "s", "")
        yield Row(f"{name}: gate, memory", found.memory / 1e6, megabytes, "MB", "")

    return bench


def bench_start(folder: Path, runs: int) -> Iterator[Row]:
    """What it takes to print the version and the help."""
    ours = [PYTHON, "-m", "falsify_cli"]
    found = medians(
        {
            "typer": [PYTHON, "-c", "import typer"],
            "version": [*ours, "--version"],
            "help": [*ours, "--help"],
        },
        2 * runs,
    )
    for name in ("version", "help"):
        yield _against(f"falsify --{name}", found[name], found["typer"], 1.3, "x typer")


Bench = Callable[[Path, int], Iterator[Row]]

BENCHES: dict[str, Bench] = {
    "start": bench_start,
    "S": bench_ratio("S", 1.5, to_imports=True),
    "M1": bench_ratio("M1", 2.4, to_imports=True),
    "M2": bench_ratio("M2", 0.9, to_imports=False),
    "100k": bench_absolute("100k", 6, 500),
    "dense": bench_absolute("dense", 20, 1000),
    "L": bench_l,
    "1M": bench_absolute("1M", 120, 3000),
}
HUGE = {"1M"}


def main() -> None:
    """Run the benches asked for and print the table as it grows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each side")
    parser.add_argument("--only", nargs="+", choices=BENCHES, help="some inputs alone")
    parser.add_argument("--huge", action="store_true", help="also a million queries")
    parser.add_argument("--make", choices=SHAPES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.make:
        write(chosen.folder, chosen.make)
        return
    names = chosen.only or [n for n in BENCHES if chosen.huge or n not in HUGE]
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, numpy", end=" ")
    print(f"{np.__version__}; medians of {chosen.runs} runs")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            for row in BENCHES[name](Path(folder), chosen.runs):
                print(row, flush=True)


if __name__ == "__main__":
    main()
