"""
Submission files: YAML or JSON, one or many documents, into rows for `job`.

1. All or none: the first thing wrong with a file refuses the whole of it, in one line that names document and field.
2. Only the columns that upstream fills are taken; a column nobody knows is refused, not dropped.
3. A spec is kept as it was given. Whether it can run is not judged here: Falcon ends a job whose spec is impossible.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import yaml
from attrs import frozen


class SubmissionError(Exception):
    """A file that cannot be submitted; the text is one line."""


@frozen
class NewJob:
    """A row of `job` as upstream inserts it; *spec* is JSON text."""

    id: str
    actor: str
    spec: str
    name: str | None = None
    priority: int = 0
    timeout_seconds: int | None = None
    artifact_path: str | None = None


@frozen
class Column:
    """What a column takes: *allowed* says it in words, *fits* checks it."""

    required: bool
    allowed: str
    fits: Callable[[Any], bool]


def _text(longest: int, shortest: int = 1) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and shortest <= len(value) <= longest


def _number(least: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and least <= value < 2**31


COLUMNS = {
    "id": Column(True, "a text of 1 to 64 characters", _text(64)),
    "actor": Column(True, "a text of 1 to 255 characters", _text(255)),
    "spec": Column(True, "an object", lambda value: isinstance(value, dict)),
    "name": Column(False, "a text of at most 255 characters", _text(255, 0)),
    "priority": Column(False, "a whole number of 32 bits", _number(-(2**31))),
    "timeout_seconds": Column(False, "a whole number from 0 to 2147483647", _number(0)),
    "artifact_path": Column(False, "a text of at most 512 characters", _text(512, 0)),
}
"""The columns that upstream fills (contract.md 2)."""


class _Loader(yaml.SafeLoader):
    """Reads YAML into what JSON can say: a date stays the text that it is, a key that stands twice is refused."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping, or refuse a key that stands twice."""
        keys = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for _, key in keys:
            if [name for _, name in keys].count(key) > 1 and key != "<<":
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def parse(text: str, known: Collection[str] = ()) -> tuple[NewJob, ...]:
    """
    Return the jobs of a file.

    Args:
        text: what it holds.
        known: ids that files before it hold.

    Raises:
        SubmissionError: something in it cannot be submitted.
    """
    documents = [document for document in _documents(text) if document is not None]
    if not documents:
        raise SubmissionError("no job in it")
    jobs = tuple(_job(document, number, len(documents)) for number, document in enumerate(documents, 1))
    seen = set(known)
    for job in jobs:
        if job.id in seen:
            raise SubmissionError(f"id {job.id!r} is given more than once")
        seen.add(job.id)
    return jobs


def _documents(text: str) -> Iterator[Any]:
    """Yield what the file holds; a list counts as its items."""
    try:
        try:
            found = [json.loads(text, object_pairs_hook=_once)]
        except json.JSONDecodeError:
            found = list(yaml.load_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise SubmissionError(f"neither JSON nor YAML: {where}{error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise SubmissionError(f"neither JSON nor YAML: {' '.join(str(error).split())[:200]}") from None
    for document in found:
        yield from document if isinstance(document, list) else [document]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, or refuse a key that stands twice."""
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key stands twice")
    return result


def _job(document: Any, number: int, total: int) -> NewJob:
    """Return the row that one document asks for."""
    where = f"document {number}: " if total > 1 else ""
    if not isinstance(document, dict):
        raise SubmissionError(f"{where}holds {_short(document)}; allowed: an object with {', '.join(COLUMNS)}")
    for name in document:
        if name not in COLUMNS:
            raise SubmissionError(f"{where}unknown column {name!r}; allowed: {', '.join(COLUMNS)}")
    given = {name: value for name, value in document.items() if value is not None}
    for name, column in COLUMNS.items():
        if name not in given and column.required:
            raise SubmissionError(f"{where}{name} is missing; allowed: {column.allowed}")
        if name in given and not column.fits(given[name]):
            raise SubmissionError(f"{where}{name} holds {_short(given[name])}; allowed: {column.allowed}")
    try:
        row: Mapping[str, Any] = given | {"spec": json.dumps(given["spec"], ensure_ascii=False, allow_nan=False)}
        "".join(str(value) for value in row.values()).encode()
    except (TypeError, ValueError, RecursionError):  # a set, binary data, NaN, a loop, half a surrogate pair
        raise SubmissionError(f"{where}spec holds something that JSON in UTF-8 cannot say") from None
    return NewJob(**row)


def _short(value: Any) -> str:
    """Return what a value is, as far as one line shows it."""
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
