"""Work in threads: in order, at once, and given up when something goes wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator

import pytest

from falsify_cli.threads import ahead, at_once


def waits_for(other: threading.Event, own: threading.Event) -> Callable[[], str]:
    def task() -> str:
        own.set()
        assert other.wait(10)
        return threading.current_thread().name

    return task


@pytest.mark.parametrize("threads", [1, 2, 3, 9])
def test_results_come_in_the_order_of_the_tasks(threads: int) -> None:
    ticks: list[str] = []

    def task(number: int) -> int:
        time.sleep(0.01 * (5 - number))
        return number

    def tick() -> None:
        ticks.append(threading.current_thread().name)

    tasks = [lambda number=number: task(number) for number in range(5)]
    assert at_once(tasks, threads, tick) == list(range(5))
    assert ticks == [threading.current_thread().name] * 5


def test_two_threads_run_two_tasks_at_once_and_one_none() -> None:
    one, other = threading.Event(), threading.Event()
    names = at_once([waits_for(one, other), waits_for(other, one)], 2)
    assert len(set(names) | {threading.current_thread().name}) == 3
    alone = at_once([lambda: threading.current_thread().name], 1)
    assert alone == [threading.current_thread().name]


def test_an_error_is_raised_at_once_and_what_has_not_begun_never_does() -> None:
    goes_on, begun = threading.Event(), []

    def slow() -> None:
        goes_on.wait(10)

    def failing() -> None:
        raise ZeroDivisionError

    def late() -> None:
        begun.append(1)
        time.sleep(0.01)

    try:
        with pytest.raises(ZeroDivisionError):
            at_once([slow, failing, *[late] * 1000], 2)
        assert not goes_on.is_set()
    finally:
        goes_on.set()
    assert len(begun) < 1000


@pytest.mark.parametrize("threads", [1, 2])
def test_items_come_in_order_from_at_most_one_thread(threads: int) -> None:
    makers = set()

    def items() -> Iterator[int]:
        for number in range(100):
            makers.add(threading.current_thread().name)
            yield number

    assert list(ahead(items(), threads)) == list(range(100))
    assert len(makers) == 1
    assert (threading.current_thread().name in makers) == (threads == 1)


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
    assert isinstance(coming, Generator)
    coming.close()
    assert threading.active_count() == 1


def test_an_error_of_an_item_comes_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ZeroDivisionError

    coming = ahead(items(), 2)
    assert next(coming) == 1
    with pytest.raises(ZeroDivisionError):
        next(coming)
