"""The first lines of a file -> which columns it has, and whether a header."""

from __future__ import annotations

from dataclasses import dataclass

from falsify_cli.errors import InputError
from falsify_cli.read.numbers import parse_float


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the columns of one text format stand.

    columns: fields a line must have. value: the column of the score or the grade,
    or of the rank where rank_is_score. note: what to tell the user, if anything.
    """

    fields: str
    columns: int
    query: int
    document: int
    value: int
    rank: int | None = None
    rank_is_score: bool = False
    note: str = ""

    def is_record(self, fields: list[bytes]) -> bool:
        """Whether these fields could be a record of this format."""
        if len(fields) < self.columns:
            return False
        return parse_float(fields[self.value]) is not None


RUN = Layout("query Q0 doc rank score tag", 6, 0, 2, 4, rank=3)
RUN_WITHOUT_TAG = Layout(
    "query Q0 doc rank score", 5, 0, 2, 4, rank=3, note="5 columns, no tag"
)
RUN_MS_MARCO = Layout(
    "query doc rank",
    3,
    0,
    1,
    2,
    rank_is_score=True,
    note="MS MARCO columns, ordered by rank",
)
QRELS = Layout("query 0 doc grade", 4, 0, 2, 3)
QRELS_BEIR = Layout("query doc grade", 3, 0, 1, 2, note="BEIR columns")

RUN_LAYOUTS = {6: RUN, 5: RUN_WITHOUT_TAG, 3: RUN_MS_MARCO}
QRELS_LAYOUTS = {4: QRELS, 3: QRELS_BEIR}

_NO_NUMBERS = (b"nan", b"inf", b"infinity")
_SWAPPED = "were the two files swapped? the order is: run, then qrels"


@dataclass(frozen=True, slots=True)
class Opening:
    """What the first lines say.

    skipped: bytes before the first record. skipped_lines: their number.
    header: the fields of the header line; none where the first line is a record.
    """

    layout: Layout
    skipped: int = 0
    skipped_lines: int = 0
    header: tuple[bytes, ...] = ()


def sniff(name: str, chunk: bytes, layouts: dict[int, Layout]) -> Opening | None:
    """Tell the layout from the first line that is no comment.

    chunk: the first whole lines of the file. Returns None where none of them has a
    word. Raises InputError for a number of columns that no layout has.
    """
    end, number = 0, 0
    while (start := end) < (end := chunk.find(b"\n", start) + 1):
        fields = chunk[start:end].split()
        number += 1
        if not fields:
            continue
        layout = _layout(fields, layouts)
        is_record = layout is not None and layout.is_record(fields)
        if fields[0].startswith(b"#") and not is_record:
            continue
        if layout is None:
            raise InputError(f"{name}:{number}: {_width_fault(fields, layouts)}")
        if is_record or not _is_header(fields, layout):
            return Opening(layout)
        return Opening(layout, end, number, tuple(fields))
    return None


def _is_header(fields: list[bytes], layout: Layout) -> bool:
    """Whether a word stands where a number should: '0,9' and 'nan' are faults."""
    columns = [layout.value] if layout.rank is None else [layout.value, layout.rank]
    words = [fields[column] for column in columns]
    return all(w[:1].isalpha() and w.lower() not in _NO_NUMBERS for w in words)


def _layout(fields: list[bytes], layouts: dict[int, Layout]) -> Layout | None:
    widest = max(layouts)
    # Only a run's last column, the tag, may hold blanks.
    width = min(len(fields), widest) if layouts is RUN_LAYOUTS else len(fields)
    return layouts.get(width)


def _width_fault(fields: list[bytes], layouts: dict[int, Layout]) -> str:
    width = len(fields)
    if layouts is RUN_LAYOUTS and width == QRELS.columns:
        return f"expected a run, found 4 columns, as in qrels; {_SWAPPED}"
    if layouts is QRELS_LAYOUTS and width in (5, 6):
        return f"expected qrels, found {width} columns, as in a run; {_SWAPPED}"
    return wrong_width(layouts[max(layouts)], width, b" ".join(fields))


def wrong_width(layout: Layout, width: int, line: bytes) -> str:
    """The fault of a line with too few or too many fields."""
    kind = "qrels" if layout in QRELS_LAYOUTS.values() else "run"
    return (
        f"a {kind} line has {layout.columns} fields ({layout.fields}), "
        f"got {width}: {shown(line)}"
    )


def shown(text: bytes, most: int = 60) -> str:
    """A line or field of a file as a message can show it, in one line.

    >>> shown(b"q1 Q0 d1")
    "'q1 Q0 d1'"
    """
    clean = text.decode(errors="replace")
    return repr(clean if len(clean) <= most else clean[: most - 3] + "...")
