"""Work in threads: in order, at once, and given up when something goes wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator

import pytest

from falsify_cli.threads import ahead, at_once

HERE = threading.current_thread()


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert set(threading.enumerate()) == before


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that has no room for another thread."""

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)


def waits_for(
    other: threading.Event, own: threading.Event
) -> Callable[[], threading.Thread]:
    def task() -> threading.Thread:
        own.set()
        assert other.wait(10)
        return threading.current_thread()

    return task


@pytest.mark.parametrize("threads", [1, 2, 3, 9])
def test_results_come_in_the_order_of_the_tasks(threads: int) -> None:
    ticks: list[threading.Thread] = []

    def task(number: int) -> int:
        time.sleep(0.01 * (5 - number))
        return number

    tasks = [lambda number=number: task(number) for number in range(5)]
    found = at_once(tasks, threads, lambda: ticks.append(threading.current_thread()))
    assert found == list(range(5))
    assert ticks == [HERE] * 5


def test_two_threads_run_two_tasks_at_once_and_one_none() -> None:
    one, other = threading.Event(), threading.Event()
    found = at_once([waits_for(one, other), waits_for(other, one)], 2)
    assert len(set(found)) == 2
    assert HERE in found
    assert at_once([threading.current_thread] * 3, 1) == [HERE] * 3


def test_no_thread_outlives_the_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    # A process of several threads is not forked.
    join = threading.Thread.join
    joined: list[threading.Thread] = []

    def watched(thread: threading.Thread) -> None:
        join(thread)
        joined.append(thread)

    monkeypatch.setattr(threading.Thread, "join", watched)
    at_once([threading.current_thread] * 9, 3)
    assert len(set(joined)) == 2


@pytest.mark.usefixtures("no_threads")
@pytest.mark.parametrize("threads", [2, 3])
def test_without_room_for_a_thread_the_caller_does_the_work(threads: int) -> None:
    assert at_once([threading.current_thread] * 4, threads) == [HERE] * 4
    assert list(ahead(iter(range(9)), threads)) == list(range(9))


def test_with_room_for_one_thread_of_two_one_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def once(thread: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", once)
    one, other = threading.Event(), threading.Event()
    found = at_once([waits_for(one, other), waits_for(other, one)], 3)
    assert set(found) == {HERE, *started}


@pytest.mark.parametrize("where", ["caller", "other"])
def test_an_error_is_raised_and_what_has_not_begun_never_does(where: str) -> None:
    goes_on, failed = threading.Event(), threading.Event()
    waiting: list[threading.Thread] = []
    begun: list[int] = []

    def first() -> None:
        """Fails in one thread, and in the other waits for nobody else's end."""
        if (threading.current_thread() is HERE) == (where == "caller"):
            time.sleep(0.05)
            failed.set()
            raise ZeroDivisionError
        if where == "other":
            # The caller's own task comes to its end before the error is told.
            assert failed.wait(10)
            return
        waiting.append(threading.current_thread())
        assert goes_on.wait(10)

    def late() -> None:
        begun.append(1)
        time.sleep(0.01)

    with pytest.raises(ZeroDivisionError):
        at_once([first, first, *[late] * 100], 2)
    for thread in waiting:
        assert thread.is_alive()
        goes_on.set()
        thread.join()
    assert len(waiting) == (where == "caller")
    assert len(begun) < 100


@pytest.mark.parametrize("threads", [1, 2])
def test_items_come_in_order_from_one_thread(threads: int) -> None:
    makers = set()

    def items() -> Iterator[int]:
        for number in range(100):
            makers.add(threading.current_thread())
            yield number

    assert list(ahead(items(), threads)) == list(range(100))
    assert len(makers) == 1
    assert (makers == {HERE}) == (threads == 1)


def test_the_next_item_is_made_while_one_is_used_and_no_further() -> None:
    made: list[int] = []
    two = threading.Event()

    def items() -> Iterator[int]:
        for number in range(10):
            made.append(number)
            if number == 1:
                two.set()
            yield number

    coming = ahead(items(), 2)
    assert next(coming) == 0
    assert two.wait(10)
    time.sleep(0.05)
    assert made == [0, 1]
    before = threading.active_count()
    assert isinstance(coming, Generator)
    coming.close()
    assert threading.active_count() == before - 1


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_of_an_item_comes_in_its_place(threads: int) -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ZeroDivisionError

    coming = ahead(items(), threads)
    assert next(coming) == 1
    with pytest.raises(ZeroDivisionError):
        next(coming)
