"""Ids that do not meet -> the difference in spelling under which they would."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_POINT_ZERO = re.compile(r"\.0+$")
_LAST_PART = re.compile(r"[.#_:/-][^.#_:/-]*$")
_FIRST_PART = re.compile(r"^[^.#_:/-]*[.#_:/-]")
_WORD = re.compile(r"^\D+(?=\d)")
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\ufeff\u00ad"))

Spelling = Callable[[str], str]

# What may differ on both sides and mean the same.
_SPELLINGS: tuple[tuple[str, Spelling], ...] = (
    ("without leading zeros", lambda s: _ZEROS.sub("", s)),
    ("in one case of letters", str.casefold),
    ("without a trailing .0", lambda s: _POINT_ZERO.sub("", s)),
    ("in one Unicode normal form", lambda s: unicodedata.normalize("NFKC", s)),
    ("without whitespace", lambda s: "".join(s.translate(_INVISIBLE).split())),
)

# What one side may have and the other not, as a passage has more than its document.
_PARTS: tuple[tuple[str, Spelling], ...] = (
    ("suffix", lambda s: _LAST_PART.sub("", s)),
    ("suffix", lambda s: _LAST_PART.sub("", _LAST_PART.sub("", s))),
    ("prefix", lambda s: _FIRST_PART.sub("", s)),
    ("prefix", lambda s: _WORD.sub("", s)),
)


@dataclass(frozen=True, slots=True)
class Meeting:
    """How ids of two sides would meet.

    how: the transformation, in words. pairs: (ours, theirs), each id once.
    """

    how: str
    pairs: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        some = ", ".join(f"{ours} and {theirs}" for ours, theirs in self.pairs[:3])
        return f"they would meet {self.how} ({some})"


def meeting(
    ours: Sequence[str], theirs: Sequence[str], *, parts: bool = True
) -> Meeting | None:
    """The transformation under which most ids of ours would be one of theirs.

    ours, theirs: ids of the two sides that do not occur on the other. parts: also
    try to take a suffix or a prefix off one side.
    """
    found = [
        Meeting(how, tuple(_pairs(ours, theirs, spelling, spelling)))
        for how, spelling in _SPELLINGS
    ]
    for what, spelling in _PARTS if parts else ():
        longer = f"without the {what} of the run's ids"
        found.append(Meeting(longer, tuple(_pairs(ours, theirs, spelling, _as_is))))
        longer = f"without the {what} of the qrels' ids"
        found.append(Meeting(longer, tuple(_pairs(ours, theirs, _as_is, spelling))))
    best = max(found, key=lambda meeting: len(meeting.pairs))
    return best if best.pairs else None


def _as_is(text: str) -> str:
    return text


def _pairs(
    ours: Iterable[str], theirs: Iterable[str], mine: Spelling, other: Spelling
) -> Iterable[tuple[str, str]]:
    by_spelling = {other(text): text for text in theirs}
    for text in ours:
        match = by_spelling.get(mine(text))
        if match is not None and match != text:
            yield text, match
