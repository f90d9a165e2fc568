"""
Settings: what `FALCON_*` variables there are, what they may hold, and what is in force.

1. SETTINGS is the only list of them: the checks, `falcon-rm config` and the defaults all come from it.
2. Every fault is told at once, each with the setting, what it holds and what is allowed.
3. A secret leaves this module only in the value that needs it: never in a fault, a table or a repr.
4. A variable that is nobody's setting is a fault too, so that a misspelt one never goes unnoticed.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from string import Formatter
from typing import Any
from urllib.parse import unquote, urlsplit

from attrs import evolve, field, fields_dict, frozen

from falcon_rm.core.model import Bounds

HOUR, DAY = 3600, 86400

UNITS = {"": 1, "s": 1, "m": 60, "h": HOUR, "d": DAY}

FOREIGN = re.compile(r"FALCON_(TEST_.*|(.*_)?SERVICE_(HOST|PORT.*)|(.*_)?PORT(_\d+_(TCP|UDP).*)?)")
"""Not ours to judge: the tests' own, and what Kubernetes puts into every pod for a Service called falcon-something."""


class ConfigError(Exception):
    """Settings that cannot be used; *faults* has one line for each."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


@frozen
class Setting:
    """
    One `FALCON_*` variable.

    *attribute* names a field of Settings or of Bounds. *default* is text, read like the variable itself; None: not set.
    *minimum* and *maximum* are seconds, or plain numbers for a count.
    """

    name: str
    attribute: str
    kind: str  # a key of KINDS
    default: str | None
    help: str
    minimum: float = 0
    maximum: float = 0
    choices: tuple[str, ...] = ()
    secret: bool = False


SETTINGS = (
    Setting("FALCON_DATABASE_URL", "database_url", "url", None, "the database shared with upstream", secret=True),
    Setting("FALCON_DATABASE_PASSWORD_FILE", "password_file", "file", None, "a file that holds its password"),
    Setting("FALCON_INTERVAL", "interval", "duration", "10s", "between two passes when nothing happened", 0.05, HOUR),
    Setting("FALCON_CALL_TIMEOUT", "call_timeout", "duration", "8s", "bound of a call that reads", 0.1, 120),
    Setting("FALCON_CREATE_TIMEOUT", "create_timeout", "duration", "30s", "bound of a create or delete call", 0.1, 300),
    Setting("FALCON_PASS_TIMEOUT", "pass_timeout", "duration", "120s", "bound of a whole pass", 1, HOUR),
    Setting("FALCON_VISIBILITY_GRACE", "visibility_grace", "duration", "2m", "a new pool may be unlisted", 0, HOUR),
    Setting("FALCON_POOL_TIMEOUT", "pool_timeout", "duration", "40m", "bound of a pool's creation", 1, DAY),
    Setting("FALCON_POOL_ATTEMPTS", "pool_attempts", "count", "3", "pools that fail before their job does", 1, 100),
    Setting("FALCON_BACKOFF_BASE", "backoff_base", "duration", "60s", "first wait after a failed pool", 0.1, DAY),
    Setting("FALCON_BACKOFF_MAX", "backoff_max", "duration", "30m", "longest wait after a failed pool", 0.1, DAY),
    Setting("FALCON_CLUSTER_PAUSE", "cluster_pause", "duration", "10m", "a cluster in trouble gets no jobs", 0, DAY),
    Setting("FALCON_NODE_WAIT", "node_wait", "duration", "15m", "a contested or stopping pool is given up", 1, DAY),
    Setting("FALCON_NODE_WAIT_FLEX", "node_wait_flex", "duration", "6h", "the same for flex-start", 1, 7 * DAY),
    Setting("FALCON_POD_START_IMAGE", "pod_start_image", "duration", "15m", "an image that is not pulled", 1, DAY),
    Setting("FALCON_POD_START_CONFIGURATION", "pod_start_configuration", "duration", "3m", "a wrong pod", 1, DAY),
    Setting("FALCON_POD_START_SIDECAR", "pod_start_sidecar", "duration", "5m", "a sidecar that stays down", 1, DAY),
    Setting("FALCON_POD_START_UNSCHEDULABLE", "pod_start_unschedulable", "duration", "15m", "no node fits", 1, DAY),
    Setting("FALCON_IDLE", "idle", "duration", "10m", "a free pool older than this goes", 0, DAY),
    Setting("FALCON_IDLE_FLEX", "idle_flex", "duration", "6h", "the same for flex-start", 0, 7 * DAY),
    Setting("FALCON_ROOM_HOLD", "room_hold", "duration", "30m", "then nobody passes a job that lacks room", 0, DAY),
    Setting("FALCON_RELEASE_TIMEOUT", "release_timeout", "duration", "15m", "then the end is told anyway", 1, DAY),
    Setting("FALCON_STOP_EXTRA", "stop_extra", "duration", "5m", "after the pods' grace their pool goes", 0, DAY),
    Setting("FALCON_LANG", "language", "choice", "zh", "language of the messages in job", choices=("zh", "en")),
    Setting(
        "FALCON_LOG_PATH_TEMPLATE",
        "log_path_template",
        "template",
        "logs/{job_id}/{pod_name}.log",
        "a log's object in the bucket",
    ),
    Setting("FALCON_LOG_FORMAT", "log_format", "choice", "json", "of the log on stderr", choices=("json", "console")),
    Setting("FALCON_METRICS_ADDRESS", "metrics_address", "address", None, "where run serves metrics and probes"),
    Setting("FALCON_GKE_ENDPOINT", "gke_endpoint", "endpoint", None, "GKE's API, if not Google's own address"),
    Setting("FALCON_COMPUTE_ENDPOINT", "compute_endpoint", "https", None, "the same for Compute's API"),
    Setting("FALCON_RESOURCE_MANAGER_ENDPOINT", "resource_manager_endpoint", "https", None, "for Resource Manager's"),
    Setting("FALCON_STORAGE_ENDPOINT", "storage_endpoint", "https", None, "for Cloud Storage's"),
)


@frozen
class Origin:
    """A setting as it is in force: *shown* hides secrets, *source* is default, environment or file."""

    name: str
    shown: str | None
    source: str
    help: str


@frozen
class Settings:
    """What is in force. Times are seconds; None means not set."""

    database_url: str | None = field(default=None, repr=False)
    database_password: str | None = field(default=None, repr=False)
    """What the password file holds; it stands above a password in the URL."""
    interval: float = 10
    call_timeout: float = 8
    create_timeout: float = 30
    pass_timeout: float = 120
    log_format: str = "json"
    metrics_address: str | None = None
    gke_endpoint: str | None = None
    compute_endpoint: str | None = None
    resource_manager_endpoint: str | None = None
    storage_endpoint: str | None = None
    limits: Bounds = field(factory=Bounds)
    origins: tuple[Origin, ...] = ()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never show, in each form in which it may stand in a text; longest first."""
        in_url = urlsplit(self.database_url or "").password
        found = {self.database_password, in_url, unquote(in_url or "")} - {None, ""}
        return tuple(sorted(map(str, found), key=len, reverse=True))

    def bounds(self, *, allow_mass_delete: bool = False) -> Bounds:
        """Return the bounds that decide; *allow_mass_delete* lifts the sweep's brake."""
        return evolve(self.limits, allow_mass_delete=allow_mass_delete)


