"""
What the API server refuses of an object that is to be created: 400 for what it cannot read, 422 for what is invalid.

1. All faults of an object are told at once, each with its field, as causes of one 422.
2. A value of the wrong JSON type is a 400, as in the real decoder.
"""

import re
from collections.abc import Iterator, Sequence

from cloudsim.errors import KubeError
from cloudsim.values import Json, quantity

LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
DNS_SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
SERVICE_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
QUANTITIES = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
ENV_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")

SINGULAR = {
    "namespaces": "Namespace",
    "serviceaccounts": "ServiceAccount",
    "services": "Service",
    "jobs": "Job",
    "pods": "Pod",
    "nodes": "Node",
    "events": "Event",
}
GROUPS = {"jobs": "batch"}
NAMES = {
    "namespaces": DNS_LABEL,
    "services": SERVICE_NAME,
    "serviceaccounts": DNS_SUBDOMAIN,
    "jobs": DNS_SUBDOMAIN,
    "pods": DNS_SUBDOMAIN,
}

Cause = tuple[str, str, str]  # field, reason, text


def check(kind: str, obj: Json) -> None:
    """Refuse an object that the API server would refuse."""
    check_types(SINGULAR[kind], obj)
    causes = list(metadata_causes(kind, obj.get("metadata", {})))
    spec = obj.get("spec", {})
    if kind == "jobs":
        causes += job_causes(str(obj.get("metadata", {}).get("name", "")), spec)
    elif kind == "pods":
        causes += pod_causes("spec", spec, obj.get("metadata", {}))
    if causes:
        raise refusal(kind, obj.get("metadata", {}).get("name", ""), causes)


def refusal(kind: str, name: str, causes: Sequence[Cause]) -> KubeError:
    """Return the answer to an object that may not be as it is."""
    word = SINGULAR[kind]
    texts = [f"{field}: {text}" for field, _, text in causes]
    told = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    full = f"{word}.{GROUPS[kind]}" if kind in GROUPS else word
    return KubeError(
        422,
        "Invalid",
        f'{full} "{name}" is invalid: {told}',
        [{"reason": reason, "message": text, "field": field} for field, reason, text in causes],
        details={"name": name, "kind": word, **({"group": GROUPS[kind]} if kind in GROUPS else {})},
    )


def check_types(word: str, obj: Json) -> None:
    """Refuse what the decoder cannot read: maps of strings that hold something else."""
    template = obj.get("spec", {}).get("template", {}) if isinstance(obj.get("spec"), dict) else {}
    for owner in (obj, template):
        for name in ("labels", "annotations"):
            for value in (owner.get("metadata", {}).get(name) or {}).values():
                if not isinstance(value, str):
                    raise unreadable(word, type(value).__name__, f"ObjectMeta.metadata.{name} of type string")
    for container in template.get("spec", {}).get("containers") or []:
        for item in container.get("env") or []:
            if not isinstance(item.get("value", ""), str):
                raise unreadable(word, type(item["value"]).__name__, "EnvVar.env.value of type string")
        for name in ("command", "args"):
            if not isinstance(container.get(name) or [], list):
                raise unreadable(word, "string", f"Container.{name} of type []string")


def unreadable(word: str, got: str, where: str) -> KubeError:
    """Return the answer to a value of the wrong JSON type."""
    cause = f"json: cannot unmarshal {got} into Go struct field {where}"
    return KubeError(400, "BadRequest", f'{word} in version "v1" cannot be handled as a {word}: {cause}')


def required(field: str, more: str = "") -> Cause:
    """Return the cause of a field that is missing."""
    return field, "FieldValueRequired", "Required value" + (f": {more}" if more else "")


def invalid(field: str, value: object, why: str) -> Cause:
    """Return the cause of a field that holds what it may not."""
    told = f'"{value}"' if isinstance(value, str) else str(value)
    return field, "FieldValueInvalid", f"Invalid value: {told}: {why}"


