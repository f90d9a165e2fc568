"""
`job.spec` as a TaskSpec, or why it can never run (contract.md 4).

1. parse() answers for every input; it never raises (P98).
2. Fields are checked in the order in which they stand below, then together; the first fault is the one reported.
3. What passes here is taken by Kubernetes: what it would refuse is refused here, by the name of the field.
4. Unknown fields are named, never refused.
"""

import json
from collections.abc import Callable, Mapping
from reprlib import Repr
from typing import Annotated, Any, TypeVar

from attrs import AttrsInstance, field, fields, frozen
from cattrs import ClassValidationError, Converter

from falcon_rm.core import readers
from falcon_rm.core.model import InvalidSpec, Mount, TaskSpec
from falcon_rm.core.readers import CPU, Refused
from falcon_rm.core.shapes import Shape, ShapeError, device_counts, shape
from falcon_rm.core.words import Mode

SPEC_CHARACTERS = 1_048_576
MOUNTS = 16

ALIASES: Mapping[str, str] = {
    "tpu_type": "device_type",
    "topology": "device_topo",
    "replicas": "replica",
    "env": "envs",
}

_MISSING = object()
_OF_CPU: Mapping[str, tuple[object, ...]] = {
    "device_topo": ("",),
    "machine_type": ("",),
    "replica": (None, 1),
    "device_count": (None, 0, 1),
}

_REPR = Repr()
_REPR.maxlevel, _REPR.maxdict, _REPR.maxlist, _REPR.maxstring, _REPR.maxlong = 2, 3, 3, 80, 40

T = TypeVar("T", bound=AttrsInstance)


def parse(raw: str | bytes | None) -> TaskSpec | InvalidSpec:
    """Return the TaskSpec that *raw* holds, or the first thing that is wrong with it."""
    try:
        found = _loaded(raw)
        return _task(_structured(_renamed(found), _Fields), _unknown(found))
    except Refused as refused:
        return InvalidSpec(refused.where or "spec", _shown(refused.got), refused.allowed)
    except ShapeError as error:
        return InvalidSpec(error.field, _shown(error.got), error.allowed)
    except RecursionError:
        return InvalidSpec("spec", _shown(raw), "a JSON object that is not nested so deeply")


def _loaded(raw: str | bytes | None) -> dict[str, object]:
    if raw is not None and len(raw) > SPEC_CHARACTERS:
        raise Refused(f"at most {SPEC_CHARACTERS} characters", len(raw))
    try:
        found = json.loads(raw or "", parse_constant=_no_constant)
    except ValueError:
        raise Refused("a JSON object", raw) from None
    if not isinstance(found, dict):
        raise Refused("a JSON object", found)
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _renamed(found: Mapping[str, object]) -> dict[str, object]:
    """Return the fields under their main names; null is the same as absent."""
    named = {name: value for name, value in found.items() if value is not None}
    for alias, name in ALIASES.items():
        if alias in named:
            value = named.pop(alias)
            if named.setdefault(name, value) != value:
                raise Refused(f"the same as {name}, or only one of the two", value, alias)
    return named


