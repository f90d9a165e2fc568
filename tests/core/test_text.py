"""Texts from anywhere become one bounded line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_rm.core.text import CUT, TEXT_BYTES, clean


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        ("as it is", "as it is"),
        ("  two\r\n\tlines  ", "two lines"),
        ("nul\x00inside", "nul inside"),
        ("half \udcff", "half \\udcff"),
        ("a\u2028b\x85c", "a b c"),
        ("队列 \U0001f680", "队列 \U0001f680"),
        ("", ""),
    ],
)
def test_becomes_one_line(raw: str, line: str) -> None:
    """Line breaks, NUL and half a surrogate never reach the database (P93)."""
    assert line == clean(raw)


def test_long_text_keeps_head_and_tail() -> None:
    """A text beyond the bound loses its middle."""
    line = clean("head" + "x" * 10_000 + "tail")
    assert (True, True, True, TEXT_BYTES) == (line.startswith("head"), CUT in line, line.endswith("tail"), len(line))


@given(st.text(alphabet=st.characters(codec=None), max_size=200), st.integers(min_value=16, max_value=300))
def test_holds_for_any_text(raw: str, limit: int) -> None:
    """Whatever comes in: one line, bounded, encodable, the same when cleaned again."""
    line = clean(raw, limit)
    assert (True, True, line) == (len(line.encode()) <= limit, len(line.splitlines()) <= 1, clean(line, limit))
