"""
Every sentence a user sees, in Chinese and English: the same facts in both.

1. A message holds facts that change only when the world does: no ages, no pass numbers.
2. The first sentence of each is promised to upstream (contract.md 3); what follows explains it.
3. Positions are exact for the first 100 of a queue and rounded behind.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from falcon_rm.core.model import InvalidSpec
from falcon_rm.core.pods import Ended, HeldUp
from falcon_rm.core.text import clean

SENTENCES: dict[str, tuple[str, str]] = {
    "queue": (
        "队列位置 #{position},前面有 {ahead} 个任务{names}",
        "Queue position #{position}, {ahead} job(s) ahead{names}",
    ),
    "slot-held": ("获取资源中: {actor}: {job} ({reason})", "acquiring now: {actor}: {job} ({reason})"),
    "backoff": ("{until} 之后重试: {why}", "next try after {until}: {why}"),
    "others-first": ("轮到其他任务", "others go first"),
    "soon": ("即将开始", "about to start"),
    "no-cluster-type": ("没有提供 {tpu_type} 的集群", "no cluster offers {tpu_type}"),
    "no-cluster": ("没有可用的集群: {why}", "no cluster can take it: {why}"),
    "cluster-status": ("{cluster} 状态为 {status}", "{cluster} is {status}"),
    "cluster-unread": ("{cluster} 无法读取: {why}", "{cluster} cannot be read: {why}"),
    "cluster-trouble": (
        "{cluster} 有问题 ({until} 之前不再尝试): {why}",
        "{cluster} is in trouble (not tried before {until}): {why}",
    ),
    "no-reservation": ("{cluster} 没有配置 default_reservation", "{cluster} has no default_reservation"),
    "room-unread": (
        "无法读取 reservation {path} 的容量: {why}",
        "the room of reservation {path} cannot be read: {why}",
    ),
    "room-unknown": ("无法读取 reservation {path} 的容量", "the room of reservation {path} cannot be read"),
    "room": (
        "reservation_remaining_slices={remaining} reservation_needed_slices={needed},等待 reservation 容量释放...",
        "reservation_remaining_slices={remaining} reservation_needed_slices={needed}, "
        "waiting for reservation capacity...",
    ),
    "room-machine": (
        "reservation {path} 的机型是 {offers},该任务需要 {needs}",
        "reservation {path} is of {offers}, the job needs {needs}",
    ),
    "room-small": (
        "reservation {path} 总共只有 {total} 个 {unit},一个 {topology} slice 需要 {needed} 个",
        "reservation {path} has {total} {unit}(s) in all, one slice of {topology} needs {needed}",
    ),
    "room-not-ready": ("reservation {path} 的状态不是 READY", "reservation {path} is not READY"),
    "room-held": ("为 {job} 保留", "kept for {job}"),
    "provisioning": ("正在创建 node pool (supply: {mode})...", "Creating node pool (supply: {mode})..."),
    "taking": ("正在接管 node pool {pool} (supply: {mode})...", "Taking over node pool {pool} (supply: {mode})..."),
    "busy": ("GKE 忙: {text}", "GKE is busy: {text}"),
    "waiting-for-node": (
        "node pool {pool} control-plane RUNNING but {ready}/{hosts} expected node(s) registered (Ready={ready})...",
        "node pool {pool} control-plane RUNNING but {ready}/{hosts} expected node(s) registered (Ready={ready})...",
    ),
    "dispatching": ("Node pool 就绪,正在提交 K8s Job...", "Node pool ready, submitting K8s Job..."),
    "dispatching-cpu": ("正在提交 K8s Job...", "Submitting K8s Job..."),
    "pods-not-up": ("{up}/{hosts} 个 Pod 已运行; {pods}", "{up}/{hosts} pod(s) running; {pods}"),
    "suspended": ("K8s Job 已暂停 (suspended)", "K8s Job is suspended"),
    "running": ("Pod 运行中 ({active}/{hosts} active)", "Pods running ({active}/{hosts} active)"),
    "invalid": ("spec 无效: {field} = {got}; 允许: {allowed}", "Invalid spec: {field} = {got}; allowed: {allowed}"),
    "pool-stopping": ("node pool {pool} 正被他人删除", "node pool {pool} is being deleted by others"),
    "pool-stays": (
        "node pool {pool} 正被他人删除,但一直没有消失: 请查看集群的 operations (gcloud container operations list)",
        "node pool {pool} is being deleted by others, and is still listed: "
        "look at the cluster's operations (gcloud container operations list)",
    ),
    "pool-never-came": (
        "node pool {pool} 的创建请求已被接受,但从未出现",
        "the creation of node pool {pool} was accepted, and it never came",
    ),
    "pool-timeout": ("node pool 创建超时 ({limit}): {text}", "node pool creation timed out ({limit}): {text}"),
    "pool-failed": ("node pool 创建失败: {text}", "node pool could not be created: {text}"),
    "pool-lost": ("node pool {pool} 消失", "node pool {pool} disappeared"),
    "pool-taken": (
        "名字 {pool} 已被不属于 Falcon 的 node pool 占用",
        "the name {pool} belongs to a node pool that is not Falcon's",
    ),
    "no-nodes": ("node pool {pool} 的节点没有按时就绪", "the nodes of node pool {pool} did not come in time"),
    "bare": ("没有占有 node pool, 重新排队", "holds no node pool, queued again"),
    "submit-failed": ("K8s Job 提交失败: {text}", "K8s Job could not be submitted: {text}"),
    "pod-terminated": ("Pod terminated: {reason} (exit code {code})", "Pod terminated: {reason} (exit code {code})"),
    "pod-named": ("pod {pod}, container {container}{more}", "pod {pod}, container {container}{more}"),
    "and-more": (", 另有 {count} 个", ", and {count} more"),
    "never-started": ("Pod 无法启动: {pods}", "Pods cannot start: {pods}"),
    "job-gone": ("K8s Job {name} 被外部删除", "K8s Job {name} was deleted by others"),
    "job-condition": ("K8s Job 失败: {text}", "K8s Job failed: {text}"),
    "lost": ("基础设施丢失 (节点或 node pool): {text}", "lost with its infrastructure (node or node pool): {text}"),
    "lost-silently": (
        "K8s Job {name} 的 pod 未说明原因",
        "no pod of K8s Job {name} says why",
    ),
    "retry": ("重新排队 (attempt {attempt} 结束): {text}", "queued again (attempt {attempt} ended): {text}"),
    "timeout": ("任务超时 ({limit}s),已取消 Job", "Job timed out ({limit}s), K8s Job cancelled"),
    "aborting": (
        "正在中止,等待 K8s Job 删除和 node pool 清理...",
        "Aborting, waiting for the K8s Job and the node pool to go...",
    ),
    "aborted": ("用户中止", "Aborted by user"),
    "abandoned": ("集群 {cluster} 已被运维放弃", "cluster {cluster} was given up for good by an operator"),
    "unread": ("集群 {cluster} 无法读取,状态未知: {why}", "cluster {cluster} cannot be read, state unknown: {why}"),
    "unread-stuck": (
        "若集群已永久消失: falcon-rm cluster abandon",
        "if the cluster is gone for good: falcon-rm cluster abandon",
    ),
    "release-stuck": ("资源释放超时: {text}", "the release is stuck: {text}"),
}

ADDED = re.compile(
    "(^|; )("
    + "|".join(
        re.sub(r"\\{(why|text)\\}", ".*", re.escape(sentence)).replace(re.escape("{cluster}"), "[^;]*")
        for key in ("unread", "release-stuck")
        for sentence in SENTENCES[key]
    )
    + ")$"
)
"""That a cluster cannot be read, or a release is stuck, and all that follows, at the end of a message."""

EXACT_POSITIONS = 100
NAMES_AHEAD = 5


class Messages:
    """The sentences of one language; unknown languages read as Chinese."""

    def __init__(self, language: str) -> None:
        self._column = 1 if language == "en" else 0

    def say(self, key: str, **facts: object) -> str:
        """Return a sentence with its facts, as one clean line."""
        return clean(SENTENCES[key][self._column].format(**facts))

    def join(self, *sentences: str | None) -> str:
        """Return the sentences that are there as one line."""
        return clean("; ".join(sentence for sentence in sentences if sentence))

    def without_added(self, message: str) -> str:
        """Return a message that stands without the word that its cluster cannot be read, or its release is stuck."""
        return ADDED.sub("", message)

    def queue(self, position: int, ahead: Sequence[tuple[str, str]]) -> str:
        """Return the queue's sentence; *ahead* has (actor, name) of the jobs before it, nearest to the slot first."""
        if position > EXACT_POSITIONS:
            step = 10 ** (len(str(position)) - 1) // 2
            rounded = position // step * step
            return self.say("queue", position=f"{rounded}+", ahead=f"{rounded}+", names="")
        shown = [f"{actor}: {name}" for actor, name in ahead[:NAMES_AHEAD]]
        more = ["..."] if len(ahead) > NAMES_AHEAD else []
        named = f" ({', '.join(shown + more)})" if shown else ""
        return self.say("queue", position=position, ahead=position - 1, names=named)

    def invalid(self, fault: InvalidSpec) -> str:
        """Return which field is wrong, what it holds, what is allowed."""
        return self.say("invalid", field=fault.field, got=fault.got, allowed=fault.allowed)

    def held_up(self, reasons: Sequence[HeldUp]) -> str:
        """Return which pods are not up and why, equal reasons once."""
        return "; ".join(f"{reason.pod}: {reason.text}" for reason in reasons[:3]) + (
            "; ..." if len(reasons) > 3 else ""
        )

    def ended(self, end: Ended) -> str:
        """Return how a pod ended: reason, exit code, names, and how many others ended badly."""
        more = self.say("and-more", count=end.others) if end.others else ""
        first = self.say("pod-terminated", reason=end.reason or "Error", code=end.exit_code)
        named = self.say("pod-named", pod=end.pod, container=end.container, more=more)
        return self.join(first, named, end.message)


def moment(at: float) -> str:
    """Return a time as people read it: UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def span(seconds: float) -> str:
    """Return a bound as people write it: 40m, 90s."""
    whole = int(seconds)
    return f"{whole // 60}m" if whole % 60 == 0 else f"{whole}s"
