"""
Carry a plan out, one guarded action a time.

1. Apply decides nothing: it makes the call and writes down the fact (answered, error kind, text, uid).
2. The row before the cloud: what a call is for was committed before it; a lost race means no call.
3. An error of a cloud is a fact and stops nobody else; an error of the database ends the pass.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from falcon_rm.core import actions as act
from falcon_rm.core.live import ClusterInfo
from falcon_rm.core.model import Cluster
from falcon_rm.core.words import CloudError, ErrorKind
from falcon_rm.ports import Clouds, Kubernetes, Store


class Result(Enum):
    """How an action went."""

    DONE = "done"  # something moved: another pass may follow at once
    TOLD = "told"  # only text for people, or a fact beside the way, was written
    LOST = "lost"  # somebody was first: the next pass reads it
    BUSY = "busy"  # refused for now, or unknown: wait the interval
    REFUSED = "refused"  # the error is in the ledger, the next plan draws the conclusion


SETTLES_POOL = frozenset(ErrorKind) - {ErrorKind.BUSY, ErrorKind.UNKNOWN, ErrorKind.EXISTS}
SETTLES_WORK = frozenset({ErrorKind.PERMANENT, ErrorKind.CLUSTER})
"""The errors of a create, and of a submit, from which the next plan draws a conclusion; after others it asks again."""


class Applier:
    """Applies the actions of one pass; Kubernetes clients are built once a cluster."""

    def __init__(self, store: Store, clouds: Clouds) -> None:
        self._store = store
        self._clouds = clouds
        self._clients: dict[str, Kubernetes] = {}
        self.error: CloudError | None = None

    def apply(self, action: act.Action) -> Result:
        """
        Carry out one action; `error` then is the cloud's, if it refused.

        Raises:
            StoreDown: the database failed; the outcome of the write is unknown.
        """
        self.error = None
        return HOW[type(action)](self, action)

    # --- rows

    def _write(self, action: act.Action) -> Result:
        return Result.DONE if WRITES[type(action)](self._store)(action) else Result.LOST

    def _health(self, action: act.RecordHealth) -> Result:
        return Result.TOLD if self._store.record_health(action) else Result.LOST

    def _note(self, action: act.Note) -> Result:
        self._store.note(action)  # kept now or before: it is there
        return Result.TOLD

    def _change(self, action: act.Change) -> Result:
        done = self._store.commit(action)
        if action.only_message:
            return Result.TOLD
        return Result.DONE if done else Result.LOST

    # --- clouds

    def _create_pool(self, action: act.CreatePool) -> Result:
        if not self._store.pool_requested(action):
            return Result.LOST
        try:
            if action.policy:
                region = action.zone.rsplit("-", 1)[0]
                self._clouds.compute.ensure_policy(
                    project=action.cluster.project, region=region, name=action.policy, topology=action.pool.topology
                )
            self._clouds.gke.create_pool(action)
        except CloudError as error:
            self._store.pool_answered(action, self._fault(error))
            return self._refusal(error, SETTLES_POOL)
        self._store.pool_answered(action, None)
        return Result.DONE

    def _delete_pool(self, action: act.DeletePool) -> Result:
        try:
            self._clouds.gke.delete_pool(action.cluster, action.name)
        except CloudError as error:
            if error.kind is ErrorKind.GONE:
                return Result.DONE
            self._store.delete_answered(action.cluster.id, action.name, self._fault(error))
            return Result.BUSY
        return Result.DONE

    def _submit(self, action: act.SubmitWork) -> Result:
        if not self._store.work_requested(action):
            return Result.LOST
        try:
            uid = self._kubernetes(action.cluster).submit(action.manifest, action.service)
        except CloudError as error:
            self._store.work_refused(action, self._fault(error))
            return self._refusal(error, SETTLES_WORK)
        return Result.DONE if self._store.work_submitted(action, uid) else Result.LOST

    def _resume(self, action: act.ResumeWork) -> Result:
        try:
            self._kubernetes(action.cluster).resume_work(action.name, action.uid)
        except CloudError as error:
            self._store.work_refused(action, self._fault(error))
            return self._refusal(error, SETTLES_WORK)
        return Result.DONE if self._store.work_resumed(action) else Result.LOST

    def _delete_work(self, action: act.DeleteWork) -> Result:
        self._store.work_stopping(action.cluster.id, action.name)
        try:
            self._kubernetes(action.cluster).delete_work(action.name, action.uid)
        except CloudError as error:
            self._fault(error)
            return Result.DONE if error.kind is ErrorKind.GONE else Result.BUSY
        return Result.DONE

    def _kubernetes(self, cluster: Cluster) -> Kubernetes:
        if cluster.id not in self._clients:
            info: ClusterInfo = self._clouds.gke.get_cluster(cluster)
            self._clients[cluster.id] = self._clouds.kubernetes(cluster, info)
        return self._clients[cluster.id]

    def _fault(self, error: CloudError) -> tuple[str, str]:
        self.error = error
        return error.kind.value, error.text

    @staticmethod
    def _refusal(error: CloudError, settles: frozenset[ErrorKind]) -> Result:
        return Result.REFUSED if error.kind in settles else Result.BUSY


WRITES: Mapping[type, Callable[[Store], Callable[[Any], bool]]] = {
    act.EnsureSlot: lambda store: store.ensure_slot,
    act.FreeSlot: lambda store: store.free_slot,
    act.EnterPool: lambda store: store.enter_pool,
    act.MarkPool: lambda store: store.mark_pool,
    act.RetirePool: lambda store: store.retire_pool,
    act.EndLease: lambda store: store.end_lease,
}
"""What is one guarded write to the database."""

HOW: Mapping[type, Callable[[Applier, Any], Result]] = {
    **dict.fromkeys(WRITES, Applier._write),
    act.Change: Applier._change,
    act.RecordHealth: Applier._health,
    act.Note: Applier._note,
    act.CreatePool: Applier._create_pool,
    act.DeletePool: Applier._delete_pool,
    act.SubmitWork: Applier._submit,
    act.ResumeWork: Applier._resume,
    act.DeleteWork: Applier._delete_work,
}
