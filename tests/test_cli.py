"""The command: exit codes that cannot lie, one line of complaint, whole reports.

`call` runs the process's own `main` inside the tests, which is quick; `run` starts a
real process, where streams, signals and imports are the question.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import select
import shlex
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import pytest
import typer
from conftest import ROOT, read_in_chunks

import falsify_cli
from falsify_cli import gate
from falsify_cli.__main__ import main
from falsify_cli.errors import InputError, InternalError, UsageError
from falsify_cli.threads import at_once
from falsify_cli.verdict import ExitCode

posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX systems")
full_device = pytest.mark.skipif(
    not Path("/dev/full").is_char_device(), reason="of Linux"
)

ONE, MODULE = Path("fixtures/stdlib-one"), Path("fixtures/stdlib-module")
QUICK = ("--n-boot", "200")
PASS = ("gate", MODULE / "bm25.run", MODULE / "qrels.txt", *QUICK)
FAIL = ("gate", MODULE / "popular.run", MODULE / "qrels.txt", *QUICK)
UNDER_NS = ("gate", ONE / "bm25-12.run", ONE / "qrels-12.txt", *QUICK)
MISSING = ("gate", "no.run", MODULE / "qrels.txt", *QUICK)

SHAPES = {"table": (), "json": ("--format", "json"), "quiet": ("-q",)}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Ended:
    """A process, or a call of main, that came to its end."""

    code: int
    out: str
    err: str


Call = Callable[..., Ended]


@pytest.fixture(autouse=True)
def _at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of fixtures are short: those of a table's first line fit it."""
    monkeypatch.chdir(ROOT)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call main with these arguments."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("COLUMNS", "80")

    def called(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["falsify", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return Ended(stop.value.code, captured.out, captured.err)

    return called


Stream = int | IO[bytes]


def start(
    *arguments: object,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = subprocess.PIPE,
    stderr: Stream = subprocess.PIPE,
    redirect: str = "",
    path: Path | None = None,
    pass_fds: tuple[int, ...] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[bytes]:
    """Start a process.

    redirect: what a shell would be told, as ">&-". path: searched for modules first.
    """
    # PYTHONUNBUFFERED, say, would hide what a buffer does at the end of a process.
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "NO_COLOR", "FORCE_COLOR", "COLUMNS"))
    }
    paths = [str(path)] * (path is not None) + [str(ROOT)]
    command = [sys.executable, "-m", "falsify_cli", *map(str, arguments)]
    if redirect:
        command = ["sh", "-c", f'exec "$@" {redirect}', "sh", *command]
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=pass_fds,
        env=inherited
        | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": "1", "TERM": "xterm"}
        | dict(environment),
    )


def end(process: subprocess.Popen[bytes], data: bytes | None = None) -> Ended:
    """Wait for a process that is given this on its standard input, if anything."""
    out, err = process.communicate(data, timeout=60)
    texts = [(text or b"").decode("utf-8", "surrogateescape") for text in (out, err)]
    return Ended(process.returncode, *texts)


def run(*arguments: object, **asked: Any) -> Ended:
    """Run a process to its end."""
    return end(start(*arguments, **asked))


def assert_complains(ended: Ended, *fragments: str, code: int = 2) -> None:
    """One line on standard error, nothing on standard output, and this exit code."""
    assert ended.out == ""
    assert ended.err.count("\n") == 1, ended.err
    assert ended.err.startswith("falsify: ")
    assert ended.err.endswith("\n")
    assert ended.err[:-1].isprintable()
    for fragment in fragments:
        assert fragment in ended.err
    assert ended.code == code


