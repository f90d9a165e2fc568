"""A plan as people review it: lines by cluster, counts, the part that is asked for, the checksum."""

import json
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, get_args

import attrs
import pytest
from attrs import evolve
from test_report import CHANGE, CLUSTER, CREATE, EXPECTED

from falcon_rm.core.actions import Action, Change, DeletePool, Now
from falcon_rm.core.plan import Plan, Unknown
from falcon_rm.core.sweep import Brake
from falcon_rm.report import as_json
from falcon_rm.review import Part, checksum, data, is_checksum, text

INVALID = Change("bad", 0, "Pending", None, "Failed", "InvalidSpec", "image is invalid")
PLAN = Plan(
    actions=(CHANGE, INVALID, CREATE, DeletePool(CLUSTER, "falcon-old", "nobody waits for 2x2x1")),
    unknown=(Unknown("cluster", "c3", "c3", "list failed:\n503"),),
    foreign={"c1": 2, "c2": 0},
)
NAMES = {"id-1": "c1"}

TEXT = """\
cluster c1: 1 to create, 1 to change, 1 to delete
  ~  job      j           Pending/Waiting -> Pending/Provisioning  picked
  +  pool     falcon-j    create 4 hosts, v7x 2x2x4, reservation   job j holds its lease
  -  pool     falcon-old  delete                                   nobody waits for 2x2x1

cluster c3: 1 unknown
  ?  cluster  c3          left alone                               list failed: 503

no cluster: 1 to change
  ~  job      bad         Pending -> Failed/InvalidSpec            image is invalid

Left alone in c1: 2 falcon-* node pools that are not ours.
Checksum: CHECKSUM (falcon-rm run-once --plan CHECKSUM does exactly this, or nothing)
Plan: 1 to create, 2 to change, 1 to delete, 1 unknown."""


def test_text() -> None:
    """A plan reads like terraform's: by cluster sign, thing, what and why, counts of each, and a summary."""
    assert TEXT.replace("CHECKSUM", checksum(PLAN)) == text(PLAN, NAMES)


def test_what_is_left_alone() -> None:
    """That a thing is left alone is said once, with the reason."""
    blind = Plan(unknown=(Unknown("job", "j", "c1", "left alone: the state of its pool is unknown"),))
    assert "  ?  job  j  left alone  the state of its pool is unknown" == text(blind, {}).splitlines()[1]


def test_empty_plan() -> None:
    """A plan with nothing in it is its checksum and its summary."""
    first, last = text(Plan(), {}).splitlines()
    assert first.startswith(f"Checksum: {checksum(Plan())} ")
    assert "Plan: 0 to create, 0 to change, 0 to delete, 0 unknown." == last


@pytest.mark.parametrize(
    ("part", "subjects", "told"),
    [
        (Part(job="j"), ["j", "falcon-j"], "Shown: 2 of 5 lines, those of job j."),
        (Part(job="x", pools={"falcon-old"}), ["falcon-old"], "Shown: 1 of 5 lines, those of job x."),
        (Part(cluster="c3"), ["c3"], "Shown: 1 of 5 lines, those of cluster c3."),
        (Part(job="j", cluster="c3"), [], "Shown: 0 of 5 lines, those of job j, cluster c3."),
    ],
)
def test_part(part: Part, subjects: list[str], told: str) -> None:
    """Of a part its own lines are shown; checksum and counts stay those of the whole plan."""
    shown = text(PLAN, NAMES, part).splitlines()
    assert subjects == [line.split()[2] for line in shown if line.startswith("  ")]
    assert told in shown
    assert TEXT.replace("CHECKSUM", checksum(PLAN)).splitlines()[-2:] == shown[-2:]
    known = data(PLAN, NAMES, part)
    assert (checksum(PLAN), 2) == (known["checksum"], known["summary"]["change"])  # type: ignore[index]
    kinds = (*known["actions"], *known["unknown"])  # type: ignore[misc]
    assert subjects == [each["name"] for each in kinds]


def test_brake_is_shown() -> None:
    """A brake that holds is told with its numbers."""
    brake = Brake(5, 0, 3, 3)
    assert f"Brake: {brake.text}." in text(Plan(brake=brake), {}).splitlines()
    assert brake.text == data(Plan(brake=brake), {})["brake"]


def test_json() -> None:
    """As JSON a plan has the same lines with the names of the actions, byte for byte the same each time."""
    whole = as_json(data(PLAN, NAMES))
    assert whole == as_json(data(PLAN, NAMES))
    known = json.loads(whole)
    assert {"create": 1, "change": 2, "delete": 1, "unknown": 1} == known["summary"]
    assert {"c1", "c3", "no cluster"} == set(known["clusters"])
    assert {"create": 1, "change": 1, "delete": 1, "unknown": 0} == known["clusters"]["c1"]
    assert ["Change", "Change", "CreatePool", "DeletePool"] == [each["action"] for each in known["actions"]]
    assert {"kind": "cluster", "name": "c3", "cluster": "c3", "why": "list failed:\n503"} == known["unknown"][0]
    assert list(known) == sorted(known)


# --- the checksum


def others(value: Any) -> Iterator[Any]:
    """Yield values that differ from *value*; of one with fields, one for each way in which a field can differ."""
    if attrs.has(type(value)):
        for name in attrs.fields_dict(type(value)):
            yield from (evolve(value, **{name: other}) for other in others(getattr(value, name)))
    elif isinstance(value, Enum):
        yield from (other for other in type(value) if other is not value)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, Mapping):
        yield {**value, "another": "word"}
    elif value is None:
        yield "another"
    else:
        yield value + type(value)(1)


@pytest.mark.parametrize("action", [action for action, _ in EXPECTED], ids=lambda action: type(action).__name__)
def test_every_field_tells(action: Action) -> None:
    """Two plans whose actions differ in any field have different checksums."""
    mine = checksum(Plan(actions=(action,)))
    assert is_checksum(mine)
    assert [] == [other for other in others(action) if checksum(Plan(actions=(other,))) == mine]


def test_number_and_order_tell() -> None:
    """One action more, one less or another order is another plan."""
    acts = tuple(action for action, _ in EXPECTED)
    plans = [acts, acts[1:], acts[:-1], (*acts, acts[0]), acts[::-1], ()]
    assert len(plans) == len({checksum(Plan(actions=each)) for each in plans})
    assert len(get_args(Action)) == len(
        {checksum(Plan(actions=(kind,))) for kind in {type(a): a for a in acts}.values()}
    )


def test_what_is_not_done_does_not_tell() -> None:
    """What is unknown, held by the brake or not ours is not part of what would be done."""
    assert checksum(PLAN) == checksum(Plan(actions=PLAN.actions, brake=Brake(5, 0, 3, 3)))


def test_moments_from_now_do_not_tell() -> None:
    """A back-off counted from the pass's now is the same plan a moment later, but not the same as none."""

    def backs_off(until: float | Now | None) -> str:
        return checksum(Plan(actions=(evolve(CHANGE, columns={"retry_at": until, "attempt": 1}),)))

    assert backs_off(1000.5) == backs_off(1010.25)
    assert 3 == len({backs_off(1000.5), backs_off(None), checksum(Plan(actions=(CHANGE,)))})


@pytest.mark.parametrize("word", ["", "0123456789abcde", "0123456789ABCDEF", "0123456789abcdef\n", "0123456789abcdefa"])
def test_what_is_no_checksum(word: str) -> None:
    """A word of another form is recognised."""
    assert not is_checksum(word)