def load(environ: Mapping[str, str]) -> Settings:
    """
    Return the settings that *environ* asks for; an empty variable counts as not set.

    Raises:
        ConfigError: with every fault there is.
    """
    faults = list(_strangers(environ))
    values: dict[str, Any] = {}
    origins: list[Origin] = []
    for setting in SETTINGS:
        text = environ.get(setting.name) or None
        try:
            values[setting.attribute] = _read(setting, setting.default if text is None else text)
        except ValueError as refusal:
            shown = "something" if setting.secret else repr(text)
            faults.append(f"{setting.name} holds {shown}; allowed: {refusal}")
            continue
        source = "default" if text is None else "environment"
        origins.append(Origin(setting.name, _shown(setting, text or setting.default), source, setting.help))
    password = values.pop("password_file", None)
    if password is not None:
        origins.append(Origin("(database password)", "***", "file", "read from FALCON_DATABASE_PASSWORD_FILE"))
    if values.get("backoff_base", 0) > values.get("backoff_max", DAY):
        faults.append("FALCON_BACKOFF_BASE is longer than FALCON_BACKOFF_MAX; allowed: at most as long")
    if faults:
        raise ConfigError(tuple(faults))
    limits = Bounds(**{name: values.pop(name) for name in fields_dict(Bounds) if name in values})
    return Settings(database_password=password, limits=limits, origins=tuple(origins), **values)