RUN_TEXT = "q1 Q0 d1 1 3.0 t\nq1 Q0 d2 2 2.0 t\nq2 Q0 d2 1 0.5 t\nq3 Q0 d3 1 7.0 t\n"
QRELS_TEXT = "q1 0 d1 1\nq1 0 d2 0\nq1 0 d3 2\nq2 0 d2 1\nq3 0 d4 1\n"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with files, good and bad."""
    files = {
        "run.txt": RUN_TEXT,
        "qrels.txt": QRELS_TEXT,
        "empty": "",
        "corpus.txt": "d1\nd2\nd3\nd4\nd5\n",
        "small-corpus.txt": "d1\nd2\nd3\n",
        "groups.txt": "q1 a\nq2 a\nq3 b\n",
        "groups-but-one.txt": "q1 a\nq2 a\n",
        "nan.txt": "q1 Q0 d1 1 nan t\n",
        "other.txt": "1 Q0 d1 1 1.0 t\n",
        "irrelevant.txt": "q1 0 d1 0\nq2 0 d1 0\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


ON_DESK = ("gate", "run.txt", "qrels.txt", *QUICK)


# ---- verdicts ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "verdict"),
    [
        pytest.param(PASS, 0, "PASS", id="PASS"),
        pytest.param(FAIL, 1, "FAIL", id="FAIL"),
        pytest.param(UNDER_NS, 3, "UNDER-NS", id="UNDER-NS"),
    ],
)
def test_the_process_exits_with_its_verdict_and_is_quiet_otherwise(
    arguments: tuple[object, ...], code: int, verdict: str
) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.err) == (code, "")
    assert f"\n{verdict}" in ended.out
    assert ended.out.startswith(f"{arguments[1]}")


@pytest.mark.parametrize(
    ("arguments", "options", "code"),
    [
        pytest.param(PASS, ["--exit-zero"], 0, id="PASS, all forgiven"),
        pytest.param(FAIL, ["--exit-zero"], 0, id="FAIL, all forgiven"),
        pytest.param(UNDER_NS, ["--exit-zero"], 0, id="UNDER-NS, all forgiven"),
        pytest.param(PASS, ["--allow-under-ns"], 0, id="PASS, UNDER-NS allowed"),
        pytest.param(FAIL, ["--allow-under-ns"], 1, id="FAIL, UNDER-NS allowed"),
        pytest.param(UNDER_NS, ["--allow-under-ns"], 0, id="UNDER-NS, allowed"),
    ],
)
def test_forgiveness_changes_the_exit_code_and_not_the_verdict(
    arguments: tuple[object, ...], options: list[str], code: int, call: Call
) -> None:
    strict, lenient = call(*arguments, "-q"), call(*arguments, "-q", *options)
    assert lenient.code == code
    assert lenient.out == strict.out
    found = json.loads(call(*arguments, *options, "--format", "json").out)
    assert found["exit_code"] == code
    assert found["verdict"] == strict.out.split()[0]


FORGIVING = ("--exit-zero", "--allow-under-ns")


def test_what_could_not_be_judged_is_not_forgiven(call: Call) -> None:
    assert_complains(call(*MISSING, *FORGIVING), "no.run")
    assert_complains(call(*PASS, *FORGIVING, "--tau", "2"), "tau")


@pytest.mark.parametrize(
    ("metrics", "verdicts", "code"),
    [
        pytest.param(["nDCG@10"], ["PASS"], 0, id="PASS"),
        pytest.param(["P@50"], ["FAIL"], 1, id="FAIL"),
        pytest.param(["RR@1"], ["UNDER-NS"], 3, id="UNDER-NS"),
        pytest.param(["RR@1", "nDCG@10"], ["UNDER-NS", "PASS"], 3, id="pass last"),
        pytest.param(["nDCG@10", "RR@1"], ["PASS", "UNDER-NS"], 3, id="pass first"),
        pytest.param(["RR@1", "P@50"], ["UNDER-NS", "FAIL"], 1, id="fail last"),
        pytest.param(
            ["P@50", "RR@1", "nDCG@10"], ["FAIL", "UNDER-NS", "PASS"], 1, id="all three"
        ),
    ],
)
def test_the_worst_verdict_of_several_metrics_counts(
    metrics: list[str], verdicts: list[str], code: int, call: Call, tmp_path: Path
) -> None:
    # 10 answers found first and 90 second: nDCG is 0.1 + 0.9 / log2(3) = 0.67, RR@1
    # 0.1 and near the margin, P@50 0.02 and below it.
    run_file, qrels_file = second_places(tmp_path)
    options = [option for metric in metrics for option in ("-m", metric)]
    ended = call("gate", run_file, qrels_file, *QUICK, *options, "--format", "json")
    found = json.loads(ended.out)
    assert [result["verdict"] for result in found["results"]] == verdicts
    assert (ended.code, found["exit_code"]) == (code, code)


def second_places(folder: Path) -> tuple[Path, Path]:
    """100 queries of one answer each, found first by 10 of them and second by 90."""
    run_file, qrels_file = folder / "second.run", folder / "second.qrels"
    lists = [[f"d{i}", "x"] if i < 10 else ["x", f"d{i}"] for i in range(100)]
    run_file.write_text(
        "".join(
            f"q{i} Q0 {document} {rank} {-rank} t\n"
            for i, documents in enumerate(lists)
            for rank, document in enumerate(documents, 1)
        )
    )
    qrels_file.write_text("".join(f"q{i} 0 d{i} 1\n" for i in range(100)))
    return run_file, qrels_file


def test_strict_makes_the_companion_count(call: Call, tmp_path: Path) -> None:
    # Every list has the three fairly good documents of its query, never the best.
    run_file, qrels_file = tmp_path / "run", tmp_path / "qrels"
    fair = [(i, j) for i in range(60) for j in range(3)]
    run_file.write_text("".join(f"q{i} Q0 fair{i}-{j} 1 1.0 t\n" for i, j in fair))
    best = "".join(f"q{i} 0 best{i} 2\n" for i in range(60))
    qrels_file.write_text(best + "".join(f"q{i} 0 fair{i}-{j} 1\n" for i, j in fair))
    arguments = ("gate", run_file, qrels_file, *QUICK, "-q")
    lenient, strict = call(*arguments), call(*arguments, "--strict")
    assert (lenient.code, lenient.out.split()[0]) == (0, "PASS")
    assert (strict.code, strict.out.split()[0]) == (1, "FAIL")
    assert call(*arguments, "--strict", "-m", "R@3_top1").code == 1


# ---- no verdict: usage and input ---------------------------------------------------


@pytest.mark.parametrize(
    ("line", "fragment"),
    [
        ("gate", "RUN"),
        ("gate run.txt", "QRELS"),
        ("gate run.txt qrels.txt more.txt", "more.txt"),
        ("grate run.txt qrels.txt", "grate"),
        ("--tau 0.1", "--tau"),
        ("gate run.txt qrels.txt --taux 1", "--taux"),
        ("gate run.txt qrels.txt --tau", "--tau"),
        ("gate run.txt qrels.txt --tau high", "--tau"),
        ("gate run.txt qrels.txt --n-boot 1.5", "--n-boot"),
        ("gate run.txt qrels.txt --format yaml", "'yaml'"),
        ("gate run.txt qrels.txt --queries all", "'all'"),
        ("gate run.txt qrels.txt --threads 0", "--threads"),
        ("gate run.txt qrels.txt --tau 0", "tau: expected a gap between 0 and 1"),
        ("gate run.txt qrels.txt --tau 1", "tau: expected"),
        ("gate run.txt qrels.txt --tau nan", "found nan"),
        ("gate run.txt qrels.txt --alpha 0", "alpha: expected"),
        ("gate run.txt qrels.txt --alpha 1", "alpha: expected"),
        ("gate run.txt qrels.txt --alpha 1e-9", "n-boot: expected at least 8e+09"),
        ("gate run.txt qrels.txt --n-boot 199", "at least 200"),
        ("gate run.txt qrels.txt --top-k 0", "top-k: expected a depth"),
        ("gate run.txt qrels.txt --top-k -3", "found -3"),
        ("gate run.txt qrels.txt --seed -1", "seed: expected"),
        ("gate run.txt qrels.txt --rel-level 0", "rel-level: expected"),
        ("gate run.txt qrels.txt --corpus 0", "corpus: expected"),
        ("gate run.txt qrels.txt --corpus 3", "at least the 4 documents"),
        ("gate run.txt qrels.txt --corpus -3", "-3"),
        ("gate run.txt qrels.txt --corpus 1e6", "1e6: cannot be opened"),
        ("gate run.txt qrels.txt --corpus no.txt", "no.txt: cannot be opened"),
        ("gate run.txt qrels.txt --corpus 9²", "9²: cannot be opened"),
        ("gate run.txt qrels.txt --corpus small-corpus.txt", "small-corpus.txt"),
        ("gate run.txt qrels.txt --corpus empty", "empty: the file is empty"),
        ("gate run.txt qrels.txt --group no.txt", "no.txt: cannot be opened"),
        ("gate run.txt qrels.txt --group groups-but-one.txt", "'q3'"),
        ("gate run.txt qrels.txt --group run.txt", "run.txt:1: expected a query id"),
        ("gate run.txt qrels.txt -m nDGC@10", "did you mean"),
        ("gate run.txt qrels.txt -m RR -m nope", "'nope': no such metric"),
        ("gate run.txt qrels.txt -m P", "a cutoff"),
        ("gate run.txt qrels.txt -m nDCG@0", "'nDCG@0': expected a cutoff"),
        ("gate run.txt qrels.txt -m num_rel", "no null models"),
        ("gate no.run qrels.txt", "no.run: cannot be opened: No such file"),
        ("gate run.txt no.qrels", "no.qrels: cannot be opened: No such file"),
        ("gate folder qrels.txt", "folder: cannot be opened: Is a directory"),
        ("gate run.txt folder", "folder: cannot be opened: Is a directory"),
        ("gate empty qrels.txt", "empty: the file is empty"),
        ("gate run.txt empty", "empty: the file is empty"),
        ("gate nan.txt qrels.txt", "nan.txt:1: "),
        ("gate other.txt qrels.txt", "other.txt: "),
        ("gate run.txt irrelevant.txt", "relevant document"),
        ("gate qrels.txt run.txt", "swapped"),
        ("gate qrels.txt qrels.txt", "expected a run"),
        ("gate run.txt run.txt", "expected qrels"),
        ("gate - -", "standard input"),
    ],
)
@pytest.mark.usefixtures("desk")
def test_what_cannot_be_judged_is_said_in_one_line(
    line: str, fragment: str, call: Call
) -> None:
    assert_complains(call(*line.split()), fragment)


@pytest.mark.parametrize(
    "option",
    [
        *("--top-k", "--corpus", "--rel-level", "--seed"),
        *("-m nDCG@", "-m P@", "-m RR@", "-m R@", "-m AP@", "-m Success@"),
    ],
)
@pytest.mark.parametrize("number", [2**31, 2**63 - 1, 10**30])
@pytest.mark.usefixtures("desk")
def test_a_number_of_any_size_is_taken_or_refused_and_never_a_fault(
    option: str, number: int, call: Call
) -> None:
    blank = "" if option.endswith("@") else " "
    ended = call(*ON_DESK, *f"{option}{blank}{number}".split())
    if ended.code == 2:
        assert_complains(ended, str(number))
    else:
        assert (ended.code, ended.err) == (3, "")


def test_the_process_says_in_one_line_what_it_could_not_judge() -> None:
    assert_complains(run(*MISSING), "no.run: cannot be opened")


@posix
@pytest.mark.parametrize(
    ("before", "code", "printed"),
    [("pass", 3, "it waits"), ("os.close(1)", 120, "")],
    ids=["as always", "nobody listens"],
)
def test_a_process_ends_at_once_but_not_before_all_is_printed(
    before: str, code: int, printed: str
) -> None:
    # 120 is Python's own word for output that could not be written at the end.
    program = f"""
