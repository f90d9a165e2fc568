"""
The page of pitfalls: every one has a line, and every test that a line names is there and names it back.

Run as a script it writes the tests of today into the page's lines.
"""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE / "pitfalls.md"
LAST = 113
LINE = re.compile(r"^\| P(\d+) \| (?P<what>[^|]+) \| (?P<where>[^|]+) \|$")


def named() -> dict[int, list[str]]:
    """Return the tests that name a pitfall in their docstring, as file::test."""
    found: dict[int, list[str]] = {number: [] for number in range(1, LAST + 1)}
    for path in sorted(HERE.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for number in re.findall(r"\bP(\d{1,3})\b", ast.get_docstring(node) or ""):
                    found[int(number)].append(f"{path.relative_to(HERE)}::{node.name}")
    return found


def lines() -> dict[int, tuple[str, str]]:
    """Return the lines of the page: number -> (pitfall, where it is tested)."""
    matches = [LINE.match(text) for text in PAGE.read_text(encoding="utf-8").splitlines()]
    return {int(match[1]): (match["what"], match["where"]) for match in matches if match}


def rewritten() -> str:
    """Return the page with the tests of today in its lines, those of a theme's own file first."""
    tests, page = named(), []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        match = LINE.match(line)
        found = set(tests[int(match[1])]) if match else set()
        ordered = sorted(found, key=lambda test: (not test.startswith("test_pitfalls"), test))
        where = ", ".join(f"`{test}`" for test in ordered)
        page.append(f"| P{match[1]} | {match['what']} | {where} |" if match and where else line)
    return "\n".join(page) + "\n"


def test_every_pitfall_has_a_line() -> None:
    """No number is missing, and none stands twice."""
    text = PAGE.read_text(encoding="utf-8")
    assert list(range(1, LAST + 1)) == [int(number) for number in re.findall(r"^\| P(\d+) ", text, re.MULTILINE)]
    assert list(range(1, LAST + 1)) == list(lines())


def test_lines_are_true() -> None:
    """Each line names tests that are there and name it back."""
    tests = named()
    for number, (_, where) in lines().items():
        claimed = re.findall(r"`([^`]+::[^`]+)`", where)
        assert set(claimed) <= set(tests[number]), f"P{number}"
        assert claimed, f"P{number}"


if __name__ == "__main__":
    PAGE.write_text(rewritten(), encoding="utf-8")
