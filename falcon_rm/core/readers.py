"""
How single values of a spec are read: each reader returns the value, or raises Refused and says what is allowed.

1. A number may stand as a string, a string as a number: submitters write both.
2. Text is valid Unicode without NUL, since neither can be handed to Kubernetes or to a program.
3. Everything has a bound, so that the manifest fits Kubernetes and a word fits Linux.
"""

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TypeVar

from falcon_rm.core.shapes import ACCELERATORS, parse_type

COMMAND_BYTES = 120_000  # Linux refuses 131,072 in one word
ENV_BYTES = 120_000
ENVS_BYTES = 262_144
LABELS_BYTES = 32_768
OPTIONS = 32

CPU = "cpu"
MOST = 2**63 // 1000  # Kubernetes counts thousandths in 64 bits
QUANTITIES = ("cpu_request", "cpu_limit", "memory_request", "memory_limit")
RESERVED_PATHS = ("/gcs", "/tmp/tpu_logs")
FORBIDDEN_OPTIONS = (  # gke.md 6.3
    "cache-dir",
    "config-file",
    "foreground",
    "kernel-params-file",
    "key-file",
    "log-file",
    "log-format",
    "o",
    "prometheus-port",
    "reuse-token-from-url",
    "temp-dir",
    "token-url",
)

_IMAGE = re.compile(r"[!-~]{1,1000}")
_ENV_NAME = re.compile(r"(?!\.\.|\.\Z)[-._a-zA-Z][-._a-zA-Z0-9]{0,255}")
_BUCKET = re.compile(r"[a-z0-9][-_.a-z0-9]{1,220}[a-z0-9]")
_OPTION = re.compile(r"[^,\s]{1,256}")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?")
_UNITS: Mapping[str, Decimal] = {
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("num", start=-3)},
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}

T = TypeVar("T")


class Refused(Exception):
    """A fault: what is allowed, what was found, and where below the value that was being read."""

    def __init__(self, allowed: str, got: object, where: str = "") -> None:
        super().__init__(allowed)
        self.allowed = allowed
        self.got = got
        self.where = where

    def below(self, name: str) -> "Refused":
        """Return the same fault as seen from outside the field called *name*."""
        joint = "." if self.where and not self.where.startswith("[") else ""
        return Refused(self.allowed, self.got, f"{name}{joint}{self.where}")