def _unknown(found: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names nobody knows, at most 20, each cut and on one line."""
    names = set(found) - set(ALIASES) - set(_names(_Fields))
    mounts, resources = found.get("mounts"), found.get("resources")
    for mount in mounts if isinstance(mounts, list) else []:
        names |= {f"mounts.{name}" for name in set(mount) - set(_names(_MountFields))}
    if isinstance(resources, dict):
        names |= {f"resources.{name}" for name in set(resources) - set(readers.QUANTITIES)}
    return tuple(sorted({repr(name[:64])[1:-1][:64] for name in names})[:20])


def _shown(value: object) -> str:
    """Return what a field holds, short and on one line."""
    if value is None or value is _MISSING:
        return "null" if value is None else "nothing"
    return _REPR.repr(value)[:200]


def _mounts(value: object) -> tuple[Mount, ...]:
    if not isinstance(value, list) or len(value) > MOUNTS:
        raise Refused(f"a list of at most {MOUNTS} mounts", value)
    mounts = tuple(_mount(f"[{index}]", item) for index, item in enumerate(value))
    paths = [mount.mount_path for mount in mounts]
    for index, path in enumerate(paths):
        if path in paths[:index]:
            raise Refused("a path that no other mount has", path, f"[{index}].mount_path")
    return mounts


def _mount(where: str, item: object) -> Mount:
    try:
        given = readers.mapping(item)
        read = _structured({name: value for name, value in given.items() if value is not None}, _MountFields)
    except Refused as refused:
        raise refused.below(where) from None
    return Mount(
        name=read.name,
        bucket=read.bucket,
        mount_path=read.mount_path,
        prefix=read.prefix,
        read_only=read.read_only,
        options=read.mount_options,
    )


@frozen(kw_only=True)
class _MountFields:
    """One of `mounts`, each field with its reader."""

    name: Annotated[str, readers.short]
    type: Annotated[str, readers.one_of({"gcs": "gcs"})] = "gcs"
    bucket: Annotated[str, readers.bucket]
    prefix: Annotated[str, readers.prefix] = ""
    mount_path: Annotated[str, readers.mount_path]
    read_only: Annotated[bool, readers.flag] = False
    mount_options: Annotated[tuple[str, ...], readers.options] = ()


@frozen(kw_only=True)
class _Fields:
    """The fields of a spec, each with its reader."""

    image: Annotated[str, readers.image]
    command: Annotated[str | tuple[str, ...] | None, readers.command] = None
    args: Annotated[tuple[str, ...], readers.word_list] = ()
    device_type: Annotated[str, readers.device_type]
    device_topo: Annotated[str, readers.short] = ""
    replica: Annotated[int | None, readers.whole(0, 1_000_000)] = None
    device_count: Annotated[int | None, readers.whole(0, 1_000_000)] = None
    machine_type: Annotated[str, readers.short] = ""
    supply_mode: Annotated[Mode | None, readers.one_of({**{mode.value: mode for mode in Mode}, "": None})] = None
    envs: Annotated[Mapping[str, str], readers.envs] = field(factory=dict)
    mounts: Annotated[tuple[Mount, ...], _mounts] = ()
    resources: Annotated[Mapping[str, str], readers.resources] = field(factory=dict)
    exp_id: Annotated[str, readers.short] = ""
    owner: Annotated[str, readers.short] = ""
    labels: Annotated[Mapping[str, str], readers.labels] = field(factory=dict)
    max_retries: Annotated[int, readers.whole(0, 100)] = 0
    log: Annotated[bool, readers.one_of({"gcs": True, "none": False})] = True
    termination_grace_seconds: Annotated[int, readers.whole(0, 3600)] = 30


_CONVERTER = Converter()


@_CONVERTER.register_structure_hook_factory(lambda kind: hasattr(kind, "__metadata__"))
def _by_its_reader(kind: Any) -> Callable[[object, object], object]:
    reader = kind.__metadata__[0]
    return lambda value, _: reader(value)


def _names(kind: type[AttrsInstance]) -> tuple[str, ...]:
    return tuple(attribute.name for attribute in fields(kind))


def _structured(found: Mapping[str, object], kind: type[T]) -> T:
    """Return *found* as *kind*, or raise the first fault in the order of its fields."""
    try:
        return _CONVERTER.structure(found, kind)
    except ClassValidationError as error:
        faults = {note.name: fault for fault, note in error.group_exceptions()[0]}
    name = next(name for name in _names(kind) if name in faults)
    fault = faults[name]
    if isinstance(fault, KeyError):
        raise Refused("required", _MISSING, name)
    assert isinstance(fault, Refused), fault
    raise fault.below(name)


def _task(read: _Fields, unknown: tuple[str, ...]) -> TaskSpec:
    """Return the task; what depends on more than one field is checked here."""
    if isinstance(read.command, str) and read.args:
        raise Refused("no args with a script: they belong to a list or to the image's entry point", read.args, "args")
    return TaskSpec(
        image=read.image,
        shape=_shape(read),
        command=read.command,
        args=read.args,
        mode=None if read.device_type == CPU else read.supply_mode,
        envs=read.envs,
        mounts=read.mounts,
        resources=read.resources,
        exp_id=read.exp_id,
        owner=read.owner,
        labels=read.labels,
        max_retries=read.max_retries,
        log=read.log,
        grace_seconds=read.termination_grace_seconds,
        unknown_fields=unknown,
    )


def _shape(read: _Fields) -> Shape | None:
    if read.device_type == CPU:
        for name, allowed in _OF_CPU.items():
            if getattr(read, name) not in allowed:
                raise Refused(f"nothing: device_type is {CPU}", getattr(read, name), name)
        return None
    made = shape(read.device_type, read.device_topo, read.machine_type or None, read.replica)
    counts = device_counts(made)
    if read.device_count is not None and read.device_count not in counts:
        listed = ", ".join(map(str, sorted(counts)))
        hosts = "1 host" if made.hosts == 1 else f"{made.hosts} hosts"
        raise Refused(f"{listed}: {made.tpu_type} {made.topology} on {hosts}", read.device_count, "device_count")
    return made