def metadata_causes(kind: str, metadata: Json) -> Iterator[Cause]:
    """Yield what is wrong with name and labels."""
    name = metadata.get("name", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif not NAMES.get(kind, DNS_SUBDOMAIN).fullmatch(name):
        yield invalid(
            "metadata.name", name, "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"
        )
    yield from label_causes("metadata.labels", metadata.get("labels") or {})


def label_causes(field: str, labels: dict[str, str]) -> Iterator[Cause]:
    """Yield what is wrong with labels."""
    for key, value in labels.items():
        if not LABEL_KEY.fullmatch(key):
            yield invalid(field, key, "name part must consist of alphanumeric characters, '-', '_' or '.'")
        if len(value) > 63:
            yield invalid(field, value, "must be no more than 63 characters")
        elif not LABEL_VALUE.fullmatch(value):
            yield invalid(
                field,
                value,
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'",
            )


def job_causes(name: str, spec: Json) -> Iterator[Cause]:
    """Yield what is wrong with a Job."""
    for field in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds"):
        value = spec.get(field, 0)
        if not isinstance(value, int) or value < 0:
            yield invalid(f"spec.{field}", value, "must be greater than or equal to 0")
    if len(name) > 63:
        yield invalid("metadata.name", name, "must be no more than 63 characters")
    if spec.get("completionMode") == "Indexed":
        if spec.get("completions") is None:
            yield required("spec.completions", "when completion mode is Indexed")
        elif len(f"{name}-{spec['completions'] - 1}") > 63:
            yield invalid("metadata.name", name, "will not able to create pod with invalid DNS label")
    template = spec.get("template", {})
    pod = template.get("spec", {})
    if pod.get("restartPolicy") not in ("Never", "OnFailure"):
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    yield from policy_causes(spec.get("podFailurePolicy"), pod)
    yield from label_causes("spec.template.labels", template.get("metadata", {}).get("labels") or {})
    yield from pod_causes("spec.template.spec", pod, template.get("metadata", {}))


def policy_causes(policy: Json | None, pod: Json) -> Iterator[Cause]:
    """Yield what is wrong with a podFailurePolicy."""
    if policy is None:
        return
    if pod.get("restartPolicy") != "Never":
        yield invalid(
            "spec.template.spec.restartPolicy",
            pod.get("restartPolicy"),
            'only "Never" is supported when podFailurePolicy is specified',
        )
    for number, rule in enumerate(policy.get("rules", [])):
        field = f"spec.podFailurePolicy.rules[{number}]"
        if rule.get("action") not in ("FailJob", "FailIndex", "Ignore", "Count"):
            yield field + ".action", "FieldValueNotSupported", f'Unsupported value: "{rule.get("action")}"'
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if (codes is None) == (not conditions):
            yield invalid(field, rule, "specifying one of OnExitCodes and OnPodConditions is required")
        if codes is not None:
            values = codes.get("values", [])
            if not values or values != sorted(set(values)):
                yield invalid(field + ".onExitCodes.values", values, "must be ordered and without duplicates")
            if codes.get("operator") == "In" and 0 in values:
                yield invalid(field + ".onExitCodes.values[0]", 0, "must not be 0 for the In operator")


def pod_causes(field: str, pod: Json, metadata: Json) -> Iterator[Cause]:
    """Yield what is wrong with a pod."""
    volumes = {volume.get("name") for volume in pod.get("volumes") or []}
    if metadata.get("annotations", {}).get("gke-gcsfuse/volumes") == "true":
        volumes |= {"gke-gcsfuse-tmp", "gke-gcsfuse-buffer", "gke-gcsfuse-cache"}
    if not pod.get("containers"):
        yield required(f"{field}.containers")
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(pod.get(kind) or []):
            yield from container_causes(f"{field}.{kind}[{number}]", container, volumes)
    yield from label_causes(f"{field}.nodeSelector", pod.get("nodeSelector") or {})
    for name in ("subdomain", "hostname"):
        if pod.get(name) and not DNS_LABEL.fullmatch(pod[name]):
            yield invalid(
                f"{field}.{name}",
                pod[name],
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'",
            )
    if pod.get("terminationGracePeriodSeconds", 0) < 0:
        yield invalid(
            f"{field}.terminationGracePeriodSeconds",
            pod["terminationGracePeriodSeconds"],
            "must be greater than or equal to 0",
        )
    for number, toleration in enumerate(pod.get("tolerations") or []):
        if toleration.get("operator") == "Exists" and toleration.get("value"):
            yield invalid(
                f"{field}.tolerations[{number}].operator",
                toleration["value"],
                "value must be empty when `operator` is 'Exists'",
            )


def container_causes(field: str, container: Json, volumes: set[str | None]) -> Iterator[Cause]:
    """Yield what is wrong with a container."""
    name = container.get("name", "")
    if not name:
        yield required(f"{field}.name")
    elif not DNS_LABEL.fullmatch(name):
        yield invalid(
            f"{field}.name",
            name,
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'",
        )
    if not container.get("image"):
        yield required(f"{field}.image")
    for number, item in enumerate(container.get("env") or []):
        if not item.get("name"):
            yield required(f"{field}.env[{number}].name")
        elif not ENV_NAME.fullmatch(item["name"]):
            yield invalid(
                f"{field}.env[{number}].name",
                item["name"],
                "a valid environment variable name must consist of alphabetic characters",
            )
    mounted: set[str] = set()
    for number, mount in enumerate(container.get("volumeMounts") or []):
        if mount.get("name") not in volumes:
            yield f"{field}.volumeMounts[{number}].name", "FieldValueNotFound", f'Not found: "{mount.get("name")}"'
        if not mount.get("mountPath"):
            yield required(f"{field}.volumeMounts[{number}].mountPath")
        elif mount["mountPath"] in mounted:
            yield invalid(f"{field}.volumeMounts[{number}].mountPath", mount["mountPath"], "must be unique")
        mounted.add(mount.get("mountPath", ""))
    yield from resource_causes(f"{field}.resources", container.get("resources") or {})


def resource_causes(field: str, resources: Json) -> Iterator[Cause]:
    """Yield what is wrong with requests and limits."""
    amounts: dict[tuple[str, str], float] = {}
    for kind in ("requests", "limits"):
        for name, value in (resources.get(kind) or {}).items():
            try:
                amounts[(kind, name)] = quantity(value)
            except ValueError:
                raise KubeError(400, "BadRequest", f"{QUANTITIES}: {value!r}") from None
    for (kind, name), amount in amounts.items():
        if kind == "requests" and amount > amounts.get(("limits", name), amount):
            yield invalid(
                f"{field}.requests",
                resources["requests"][name],
                f"must be less than or equal to {name} limit of {resources['limits'][name]}",
            )
        if "/" in name and amount != amounts.get(("limits", name)):
            yield (
                f"{field}.limits[{name}]",
                "FieldValueRequired",
                "Required value: Limit must be set for non overcommitable resources",
            )
