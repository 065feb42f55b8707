"""Independent pieces of work -> their results, several at once in threads.

For numpy's calls on large arrays, which leave the interpreter to others while they
run; short calls gain nothing, and cost others time. Where the system has no thread to
give, the caller's does all the work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

R = TypeVar("R")


def at_once(
    tasks: Sequence[Callable[[], R]],
    threads: int,
    tick: Callable[[], None] = lambda: None,
) -> list[R]:
    """What each task returns, in their order; the first ones are begun first.

    threads: as many run tasks, the caller's own one among them. tick: called in that
    one after each task.
    An error is raised once the caller's own thread is free to. Then, and on an
    interrupt, tasks that have not begun never do; one that is under way in another
    thread goes on to its end, and nobody waits for it.
    """
    todo = deque(enumerate(tasks))
    done: SimpleQueue[tuple[int, list[R], BaseException | None]] = SimpleQueue()

    def taken() -> tuple[int, Callable[[], R]] | None:
        try:
            return todo.popleft()
        except IndexError:
            return None

    def work() -> None:
        while mine := taken():
            place, task = mine
            try:
                done.put((place, [task()], None))
            except BaseException as error:
                todo.clear()
                done.put((place, [], error))

    others = [thread for _ in range(threads - 1) if (thread := _started(work))]
    results: dict[int, R] = {}
    try:
        while len(results) < len(tasks):
            if done.empty() and (mine := taken()):
                place, task = mine
                results[place] = task()
            else:
                place, result, error = done.get()
                if error is not None:
                    raise error
                results[place] = result[0]
            tick()
    finally:
        todo.clear()
    for thread in others:
        thread.join()
    return [results[place] for place in range(len(tasks))]


def ahead(items: Iterator[R], threads: int) -> Iterator[R]:
    """The same items; with several threads one makes the next while one is used.

    An error comes in the place of the item that could not be made.
    """
    wanted: SimpleQueue[bool] = SimpleQueue()
    made: SimpleQueue[tuple[list[R], BaseException | None]] = SimpleQueue()

    def make() -> None:
        while wanted.get():
            try:
                made.put((list(islice(items, 1)), None))
            except BaseException as error:
                made.put(([], error))

    thread = _started(make) if threads > 1 else None
    if thread is None:
        yield from items
        return
    try:
        wanted.put(True)
        while True:
            item, error = made.get()
            if error is not None:
                raise error
            if not item:
                return
            wanted.put(True)
            # Not held here as well while it is used.
            yield item.pop()
    finally:
        wanted.put(False)
        thread.join()


def _started(work: Callable[[], None]) -> Thread | None:
    # A process does not wait for it at its end, be it an interrupt's.
    thread = Thread(target=work, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread
