"""A file that several processes read: each line once, whoever takes which piece."""

from __future__ import annotations

import errno
import os
import sys
import threading
from itertools import chain
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_cli import defaults
from falsify_cli.errors import InputError
from falsify_cli.ids import PADDING
from falsify_cli.read import pieces, read_run, source

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="of Linux"),
    pytest.mark.usefixtures("small_work_is_shared"),
]

LINES = st.lists(st.text("ab", max_size=9).map(str.encode), max_size=30)


@settings(max_examples=500)
@given(LINES, st.booleans(), st.integers(1, 40), st.integers(1, 20), st.data())
def test_each_line_is_taken_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bytes],
    ended: bool,
    first: int,
    size: int,
    data: st.DataObject,
) -> None:
    path = tmp_path_factory.getbasetemp() / "lines"
    text = b"\n".join(lines) + (b"\n" if ended else b"")
    path.write_bytes(text)
    with source.opened(str(path)) as file:
        head = next(file.chunks(first), PADDING).removesuffix(PADDING)
        left = file.pieces(size)
        front: list[bytes] = []
        back: dict[int, bytes] = {}
        if left is not None:
            # Each turn is one of three processes': one that goes forward, two back.
            ways = left.from_front(), left.from_back(), left.from_back()
            turns = data.draw(st.lists(st.integers(0, 2), max_size=30))
            for turn in turns:
                found = next(ways[turn], None)
                if isinstance(found, bytes):
                    front.append(found)
                elif found is not None:
                    assert found[0] not in back
                    back[found[0]] = found[1]
            front.extend(ways[0])
            back.update(ways[1])
            left.close()
    found_back = [chunk for _, chunk in sorted(back.items())]
    chunks = [c.removesuffix(PADDING) for c in chain(front, found_back)]
    assert all(chunk.endswith(b"\n") for chunk in chunks)
    whole = text if text.endswith(b"\n") or not text else text + b"\n"
    assert head + b"".join(chunks) == whole


@pytest.mark.parametrize("most", [1, 3, 100])
def test_pieces_are_larger_where_there_would_be_too_many(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "_MOST", most)
    path = tmp_path / "lines"
    path.write_bytes(b"%06d\n" * 1000 % tuple(range(1000)))
    with source.opened(str(path)) as file:
        first = next(file.chunks(10)).removesuffix(PADDING)
        left = file.pieces(10)
        assert left is not None
        taken = [chunk for _, chunk in left.from_back()]
        left.close()
    assert len(taken) == most
    text = b"".join(chunk.removesuffix(PADDING) for chunk in reversed(taken))
    assert first + text == path.read_bytes()


def test_without_room_for_what_is_shared_the_file_is_read_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"line\n" * 100)
    before = set(os.listdir("/proc/self/fd"))
    pipe, write = os.pipe, os.write
    left_to_make = 1

    def only_one() -> tuple[int, int]:
        nonlocal left_to_make
        left_to_make -= 1
        if left_to_make < 0:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return pipe()

    with source.opened(str(path)) as file:
        next(file.chunks(10))
        monkeypatch.setattr(os, "pipe", only_one)
        assert file.pieces(10) is None
        monkeypatch.setattr(os, "pipe", pipe)
        monkeypatch.setattr(os, "write", lambda f, data: write(f, data[:9]))
        assert file.pieces(10) is None
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("text", [b"a", b"a\n", b"abc", b"abcd\n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_what_is_given_counts_from_the_first_byte(
    text: bytes, mark: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(mark + text + b"\n" + b"more\n" * 9)
    with source.opened(str(path)) as file:
        first = next(file.chunks(1)).removesuffix(PADDING)
        left = file.pieces(1000)
        assert left is not None
        (rest,) = left.from_front()
        left.close()
    whole = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    assert first + rest.removesuffix(PADDING) == whole


def test_a_process_of_several_threads_reads_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    path.write_bytes(b"".join(b"q%d Q0 d 1 1 t\n" % n for n in range(1000)))
    done = threading.Event()
    thread = threading.Thread(target=done.wait, daemon=True)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked"))
    thread.start()
    try:
        run = read_run(str(path), processes=2, chunk_bytes=100)
    finally:
        done.set()
        thread.join()
    assert len(run.queries) == 1000


@pytest.mark.parametrize("what", ["small", "hashed", "packed", "pipe", "given whole"])
def test_what_cannot_be_shared_is_read_whole(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"line\n" * 1000)
    if what == "packed":
        import gzip

        path.write_bytes(gzip.compress(os.urandom(5000)))
    if what == "small":
        monkeypatch.setattr(defaults, "SHARED_BYTES", 5001)
    if what == "pipe":
        path.unlink()
        os.mkfifo(path)
        text = b"line\n" * 1000
        threading.Thread(target=path.write_bytes, args=(text,), daemon=True).start()
    with source.opened(str(path), digest=what == "hashed") as file:
        chunks = file.chunks(10_000 if what == "given whole" else 100)
        first = next(chunks)
        assert file.pieces(100) is None
        assert sum(map(len, chain([first], chunks))) >= 5000


@pytest.mark.parametrize("left_over", [9, 200, 498, 499])
def test_a_file_that_becomes_shorter_is_not_read_without_its_middle(
    left_over: int, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    path.write_bytes(b"line\n" * 100)
    with source.opened(str(path)) as file:
        next(file.chunks(10))
        left = file.pieces(100)
        assert left is not None
        os.truncate(path, left_over)
        with pytest.raises(InputError, match=r"run: .* became shorter while"):
            list(left.from_back())
        left.close()


def test_a_file_that_is_shared_and_cannot_be_read_on_is_the_users_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    path.write_bytes(b"".join(b"q%d Q0 d 1 1 t\n" % n for n in range(1000)))

    def broken(*arguments: object) -> NoReturn:
        raise OSError(errno.EIO, "Input/output error")

    with source.opened(str(path)) as file:
        next(file.chunks(100))
        left = file.pieces(100)
        assert left is not None
        monkeypatch.setattr(os, "pread", broken)
        with pytest.raises(InputError, match="run: cannot be read: Input/output"):
            list(left.from_front())
        left.close()
