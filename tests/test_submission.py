"""Submission files: what is taken, what is refused and how."""

import json

import pytest

from falcon_rm.submission import NewJob, SubmissionError, parse

YAML = """\
id: job-b7m2
name: 基准
actor: user-b
priority: 5
timeout_seconds: 3600
artifact_path: experiments/e/a
spec:
  image: busybox:1.36
  day: 2026-01-02
  command: |
    python3 - <<'PY'
    print("done: 100%")
    PY
"""

JOB = NewJob(
    id="job-b7m2",
    actor="user-b",
    spec=json.dumps(
        {"image": "busybox:1.36", "day": "2026-01-02", "command": "python3 - <<'PY'\nprint(\"done: 100%\")\nPY\n"}
    ),
    name="基准",
    priority=5,
    timeout_seconds=3600,
    artifact_path="experiments/e/a",
)

SMALL = {"id": "a", "actor": "u", "spec": {}}


def refusal(text: str) -> str:
    """Return what parse() says against *text*."""
    with pytest.raises(SubmissionError) as raised:
        parse(text)
    return str(raised.value)


def test_yaml() -> None:
    """A YAML document becomes a row; its spec is JSON with every text as it stood."""
    assert (JOB,) == parse(YAML)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(SMALL) + "\n",
        json.dumps([SMALL], indent="\t"),
        "---\nid: a\nactor: u\nspec: {}\n---\n",
        "- {id: a, actor: u, spec: {}, name: null}",
    ],
)
def test_forms(text: str) -> None:
    """JSON, a list and documents with separators are taken alike."""
    assert (NewJob(id="a", actor="u", spec="{}"),) == parse(text)


def test_many_documents() -> None:
    """Several documents are several rows, in their order."""
    assert ["a", "b"] == [job.id for job in parse("id: a\nactor: u\nspec: {}\n---\nid: b\nactor: u\nspec: {}\n")]


def test_impossible_spec_is_taken() -> None:
    """A spec that can never run is submitted all the same: Falcon says so in the row."""
    (job,) = parse(json.dumps(SMALL | {"spec": {"device_topo": "7x7", "replica": "many"}}))
    assert {"device_topo": "7x7", "replica": "many"} == json.loads(job.spec)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"actor": None}, "actor is missing; allowed: a text of 1 to 255 characters"),
        ({"id": 7}, "id holds 7; allowed: a text of 1 to 64 characters"),
        ({"id": ""}, "id holds ''; allowed: a text of 1 to 64 characters"),
        ({"id": "x" * 65}, f"id holds '{'x' * 56}...; allowed: a text of 1 to 64 characters"),
        ({"spec": "{}"}, "spec holds '{}'; allowed: an object"),
        ({"priority": "high"}, "priority holds 'high'; allowed: a whole number of 32 bits"),
        ({"priority": True}, "priority holds True; allowed: a whole number of 32 bits"),
        ({"timeout_seconds": -1}, "timeout_seconds holds -1; allowed: a whole number from 0 to 2147483647"),
        ({"timeout_seconds": 1.5}, "timeout_seconds holds 1.5; allowed: a whole number from 0 to 2147483647"),
        (
            {"stauts": "Pending"},
            "unknown column 'stauts'; allowed: id, actor, spec, name, priority, timeout_seconds, artifact_path",
        ),
        ({"spec": {"x": float("nan")}}, "spec holds something that JSON in UTF-8 cannot say"),
        ({"spec": {"x": "\ud800"}}, "spec holds something that JSON in UTF-8 cannot say"),
    ],
)
def test_refused(change: dict[str, object], expected: str) -> None:
    """What is wrong is told in one line: field, value, allowed."""
    assert expected == refusal(json.dumps(SMALL | change))


def test_refused_in_the_second_document() -> None:
    """With several documents the line says which one is wrong."""
    assert "document 2: actor is missing; allowed: a text of 1 to 255 characters" == refusal(
        json.dumps([SMALL, {"id": "b", "spec": {}}])
    )


@pytest.mark.parametrize("text", ["", "---\n---\n", "[]"])
def test_empty(text: str) -> None:
    """A file without a job is refused."""
    assert "no job in it" == refusal(text)


def test_same_id_twice() -> None:
    """An id that stands twice in a file is refused before the database sees it."""
    assert "id 'a' is given more than once" == refusal(json.dumps([SMALL, SMALL]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id: [", "neither JSON nor YAML: line 1: "),
        ("id: a\nid: b\nactor: u\nspec: {}", "neither JSON nor YAML: line 1: key 'id' stands twice"),
        ('{"id": "a", "id": "b"}', "neither JSON nor YAML: a key stands twice"),
        ("a: !!python/object:os.system {}", "neither JSON nor YAML: line 1: could not determine a constructor"),
        ("id: a\nactor: u\nspec: &a {x: *a}", "spec holds something that JSON in UTF-8 cannot say"),
        ("just words", "holds 'just words'; allowed: an object with id, actor, spec"),
    ],
)
def test_no_document(text: str, expected: str) -> None:
    """What is no document at all, or holds what JSON cannot say, is refused in one line."""
    told = refusal(text)
    assert told.startswith(expected)
    assert "\n" not in told
