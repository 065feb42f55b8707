"""Helper processes: what they hand back, how they end, and what they leave behind."""

from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from conftest import ROOT

from falsify_cli.errors import InputError
from falsify_cli.helper import elsewhere, may_fork
from falsify_cli.read import read_run

pytestmark = [
    pytest.mark.skipif(not may_fork(), reason="processes of one thread, on Linux"),
    pytest.mark.usefixtures("small_work_is_shared"),
]


@pytest.mark.parametrize("bytes_of_a_block", [1, 100, 1 << 20])
def test_results_come_from_another_process_the_last_one_first(
    bytes_of_a_block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falsify_cli.helper._BLOCK_BYTES", bytes_of_a_block)
    with elsewhere(lambda: ((n, os.getpid()) for n in range(50))) as results:
        found = list(results)
    assert [n for n, _ in found] == list(range(50))[::-1]
    assert len({process for _, process in found} | {os.getpid()}) == 2


def test_results_larger_than_a_pipe_come_whole() -> None:
    column = np.random.default_rng(1).random(1 << 18)
    with elsewhere(lambda: [column, column[::-1]]) as results:
        two, one = results
    assert np.array_equal(one, column)
    assert np.array_equal(two, column[::-1])


def test_an_error_comes_instead_of_the_results_before_it() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise KeyError("gone")

    with elsewhere(failing) as results, pytest.raises(KeyError, match="gone"):
        next(results)


class GoneError(Exception):
    """An error that can be watched."""


def test_an_error_of_a_helper_keeps_nothing_alive() -> None:
    def failing() -> list[int]:
        raise GoneError

    gc.disable()
    try:
        with elsewhere(failing) as results:
            try:
                list(results)
            except GoneError as error:
                seen = weakref.ref(error)
        assert seen() is None
    finally:
        gc.enable()


def test_what_cannot_travel_is_an_error_and_not_an_end() -> None:
    with (
        elsewhere(lambda: [lambda: 1]) as results,
        pytest.raises(Exception, match=r"pickle|local object"),
    ):
        list(results)


def test_a_helper_that_was_killed_is_a_want_of_memory() -> None:
    def killed() -> Iterator[int]:
        yield 1
        os.kill(os.getpid(), signal.SIGKILL)

    with elsewhere(killed) as results, pytest.raises(MemoryError, match="killed"):
        list(results)


def test_a_helper_killed_while_it_sends_is_a_want_of_memory_too() -> None:
    with elsewhere(lambda: [(0, bytes(1 << 22)), (os.getpid(), b"")]) as results:
        os.kill(next(results)[0], signal.SIGKILL)
        with pytest.raises(MemoryError, match="killed"):
            list(results)


def test_a_helper_that_nobody_waits_for_is_none_the_worse() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with elsewhere(lambda: [1]) as results:
            assert list(results) == [1]
            time.sleep(0.1)
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_helper_lives_no_longer_than_its_context(tmp_path: Path) -> None:
    note = tmp_path / "process"

    def endless() -> Iterator[int]:
        note.write_text(str(os.getpid()))
        yield from iter(count())

    before = set(os.listdir("/proc/self/fd"))

    def interrupted() -> NoReturn:
        with elsewhere(endless):
            while not (note.exists() and note.read_text()):
                time.sleep(0.01)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert set(os.listdir("/proc/self/fd")) == before


def test_several_helpers_end_in_any_order() -> None:
    with elsewhere(lambda: [1]) as one, elsewhere(lambda: [2]) as two:
        assert [*two, *one] == [2, 1]


@pytest.mark.parametrize(
    ("call", "error"), [("fork", errno.EAGAIN), ("pipe", errno.EMFILE)]
)
def test_without_room_for_a_helper_this_process_does_the_work(
    call: str, error: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> NoReturn:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, call, refused)
    before = set(os.listdir("/proc/self/fd"))
    with elsewhere(lambda: [1, os.getpid()]) as results:
        assert list(results) == [os.getpid(), 1]
    assert set(os.listdir("/proc/self/fd")) == before


def test_an_interrupt_at_the_fork_ends_the_helper_and_reaches_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fork, forked = os.fork, []

    def interrupted() -> int:
        child = fork()
        # Both processes are interrupted before either does anything else.
        os.kill(os.getpid(), signal.SIGINT)
        forked.append(child)
        return child

    monkeypatch.setattr(os, "fork", interrupted)
    with pytest.raises(KeyboardInterrupt), elsewhere(lambda: iter(count())):
        pytest.fail("the interrupt is forgotten")
    assert forked[0] > 0
    with pytest.raises(ProcessLookupError):
        os.kill(forked[0], 0)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert signal.SIGINT not in mask


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_helpers_end_with_their_parent_however_it_ends(how: signal.Signals) -> None:
    code = """
import os, time
from falsify_cli.helper import elsewhere
def busy():
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(60)
    yield 1
with elsewhere(busy), elsewhere(busy):
    time.sleep(60)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert parent.stdout
    helpers = [int(parent.stdout.readline()) for _ in range(2)]
    parent.send_signal(how)
    parent.wait()
    until = time.monotonic() + 10
    while any(map(_runs, helpers)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(_runs, helpers))
    parent.stdout.close()


def _runs(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def test_a_process_of_several_threads_is_not_forked() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not may_fork()
    finally:
        done.set()
        thread.join()
    # The system forgets the thread a moment later.
    until = time.monotonic() + 10
    while not may_fork() and time.monotonic() < until:
        time.sleep(0.001)
    assert may_fork()


def test_a_helper_does_nothing_that_is_left_to_its_parent() -> None:
    # Neither what waits to be printed nor what is to be done at the end.
    code = """
import atexit, sys
from falsify_cli.errors import InputError
from falsify_cli.helper import elsewhere
atexit.register(print, "end")
print("once", end=" ")
def failing():
    sys.exit(3)
try:
    with elsewhere(failing) as results:
        list(results)
except MemoryError:
    print("killed", end=" ")
finally:
    print("finally", end=" ")
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT
    )
    assert (ended.stdout, ended.stderr) == ("once killed finally end\n", "")