import os, sys
from falsify_cli import __main__
sys.stdout.write("it waits")
{before}
__main__.main = lambda: sys.exit(3)
__main__.process()
"""
    buffered = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=buffered,
    )
    assert (ended.returncode, ended.stdout) == (code, printed)


@pytest.mark.usefixtures("desk")
def test_the_name_of_a_missing_file_cannot_steer_a_terminal(call: Call) -> None:
    ended = call("gate", "no\x1b[31m\r\n\x9b\u202e.run", "qrels.txt")
    assert_complains(ended, r"no\x1b[31m\r\n\x9b\u202e.run: cannot be opened")


@contextlib.contextmanager
def without_rights() -> Iterator[None]:
    """Be somebody who may not read everything, as root may."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@posix
def test_a_file_that_may_not_be_read_is_said_to_be_one(call: Call, desk: Path) -> None:
    (desk / "locked").write_text(QRELS_TEXT)
    (desk / "locked").chmod(0)
    assert call(*ON_DESK).code == 3  # everything is imported before rights are lost
    with without_rights():
        ended = call("gate", "run.txt", desk / "locked")
    assert_complains(ended, "locked: cannot be opened: Permission denied")


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="of Linux")
@pytest.mark.usefixtures("desk")
def test_a_file_that_fails_while_it_is_read_is_said_to_be_one(call: Call) -> None:
    # It can be opened, and reading it from its start is an input/output error.
    for arguments in (
        ("/proc/self/mem", "qrels.txt"),
        ("run.txt", "/proc/self/mem"),
        ("run.txt", "qrels.txt", "--corpus", "/proc/self/mem"),
    ):
        assert_complains(call("gate", *arguments), "/proc/self/mem: cannot be read")


@pytest.mark.parametrize("command", ["gate", "controls", "inspect"])
def test_wrong_usage_names_the_help_of_its_command(call: Call, command: str) -> None:
    assert_complains(call(command, "--nonsense"), f"Try 'falsify {command} --help'.")


@pytest.mark.parametrize("command", ["controls", "inspect"])
def test_a_second_metric_is_not_taken_for_the_first(
    call: Call, command: str, desk: Path
) -> None:
    ended = call(command, "qrels.txt", "-m", "RR", "-m", "AP")
    assert_complains(ended, "--metric: expected one")


def test_without_a_command_one_line_says_where_the_help_is(call: Call) -> None:
    assert_complains(call(), "no command", "--help")


# ---- faults of ours ----------------------------------------------------------------


