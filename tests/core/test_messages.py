"""Every message that the contract promises, word for word, in Chinese and in English (contract.md 3)."""

import ast
import string
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from builders import (
    EN,
    FAILED,
    NOW,
    OK,
    change,
    cluster,
    fresh,
    job,
    live,
    message,
    pod,
    pool,
    room,
    snapshot,
    state,
    task,
    unread,
    view,
    work,
)

from falcon_rm.core import messages
from falcon_rm.core.live import Condition, ContainerState, LivePool, LiveWork, Pod
from falcon_rm.core.messages import SENTENCES, Messages, moment, span
from falcon_rm.core.model import Fault, InvalidSpec, Job, Pool, Snapshot, Submission
from falcon_rm.core.pods import Ended, HeldUp
from falcon_rm.core.words import CPU_TOPOLOGY, ErrorKind, Mode, PoolState, PoolStatus

CORE = Path(messages.__file__).parent
ZH, ENGLISH = Messages("zh"), Messages("en")

RESERVED = cluster(default_reservation="r")
ASKS = job("j1", "Pending/Provisioning", task(mode=Mode.RESERVATION))
NODES = job("j1", "Pending/WaitingForNode")
SENDS = job("j1", "Pending/Dispatching", job_uid="uid-j1", dispatched_at=NOW - 40)
RUNS = job("j1", "Running")
RUNS_ON_CPU = job("j1", "Running", task(CPU_TOPOLOGY, mode=None))
STOPS = job("j1", "Aborting")
LOST = job("j1", "Running", outcome="Lost", message="lost; the release is stuck: GKE said so before")
BARE_STOP = job("j1", "Aborting", node_pool_name=None)
LAST = job("j1", "Pending/Provisioning", pool_failures=2)


def world(of: Job, row: Pool | None, *listed: LivePool | LiveWork | Pod, **fields: Any) -> Snapshot:
    """Return the world of one job, its ledger row, and what its cluster shows."""
    sent = (Submission("c1", "falcon-j1", "j1", of.attempt, NOW - 40),) if of.job_uid else ()
    shown = view(*listed, **fields)
    return snapshot(of, views=(shown,), pools=(row,) if row else (), submissions=sent)


def refused(kind: ErrorKind, text: str, of: Job = LAST) -> Snapshot:
    """Return the world of a job whose pool was refused."""
    return world(of, fresh(of, error=Fault(kind, text, NOW - 5)))


AHEAD = (
    job("a", actor="user-a", name="profiling-v7x", created_at=NOW - 9000),
    job("b", actor="user-b", name="benchmark-v7x", created_at=NOW - 8000),
)
HOLDER = job("h", "Pending/Provisioning", actor="zoe", name="train")
OOM = ContainerState("task", "terminated", "OOMKilled", exit_code=137)

