"""The table itself: total, alive, and what must hold in every one of its situations."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from falcon_rm.core import machine
from falcon_rm.core.machine import (
    DOMAIN,
    RULES,
    TABLE,
    Phase,
    PoolSeen,
    Situation,
    Step,
    Verb,
    WorkSeen,
    decide,
    expand,
    fold,
)

GOLDEN = Path(__file__).parent.parent / "golden" / "table.txt"
ACTS_ON_CLOUD = {Verb.CREATE, Verb.SUBMIT, Verb.STOP, Verb.CLEAN}


def situations() -> list[Situation]:
    """Return every situation."""
    domain: tuple[tuple[Any, ...], ...] = DOMAIN
    return [Situation(*case) for case in product(*domain)]


def where(**wanted: object) -> list[Situation]:
    """Return the situations with these facts."""
    return [s for s in situations() if all(getattr(s, name) is value for name, value in wanted.items())]


def verbs(found: list[Situation]) -> set[Verb]:
    """Return what is done in these situations."""
    return {decide(s).verb for s in found}


def test_every_situation_has_a_step() -> None:
    """The table covers the product of its inputs."""
    assert len(situations()) == len(TABLE)


def test_every_rule_wins_somewhere() -> None:
    """No rule is dead."""
    assert [] == [(pattern, step) for pattern, step, wins in fold() if wins == 0]


def test_a_gap_is_an_import_error() -> None:
    """Rules that leave a situation out do not make a table."""
    with pytest.raises(ValueError, match="no rule for"):
        expand(RULES[1:])


def test_table_is_as_reviewed() -> None:
    """The folded table equals the golden file; a change of it is a reviewed change."""
    lines = [f"{wins:6} {pattern} {step}" for pattern, step, wins in fold()]
    assert GOLDEN.read_text(encoding="utf-8").splitlines() == [line.rstrip() for line in lines]


@pytest.mark.parametrize("blind", [{"pool": PoolSeen.UNKNOWN}, {"work": WorkSeen.UNKNOWN}])
def test_nothing_acts_on_unknown(blind: dict[str, object]) -> None:
    """What was not read moves nothing; only the scheduler may speak for jobs that own nothing."""
    assert {Verb.WAIT, Verb.PLACE, Verb.QUEUE} == verbs(where(**blind))


def test_terminal_is_for_ever() -> None:
    """Nothing leaves a terminal status."""
    assert {Verb.WAIT} == verbs(where(phase=Phase.TERMINAL))


def test_pools_are_created_only_while_provisioning() -> None:
    """Only PROVISIONING creates, and only what a complete list lacks."""
    found = [s for s in situations() if decide(s).verb is Verb.CREATE]
    lacks = {PoolSeen.ABSENT, PoolSeen.PUT_OFF}
    assert {(Phase.PROVISIONING, pool) for pool in lacks} == {(s.phase, s.pool) for s in found}


def test_a_seen_job_is_never_submitted_again() -> None:
    """A submit needs a Job that was never seen, or one whose uid is still to be written down."""
    found = [s for s in situations() if decide(s).verb is Verb.SUBMIT]
    assert {WorkSeen.ABSENT, WorkSeen.UNRECORDED} == {s.work for s in found}
    assert {Phase.DISPATCHING, Phase.WAITING_FOR_NODE} == {s.phase for s in found}


def test_a_job_is_submitted_before_its_nodes_only_to_an_empty_flex_start_pool() -> None:
    """While nodes are missing, only flex-start submits: its nodes come for pending pods."""
    found = [s for s in where(phase=Phase.WAITING_FOR_NODE) if decide(s).verb is Verb.SUBMIT]
    assert {PoolSeen.EMPTY} == {s.pool for s in found}


def test_only_a_noted_or_aborted_attempt_is_stopped() -> None:
    """Stopping, releasing and cleaning happen only once the outcome is in the row."""
    stops = {Verb.STOP, Verb.RELEASE, Verb.DISCARD, Verb.CLEAN, Verb.FINISH, Verb.ABORTED}
    assert {Phase.ENDING, Phase.ABORTING} == {s.phase for s in situations() if decide(s).verb in stops}


def test_a_pool_is_never_handed_on_while_pods_are_left() -> None:
    """RELEASE, which may hand a pool on, needs work that is over."""
    over = {
        WorkSeen.ABSENT,
        WorkSeen.GONE,
        WorkSeen.REFUSED,
        WorkSeen.DENIED,
        WorkSeen.SUCCEEDED,
        WorkSeen.FAILED_APP,
        WorkSeen.FAILED_INFRA,
    }
    assert over == {s.work for s in situations() if decide(s).verb is Verb.RELEASE}


def test_pods_can_be_lost_only_in_phases_that_may_have_some() -> None:
    """A failure of acquisition ends a job only where no Job of it can run."""
    alive = {WorkSeen.STARTING, WorkSeen.STUCK, WorkSeen.RUNNING}
    found = [s for s in situations() if decide(s).verb is Verb.FAIL and s.phase is not Phase.PROVISIONING]
    assert set() == {s.work for s in found} & alive


@pytest.mark.parametrize("phase", [p for p in Phase if p is not Phase.TERMINAL])
def test_every_phase_can_go_on(phase: Phase) -> None:
    """No phase only waits."""
    assert verbs(where(phase=phase)) - {Verb.WAIT}


def test_decide_reads_the_table() -> None:
    """One case by hand: a succeeded Job in Running notes its outcome first."""
    situation = Situation(
        Phase.RUNNING, PoolSeen.READY, WorkSeen.SUCCEEDED, machine.Timing.LATE, left=True, chance=machine.Chance.NONE
    )
    assert Step(Verb.NOTE, "Succeeded") == decide(situation)