# ---- as the user sees it ----------------------------------------------------------

SHARING = """
import sys
from falsify_cli import defaults
from falsify_cli.read import read_run
from falsify_cli.__main__ import process
defaults.SHARED_BYTES = defaults.SHARED_CELLS = 0
read_run.__kwdefaults__["chunk_bytes"] = 1000
sys.argv[0] = "falsify"
process()
"""


def sharing(tmp_path: Path, *options: str) -> subprocess.Popen[bytes]:
    """A gate that two processes, and two threads, work on."""
    run, qrels = tmp_path / "run", tmp_path / "qrels"
    with run.open("w") as file:
        for query in range(4000):
            file.writelines(f"q{query} Q0 d{n} 1 {-n} t\n" for n in range(100))
    qrels.write_text("".join(f"q{query} 0 d1 1\n" for query in range(4000)))
    return subprocess.Popen(
        [sys.executable, "-c", SHARING, "gate", run, qrels, "--threads", "2", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        start_new_session=True,
    )


def test_an_interrupt_of_all_processes_ends_them_without_a_word(tmp_path: Path) -> None:
    process = sharing(tmp_path)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None and not children.read_text():
        time.sleep(0.005)
    helper = int(children.read_text())
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, b"", b"")
    with pytest.raises(ProcessLookupError):
        os.kill(helper, 0)


def test_an_interrupt_of_threads_does_not_wait_for_them(tmp_path: Path) -> None:
    # A hundred thousand draws take more than a minute.
    process = sharing(tmp_path, "--n-boot", "100000")
    tasks = Path(f"/proc/{process.pid}/task")
    while process.poll() is None and len(list(tasks.iterdir())) < 2:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_fault_far_down_a_shared_file_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "run"
    lines = [f"q{n // 10} Q0 d{n} 1 1 t\n" for n in range(3000)]
    lines[2500] = "q250 Q0 d2500 1 one t\n"
    lines[2900] = "q290 Q0 d2900 1\n"
    path.write_text("".join(lines))
    with pytest.raises(InputError, match=r"run:2501: .* 'one'"):
        read_run(str(path), processes=3, chunk_bytes=1000)
