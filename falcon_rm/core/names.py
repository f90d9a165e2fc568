"""
Every name and label that Falcon writes into a cloud.

1. A name is a function of job id and attempt, a label of the exact value; different values stay different (P41, P42).
2. What is legal already stays as it is, unless it could be taken for something made legal: that is changed as well.
3. Whatever is changed carries a hash of the exact value: 65 bits, in base 32.
4. Kubernetes and Google Cloud have different alphabets; both spellings live here and nowhere else.

Limits: gke.md 2.5 (pool names, node labels), Kubernetes' labels, Google Cloud's resource labels.
"""

import re
from base64 import b32encode
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from json import dumps

from attrs import frozen

Labels = Mapping[str, str] | Iterable[tuple[str, str]]

PREFIX = "falcon-"
MANAGED_BY = "managed-by"
INSTANCE = "falcon.io/instance"
JOB_ID = "falcon.io/job-id"
ATTEMPT = "falcon.io/attempt"
CLUSTER_ID = "falcon.io/cluster-id"
EXP_ID = "falcon.io/exp-id"
OWNER = "owner"
# Annotations, beside those of JOB_ID and EXP_ID: what the labels of the same meaning cannot spell.
EXACT_OWNER = "falcon.io/owner"
EXACT_LABELS = "falcon.io/labels"

NAME_LENGTH = 40  # GKE's limit for a node pool; a pod of it (index, random part) stays below 63
LABEL_LENGTH = 63
LABELS_TOTAL = 1024  # characters of all node labels in one request to GKE
EXTRA_LABELS = 30

_HASH = "[a-z2-7]{13}"
_PLAIN_ID = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_ENDS_LIKE_ATTEMPT = re.compile(r"-[0-9]+\Z")
_LOOKS_HASHED = re.compile(rf"h{_HASH}(-|\Z)")
_LABEL_LOOKS_HASHED = re.compile(rf"_h{_HASH}\Z")
_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_PREFIXED_KEY = re.compile(rf"(?=.{{1,253}}/)(?P<domain>{_DOMAIN})/(?P<name>.+)")

# Keys that Kubernetes, GKE and Falcon give a meaning of their own: a user's label of that name would break the Job.
_RESERVED_DOMAINS = ("kubernetes.io", "k8s.io", "google.com", "falcon.io")
_RESERVED_KEYS = frozenset({"job-name", "controller-uid", MANAGED_BY})


@frozen
class _Alphabet:
    """What a label may consist of: *legal* matches whole values, *illegal* each character to be replaced."""

    legal: re.Pattern[str]
    illegal: re.Pattern[str]
    lower: bool = False

    def takes(self, text: str) -> bool:
        """Tell whether *text* may stay as it is: legal, and nothing that `_hashed` could have made of another text."""
        return self.legal.fullmatch(text) is not None and _LABEL_LOOKS_HASHED.search(text) is None


_KUBERNETES = _Alphabet(
    re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"), re.compile(r"[^-A-Za-z0-9_.]+")
)
_GOOGLE = _Alphabet(re.compile(r"[-a-z0-9_]{0,63}"), re.compile(r"[^-a-z0-9_]+"), lower=True)


@lru_cache(maxsize=10_000)
def cloud_name(job_id: str, attempt: int) -> str:
    """
    Return the name of the pool, the Kubernetes Job and the Service of one attempt.

    `falcon-<job id>`, from the second attempt on with `-<attempt>`; where that is too long, not legal or ambiguous
    `falcon-h<hash>-<what is legible of the id>`, the same suffix behind it.

    Two pairs never share a name. Behind the prefix a plain name is an id, or an id and a suffix. Plain ids never end
    like a suffix, so a plain name is read in one way only. A hashed name begins with h, 13 characters of the hash,
    then "-" or the end; a plain id that begins so is hashed, and a suffix cannot make one begin so, since it begins
    with "-" and the hash has none. So no plain name is a hashed one. Hashed names differ by the hash of the pair.

    Raises:
        ValueError: the attempt is below 1.
    """
    if attempt < 1:
        raise ValueError(f"attempt {attempt} has no name: the first is 1")
    suffix = f"-{attempt}" if attempt > 1 else ""
    plain = f"{PREFIX}{job_id}{suffix}"
    ambiguous = _ENDS_LIKE_ATTEMPT.search(job_id) or _LOOKS_HASHED.match(job_id)
    if len(plain) <= NAME_LENGTH and _PLAIN_ID.fullmatch(job_id) and not ambiguous:
        return plain
    hashed = f"{PREFIX}h{_hash(f'{attempt}:{job_id}')}"
    room = NAME_LENGTH - len(hashed) - len(suffix) - 1
    legible = re.sub(r"[^a-z0-9]+", "-", job_id.lower())[: max(room, 0)].strip("-")
    return f"{hashed}-{legible}{suffix}" if legible else f"{hashed}{suffix}"


def policy_name(tpu_type: str, topology: str) -> str:
    """Return the name of the workload policy that all pools of a topology in a region share."""
    return f"{PREFIX}{tpu_type}-{topology}"


def label_value(text: str) -> str:
    """Return *text* as the value of a Kubernetes label; "" stays ""."""
    return _legal(text, _KUBERNETES)


def gcp_label_value(text: str) -> str:
    """Return *text* as the value of a Google Cloud resource label; "" stays ""."""
    return _legal(text, _GOOGLE)