def _strangers(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a fault for every `FALCON_*` variable that is no setting."""
    names = [setting.name for setting in SETTINGS]
    for name in sorted(environ):
        if name.startswith("FALCON_") and name not in names and not FOREIGN.fullmatch(name):
            close = get_close_matches(name, names, n=1)
            yield f"{name} is no setting" + (
                f"; did you mean {close[0]}?" if close else "; falcon-rm config lists them"
            )


def _read(setting: Setting, text: str | None) -> float | str | None:
    """Return what *text* means to *setting*; a ValueError says what is allowed."""
    return None if text is None else KINDS[setting.kind](setting, text)


def _shown(setting: Setting, text: str | None) -> str | None:
    """Return *text* without the password that a URL may carry."""
    return re.sub(r"(?<=://)([^:@/]*):.*@", r"\1:***@", text) if text and setting.secret else text


def duration(text: str) -> float:
    """
    Return the seconds of `90`, `90s`, `1.5m`, `6h` or `7d`.

    Raises:
        ValueError: it is none of these.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip(), re.ASCII)
    if not match:
        raise ValueError(text)
    return float(match[1]) * UNITS[match[2]]


def _duration(setting: Setting, text: str) -> float:
    allowed = f"{_short(setting.minimum)} to {_short(setting.maximum)}, written like 90, 90s, 15m, 6h or 7d"
    try:
        seconds = duration(text)
    except ValueError:
        raise ValueError(allowed) from None
    if not setting.minimum <= seconds <= setting.maximum:
        raise ValueError(allowed)
    return seconds


def _count(setting: Setting, text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text.strip(), re.ASCII) or not setting.minimum <= int(text) <= setting.maximum:
        raise ValueError(f"a whole number from {setting.minimum:g} to {setting.maximum:g}")
    return int(text)


def _choice(setting: Setting, text: str) -> str:
    if text not in setting.choices:
        raise ValueError(" or ".join(setting.choices))
    return text


def _url(_: Setting, text: str) -> str:
    allowed = "mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE, special characters percent-encoded"
    try:
        parts = urlsplit(text)
        usable = parts.scheme == "mysql" and bool(parts.username and parts.path.strip("/")) and (parts.port or 1) > 0
    except ValueError:  # its text would quote the URL
        usable = False
    if not usable:
        raise ValueError(allowed)
    return text


def _file(_: Setting, text: str) -> str:
    """Return the content, without the line's end that editors leave."""
    try:
        content = Path(text).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise ValueError("the path of a text file that can be read") from None
    if not content:
        raise ValueError("the path of a file that is not empty")
    return content


def _endpoint(_: Setting, text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]+(:\d{1,5})?", text, re.ASCII):
        raise ValueError("HOST or HOST:PORT")
    return text


def _address(_: Setting, text: str) -> str:
    match = re.fullmatch(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})", text, re.ASCII)
    if not match or not 0 < int(match[2]) < 65536:
        raise ValueError("HOST:PORT or [IPv6]:PORT to listen on")
    return text


def _https(setting: Setting, text: str) -> str:
    """Return what REST takes: an endpoint with its scheme or without, but never one that shows a token in clear."""
    try:
        _endpoint(setting, text.removeprefix("https://"))
    except ValueError:
        raise ValueError("HOST, HOST:PORT or https://HOST:PORT") from None
    return text


def _template(_: Setting, text: str) -> str:
    allowed = "a relative path that holds {pod_name} and may hold {job_id}"
    try:
        fields = [field for _, *field in Formatter().parse(text) if field[0] is not None]
    except ValueError:
        raise ValueError(allowed) from None
    names = {name for name, _, _ in fields}
    if (
        "pod_name" not in names
        or any(form or conversion for _, form, conversion in fields)
        or not names <= {"pod_name", "job_id"}
        or text.startswith("/")
        or ".." in text.split("/")
    ):
        raise ValueError(allowed)
    return text


KINDS: Mapping[str, Callable[[Setting, str], float | str]] = {
    "address": _address,
    "choice": _choice,
    "count": _count,
    "duration": _duration,
    "endpoint": _endpoint,
    "file": _file,
    "https": _https,
    "template": _template,
    "url": _url,
}
"""How each kind of setting is read; a ValueError's text says what is allowed."""


def _short(seconds: float) -> str:
    """Return *seconds* as people write them: 90s, 15m, 6h."""
    for unit in ("h", "m"):
        if seconds and seconds % UNITS[unit] == 0:
            return f"{seconds / UNITS[unit]:g}{unit}"
    return f"{seconds:g}s"
