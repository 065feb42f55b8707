"""Mutated runs and qrels: each is read, or refused in one line, and soon.

python tests/fuzz.py --seconds 60 [--seed 0]
"""

from __future__ import annotations

import argparse
import faulthandler
import gzip
import json
import lzma
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType

import numpy as np

from falsify_cli.benchmark import join
from falsify_cli.errors import InputError
from falsify_cli.read import Keep, Qrels, Run, qrels_of_mapping, read_qrels, read_run

SECONDS_A_FILE = 10  # of processor time


# ---- what is mutated ----------------------------------------------------------------

_RUN = [
    ("301", "FBIS3-10082", "1", "13.847921"),
    ("301", "FBIS4-18833", "2", "13.102"),
    ("301", "LA0101-0001", "3", "13.102"),
    ("302", "FR940104-0-00001", "1", "7.25e-1"),
    ("302", "301", "2", "-3"),
    ("mt-q\xfcery/3", "http://example.org/a%20b?c=d#e", "1", "0.30000000000000004"),
    ("mt-q\xfcery/3", "FBIS3-10082", "2", "0.3"),
    ("PLAIN-12", "MED-10", "1", "1"),
]
_QRELS = [(query, document, str(i % 3)) for i, (query, document, *_) in enumerate(_RUN)]


def _text(rows: list[list[str]]) -> bytes:
    return "".join(" ".join(row) + "\n" for row in rows).encode()


def _json(rows: list[list[str]]) -> bytes:
    found: dict[str, dict[str, float]] = {}
    for query, document, value in rows:
        found.setdefault(query, {})[document] = float(value)
    return json.dumps(found, indent=1).encode()


RUNS = [
    _text([[q, "Q0", d, r, s, "bm25"] for q, d, r, s in _RUN]),
    _text([[q, "Q0", d, r, s, "my own tag"] for q, d, r, s in _RUN]),
    _text([[q, "Q0", d, r, s] for q, d, r, s in _RUN]),
    _text([[q, d, r] for q, d, r, _ in _RUN]),
    b"qid Q0 docno rank score tag\n"
    + _text([[q, "Q0", d, r, s, "t"] for q, d, r, s in _RUN]),
    _json([[q, d, s] for q, d, _, s in _RUN]),
]
QRELS = [
    _text([[q, "0", d, g] for q, d, g in _QRELS]),
    _text([[q, d, g] for q, d, g in _QRELS]).replace(b" ", b"\t"),
    b"query-id\tcorpus-id\tscore\n" + _text([[q, d, g] for q, d, g in _QRELS]),
    _json([[q, d, g] for q, d, g in _QRELS]),
]


# ---- how ----------------------------------------------------------------------------

_WORDS = [
    *(b"nan", b"inf", b"-1e999", b"1_0", b"0x1", b"-", b".", b"1,5", b"5.", b"+.5e-3"),
    *(b"1e5000", b"00", b"0.1" * 9, b"9" * 20_000, b"9" * 20_000 + b"x", b"\xd9\xa3"),
    *(b"#", b"{", b"[]", b'"', b"null", b"true", b"\\u0000", b"\\ud800", b"d" * 70_000),
    *(b"q" * 64, b"d" * 65, b"\xc3\xa9" * 40, b"query-id", b"score", b"\xef\xbb\xbf"),
]
_BLANKS = [
    b" ",
    b"\t",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\0",
    b"\x0b",
    b"\x0c",
    b"\x1f",
]
_BLANKS += [
    b"\xc2\xa0",
    b"\xe2\x80\xa8",
    b"\xff\xfe",
    b"\x1f\x8b",
    b"\xef\xbb\xbf",
    b" " * 999,
]
_LINES = [b"# a comment", b"", b"# top 100", b"qid Q0 docno rank score tag", b"#", b"{"]
_LINES += [
    b"query-id corpus-id score",
    b"x " * 5_000,
    b"\t \t",
    b"q Q0 d 1 0.5 t",
    b"q 0 d 1",
]

Mutation = Callable[[bytes, Random], bytes]


def _flip(data: bytes, choice: Random) -> bytes:
    result = bytearray(data)
    for _ in range(choice.choice([1, 1, 3, 20])):
        if result:
            result[choice.randrange(len(result))] ^= 1 << choice.randrange(8)
    return bytes(result)


def _insert(data: bytes, choice: Random) -> bytes:
    place = choice.randint(0, len(data))
    return data[:place] + choice.choice([*_WORDS, *_BLANKS]) + data[place:]


def _delete(data: bytes, choice: Random) -> bytes:
    place = choice.randint(0, len(data))
    return data[:place] + data[place + choice.choice([1, 1, 2, 10, 100]) :]


def _truncate(data: bytes, choice: Random) -> bytes:
    return data[: choice.randint(0, len(data))]


def _lines(data: bytes, choice: Random) -> bytes:
    """Drop, repeat, swap, insert or shuffle lines."""
    lines = data.split(b"\n")
    here, there = choice.randrange(len(lines)), choice.randrange(len(lines))
    what = choice.randrange(5)
    if what == 0:
        del lines[here]
    elif what == 1:
        lines.insert(there, lines[here])
    elif what == 2:
        lines[here], lines[there] = lines[there], lines[here]
    elif what == 3:
        lines.insert(here, choice.choice(_LINES))
    else:
        choice.shuffle(lines)
    return b"\n".join(lines)


