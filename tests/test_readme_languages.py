"""The English and the Chinese README have the same facts: sections, blocks, tables, and what stands in code."""

import pytest
from readme_parts import CHINESE, CODE, ENGLISH, sections

PAIRS = list(zip(sections(ENGLISH), sections(CHINESE), strict=False))


def test_sections() -> None:
    """Both have as many headings, of the same levels in the same order."""
    assert [each.level for each in sections(ENGLISH)] == [each.level for each in sections(CHINESE)]


def test_they_name_each_other_first() -> None:
    """A reader of one finds the other at its top."""
    assert "English | [中文](README.zh.md)" == ENGLISH.read_text(encoding="utf-8").splitlines()[2]
    assert "[English](README.md) | 中文" == CHINESE.read_text(encoding="utf-8").splitlines()[2]


@pytest.mark.parametrize("number", range(len(PAIRS)), ids=[each.heading for each, _ in PAIRS])
def test_a_section(number: int) -> None:
    """Blocks are the same but for comments; tables have the same rows, and code is the same everywhere."""
    english, chinese = PAIRS[number]
    assert english.blocks == chinese.blocks
    assert english.codes == chinese.codes
    spans = [
        [[[sorted(CODE.findall(cell)) for cell in row] for row in table] for table in each.tables]
        for each in (english, chinese)
    ]
    assert spans[0] == spans[1]
