"""A forked process that computes a part of the results, beside this one.

Threads would share the interpreter: numpy's calls on a chunk of a file are short, and
each hands it over. To read 274 MB took two threads 0.87 of the time of one, and takes
a process with a helper 0.63.
"""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, NoReturn, TypeVar

R = TypeVar("R")

_RESULT, _ERROR, _END = range(3)
_BLOCK_BYTES = 1 << 18


def may_fork() -> bool:
    """Whether a child can be forked safely: nothing else runs in this process.

    Another thread may hold a lock at that moment, which its copy never gives back.
    The command line has started none while it reads; a Python program may have, and
    one that has just ended still counts for a moment.
    """
    if sys.platform != "linux":
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


@contextmanager
def elsewhere(results: Callable[[], Iterable[R]]) -> Iterator[Iterator[R]]:
    """Have results computed by a helper, from all that is known here and now.

    They travel pickled, once all of them are there and the last one first; to read
    them is to wait for that. An error is raised instead of any result, MemoryError
    where the helper was killed. The helper lives no longer than the context.
    """
    try:
        ours, theirs = os.pipe()
    except OSError:
        # No room for another process, or none to talk to it: this one does it all.
        yield _here(results)
        return
    stream = os.fdopen(ours, "rb")
    child = None
    # An interrupt right behind the fork would leave a helper to itself, or let it
    # run on in the caller's code.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        try:
            with suppress(OSError):
                child = os.fork()
            if child == 0:
                stream.close()
                _serve(results, theirs, mask)
            os.close(theirs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        yield _here(results) if child is None else _received(stream)
    finally:
        stream.close()
        if child:
            # It may be gone, and where nobody wants to know that, without a trace.
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)


def _here(results: Callable[[], Iterable[R]]) -> Iterator[R]:
    """The same in this process, once they are asked for."""
    yield from reversed(list(results()))


def _serve(
    results: Callable[[], Iterable[R]], pipe: int, mask: Iterable[int]
) -> NoReturn:
    """What the helper does; it never returns into the caller's code."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _end_with_reader(pipe, True)
        outcomes = _Outcomes()
        try:
            for result in results():
                outcomes.add((_RESULT, result))
        except Exception as error:
            outcomes.add((_ERROR, error))
        _end_with_reader(pipe, False)
        with os.fdopen(pipe, "wb") as stream:
            outcomes.send(stream)
            pickle.dump((_END, None), stream)
    finally:
        # Whatever happened: neither a traceback nor the caller's cleaning up.
        os._exit(0)


def _end_with_reader(pipe: int, wanted: bool) -> None:
    """Whether this process ends when nobody can read the pipe any more.

    However its parent ended. To be off while the pipe is used: the same signal then
    comes whenever something is read from it.
    """
    import fcntl  # not everywhere where this module is imported

    # Not every system that calls itself Linux can do it.
    with suppress(OSError):
        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC if wanted else 0)


class _Outcomes:
    """Pickles that wait to be sent, outside the C library's heap.

    That would keep what is sent: 14 MB, half of what a run of 274 MB leaves here.
    """

    def __init__(self) -> None:
        self._last: list[bytes] = []
        self._blocks: list[mmap.mmap] = []

    def add(self, outcome: tuple[int, object]) -> None:
        self._last.append(pickle.dumps(outcome, 5))
        if sum(map(len, self._last)) >= _BLOCK_BYTES:
            self._store()

    def send(self, stream: BinaryIO) -> None:
        """The last one first."""
        self._store()
        for block in reversed(self._blocks):
            stream.write(block)
            block.close()

    def _store(self) -> None:
        data = b"".join(reversed(self._last))
        if data:
            block = mmap.mmap(-1, len(data))
            block.write(data)
            self._blocks.append(block)
        self._last = []


def _received(stream: BinaryIO) -> Iterator[R]:
    while True:
        try:
            kind, value = pickle.load(stream)
        except (EOFError, pickle.UnpicklingError):
            raise MemoryError("a helper process was killed") from None
        if kind == _END:
            return
        if kind == _ERROR:
            try:
                raise value
            finally:
                # Else it and this frame would keep each other, and all that is known
                # here, alive: a run whose lists are not in order is read again.
                del value
        yield value