def _columns(data: bytes, choice: Random) -> bytes:
    """Drop, repeat, swap or replace fields of one line or of all."""
    lines = data.split(b"\n")
    here, what = choice.randrange(len(lines)), choice.randrange(4)
    first, second, word = (
        choice.randrange(6),
        choice.randrange(6),
        choice.choice(_WORDS),
    )
    for number in range(len(lines)) if choice.random() < 0.3 else [here]:
        fields = lines[number].split(b" ")
        if max(first, second) >= len(fields):
            continue
        if what == 0:
            del fields[first]
        elif what == 1:
            fields.insert(second, fields[first])
        elif what == 2:
            fields[first], fields[second] = fields[second], fields[first]
        else:
            fields[first] = word
        lines[number] = b" ".join(fields)
    return b"\n".join(lines)


def _line_ends(data: bytes, choice: Random) -> bytes:
    return data.replace(b"\n", choice.choice([b"\r\n", b"\r", b"\n\n", b" \n", b"\0"]))


def _blanks(data: bytes, choice: Random) -> bytes:
    return data.replace(b" ", choice.choice(_BLANKS))


def _repeat(data: bytes, choice: Random) -> bytes:
    is_large = len(data) > 2_000 or data.startswith((b"\x1f", b"\xfd"))
    return data * (2 if is_large else choice.choice([2, 50]))


def _another(data: bytes, choice: Random) -> bytes:
    return data + choice.choice([*RUNS, *QRELS])


def _recode(data: bytes, choice: Random) -> bytes:
    code = choice.choice(["utf-16", "utf-16-le", "utf-16-be", "latin-1", "utf-8-sig"])
    return data.decode(errors="replace").encode(code, errors="replace")


def _pack(data: bytes, choice: Random) -> bytes:
    return gzip.compress(data) if choice.random() < 0.5 else lzma.compress(data)


MUTATIONS: list[Mutation] = [
    *(_flip, _insert, _delete, _truncate, _lines, _lines, _columns, _columns),
    *(_line_ends, _blanks, _repeat, _another, _recode, _pack),
]


def mutated(data: bytes, choice: Random) -> bytes:
    """Apply one to four mutations."""
    for _ in range(choice.choice([1, 1, 2, 3, 4])):
        data = choice.choice(MUTATIONS)(data, choice)
    return data


# ---- what must hold -----------------------------------------------------------------


def check(folder: Path, seed: list[int]) -> None:
    """Make the file of one seed, read it, and let the exceptions out.

    Whatever the chunks and processes, it is refused or it is not.
    """
    choice = Random(str(seed))
    is_run = choice.random() < 0.5
    path = folder / "mutated"
    path.write_bytes(mutated(choice.choice(RUNS if is_run else QRELS), choice))
    read = _read_run if is_run else _read_qrels
    with _limit(SECONDS_A_FILE), warnings.catch_warnings():
        warnings.simplefilter("error")
        one = read(path, 1, 1 << 20)
        two = read(path, 2, choice.choice([1, 3, 17, 100, 1000]))
    if isinstance(one, str) and isinstance(two, str):
        return
    assert one == two, (
        f"by chunks and processes: {str(one)[:200]!r} or {str(two)[:200]!r}"
    )


def _read_run(path: Path, processes: int, chunk_bytes: int) -> str | list[object]:
    qrels = qrels_of_mapping({q: {d: 1 for _, d, _ in _QRELS} for q, _, _ in _QRELS})
    try:
        run = read_run(str(path), Keep(), processes=processes, chunk_bytes=chunk_bytes)
        return [*_run_lines(run), *_joined(run, qrels)]
    except InputError as error:
        return _message(error, path)


def _run_lines(run: Run) -> list[object]:
    queries = [run.queries[code] for code in run.query.tolist()]
    values = [value.hex() for value in run.scores.tolist()]
    lines = zip(queries, run.documents.to_list(), values, strict=True)
    return [*lines, len(np.unique(run.document_keys)), sorted(run.facts.notes)]


def _joined(run: Run, qrels: Qrels) -> list[object]:
    benchmark = join(run, qrels)
    lists = benchmark.lists.of(range(len(benchmark)), None)
    assert list(map(len, lists)) == benchmark.lists.lengths.tolist()
    return [lists, benchmark.corpus_seen, sorted(benchmark.ignored)]


def _read_qrels(path: Path, processes: int, chunk_bytes: int) -> str | list[object]:
    try:
        qrels = read_qrels(str(path), processes=processes, chunk_bytes=chunk_bytes)
    except InputError as error:
        return _message(error, path)
    columns = (qrels.query.tolist(), qrels.document.tolist(), qrels.grade.tolist())
    notes = sorted(qrels.facts.notes)
    return [qrels.queries, qrels.vocabulary.ids.to_list(), columns, notes]


def _message(error: InputError, path: Path) -> str:
    message = str(error)
    assert message.startswith(f"{path}:"), message
    assert "\n" not in message, message
    return message


class SlowError(Exception):
    """A file of a few kilobytes took longer than any of them should."""


@contextmanager
def _limit(seconds: int) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise SlowError(f"still reading after {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def main() -> int:
    """Try seeds until the time is over; print each kind of failure once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the first number of each")
    arguments = parser.parse_args()
    end, case, failures = time.monotonic() + arguments.seconds, 0, set()
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            # For processes that wait for each other, which takes no processor time.
            faulthandler.dump_traceback_later(300, exit=True)
            seed = [arguments.seed, case]
            case += 1
            try:
                check(Path(folder), seed)
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                kind = (type(error).__name__, place.filename, place.lineno)
                if kind in failures:
                    continue
                failures.add(kind)
                start = (Path(folder) / "mutated").read_bytes()[:300]
                print(f"seed {seed}, a file that begins {start!r}:")
                traceback.print_exception(error)
    print(f"{case} files, {len(failures)} kinds of failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
