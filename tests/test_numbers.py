"""Numbers in fields against Python's float, bit for bit."""

from __future__ import annotations

import struct
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_cli.ids import Ids
from falsify_cli.read.numbers import (
    _alike_decimals,
    parse_float,
    parse_floats,
    parse_whole_numbers,
)

QUICK = settings(derandomize=True, deadline=None, max_examples=100)

FINITE = st.floats(allow_nan=False, allow_infinity=False)
FORMS = ["{!r}", "{:.17g}", "{:.15g}", "{:.3f}", "{:.20f}", "{:e}", "{:.0e}", "{:+.8f}"]
FLOATS = st.builds(str.format, st.sampled_from(FORMS), FINITE)
DECIMALS = st.from_regex(
    r"[+-]?([0-9]{1,20}\.?[0-9]{0,20}|\.[0-9]{1,20})", fullmatch=True
)
EXPONENTS = st.from_regex(
    r"[+-]?([0-9]{1,4}\.?[0-9]{0,4}|\.[0-9]{1,4})[eE][+-]?[0-9]{1,3}", fullmatch=True
)


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


@QUICK
@given(st.lists(FLOATS | DECIMALS | EXPONENTS, min_size=1))
def test_a_column_of_numbers_reads_as_float_does(texts: list[str]) -> None:
    values, good = parse_floats(Ids.of(texts))
    assert good.all()
    assert [bits(v) for v in values.tolist()] == [bits(float(t)) for t in texts]


@QUICK
@given(st.lists(st.text("0123456789+-.eE", max_size=7), min_size=1, max_size=20))
def test_what_float_refuses_is_no_number(texts: list[str]) -> None:
    # In these letters float() takes plain decimal numbers and nothing else.
    values, good = parse_floats(Ids.of(texts))
    for text, value, is_number in zip(texts, values.tolist(), good, strict=True):
        try:
            expected = float(text)
        except ValueError:
            assert not is_number
            assert parse_float(text.encode()) is None
        else:
            assert is_number
            assert bits(value) == bits(expected)


@pytest.mark.parametrize("digits", range(1, 18))
def test_every_place_of_the_point_is_exact(digits: int) -> None:
    rng = np.random.default_rng([7, digits])
    texts = []
    for mantissa in rng.integers(10 ** (digits - 1), 10**digits, 300).tolist():
        place, sign = rng.integers(0, digits + 1), str(rng.choice(["", "-", "+"]))
        plain = str(mantissa)
        texts += [sign + plain, f"{sign}{plain[:place]}.{plain[place:]}"]
    values, good = parse_floats(Ids.of(texts))
    assert good.all()
    assert [bits(v) for v in values.tolist()] == [bits(float(t)) for t in texts]


# Fields that "%f" would write, with room before the first; now and then an odd one.
ALIKE = st.integers(0, 9).flatmap(
    lambda decimals: st.lists(
        st.from_regex(
            rf"[0-9]{{0,9}}{rf'[.][0-9]{{{decimals}}}' if decimals else ''}",
            fullmatch=True,
        ),
        min_size=1,
    )
)
ODD = st.none() | st.sampled_from(
    [
        *("-1.5", "+2", "1e3", "1.25", "12345678", "123456789", ".5", "5.", ".", "x"),
        *(":.000000", "/.000000", "1.00:000", "1.\xe900000", "1 .00000", "1..00000"),
        *("", "12"),
    ]
)


@settings(QUICK, max_examples=500)
@given(ALIKE, ODD, st.integers(0, 20))
def test_fields_with_equal_decimals_read_as_float_does(
    texts: list[str], odd: str | None, room: int
) -> None:
    texts = [*texts, odd] if odd is not None else texts
    column = Ids.of(["9" * room, *texts]).take(np.arange(1, len(texts) + 1))
    values, good = parse_floats(column)
    for text, value, is_number in zip(texts, values.tolist(), good, strict=True):
        plain = parse_float(text.encode())
        assert is_number == (plain is not None)
        assert plain is None or bits(value) == bits(float(text))


