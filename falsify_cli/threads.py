"""Independent pieces of work -> their results, several at once in threads.

For numpy's calls on large arrays, which leave the interpreter to others while they
run; short calls gain nothing, and cost others time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

R = TypeVar("R")


def at_once(
    tasks: Sequence[Callable[[], R]],
    threads: int,
    tick: Callable[[], None] = lambda: None,
) -> list[R]:
    """What each task returns, in their order; the first ones are begun first.

    threads: as many tasks run at once; the caller's own thread runs them where it is
    one. tick: called in the caller's thread after each.
    An error of a task is raised as it comes, and tasks not begun are given up.
    """
    if threads == 1:
        results = []
        for task in tasks:
            results.append(task())
            tick()
        return results
    from concurrent.futures import ThreadPoolExecutor, as_completed  # takes 0.005 s

    pool = ThreadPoolExecutor(threads)
    try:
        futures = [pool.submit(task) for task in tasks]
        for future in as_completed(futures):
            future.result()
            tick()
    except BaseException:
        # Whoever interrupts does not wait for what is under way.
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return [future.result() for future in futures]


def ahead(items: Iterator[R], threads: int) -> Iterator[R]:
    """The same items; with several threads one makes the next while one is used."""
    if threads == 1:
        yield from items
        return
    from concurrent.futures import ThreadPoolExecutor

    def next_one() -> list[R]:
        return list(islice(items, 1))

    pool = ThreadPoolExecutor(1)
    try:
        coming = pool.submit(next_one)
        while item := coming.result():
            coming = pool.submit(next_one)
            yield item[0]
            # Else it would live on while the next one is used.
            del item
    finally:
        pool.shutdown(cancel_futures=True)