def raiser(error: BaseException) -> Callable[..., Any]:
    def fail(*arguments: object, **asked: object) -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(InternalError("off by 0.1"), 70, id="self-check"),
        pytest.param(UsageError("not so"), 2, id="usage"),
        pytest.param(MemoryError(), 2, id="memory"),
        pytest.param(KeyboardInterrupt(), 130, id="interrupt"),
        pytest.param(typer.Abort(), 130, id="interrupt, as older parsers say it"),
        pytest.param(RuntimeError("oh"), 70, id="bug"),
        pytest.param(AssertionError(), 70, id="assertion"),
        pytest.param(OSError(5, "oh"), 70, id="system"),
        pytest.param(BrokenPipeError(32, "oh"), 70, id="pipe"),
        pytest.param(SystemExit(1), 70, id="exit 1"),
        pytest.param(SystemExit(0), 70, id="exit 0"),
        pytest.param(RecursionError(), 70, id="recursion"),
        pytest.param(EOFError(), 70, id="end of file"),
        pytest.param(GeneratorExit(), 70, id="neither error nor exit"),
    ],
)
def test_whatever_is_raised_never_looks_like_a_verdict(
    error: BaseException, code: int, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falsify_cli.judge.compare", raiser(error))
    for options in ((), FORGIVING):
        ended = call(*PASS, *options)
        assert (ended.code, ended.out) == (code, "")
        if code == 70:
            assert "report it" in ended.err


def test_a_failed_self_check_is_one_line(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = InternalError("null A: the draws\naverage 7")
    monkeypatch.setattr("falsify_cli.judge.compare", raiser(error))
    assert_complains(
        call(*PASS),
        "a self-check of falsify failed, please report it: null A: the draws",
        code=70,
    )


def test_too_little_memory_is_said_in_one_line(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falsify_cli.judge.compare", raiser(MemoryError()))
    assert_complains(call(*PASS), "not enough memory")


@pytest.mark.parametrize(
    ("module", "fault"),
    [
        pytest.param("typer", "raise ImportError('broken')", id="typer"),
        pytest.param("numpy", "raise ImportError('broken')", id="numpy"),
        pytest.param("rich", "raise ImportError('broken')", id="rich"),
        pytest.param("pytrec_eval", "raise OSError('no library')", id="pytrec_eval"),
        pytest.param("numpy", "import sys; sys.exit(1)", id="numpy exits 1"),
        pytest.param("pytrec_eval", "def", id="pytrec_eval does not parse"),
    ],
)
def test_an_import_that_breaks_exits_70(
    module: str, fault: str, tmp_path: Path
) -> None:
    (tmp_path / f"{module}.py").write_text(fault)
    ended = run(*FAIL, *FORGIVING, path=tmp_path)
    assert (ended.code, ended.out) == (70, "")
    assert "this is a fault of falsify, please report it" in ended.err


def test_a_second_opinion_that_differs_exits_70(tmp_path: Path) -> None:
    (tmp_path / "pytrec_eval.py").write_text(
        "class RelevanceEvaluator:\n"
        "    def __init__(self, *arguments, **asked): pass\n"
        "    def evaluate(self, run):\n"
        "        return {query: {'ndcg_cut_10': 0.5} for query in run}\n"
    )
    ended = run(*PASS, *FORGIVING, path=tmp_path)
    assert_complains(ended, "self-check", "nDCG@10", "pytrec_eval 0.5", code=70)


# ---- interrupted -------------------------------------------------------------------


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """A process started where interrupts are ignored would ignore them, too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(process: subprocess.Popen[bytes]) -> Ended:
    """Interrupt a process that waits for input, and wait for its end.

    Python does not see a signal that comes in the microseconds between its last look
    for one and a read that blocks: so not at once, and again where it was not seen.
    """
    for pause in (0.3, 5, 5, 5):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(pause)
            break
        process.send_signal(signal.SIGINT)
    return end(process)


@posix
@pytest.mark.usefixtures("_interruptible")
def test_an_interrupt_exits_130_and_leaves_no_report(desk: Path) -> None:
    fifo, report = desk / "fifo", desk / "report"
    os.mkfifo(fifo)
    report.write_text("the last one")
    before = sorted(desk.iterdir())
    process = start("gate", fifo, desk / "qrels.txt", "-o", report)
    with fifo.open("wb", buffering=0) as pipe:  # opens once the process has opened it
        pipe.write(RUN_TEXT.encode())
        ended = interrupted(process)
    assert (ended.code, ended.out, ended.err.strip()) == (130, "", "")
    assert report.read_text() == "the last one"
    assert sorted(desk.iterdir()) == before


@pytest.mark.parametrize("module", ["typer", "numpy"])
def test_an_interrupt_while_modules_are_imported_exits_130(
    module: str, tmp_path: Path
) -> None:
    (tmp_path / f"{module}.py").write_text("raise KeyboardInterrupt")
    assert run(*PASS, path=tmp_path) == Ended(130, "", "")


@posix
@pytest.mark.usefixtures("_interruptible")
def test_an_interrupt_while_standard_input_stays_open_exits_130(desk: Path) -> None:
    process = start("gate", "-", desk / "qrels.txt", stdin=subprocess.PIPE)
    assert process.stdin is not None
    # More than a pipe holds: once it is written, the process is reading.
    process.stdin.write(b"".join(b"q1 Q0 x%d 1 1 t\n" % i for i in range(20_000)))
    ended = interrupted(process)
    assert (ended.code, ended.out, ended.err.strip()) == (130, "", "")


# ---- what is printed ---------------------------------------------------------------


JSON_A_QUERY = ["--format", "json", "--per-query"]


@pytest.mark.parametrize("arguments", [PASS, FAIL, UNDER_NS], ids=["0", "1", "3"])
@pytest.mark.parametrize("more", [[], ["--format", "json"], JSON_A_QUERY])
def test_quiet_prints_the_verdict_line_alone(
    arguments: tuple[object, ...], more: list[str], call: Call
) -> None:
    loud, quiet = call(*arguments), call(*arguments, "--quiet", *more)
    assert (quiet.code, quiet.err) == (loud.code, "")
    assert re.fullmatch(r"(PASS|FAIL|UNDER-NS)  .*\.run  nDCG@10 0\.\d{4}\n", quiet.out)
    assert f"\n{quiet.out.split()[0]}" in loud.out
    assert call(*arguments, "-q").out == quiet.out


def test_the_rows_a_query_come_when_asked_for(call: Call) -> None:
    plain = json.loads(call(*UNDER_NS, "--format", "json").out)
    rich = json.loads(call(*UNDER_NS, *JSON_A_QUERY).out)
    assert len(rich["results"][0].pop("per_query")) == 12
    assert rich == plain
    # The table has no room for them.
    assert_complains(call(*UNDER_NS, "--per-query"), "--per-query", "--format json")


def test_the_json_has_hashes_and_the_table_needs_none(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = json.loads(call(*PASS, "--format", "json").out)
    assert len(found["inputs"]["run"]["sha256"]) == 64
    monkeypatch.setattr("hashlib.sha256", raiser(AssertionError("hashed")))
    assert call(*PASS).code == 0


def test_the_version_is_the_packages(call: Call) -> None:
    expected = Ended(0, f"falsify {falsify_cli.__version__}\n", "")
    assert call("--version") == expected


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_the_help_lists_every_exit_code(flag: str, call: Call) -> None:
    ended = call("gate", flag)
    assert (ended.code, ended.err) == (0, "")
    listed = re.findall(r"^ +(\d+) {2,}\S", ended.out, re.MULTILINE)
    assert [int(code) for code in listed] == sorted(map(int, ExitCode))
    assert call(flag).code == 0
    assert "gate" in call(flag).out


def test_the_help_lists_every_option(call: Call) -> None:
    listed = set(re.findall(r"--[a-z-]+", call("gate", "--help").out))
    assert listed == {
        *("--metric", "--tau", "--n-boot", "--top-k", "--seed", "--alpha"),
        *("--rel-level", "--corpus", "--queries", "--group", "--drop-self"),
        *("--strict", "--exit-zero", "--allow-under-ns", "--format", "--per-query"),
        *("--output", "--quiet", "--no-color", "--ascii", "--threads", "--help"),
    }


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["gate", "--help"]])
def test_help_and_version_import_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "sys.modules['numpy'] = sys.modules['pytrec_eval'] = None\n"
        f"sys.argv = ['falsify', *{arguments}]\n"
        "from falsify_cli.__main__ import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "falsify" in done.stdout


# ---- options -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "name", "value"),
    [
        ("", "metric", "nDCG@10"),
        ("-m AP", "metric", ["AP"]),
        ("--metric AP --metric RR", "metric", ["AP", "RR"]),
        ("", "tau", 0.05),
        ("--tau 0.2", "tau", 0.2),
        ("", "alpha", 0.05),
        ("--alpha 0.01", "alpha", 0.01),
        ("", "n_boot", 1000),
        ("--n-boot 300", "n_boot", 300),
        ("", "seed", 0),
        ("--seed 7", "seed", 7),
        ("", "top_k", None),
        ("--top-k 20", "top_k", 20),
        ("", "rel_level", 1),
        ("--rel-level 2", "rel_level", 2),
        ("-l 3", "rel_level", 3),
        ("", "corpus", None),
        ("--corpus 500", "corpus", 500),
        ("--corpus corpus.txt", "corpus", "corpus.txt"),
        ("--corpus 500.txt", "corpus", "500.txt"),
        ("", "queries", "judged"),
        ("--queries answered", "queries", "answered"),
        ("", "group", None),
        ("--group groups.txt", "group", "groups.txt"),
        ("", "strict", False),
        ("--strict", "strict", True),
        ("", "drop_self", False),
        ("--drop-self", "drop_self", True),
        ("", "threads", None),
        ("--threads 3", "threads", 3),
        ("", "digest", False),
        ("--format json", "digest", True),
    ],
)
def test_an_option_reaches_the_gate(
    option: str, name: str, value: object, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def instead(run: str, qrels: str, metric: Any, **asked: Any) -> Any:
        given.update(asked, run=run, qrels=qrels, metric=metric)
        raise UsageError("stopped")

    monkeypatch.setattr("falsify_cli.judge.gate", instead)
    assert_complains(call("gate", "run.txt", "qrels.txt", *option.split()), "stopped")
    assert (given["run"], given["qrels"]) == ("run.txt", "qrels.txt")
    assert given[name] == value
    assert type(given[name]) is type(value)


def test_blas_is_told_to_start_no_threads_unless_somebody_said_so(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("--version")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    call("--version")
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    call("--version")
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3"


@pytest.mark.parametrize(
    "options",
    [
        "",
        "-m AP -m R@5 --top-k 2",
        "--seed 5 --n-boot 300 --alpha 0.2",
        "--tau 0.0123456789 --alpha 0.0987654321",
        "--rel-level 2 -m P@3 --queries answered",
        "--corpus 77",
        "--corpus corpus.txt --group groups.txt",
        "--corpus 'my corpus.txt' --group 'my  groups.txt'",
        "--strict --drop-self --n-boot 200 -m iprec_at_recall_0.2 -m relative_P_5",
    ],
)
def test_the_last_line_of_the_table_repeats_the_call(
    options: str, call: Call, desk: Path
) -> None:
    (desk / "my corpus.txt").write_text((desk / "corpus.txt").read_text())
    (desk / "my  groups.txt").write_text((desk / "groups.txt").read_text())
    asked = ["gate", "run.txt", "qrels.txt", "--format", "json", *shlex.split(options)]
    table = call("gate", "run.txt", "qrels.txt", *shlex.split(options)).out
    lines = table[table.index("\nrepeat ") + 1 :].splitlines()
    again = shlex.split(" ".join(line[8:] for line in lines))
    assert again[:2] == ["falsify", falsify_cli.__version__]
    repeated = json.loads(call(*asked[:5], *again[2:]).out)
    first = json.loads(call(*asked).out)
    for found in (first, repeated):
        found["parameters"]["corpus"] = found["benchmark"]["corpus_source"] = None
        for result in found["results"]:
            result["notices"] = None
    assert repeated == first


# ---- the output file ---------------------------------------------------------------


@every_shape
def test_the_file_gets_what_would_have_been_printed(
    shape: tuple[str, ...], call: Call, desk: Path
) -> None:
    before = set(desk.iterdir())
    printed = call(*ON_DESK, *[option for option in shape if option != "-q"])
    ended = call(*ON_DESK, *shape, "--output", "report")
    assert (ended.code, ended.err) == (printed.code, "")
    quiet = "-q" in shape
    assert ended.out == (call(*ON_DESK, "-q").out if quiet else "")
    assert (desk / "report").read_bytes() == printed.out.encode()
    assert set(desk.iterdir()) - before == {desk / "report"}


def test_a_file_is_written_anew_and_whole(call: Call, desk: Path) -> None:
    (desk / "report").write_text("x" * 100_000)
    call(*ON_DESK, "-o", "report")
    assert (desk / "report").read_text() == call(*ON_DESK).out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(("no.run", "qrels.txt"), 2, id="no run"),
        pytest.param(("run.txt", "qrels.txt", "--tau", "2"), 2, id="usage"),
    ],
)
def test_a_file_stays_as_it_was_when_there_is_no_verdict(
    arguments: tuple[str, ...], code: int, call: Call, desk: Path
) -> None:
    (desk / "report").write_text("the last one")
    before = sorted(desk.iterdir())
    assert call("gate", *arguments, "-o", "report").code == code
    assert (desk / "report").read_text() == "the last one"
    assert sorted(desk.iterdir()) == before


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(OSError(28, "No space left on device"), 2, id="disk full"),
        pytest.param(KeyboardInterrupt(), 130, id="interrupt"),
        pytest.param(RuntimeError("oh"), 70, id="bug"),
    ],
)
@pytest.mark.parametrize("step", ["os.replace", "os.chmod"])
def test_a_file_that_is_not_finished_leaves_nothing_behind(
    step: str,
    error: BaseException,
    code: int,
    call: Call,
    desk: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (desk / "report").write_text("the last one")
    before = sorted(desk.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(step, raiser(error))
        ended = call(*ON_DESK, "-o", "report")
    assert (ended.code, ended.out) == (code, "")
    if code == 2:
        assert_complains(ended, "report: cannot be written: No space left on device")
    assert (desk / "report").read_text() == "the last one"
    assert sorted(desk.iterdir()) == before


def test_a_file_is_finished_in_its_own_folder(
    call: Call, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From another file system it could not be renamed into place in one step.
    renamed: list[tuple[Path, Path]] = []

    def replace(part: str, target: str) -> None:
        renamed.append((Path(part).resolve(), Path(target).resolve()))

    monkeypatch.setattr("os.replace", replace)
    call(*ON_DESK, "-o", "folder/report")
    [(part, target)] = renamed
    assert target == (desk / "folder/report").resolve()
    assert part.parent == target.parent


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o444, 0o755])
def test_a_file_that_is_replaced_keeps_its_mode(
    mode: int, call: Call, desk: Path
) -> None:
    (desk / "report").write_text("the last one")
    (desk / "report").chmod(mode)
    call(*ON_DESK, "-o", "report")
    assert (desk / "report").read_text() != "the last one"
    assert mode_of(desk / "report") == mode


@posix
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077, 0o000])
def test_a_new_file_has_the_mode_of_any_new_file(
    mask: int, call: Call, desk: Path
) -> None:
    before = os.umask(mask)
    try:
        call(*ON_DESK, "-o", "report")
        (desk / "other").touch()
    finally:
        left = os.umask(before)
    assert left == mask
    assert mode_of(desk / "report") == mode_of(desk / "other") == 0o666 & ~mask


@posix
def test_a_link_stays_one_and_its_file_is_written(call: Call, desk: Path) -> None:
    (desk / "folder/target").write_text("the last one")
    (desk / "report").symlink_to("folder/target")
    assert call(*ON_DESK, "-o", "report").code == 3
    assert (desk / "report").is_symlink()
    assert (desk / "folder/target").read_text() == call(*ON_DESK).out
    assert os.listdir(desk / "folder") == ["target"]


@posix
def test_a_pipe_is_written_to_and_stays_one(call: Call, desk: Path) -> None:
    os.mkfifo(desk / "pipe")
    received: list[str] = []
    reader = threading.Thread(
        target=lambda: received.append((desk / "pipe").read_text()),
        daemon=True,  # nobody may ever write, and then the tests still come to an end
    )
    reader.start()
    ended = call(*ON_DESK, "-o", "pipe")
    reader.join(10)
    assert ended.code == 3
    assert received == [call(*ON_DESK).out]
    assert (desk / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param("no/report", "No such file", id="no folder"),
        pytest.param("folder", "Is a directory", id="a folder"),
        pytest.param("run.txt/report", "Not a directory", id="a file as folder"),
        pytest.param("x" * 300, "File name too long", id="a long name"),
    ],
)
def test_a_file_that_cannot_be_written_is_said_in_one_line(
    name: str, fault: str, call: Call, desk: Path
) -> None:
    before = sorted(desk.iterdir())
    assert_complains(call(*ON_DESK, "-o", name), f"{name}: cannot be written: {fault}")
    assert sorted(desk.iterdir()) == before


@posix
def test_what_is_no_file_is_not_replaced_where_it_cannot_be_written(
    call: Call, desk: Path
) -> None:
    # Not /dev/full: run by root, a program with a fault would replace it for everyone.
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        ended = call(*ON_DESK, "-o", "socket")
    assert_complains(ended, "socket: cannot be written: ")
    assert (desk / "socket").is_socket()


@pytest.mark.parametrize("given", ["run.txt", "qrels.txt", "corpus.txt", "groups.txt"])
@pytest.mark.parametrize("spelling", ["{}", "./{}", "folder/../{}", "linked", "hard"])
@posix
def test_an_input_is_never_written_over(
    given: str, spelling: str, call: Call, desk: Path
) -> None:
    (desk / "linked").symlink_to(given)
    os.link(desk / given, desk / "hard")
    before = {path: path.read_text() for path in desk.iterdir() if path.is_file()}
    output = spelling.format(given)
    options = ("--corpus", "corpus.txt", "--group", "groups.txt")
    assert_complains(call(*ON_DESK, *options, "-o", output), output)
    after = {path: path.read_text() for path in desk.iterdir() if path.is_file()}
    assert after == before


# ---- streams -----------------------------------------------------------------------


PRINTERS = {
    "table": (UNDER_NS, 3),
    "version": (("--version",), 0),
    "help": (("gate", "--help"), 0),
}
every_printer = pytest.mark.parametrize(
    ("arguments", "code"), PRINTERS.values(), ids=PRINTERS
)


@every_printer
@full_device
def test_output_that_cannot_be_written_is_no_verdict(
    arguments: tuple[object, ...], code: int
) -> None:
    ended = run(*arguments, redirect=">/dev/full")
    assert_complains(ended, "standard output cannot be written: No space left")


@every_printer
@posix
def test_a_reader_that_has_gone_away_changes_no_exit_code(
    arguments: tuple[object, ...], code: int
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start(*arguments, stdout=writing)
    os.close(writing)
    assert end(process) == Ended(code, "", "")


@posix
def test_the_first_line_can_be_cut_off_by_head() -> None:
    process = start(*FAIL)
    head = subprocess.run(
        ["head", "-1"], stdin=process.stdout, capture_output=True, text=True
    )
    first = f"{FAIL[1]} against {FAIL[2]}\n"
    assert head.stdout == first
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    assert end(process) == Ended(1, "", "")


@posix
def test_a_closed_standard_output_is_no_verdict() -> None:
    assert_complains(run(*PASS, redirect=">&-"), "standard output")


@posix
def test_a_closed_standard_output_is_not_missed_where_a_file_is_written(
    tmp_path: Path,
) -> None:
    ended = run(*FAIL, "-o", tmp_path / "report", redirect=">&-")
    assert ended == Ended(1, "", "")
    assert "FAIL" in (tmp_path / "report").read_text()


unwritable_stderr = pytest.mark.parametrize(
    "redirect", ["2>&-", pytest.param("2>/dev/full", marks=full_device)]
)


@posix
def test_a_closed_standard_error_is_not_missed_where_nothing_is_wrong() -> None:
    ended = run(*FAIL, redirect="2>&-")
    assert ended.code == 1
    assert ended.out.startswith(f"{FAIL[1]} against ")


@posix
@unwritable_stderr
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(MISSING, id="input"),
        pytest.param(("gate",), id="usage"),
        pytest.param((), id="nothing asked"),
    ],
)
def test_what_nobody_can_be_told_of_is_no_verdict(
    arguments: tuple[object, ...], redirect: str
) -> None:
    assert run(*arguments, redirect=redirect) == Ended(2, "", "")


@posix
@unwritable_stderr
def test_a_fault_that_nobody_can_be_told_of_exits_70(
    redirect: str, tmp_path: Path
) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('broken')")
    assert run(*FAIL, redirect=redirect, path=tmp_path) == Ended(70, "", "")


@posix
def test_a_closed_standard_input_has_no_run() -> None:
    ended = run("gate", "-", ONE / "qrels-12.txt", redirect="<&-")
    assert_complains(ended, "-: ")


def test_the_run_may_come_from_standard_input() -> None:
    process = start("gate", "-", *UNDER_NS[2:], stdin=subprocess.PIPE)
    ended = end(process, gzip.compress((ONE / "bm25-12.run").read_bytes()))
    assert (ended.code, ended.err) == (3, "")
    assert ended.out.startswith(f"standard input against {UNDER_NS[2]}\n")
    assert "nDCG@10  0.5468 " in ended.out


def test_names_that_no_file_can_have_are_complained_of(call: Call, desk: Path) -> None:
    for metric in ("nDCG@10", "AP"):
        ended = call("gate", "a" * 300, "qrels.txt", "-m", metric)
        assert_complains(ended, "cannot be opened: File name too long")
        for name in ("a\0b", "\ud800"):
            with pytest.raises(InputError, match="cannot be opened"):
                gate(name, "qrels.txt", metric)
            with pytest.raises(InputError, match="cannot be opened"):
                gate("run.txt", name, metric)


def test_a_repetition_in_standard_input_is_told_beside_a_file_of_that_name(
    desk: Path,
) -> None:
    (desk / "-").write_text("")
    process = start("gate", "-", "qrels.txt", stdin=subprocess.PIPE)
    ended = end(process, b"q1 Q0 a 1 1 t\nq1 Q0 a 2 0 t\n")
    assert_complains(ended, "-:2: expected a document once", "line 1 again")


def test_a_run_of_nothing_but_its_own_queries_is_complained_of(
    call: Call, desk: Path
) -> None:
    (desk / "own.txt").write_text("q1 Q0 q1 1 1 t\nq2 Q0 q2 1 1 t\n")
    ended = call("gate", "own.txt", "qrels.txt", "--drop-self")
    assert_complains(ended, "own.txt: expected documents besides the queries' own")


def test_standard_input_is_read_once_whatever_files_there_are(desk: Path) -> None:
    # A file of that name could be read again, as a run out of order is.
    (desk / "-").write_text(RUN_TEXT)
    lines = RUN_TEXT.splitlines(keepends=True)
    process = start("gate", "-", "qrels.txt", "-m", "AP", stdin=subprocess.PIPE)
    ended = end(process, "".join(reversed(lines)).encode())
    plain = run("gate", "run.txt", "qrels.txt", "-m", "AP")
    assert ended.code == plain.code == 3
    assert ended.out.splitlines()[3:] == plain.out.splitlines()[3:]


def test_the_qrels_may_come_from_standard_input() -> None:
    with (ONE / "qrels-12.txt").open("rb") as stdin:
        ended = run("gate", UNDER_NS[1], "-", *QUICK, stdin=stdin)
    assert (ended.code, ended.err) == (3, "")
    assert "nDCG@10  0.5468 " in ended.out


@posix
def test_the_run_may_come_through_a_pipe_of_a_shell() -> None:
    # What `falsify gate <(gzip -dc run.gz) qrels.txt` names the run.
    reading, writing = os.pipe()
    arguments = ("gate", f"/dev/fd/{reading}", *UNDER_NS[2:], "--format", "json")
    process = start(*arguments, pass_fds=(reading,))
    os.close(reading)
    data = (ONE / "bm25-12.run").read_bytes()
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(data)
    ended = end(process)
    assert (ended.code, ended.err) == (3, "")
    found = json.loads(ended.out)
    assert found["inputs"]["run"]["lines"] == 144
    assert found["results"][0]["score"] == pytest.approx(0.5468, abs=1e-4)


@pytest.mark.parametrize(
    "arguments",
    [
        ("-", "qrels.txt", "--corpus", "-"),
        ("run.txt", "-", "--group", "-"),
        ("run.txt", "qrels.txt", "--corpus", "-", "--group", "-"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("desk")
def test_standard_input_is_one_file_and_no_more(
    arguments: tuple[str, ...], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "qrels.txt" if arguments[1] == "-" else "run.txt"
    with open(text) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert_complains(call("gate", *arguments), "standard input")


# ---- signs and colours -------------------------------------------------------------


PYTHON_ASCII = {"PYTHONIOENCODING": "ascii"}
LOCALE_C = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize(
    ("environment", "shape"),
    [
        pytest.param(LOCALE_C, (), id="locale C, table"),
        pytest.param(PYTHON_ASCII, (), id="ascii, table"),
        pytest.param(PYTHON_ASCII, ("-q",), id="ascii, quiet"),
        pytest.param(PYTHON_ASCII, ("--format", "json"), id="ascii, json"),
    ],
)
def test_a_terminal_without_signs_beyond_ascii_gets_none(
    environment: dict[str, str], shape: tuple[str, ...], tmp_path: Path
) -> None:
    name = tmp_path / "läufe.run"
    name.write_bytes((ONE / "bm25-12.run").read_bytes())
    ended = run("gate", name, *UNDER_NS[2:], *shape, environment=environment)
    assert (ended.code, ended.err) == (3, "")
    assert "nDCG@10" in ended.out
    if "json" in shape:
        assert json.loads(ended.out)["verdict"] == "UNDER-NS"
    else:
        assert ended.out.isascii()


@pytest.mark.parametrize("shape", [(), ("-q",)], ids=["table", "quiet"])
def test_ascii_is_ascii_where_more_could_be_shown(
    shape: tuple[str, ...], call: Call, tmp_path: Path
) -> None:
    name = tmp_path / "läufe.run"
    name.write_bytes((ONE / "bm25-12.run").read_bytes())
    ended = call("gate", name, *UNDER_NS[2:], *shape, "--ascii")
    assert ended.code == 3
    assert ended.out.isascii()
    assert "nDCG@10" in ended.out


@posix
def test_a_file_name_that_is_no_utf_8_is_spelled_out(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/l\xe4ufe.run"
    with open(name, "wb") as file:
        file.write((ONE / "bm25-12.run").read_bytes())
    report = tmp_path / "report"
    arguments = ("gate", os.fsdecode(name), *UNDER_NS[2:], "--format", "json")
    assert run(*arguments, "-o", report) == Ended(3, "", "")
    assert r"l\udce4ufe.run" in report.read_bytes().decode()


@pytest.fixture(scope="module")
def plain() -> Ended:
    """What a pipe gets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return run(*UNDER_NS)


def test_a_pipe_gets_the_same_bytes_whatever_the_terminal(plain: Ended) -> None:
    odd = {"COLUMNS": "40", "TERM": "dumb", "FORCE_COLOR": "1", "PYTHONHASHSEED": "7"}
    assert run(*UNDER_NS, environment=odd) == plain
    assert "\x1b" not in plain.out


@pytest.mark.usefixtures("small_work_is_shared")
@pytest.mark.parametrize("shape", [(), ("--format", "json")], ids=["table", "json"])
def test_the_number_of_threads_changes_no_byte(
    shape: tuple[str, ...], call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_file, qrels_file = tmp_path / "run", tmp_path / "qrels"
    run_file.write_text(
        "".join(
            f"query-{i} Q0 document-{(i * 7919 + j * 31) % 5003} {j} {9000 - j}.5 tag\n"
            for i in range(60)
            for j in range(1000)
        )
    )
    qrels_file.write_text(
        "".join(f"query-{i} 0 document-{(i * 7919 + 62) % 5003} 1\n" for i in range(60))
    )
    arguments = ("gate", run_file, qrels_file, *QUICK, *shape)
    read_in_chunks(monkeypatch, 1 << 16)
    one, two, four = (call(*arguments, "--threads", n) for n in (1, 2, 4))
    assert one.code == 0
    assert one == two == four


@pytest.mark.usefixtures("small_work_is_shared")
@pytest.mark.parametrize("command", ["controls", "inspect"])
def test_what_has_no_run_is_shared_too_and_changes_no_byte(
    command: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from falsify_cli import nulls

    seen: set[int] = set()

    def watched(tasks: Any, threads: int, tick: Any) -> Any:
        seen.add(threads)
        return at_once(tasks, threads, tick)

    monkeypatch.setattr(nulls, "at_once", watched)
    arguments = (command, MODULE / "qrels.txt", *QUICK)
    one, two, four = (call(*arguments, "--threads", n) for n in (1, 2, 4))
    assert one == two == four
    assert seen == {1, 2, 4}


def on_terminal(
    *arguments: object, environment: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, int]:
    """Run a process whose standard output is a terminal: what it shows, its code."""
    import pty

    master, slave = pty.openpty()
    process = start(*arguments, stdout=slave, environment=environment)
    os.close(slave)
    shown = b""
    # Linux says that a terminal without its process is an input/output error.
    with contextlib.suppress(OSError):
        while piece := os.read(master, 1 << 16):
            shown += piece
    os.close(master)
    ended = end(process)
    assert ended.err == ""
    return shown.decode().replace("\r\n", "\n"), ended.code


@posix
def test_a_terminal_gets_colours(plain: Ended) -> None:
    shown, code = on_terminal(*UNDER_NS)
    assert code == 3
    assert "\x1b[1;33mUNDER-NS" in shown
    assert ESCAPES.sub("", shown) == plain.out


@posix
@pytest.mark.parametrize(
    ("options", "environment", "coloured"),
    [
        pytest.param(["--no-color"], {}, False, id="--no-color"),
        pytest.param([], {"NO_COLOR": "1"}, False, id="NO_COLOR=1"),
        # no-color.org: present and not an empty string.
        pytest.param([], {"NO_COLOR": ""}, True, id="NO_COLOR="),
        pytest.param([], {"TERM": "dumb"}, False, id="TERM=dumb"),
        pytest.param(["--format", "json"], {}, False, id="json"),
    ],
)
def test_a_terminal_gets_no_colours_where_none_are_wanted(
    options: list[str], environment: dict[str, str], coloured: bool
) -> None:
    shown, code = on_terminal(*UNDER_NS, *options, environment=environment)
    assert code == 3
    assert ("\x1b" in shown) is coloured


@posix
def test_a_report_for_a_file_does_not_look_at_the_terminal(tmp_path: Path) -> None:
    arguments = (*UNDER_NS, "-o", tmp_path / "report")
    assert on_terminal(*arguments, environment=PYTHON_ASCII) == ("", 3)
    report = (tmp_path / "report").read_text("utf-8")
    assert "\x1b" not in report
    assert "█" in report


@posix
@pytest.mark.usefixtures("desk")
def test_a_bar_is_drawn_on_a_terminal_once_it_takes_long() -> None:
    import pty

    os.mkfifo("fifo")
    master, slave = pty.openpty()
    process = start("gate", "fifo", "qrels.txt", *QUICK, stderr=slave)
    os.close(slave)
    began, drawn = time.monotonic(), b""
    with open("fifo", "w") as fifo:
        fifo.write(RUN_TEXT)
        for number in count():
            if b"falsify" in drawn:
                break
            assert time.monotonic() - began < 20
            fifo.write("".join(f"other Q0 {number}-{i} 1 1 t\n" for i in range(5000)))
            if select.select([master], [], [], 0.01)[0]:
                drawn += os.read(master, 1 << 16)
        assert time.monotonic() - began > 1
    ended = end(process)
    drawn += os.read(master, 1 << 16)
    os.close(master)
    # Taken away again: nothing of it stands behind the last erasure of a line.
    assert b"falsify" not in drawn.rpartition(b"\x1b[2K")[2]
    assert ended.code == 3
    assert ended.out.startswith("fifo against qrels.txt\n")
    assert "\x1b" not in ended.out
