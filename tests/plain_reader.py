"""The oracle of the reader's tests, nothing clever, and the files it is asked about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from hypothesis import assume
from hypothesis import strategies as st

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Form:
    """A text format: the names of its columns, as the tests fill them in."""

    columns: str

    @property
    def names(self) -> list[str]:
        return self.columns.split()


@dataclass(frozen=True, slots=True)
class Record:
    """One line: its query, its document, and its score, rank or grade."""

    query: str
    document: str
    value: float


TREC_RUN = Form("query Q0 document rank value tag")
RUN_WITHOUT_TAG = Form("query Q0 document rank value")
MS_MARCO_RUN = Form("query document value")
TREC_QRELS = Form("query 0 document value")
BEIR_QRELS = Form("query document value")


# ---- the oracle ---------------------------------------------------------------------


def plain_records(data: bytes, form: Form) -> list[Record]:
    """Read a valid file without a header line by line."""
    places = [form.names.index(name) for name in ("query", "document", "value")]
    records = []
    for line in data.removeprefix(BOM).split(b"\n"):
        fields = [field for field in re.split(rb"[ \t\r]", line) if field]
        try:
            query, document, value = (fields[place] for place in places)
            records.append(Record(query.decode(), document.decode(), float(value)))
        except (IndexError, ValueError):
            assert not fields or fields[0].startswith(b"#"), line
    return records


def plain_lists(records: list[Record]) -> dict[str, list[str]]:
    """Rank each query's documents: score descending, ties by id bytes descending."""
    lists: dict[str, list[str]] = {}
    for r in sorted(records, key=lambda r: (r.value, r.document.encode()))[::-1]:
        lists.setdefault(r.query, []).append(r.document)
    return lists


# ---- what it is asked about ---------------------------------------------------------

_LETTERS = st.characters(exclude_characters=" \t\n\r\0", exclude_categories=["Cs"])
# At eight bytes a key ceases to be the id itself, at 64 it becomes a hash.
_LONG_IDS = st.builds(
    lambda start, length, end: start * length + end,
    st.sampled_from(["d", "\xe9"]),
    st.sampled_from([7, 8, 9, 31, 32, 63, 64, 65, 300]),
    st.sampled_from(["", "x", "y"]),
)
IDS = st.text(_LETTERS, min_size=1, max_size=9) | _LONG_IDS

SCORES = st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.sampled_from(
    [
        *("1e-3", "+5", ".5", "5.", "-0", "0", "1E+2", "007", "2.50", "-.25"),
        *("0.12345678901234567", "0.30000000000000004", "0.3", "5e-324", "1e-400"),
        *("179769313486231570000000000000000000000e270", "16777217", "16777216"),
    ]
)
RANKS = st.integers(1, 2000).map(str)
GRADES = st.sampled_from(["0", "1", "2", "1.0", "-1", "+3", "1e1", "00", "2147483647"])

_BLANKS = [" ", "\t", "  ", " \t ", "\t\t"]
_MARGINS = ["", "", " ", "\t"]
_NOISE = ["\n", "\r\n", " \t \n", "# made by x\n", "#\r\n", "\t#a b c d e f g\n"]
_THREE_WORDS = "# top 100\n"  # a record where records have three columns


@st.composite
def lines(draw: st.DrawFn, form: Form, values: st.SearchStrategy[str]) -> list[str]:
    """Make the lines of a valid file, in any layout and order, comments between."""
    queries = draw(st.lists(IDS, min_size=1, max_size=4, unique=True))
    documents = draw(st.lists(IDS, min_size=1, max_size=6, unique=True))
    pair = st.tuples(st.sampled_from(queries), st.sampled_from(documents))
    pairs = draw(st.lists(pair, min_size=1, max_size=12, unique=True))
    words = {
        "rank": "1",
        "tag": draw(st.sampled_from(["t", "t", "my tag", "k1=1 b 4"])),
    }
    rows = []
    for query, document in pairs:
        words |= {"query": query, "document": document, "value": draw(values)}
        rows.append([words.get(name, name) for name in form.names])
    if draw(st.booleans()):
        result = [" ".join(row) + "\n" for row in rows]
    else:
        noise = _NOISE if len(form.names) == 3 else [*_NOISE, _THREE_WORDS]
        result = _laid_out(rows, noise, Random(draw(st.integers(0, 999))))
    # A file that begins like this is JSON.
    assume(not re.match(r'[ \t\r\n]*\{[ \t\r\n]*["}]', "".join(result)))
    return result


def _laid_out(rows: list[list[str]], noise: list[str], choice: Random) -> list[str]:
    """Put any blanks between the words, and any noise between the lines."""
    result = []
    for row in rows:
        result += choice.choices(noise, k=choice.choice([0, 0, 1, 2]))
        line = choice.choice(_MARGINS) + row[0]
        for word in row[1:]:
            line += choice.choice(_BLANKS) + word
        result.append(line + choice.choice(_MARGINS) + choice.choice(["\n", "\r\n"]))
    return result


@st.composite
def files(draw: st.DrawFn, form: Form, values: st.SearchStrategy[str]) -> bytes:
    """Make a valid file: with or without a BOM and a last line end."""
    text = "".join(draw(lines(form, values)))
    data = draw(st.sampled_from([b"", BOM])) + text.encode()
    return data.removesuffix(b"\n") if draw(st.booleans()) else data


CHUNKS = st.integers(1, 90) | st.just(1 << 20)
PROCESSES = st.sampled_from([1, 2])