def scalar(value: object) -> str:
    """Return text as it is, numbers and truth values as JSON spells them."""
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if not isinstance(value, str):
        raise Refused("a string, a number, true or false", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused("valid Unicode", value) from None
    if "\0" in value:
        raise Refused("text without NUL", value)
    return value


def short(value: object) -> str:
    """Return a name or a phrase, without blanks around it."""
    text = scalar(value).strip()
    if len(text) > 1000:
        raise Refused("at most 1000 characters", value)
    return text


def image(value: object) -> str:
    """Return an image reference."""
    return _matching(_IMAGE, "an image reference without blanks", value)


def bucket(value: object) -> str:
    """Return the name of a bucket."""
    return _matching(_BUCKET, "the name of a bucket", value)


def _matching(pattern: re.Pattern[str], allowed: str, value: object) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise Refused(allowed, value)
    return value


def one_of(choices: Mapping[str, T]) -> Callable[[object], T]:
    """Return a reader of a choice, in any case; "" stands for none where it is one of them."""

    def read(value: object) -> T:
        word = value.strip().lower() if isinstance(value, str) else None
        if word is None or word not in choices:
            raise Refused(", ".join(name or "empty" for name in choices), value)
        return choices[word]

    return read


def whole(least: int, most: int) -> Callable[[object], int]:
    """Return a reader of a whole number."""

    def read(value: object) -> int:
        number: int | None = None
        if isinstance(value, str):
            number = int(value) if _WHOLE.fullmatch(value.strip()) else None
        elif isinstance(value, int | float) and not isinstance(value, bool):
            number = int(value) if value == value // 1 else None
        if number is None or not least <= number <= most:
            raise Refused(f"a whole number from {least} to {most}", value)
        return number

    return read


def flag(value: object) -> bool:
    """Return a truth value."""
    return value if isinstance(value, bool) else one_of({"true": True, "false": False})(value)


def word_list(value: object) -> tuple[str, ...]:
    """Return the words of a command line."""
    if not isinstance(value, list):
        raise Refused("a list of words", value)
    words = tuple(scalar(word) for word in value)
    if sum(len(word.encode()) + 1 for word in words) > COMMAND_BYTES:
        raise Refused(f"at most {COMMAND_BYTES} bytes", value)
    return words


def command(value: object) -> str | tuple[str, ...] | None:
    """Return a shell script, or the words of a command; nothing if it is empty."""
    if isinstance(value, list):
        words = word_list(value)
        if words and not words[0]:
            raise Refused("a list that begins with a program", value)
        return words or None
    if not isinstance(value, str):
        raise Refused("a shell script or a list of words", value)
    script = scalar(value)
    if len(script.encode()) > COMMAND_BYTES:
        raise Refused(f"at most {COMMAND_BYTES} bytes", value)
    return script or None


def device_type(value: object) -> str:
    """Return a TPU type, or cpu."""
    name = value.strip().lower() if isinstance(value, str) else ""
    known = CPU if name == CPU else parse_type(name)
    if known is None:
        raise Refused(f"{', '.join(ACCELERATORS)} or {CPU}", value)
    return known


def mapping(value: object) -> dict[str, object]:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise Refused("an object", value)
    return value


def envs(value: object) -> dict[str, str]:
    """Return environment variables; values become strings, null an empty one."""
    envs = {}
    for name, content in mapping(value).items():
        if not _ENV_NAME.fullmatch(name):
            raise Refused("names of letters, digits, _ . and -, no digit and no two dots first", name)
        envs[name] = "" if content is None else scalar(content)
        if len(envs[name].encode()) > ENV_BYTES:
            raise Refused(f"at most {ENV_BYTES} bytes in one value", name)
    if sum(len(name) + len(content.encode()) for name, content in envs.items()) > ENVS_BYTES:
        raise Refused(f"at most {ENVS_BYTES} bytes in all", value)
    return envs


def labels(value: object) -> dict[str, str]:
    """Return labels with any keys and values: they are made legal later."""
    labels = {scalar(name): "" if content is None else scalar(content) for name, content in mapping(value).items()}
    if sum(len(name.encode()) + len(content.encode()) for name, content in labels.items()) > LABELS_BYTES:
        raise Refused(f"at most {LABELS_BYTES} bytes in all", value)
    return labels


def resources(value: object) -> dict[str, str]:
    """Return the quantities that are given, each request within its limit."""
    given = mapping(value)
    read = {name: _quantity(name, given[name]) for name in QUANTITIES if given.get(name) not in (None, "")}
    for kind in ("cpu", "memory"):
        request, limit = read.get(f"{kind}_request"), read.get(f"{kind}_limit")
        if request and limit and _amount(request) > _amount(limit):
            raise Refused(f"at most {kind}_limit, {limit}", request, f"{kind}_request")
    return read


def _quantity(name: str, value: object) -> str:
    text = json.dumps(value) if isinstance(value, int | float) else value
    if not isinstance(text, str) or not _QUANTITY.fullmatch(text) or _amount(text) >= MOST:
        raise Refused("a Kubernetes quantity such as 500m, 2 or 16Gi", value, name)
    if name.startswith("memory") and _amount(text) % 1:
        raise Refused("whole bytes, such as 500M or 16Gi", value, name)
    return text


def _amount(quantity: str) -> Decimal:
    matched = _QUANTITY.fullmatch(quantity)
    assert matched, quantity
    number, suffix = matched.groups(default="")
    return Decimal(number) * _UNITS[suffix] if suffix in _UNITS else Decimal(f"{number}{suffix}")


def mount_path(value: object) -> str:
    """Return a path at which a bucket can be mounted beside those of Falcon."""
    path = "/" + re.sub("/+", "/", short(value)).strip("/")
    relative = ":" in path or {".", ".."} & set(path.split("/"))
    if not isinstance(value, str) or not value.startswith("/") or path == "/" or relative:
        raise Refused("an absolute path below /, without colons, . and ..", value)
    for taken in RESERVED_PATHS:
        if f"{path}/".startswith(f"{taken}/") or f"{taken}/".startswith(f"{path}/"):
            raise Refused(f"a path apart from {' and '.join(RESERVED_PATHS)}, which Falcon mounts", value)
    return path


def prefix(value: object) -> str:
    """Return the prefix of objects in a bucket, without slashes around it."""
    prefix = short(value).strip("/")
    parts = prefix.split("/") if prefix else []
    if {"", ".", ".."} & set(parts) or re.search(r"[,:\x00-\x1f\x7f]", prefix):
        raise Refused("an object prefix such as a/b, without commas and colons", value)
    return prefix


def options(value: object) -> tuple[str, ...]:
    """Return gcsfuse options; those that would break the mount are refused (gke.md 6.3)."""
    if not isinstance(value, list) or len(value) > OPTIONS:
        raise Refused(f"a list of at most {OPTIONS} gcsfuse options", value)
    for option in value:
        if not isinstance(option, str) or not _OPTION.fullmatch(scalar(option)):
            raise Refused("options without commas and blanks", option)
        name = re.split("[=:]", option.lstrip("-"), maxsplit=1)[0]
        if name in FORBIDDEN_OPTIONS:
            raise Refused(f"other options than {', '.join(FORBIDDEN_OPTIONS)}", option)
    return tuple(value)
