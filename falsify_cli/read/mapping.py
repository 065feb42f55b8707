"""A {query: {document: number}} mapping, or its JSON -> columns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from falsify_cli.columns import Floats, Ints
from falsify_cli.errors import InputError
from falsify_cli.ids import Ids


def parse_json(name: str, text: bytes) -> Mapping[str, Mapping[str, float]]:
    """Parse a JSON object of objects; a key that stands twice is refused.

    Raises InputError with the line where it is no JSON.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
            raise InputError(f"{name}: expected each key once, found {twice!r} twice")
        return found

    try:
        data = json.loads(text, object_pairs_hook=unique)
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: expected UTF-8 text: {error.reason}") from None
    except json.JSONDecodeError as error:
        # Where a file is cut off, its last line is the one before the line end.
        line = min(error.lineno, max(text.rstrip().count(b"\n") + 1, 1))
        raise InputError(f"{name}:{line}: no valid JSON: {error.msg}") from None
    except ValueError:
        # What Python says of a number with thousands of digits.
        raise InputError(f"{name}: a number too long to be read") from None
    except RecursionError:
        raise InputError(f"{name}: JSON nested too deeply for a run or qrels") from None
    if not isinstance(data, dict):
        raise InputError(f"{name}: expected a JSON object {{query: {{doc: number}}}}")
    return data


def columns_of(
    mapping: Mapping[str, Mapping[str, float]], name: str
) -> tuple[list[str], Ids, Floats, Ints]:
    """Flatten a mapping.

    Returns the Q queries, n documents, (n,) values and (Q,) documents a query.
    Raises InputError for anything that is no {str: {str: number}}.
    """
    queries: list[str] = []
    documents: list[str] = []
    values: list[float] = []
    lengths: list[int] = []
    for query, row in mapping.items():
        if not isinstance(row, Mapping):
            raise InputError(
                f"{name}: expected {{query: {{doc: number}}}}, found "
                f"{type(row).__name__} for query {query!r}"
            )
        queries.append(_id(query, name))
        lengths.append(len(row))
        for document, value in row.items():
            if not isinstance(value, Real | np.number | np.bool_):
                raise InputError(
                    f"{name}: expected a number for query {query!r}, document "
                    f"{document!r}, found {value!r}"
                )
            documents.append(_id(document, name))
            values.append(value)
    if not documents:
        raise InputError(f"{name}: empty: no record in it")
    try:
        numbers = np.array(values, np.float64)
    except OverflowError:
        raise InputError(
            f"{name}: expected finite numbers, found an integer too large for a double"
        ) from None
    return queries, Ids.of(documents), numbers, np.array(lengths, np.int64)


def _id(text: object, name: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"{name}: expected str as an id, found {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{name}: the id {text!r} is no valid text") from None
    if "\0" in text:
        raise InputError(f"{name}: the id {text!r} holds a NUL character")
    return text