PROMISED = [
    ("Pending/Waiting",
     snapshot(*AHEAD, HOLDER, job("j1")),
     "队列位置 #3,前面有 2 个任务 (user-a: profiling-v7x, user-b: benchmark-v7x); "
     "获取资源中: zoe: train (Provisioning)",
     "Queue position #3, 2 job(s) ahead (user-a: profiling-v7x, user-b: benchmark-v7x); "
     "acquiring now: zoe: train (Provisioning)"),
    ("Pending/ClusterBusy",
     snapshot(job("j1", work=task("4x4", mode=Mode.RESERVATION)), views=(view(of=RESERVED, reservation=room(4, 1)),)),
     "reservation_remaining_slices=0 reservation_needed_slices=1,等待 reservation 容量释放...",
     "reservation_remaining_slices=0 reservation_needed_slices=1, waiting for reservation capacity..."),
    ("Pending/Provisioning",
     snapshot(job("j1", work=task(mode=Mode.RESERVATION)), views=(view(of=RESERVED, reservation=room(4)),)),
     "正在创建 node pool (supply: reservation)...",
     "Creating node pool (supply: reservation)..."),
    ("Pending/Provisioning",
     world(ASKS, pool(ASKS, job_id="j0"), live(pool(ASKS), PoolStatus.PROVISIONING)),
     "正在接管 node pool falcon-j1 (supply: reservation)...",
     "Taking over node pool falcon-j1 (supply: reservation)..."),
    ("Pending/WaitingForNode",
     world(NODES, pool(NODES), live(pool(NODES)), ready_nodes={"falcon-j1": 0}),
     "node pool falcon-j1 control-plane RUNNING but 0/1 expected node(s) registered (Ready=0)...",
     "node pool falcon-j1 control-plane RUNNING but 0/1 expected node(s) registered (Ready=0)..."),
    ("Pending/Dispatching",
     world(NODES, pool(NODES), live(pool(NODES))),
     "Node pool 就绪,正在提交 K8s Job...",
     "Node pool ready, submitting K8s Job..."),
    ("Pending/Dispatching",
     world(SENDS, pool(SENDS), live(pool(SENDS)), work(SENDS, ready=0),
           pod(SENDS, 0, "Pending", ContainerState("task", "waiting", "ImagePullBackOff", "x not found"))),
     "Node pool 就绪,正在提交 K8s Job...; 0/1 个 Pod 已运行; falcon-j1-0: ImagePullBackOff: x not found",
     "Node pool ready, submitting K8s Job...; 0/1 pod(s) running; falcon-j1-0: ImagePullBackOff: x not found"),
    ("Running",
     world(SENDS, pool(SENDS), live(pool(SENDS)), work(SENDS), pod(SENDS)),
     "Pod 运行中 (1/1 active)",
     "Pods running (1/1 active)"),
    ("Failed/InvalidSpec",
     snapshot(job("j1", "Pending", InvalidSpec("replica", "3", "4, the number of hosts"))),
     "spec 无效: replica = 3; 允许: 4, the number of hosts",
     "Invalid spec: replica = 3; allowed: 4, the number of hosts"),
    ("Failed/NodePoolTimeout",
     world(evolve(NODES, reason="Provisioning", provisioning_at=NOW - 2401),
           pool(NODES, requested_at=NOW - 2401, up_at=None, ready_at=None),
           live(pool(NODES), PoolStatus.PROVISIONING)),
     "node pool 创建超时 (40m): GKE API timeout (on-demand, v6e 2x2, c1)",
     "node pool creation timed out (40m): GKE API timeout (on-demand, v6e 2x2, c1)"),
    ("Failed/NodePoolFailed",
     refused(ErrorKind.QUOTA, "quota 'TPUS_PER_PROJECT' exceeded"),
     "node pool 创建失败: quota 'TPUS_PER_PROJECT' exceeded (on-demand, v6e 2x2, c1)",
     "node pool could not be created: quota 'TPUS_PER_PROJECT' exceeded (on-demand, v6e 2x2, c1)"),
    ("Failed/NodePoolFailed",
     world(LAST, pool(LAST)),
     "node pool 创建失败: node pool falcon-j1 消失",
     "node pool could not be created: node pool falcon-j1 disappeared"),
    ("Failed/NodePoolFailed",
     world(LAST, fresh(LAST), live(pool(LAST), labels={})),
     "node pool 创建失败: 名字 falcon-j1 已被不属于 Falcon 的 node pool 占用",
     "node pool could not be created: the name falcon-j1 belongs to a node pool that is not Falcon's"),
    ("Aborting",
     world(STOPS, pool(STOPS, lease=None, state=PoolState.DELETING), live(pool(STOPS), PoolStatus.STOPPING)),
     "正在中止,等待 K8s Job 删除和 node pool 清理...",
     "Aborting, waiting for the K8s Job and the node pool to go..."),
    ("Aborting",
     snapshot(STOPS, views=(unread(),), pools=(pool(STOPS),)),
     "正在中止,等待 K8s Job 删除和 node pool 清理...; 集群 c1 无法读取,状态未知: no answer; "
     "若集群已永久消失: falcon-rm cluster abandon",
     "Aborting, waiting for the K8s Job and the node pool to go...; "
     "cluster c1 cannot be read, state unknown: no answer; if the cluster is gone for good: falcon-rm cluster abandon"),
    ("Aborted", world(BARE_STOP, None), "用户中止", "Aborted by user"),
    ("Aborted",
     world(evolve(STOPS, aborting_at=NOW - 999), pool(STOPS, lease=None, idle_at=NOW - 901, state=PoolState.DELETING,
                       error=Fault(ErrorKind.BUSY, "GKE says no", NOW)), live(pool(STOPS), PoolStatus.STOPPING)),
     "用户中止; 资源释放超时: GKE says no",
     "Aborted by user; the release is stuck: GKE says no"),
    ("Running",
     snapshot(LOST, views=(view(live(pool(LOST)), looked_at=frozenset({"falcon-j1"})),),
              pools=(pool(LOST, lease=None, idle_at=NOW - 901, state=PoolState.DELETING,
                          error=Fault(ErrorKind.CLUSTER, "GKE says no", NOW)),)),
     "lost; 资源释放超时: GKE says no",
     "lost; the release is stuck: GKE says no"),
    # What is written with an outcome stands until the end, and is the end's message.
    ("Running",
     world(RUNS, pool(RUNS), live(pool(RUNS)), work(RUNS, FAILED), pod(RUNS, 0, "Failed", OOM)),
     "Pod terminated: OOMKilled (exit code 137); pod falcon-j1-0, container task",
     "Pod terminated: OOMKilled (exit code 137); pod falcon-j1-0, container task"),
    ("Running", world(RUNS, pool(RUNS), live(pool(RUNS)), work(RUNS, OK)), "", ""),
    ("Running",
     world(evolve(RUNS, timeout_seconds=39), pool(RUNS), live(pool(RUNS)), work(RUNS)),
     "任务超时 (39s),已取消 Job",
     "Job timed out (39s), K8s Job cancelled"),
    ("Running",
     world(RUNS, pool(RUNS), live(pool(RUNS))),
     "K8s Job falcon-j1 被外部删除",
     "K8s Job falcon-j1 was deleted by others"),
    ("Running",
     world(RUNS, pool(RUNS), live(pool(RUNS)), work(RUNS, FAILED)),
     "K8s Job 失败: BackoffLimitExceeded: Job has reached the limit",
     "K8s Job failed: BackoffLimitExceeded: Job has reached the limit"),
    ("Running",
     world(job("j1", "Running", task(max_retries=1)), pool(RUNS),
           work(RUNS, {"Failed": Condition(status=True, reason="PodFailurePolicy")})),
     "重新排队 (attempt 1 结束): 基础设施丢失 (节点或 node pool): node pool falcon-j1 消失",
     "queued again (attempt 1 ended): lost with its infrastructure (node or node pool): "
     "node pool falcon-j1 disappeared"),
    ("Running",
     world(RUNS, pool(RUNS), live(pool(RUNS)),
           work(RUNS, {"Failed": Condition(status=True, reason="PodFailurePolicy")}),
           pod(RUNS, 0, "Failed", disrupted="EvictionByEvictionAPI")),
     "基础设施丢失 (节点或 node pool): falcon-j1-0: EvictionByEvictionAPI",
     "lost with its infrastructure (node or node pool): falcon-j1-0: EvictionByEvictionAPI"),
    ("Running",
     world(RUNS_ON_CPU, None, work(RUNS_ON_CPU, {"Failed": Condition(status=True, reason="PodFailurePolicy")})),
     "基础设施丢失 (节点或 node pool): K8s Job falcon-j1 的 pod 未说明原因",
     "lost with its infrastructure (node or node pool): no pod of K8s Job falcon-j1 says why"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reached", "of", "zh", "en"), PROMISED, ids=[f"{n}-{case[0]}" for n, case in enumerate(PROMISED)]
)
def test_promised_message(reached: str, of: Snapshot, zh: str, en: str) -> None:
    """The state that is reached and what it says, in both languages."""
    assert (reached, zh) == (state(of), message(evolve(of, bounds=evolve(EN, language="zh"))))
    assert (reached, en) == (state(of), message(of))


def test_refused_submit() -> None:
    """What Kubernetes said is the message of JobSubmitFailed."""
    of = job("j1", "Pending/Dispatching")
    error = Fault(ErrorKind.PERMANENT, "admission webhook denied", NOW)
    sent = Submission("c1", "falcon-j1", "j1", 1, NOW - 40, error=error)
    told = snapshot(of, views=(view(live(pool(of))),), pools=(pool(of),), submissions=(sent,))
    assert ("JobSubmitFailed", "K8s Job could not be submitted: admission webhook denied") == (
        change(told).columns["outcome"],
        message(told),
    )
    assert "K8s Job 提交失败: admission webhook denied" == message(evolve(told, bounds=evolve(EN, language="zh")))


@pytest.mark.parametrize(
    ("outcome", "reached"),
    [
        ("Succeeded", "Succeeded"),
        ("JobFailed", "Failed/JobFailed"),
        ("JobSubmitFailed", "Failed/JobSubmitFailed"),
        ("Timeout", "Failed/Timeout"),
        ("Lost", "Pending/Waiting"),
        ("Yield", "Pending/Waiting"),
    ],
)
def test_end_keeps_the_words_of_its_outcome(outcome: str, reached: str) -> None:
    """The status that an outcome names comes with its message; a success says nothing."""
    over = job("j1", "Running", outcome=outcome, message="words of the outcome")
    ended = snapshot(over, views=(view(looked_at=frozenset({"falcon-j1"})),), pools=())
    assert (reached, "" if outcome == "Succeeded" else "words of the outcome") == (state(ended), message(ended))


# --- the queue


def test_queue_names_five_ahead() -> None:
    """The nearest to the slot first, then dots."""
    ahead = [(f"u{n}", f"j{n}") for n in range(7)]
    assert "Queue position #8, 7 job(s) ahead (u0: j0, u1: j1, u2: j2, u3: j3, u4: j4, ...)" == ENGLISH.queue(8, ahead)
    assert "队列位置 #1,前面有 0 个任务" == ZH.queue(1, [])


@pytest.mark.parametrize(
    ("position", "shown"), [(100, "100"), (101, "100+"), (149, "100+"), (151, "150+"), (1234, "1000+")]
)
def test_positions_are_exact_for_the_first_hundred(position: int, shown: str) -> None:
    """Then rounded, so that a start does not rewrite the whole queue (P106)."""
    assert f"#{shown}," in ENGLISH.queue(position, [])


# --- the sentences


@pytest.mark.parametrize("key", SENTENCES)
def test_both_languages_have_the_same_facts(key: str) -> None:
    """Every sentence has the same placeholders in both."""
    chinese, english = ({name for _, name, _, _ in string.Formatter().parse(text) if name} for text in SENTENCES[key])
    assert chinese == english


def test_a_fact_cannot_break_the_line() -> None:
    """Whatever others say, a message is one line of bounded length with head and tail (P93)."""
    told = ENGLISH.say("busy", text="a\nb\x00c \ud800 " + "x" * 9000 + " the end")
    assert told.startswith("GKE is busy: a b c \\ud800 xxx")
    assert told.endswith("xxx the end")
    assert len(told.encode()) <= 4096


def test_unknown_language_reads_as_chinese() -> None:
    """The default is Chinese."""
    assert "用户中止" == Messages("fr").say("aborted")


def test_pods_that_are_not_up_are_three_at_most() -> None:
    """Then dots."""
    reasons = [HeldUp(f"p{n}", "image", "Pending") for n in range(4)]
    assert "p0: Pending; p1: Pending; p2: Pending; ..." == ENGLISH.held_up(reasons)
    assert "p0: Pending" == ENGLISH.held_up(reasons[:1])


def test_end_of_a_pod() -> None:
    """Reason, exit code, names, the others, and the container's own words."""
    end = Ended("p", "task", 3, "", "boom", 2)
    assert "Pod terminated: Error (exit code 3); pod p, container task, and 2 more; boom" == ENGLISH.ended(end)
    assert "Pod terminated: Error (exit code 3); pod p, container task, 另有 2 个; boom" == ZH.ended(end)


@pytest.mark.parametrize(("seconds", "shown"), [(2400, "40m"), (90, "90s"), (3600, "60m"), (0, "0m")])
def test_span(seconds: float, shown: str) -> None:
    """Whole minutes, else seconds."""
    assert shown == span(seconds)


def test_moment() -> None:
    """UTC, to the second."""
    assert "2023-11-14T22:13:20Z" == moment(NOW + 0.9)


def test_every_sentence_is_used() -> None:
    """No sentence is left that nobody says, and none is said that is not there."""
    literals: set[str] = set()
    for path in CORE.parent.rglob("*.py"):
        if path.name != "messages.py":
            literals |= said(ast.parse(path.read_text(encoding="utf-8")))
    own = {
        node.args[0].value
        for node in ast.walk(ast.parse((CORE / "messages.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") == "say"
        and isinstance(node.args[0], ast.Constant)
    }
    assert set() == set(SENTENCES) - literals - own


def said(module: ast.Module) -> set[str]:
    """Return the strings of a module."""
    return {node.value for node in ast.walk(module) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
