"""The first lines of a file -> which columns it has, and whether a header."""

from __future__ import annotations

import re
from dataclasses import dataclass

from falsify_cli.errors import InputError
from falsify_cli.read.numbers import parse_float


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the columns of one text format stand.

    columns: fields a line must have. value: the column of the score or the grade, or
    of the rank where rank_is_score. open_ended: the last field may hold blanks.
    note: what to tell the user, if anything.
    """

    fields: str
    columns: int
    query: int
    document: int
    value: int
    rank: int | None = None
    rank_is_score: bool = False
    open_ended: bool = False
    note: str = ""

    def is_record(self, fields: list[bytes]) -> bool:
        """Whether these fields could be a record of this format."""
        if len(fields) < self.columns:
            return False
        return parse_float(fields[self.value]) is not None


RUN = Layout("query Q0 doc rank score tag", 6, 0, 2, 4, rank=3, open_ended=True)
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

_BLANKS = re.compile(rb"[ \t\r\n]+")
_NO_NUMBERS = (b"nan", b"inf", b"infinity")
_SWAPPED = "were the two files swapped? the order is: run, then qrels"


@dataclass(frozen=True, slots=True)
class Opening:
    """What the first lines say.

    header: the fields of the header line, none where there is none. header_line:
    its number, from 0, or -1.
    """

    layout: Layout
    header: tuple[bytes, ...] = ()
    header_line: int = -1


def sniff(
    name: str, head: bytes, layouts: dict[int, Layout], *, whole: bool
) -> Opening | None:
    """Tell the layout from the first line that does not begin with '#'.

    Where every line does, from the first of them that could be a record.
    head: the first whole lines of the file. whole: there is nothing more to wait
    for. Returns None where none of the lines tells.
    Raises InputError for a number of columns that no layout has.
    """
    end, line = 0, -1
    marked: list[list[bytes]] = []
    while (start := end) < (end := head.find(b"\n", start) + 1):
        fields = fields_of(head[start:end])
        line += 1
        if fields and fields[0].startswith(b"#"):
            marked.append(fields)
        elif fields:
            layout = _layout(fields, layouts)
            if layout is None:
                fault = _width_fault(fields, layouts)
                raise InputError(f"{name}:{line + 1}: {fault}")
            records_before = any(map(layout.is_record, marked))
            if records_before or not _is_header(fields, layout):
                return Opening(layout)
            return Opening(layout, tuple(fields), line)
    for fields in marked if whole else ():
        layout = _layout(fields, layouts)
        if layout is not None and layout.is_record(fields):
            return Opening(layout)
    return None


def fields_of(line: bytes) -> list[bytes]:
    """The fields of one line; blanks are spaces and tabs alone."""
    return [field for field in _BLANKS.split(line) if field]


def _is_header(fields: list[bytes], layout: Layout) -> bool:
    """Whether words stand where numbers should: '0,9' and 'nan' are faults.

    A word begins with a letter of any script.
    """
    columns = [layout.value] if layout.rank is None else [layout.value, layout.rank]
    words = [fields[column] for column in columns]
    return all(
        w[:4].decode(errors="ignore")[:1].isalpha() and w.lower() not in _NO_NUMBERS
        for w in words
    )


def _layout(fields: list[bytes], layouts: dict[int, Layout]) -> Layout | None:
    width, widest = len(fields), max(layouts)
    return layouts.get(min(width, widest) if layouts[widest].open_ended else width)


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
    commas = "; blanks or tabs part them, not commas" * (width == 1 and b"," in line)
    return (
        f"a {kind} line has {layout.columns} fields ({layout.fields}), "
        f"got {width}: {shown(line)}{commas}"
    )


def shown(text: bytes, most: int = 60) -> str:
    """A line or field of a file as a message can show it, in one line.

    >>> shown(b"q1 Q0 d1")
    "'q1 Q0 d1'"
    """
    clean = text.decode(errors="replace")
    return repr(clean if len(clean) <= most else clean[: most - 3] + "...")