@pytest.mark.parametrize(
    ("texts", "fast"),
    [
        (["12.345678", "9.876543"], True),
        (["12.5", "0.5", "1234567.5"], True),
        (["10", "9", "12345678"], True),
        ([".5", "1.5"], True),
        (["5.", "15."], True),
        (["1.5", "1.25"], False),
        (["1.5", "15"], False),
        (["-1.5", "2.5"], False),
        (["123456789", "1"], False),
        (["12345678.5"], False),
        (["0.12345678"], False),
        (["."], False),
        (["1.5", "a.5"], False),
    ],
)
def test_fields_written_alike_are_read_in_one_go(texts: list[str], fast: bool) -> None:
    column = Ids.of(["9" * 16, *texts]).take(np.arange(1, len(texts) + 1))
    values = _alike_decimals(column)
    assert (values is not None) == fast
    if values is not None:
        assert values.tolist() == [float(text) for text in texts]


@pytest.mark.parametrize(
    "text",
    [
        *("0", "-0", "-0.0", "+0", "00", "007", "5.", ".5", "-.5", "+5", "1e-3", "1E3"),
        *("1.e5", "-1.5e+02", "1e999", "-1e999", "1e-999", "4.9e-324", "2e-324"),
        *(
            "2.2250738585072011e-308",
            "1.7976931348623157e308",
            "1.7976931348623159e308",
        ),
        # Ties between two doubles, and just beside: 2^53 + 1 and its neighbours.
        *("9007199254740993", "9007199254740992.9", "9007199254740993.00000000001"),
        *("999999999999999", "0.99999999999999", "000000000000000001", "1" * 400),
        "0." + "0" * 400 + "1",
    ],
)
def test_number_forms_read_as_float_does(text: str) -> None:
    values, good = parse_floats(Ids.of([text]))
    assert good.tolist() == [True]
    assert bits(values[0]) == bits(float(text))


@pytest.mark.parametrize(
    "text",
    [
        *("nan", "NaN", "-nan", "inf", "-inf", "+Inf", "Infinity", "infinity"),
        *("1_0", "1_000.5", "\u0663", "\uff15", "\u00bd", "0x10", "1d5", "1f", "0b1"),
        *("", ".", "+", "-", "+.", "e5", ".e5", "1e", "1e+", "1e1.5", "--1", "+-1"),
        *("1-", "1+1", "1.2.3", "1..2", "1,5", "1.000,5", "1'000", "1 ", "1\xa0", "1%"),
        *("\u2212" + "1", "five", "1\x0b", "1\x1f", "1\u2028"),
    ],
)
def test_other_spellings_are_no_numbers(text: str) -> None:
    values, good = parse_floats(Ids.of(["1", text, "2.5"]))
    assert good.tolist() == [True, False, True]
    assert values[[0, 2]].tolist() == [1.0, 2.5]
    assert parse_float(text.encode()) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("1", 1, id="one"),
        pytest.param("1.0", 1, id="a point and zeros"),
        pytest.param("1.", 1, id="a point"),
        pytest.param("1e2", 100, id="an exponent"),
        pytest.param("12.5e1", 125, id="a fraction that the exponent lifts"),
        pytest.param("+2", 2, id="a plus"),
        pytest.param("-2", -2, id="negative"),
        pytest.param("-0", 0, id="minus nought"),
        pytest.param("2147483647", 2**31 - 1, id="the largest"),
        pytest.param("2147483648", None, id="one more"),
        pytest.param("-2147483647", 1 - 2**31, id="the smallest"),
        pytest.param("-2147483648", None, id="one less"),
        pytest.param("0.5", None, id="half"),
        pytest.param("1.0000000000000002", None, id="hardly more than one"),
        pytest.param("1e-300", None, id="hardly more than nought"),
        pytest.param("1e300", None, id="huge"),
        pytest.param("1e999", None, id="infinite"),
        pytest.param("nan", None, id="nan"),
        pytest.param("two", None, id="a word"),
        pytest.param("1,0", None, id="a comma"),
    ],
)
def test_grades_are_whole_numbers_of_31_bits(text: str, value: int | None) -> None:
    values, good = parse_whole_numbers(Ids.of([text, "3"]))
    assert good.tolist() == [value is not None, True]
    assert values.tolist() == [value or 0, 3]


@pytest.mark.parametrize("text", ["1" * 10_000 + "x", "1" * 10_000 + ".x", "." * 9_999])
def test_a_long_field_is_refused_in_linear_time(text: str) -> None:
    start = time.process_time()
    assert parse_float(text.encode()) is None
    assert time.process_time() - start < 0.5