def gcp_label_key(key: str) -> str:
    """Return the key of one of our labels as Google Cloud spells it: `falcon.io/job-id` is `falcon-io-job-id`."""
    return re.sub(r"[./]", "-", key)


def labels(
    *,
    instance: str,
    cluster_id: str,
    job_id: str,
    attempt: int,
    exp_id: str,
    owner: str,
    extra: Labels = (),
) -> dict[str, str]:
    """
    Return the labels of a pool's nodes, a Job and its pods.

    A user's labels (*extra*) come after ours, never instead of them, made legal, as many as GKE takes in one request.
    """
    ours = _ours(instance, cluster_id, job_id, attempt, exp_id, owner)
    return _with_extra({key: label_value(value) for key, value in ours.items()}, extra, _kubernetes_key, label_value)


def resource_labels(
    *,
    instance: str,
    cluster_id: str,
    job_id: str,
    attempt: int,
    exp_id: str,
    owner: str,
    extra: Labels = (),
) -> dict[str, str]:
    """Return the same labels as Google Cloud's own resources carry them, for the bill."""
    ours = _ours(instance, cluster_id, job_id, attempt, exp_id, owner)
    spelled = {gcp_label_key(key): gcp_label_value(value) for key, value in ours.items()}
    return _with_extra(spelled, extra, _google_key, gcp_label_value)


def annotations(*, job_id: str, exp_id: str, owner: str, extra: Labels = ()) -> dict[str, str]:
    """Return the exact values behind the labels, a user's own as one JSON object."""
    theirs = dict(extra)
    exact = {
        JOB_ID: job_id,
        EXP_ID: exp_id,
        EXACT_OWNER: owner,
        EXACT_LABELS: dumps(theirs, ensure_ascii=False, sort_keys=True) if theirs else "",
    }
    return {key: value for key, value in exact.items() if value}


def selector(instance: str, cluster_id: str) -> str:
    """Return the Kubernetes label selector of all that is ours in one cluster."""
    return f"{INSTANCE}={label_value(instance)},{CLUSTER_ID}={label_value(cluster_id)}"


def is_ours(name: str, found: Mapping[str, str], *, instance: str, cluster_id: str) -> bool:
    """Tell whether a thing of this name with these Kubernetes labels is ours (design.md 5)."""
    owned = {INSTANCE: label_value(instance), CLUSTER_ID: label_value(cluster_id)}
    return name.startswith(PREFIX) and all(found.get(key) == value for key, value in owned.items())


def is_of(found: Mapping[str, str], job_id: str, attempt: int) -> bool:
    """Tell whether a thing with these Kubernetes labels was made for this attempt of this job."""
    return found.get(JOB_ID) == label_value(job_id) and found.get(ATTEMPT) == str(attempt)


def _ours(instance: str, cluster_id: str, job_id: str, attempt: int, exp_id: str, owner: str) -> dict[str, str]:
    """Return our labels with exact values; empty ones are left out."""
    exact = {
        MANAGED_BY: "falcon",
        INSTANCE: instance,
        JOB_ID: job_id,
        ATTEMPT: str(attempt),
        CLUSTER_ID: cluster_id,
        EXP_ID: exp_id,
        OWNER: owner,
    }
    return {key: value for key, value in exact.items() if value}


def _with_extra(
    ours: dict[str, str],
    extra: Labels,
    legal_key: Callable[[str], str],
    legal_value: Callable[[str], str],
) -> dict[str, str]:
    """Return *ours* and, in the order of their keys, as many of a user's labels as there is room for."""
    made = dict(ours)
    room = LABELS_TOTAL - sum(len(key) + len(value) for key, value in ours.items())
    for key, value in sorted(dict(extra).items())[:EXTRA_LABELS]:
        name, content = legal_key(key), legal_value(value)
        room -= len(name) + len(content)
        if room < 0:
            break
        made.setdefault(name, content)
    return made


def _kubernetes_key(key: str) -> str:
    parts = _PREFIXED_KEY.fullmatch(key)
    if parts and not _reserved(parts["domain"]) and _KUBERNETES.takes(parts["name"]):
        return key
    return key if key and key not in _RESERVED_KEYS and _KUBERNETES.takes(key) else _hashed(key, _KUBERNETES)


def _google_key(key: str) -> str:
    # A key begins with a letter; those that begin with goog are Google's.
    if re.match("[a-z]", key) and not key.startswith("goog") and _GOOGLE.takes(key):
        return key
    return _hashed(f"x-{key}", _GOOGLE)


def _reserved(domain: str) -> bool:
    return any(domain == reserved or domain.endswith(f".{reserved}") for reserved in _RESERVED_DOMAINS)


def _legal(text: str, alphabet: _Alphabet) -> str:
    return text if alphabet.takes(text) else _hashed(text, alphabet)


def _hashed(text: str, alphabet: _Alphabet) -> str:
    """Return what is legible of *text*, then a hash of all of it: legal in both alphabets, never empty."""
    mark = f"_h{_hash(text)}"
    spelled = alphabet.illegal.sub("-", text.lower() if alphabet.lower else text)
    legible = spelled[: LABEL_LENGTH - len(mark)].lstrip("-_.")
    return f"{legible or 'x'}{mark}"


def _hash(text: str) -> str:
    digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
    return b32encode(digest).decode("ascii").lower()[:13]
