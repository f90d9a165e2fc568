"""Rows as no pass leaves them, found by walking from everywhere (proof.md R2): each goes on all the same."""

from builders import NOW, change, job, live, pool, seen, snapshot, step, task, view, work

from falcon_rm.core.actions import SubmitWork
from falcon_rm.core.machine import WorkSeen
from falcon_rm.core.model import Slot

WIDE = task("4x4")


def test_dispatching_job_without_its_time_is_recorded_anew() -> None:
    """A row that holds the UID but not `dispatched_at` would be ended by no bound: its submit is finished once more."""
    sent = job("j1", "Pending/Dispatching", job_uid="uid-j1")
    world = snapshot(sent, views=(view(live(pool(sent)), work(sent, ready=0)),), pools=(pool(sent),))
    assert WorkSeen.UNRECORDED is seen(world).work
    action = step(world)
    assert isinstance(action, SubmitWork) and action.dispatched


def test_waiting_row_gets_the_topology_of_its_spec() -> None:
    """However it came that the row lacks it, or holds that of an earlier spec."""
    for topology in (None, "2x2"):
        held = Slot("c1", "4x4", "j9", NOW - 50)
        waiting = job("j1", work=WIDE, topology=topology)
        other = job("j9", "Pending/Provisioning", WIDE, actor="zoe")
        made = change(snapshot(waiting, other, slots=(held,), pools=(pool(other),), views=(view(live(pool(other))),)))
        assert "4x4" == made.columns["topology"]


def test_claim_locks_the_slot_of_the_spec() -> None:
    """A row that names another topology, or none, takes the slot of the queue it was picked from."""
    for topology in (None, "2x2"):
        slots = (Slot("c1", "2x2"), Slot("c1", "4x4"))
        made = change(snapshot(job("j1", work=WIDE, topology=topology), slots=slots))
        assert ("ann", "c1", "4x4") == (made.takes_slot, made.cluster_id, made.topology)
    made = change(snapshot(job("j1", work=task("cpu"), topology=None)))
    assert ("Dispatching", "cpu") == (made.to_reason, made.topology)
