"""The README of either language as data: its sections, fenced blocks and tables."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from attrs import field, frozen

ROOT = Path(__file__).parents[1]
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh.md"

CODE = re.compile(r"`([^`]+)`")
COMMENT = re.compile(r"(?:^|\s+)#.*$", re.MULTILINE)
RULE = re.compile(r"\|(?:-+\|)+")


@frozen
class Block:
    """A fenced block: the language after its fence, and its text without comments."""

    language: str
    text: str


@frozen
class Section:
    """What stands between two headings; *prose* is all but blocks and tables, a table is its rows of cells."""

    level: int
    heading: str
    prose: str
    blocks: tuple[Block, ...]
    tables: tuple[tuple[tuple[str, ...], ...], ...] = field(repr=False)

    @property
    def codes(self) -> list[str]:
        """The code spans of the prose, each once, in the order of their letters."""
        return sorted(set(CODE.findall(self.prose)))

    @property
    def spans(self) -> list[str]:
        """The code spans of the prose and the tables."""
        cells = (CODE.findall(cell) for rows in self.tables for row in rows for cell in row)
        return [*self.codes, *chain.from_iterable(cells)]

    @property
    def lines(self) -> list[str]:
        """The lines of the blocks, without the sign before a command."""
        return [re.sub(r"^\s*\$ ", "", line) for block in self.blocks for line in block.text.splitlines()]


def sections(path: Path) -> list[Section]:
    """Return the sections of a README."""
    outside = re.split(r"^```(\w*)\n(.*?)^```$", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found: list[list[str]] = []
    blocks: list[list[Block]] = []
    for index in range(0, len(outside), 3):
        for line in outside[index].splitlines():
            if line.startswith("#"):
                found.append([line])
                blocks.append([])
            else:
                found[-1].append(line)
        if index + 1 < len(outside):
            blocks[-1].append(Block(outside[index + 1], COMMENT.sub("", outside[index + 2]).strip("\n")))
    return [_section(*lines, blocks=tuple(held)) for lines, held in zip(found, blocks, strict=True)]


def table(path: Path, *head: str) -> list[tuple[str, ...]]:
    """Return the rows of the table with this head, without it; a cell keeps its marks."""
    (rows,) = (rows for section in sections(path) for rows in section.tables if rows[0] == head)
    return list(rows[1:])


def row(*cells: str) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def _section(heading: str, *lines: str, blocks: tuple[Block, ...]) -> Section:
    marks, _, text = heading.partition(" ")
    prose = "\n".join(line for line in lines if not line.startswith("|"))
    return Section(len(marks), text, prose, blocks, tuple(_tables(lines)))


def _tables(lines: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ...]]:
    rows: list[tuple[str, ...]] = []
    for line in (*lines, ""):
        if line.startswith("|") and not RULE.fullmatch(line):
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            rows.append(tuple(cell.strip() for cell in cells))
        elif rows and not line.startswith("|"):
            yield tuple(rows)
            rows = []
