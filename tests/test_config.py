"""Settings: defaults, what may be said, and how faults are told."""

import re
from pathlib import Path
from typing import Any

import pytest

from falcon_rm.config import SETTINGS, ConfigError, Settings, duration, load
from falcon_rm.core.model import Bounds


def faults(**environ: str) -> tuple[str, ...]:
    """Return what load() says against *environ*."""
    with pytest.raises(ConfigError) as raised:
        load(environ)
    return raised.value.faults


def test_defaults_agree() -> None:
    """With nothing set, the table gives the defaults that the values themselves have."""
    settings = load({})
    assert Bounds() == settings.bounds()
    assert Settings(origins=settings.origins) == settings


def test_every_bound_is_a_setting() -> None:
    """Every field of Bounds but the brake's flag is the attribute of exactly one setting."""
    named = [setting.attribute for setting in SETTINGS]
    expected = {name for name in Bounds.__annotations__ if name != "allow_mass_delete"}
    assert expected <= set(named)
    assert len(named) == len(set(named))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90), ("90s", 90), ("15m", 900), ("6h", 21600), ("0.5s", 0.5), ("1.5m", 90), ("7d", 604_800)],
)
def test_durations(text: str, expected: float) -> None:
    """A duration is a number with an optional unit."""
    assert expected == duration(text)


@pytest.mark.parametrize("text", ["", "-1", "1w", "m", "1e3", "1 000", "٣", "nan", "15 m"])
def test_durations_refused(text: str) -> None:
    """Anything else is refused."""
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        duration(text)


GOOD: dict[str, tuple[str, str, Any]] = {
    "FALCON_DATABASE_URL": ("database_url", "mysql://falcon:secret@db:3307/main", "mysql://falcon:secret@db:3307/main"),
    "FALCON_INTERVAL": ("interval", "0.2s", 0.2),
    "FALCON_GKE_ENDPOINT": ("gke_endpoint", "localhost:8443", "localhost:8443"),
    "FALCON_COMPUTE_ENDPOINT": ("compute_endpoint", "https://localhost:8443", "https://localhost:8443"),
    "FALCON_METRICS_ADDRESS": ("metrics_address", "[::]:8080", "[::]:8080"),
    "FALCON_LOG_FORMAT": ("log_format", "console", "console"),
}


@pytest.mark.parametrize("name", GOOD)
def test_environment_counts(name: str) -> None:
    """What the environment says is in force, and is shown as coming from there."""
    attribute, text, value = GOOD[name]
    settings = load({name: text})
    assert value == getattr(settings, attribute)
    assert ["environment"] == [origin.source for origin in settings.origins if origin.name == name]


def test_bounds_from_the_environment() -> None:
    """Bounds take their values from the environment, the brake's flag from the caller."""
    settings = load({"FALCON_NODE_WAIT_FLEX": "1h", "FALCON_POOL_ATTEMPTS": "5", "FALCON_LANG": "en"})
    expected = Bounds(node_wait_flex=3600, pool_attempts=5, language="en", allow_mass_delete=True)
    assert expected == settings.bounds(allow_mass_delete=True)


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("FALCON_INTERVAL", "soon", "0.05s to 1h, written like 90, 90s, 15m, 6h or 7d"),
        ("FALCON_INTERVAL", "2h", "0.05s to 1h, written like 90, 90s, 15m, 6h or 7d"),
        ("FALCON_POOL_ATTEMPTS", "0", "a whole number from 1 to 100"),
        ("FALCON_POOL_ATTEMPTS", "many", "a whole number from 1 to 100"),
        ("FALCON_LANG", "de", "zh or en"),
        ("FALCON_GKE_ENDPOINT", "https://gke", "HOST or HOST:PORT"),
        ("FALCON_METRICS_ADDRESS", "8080", "HOST:PORT or [IPv6]:PORT to listen on"),
        ("FALCON_METRICS_ADDRESS", "0.0.0.0:0", "HOST:PORT or [IPv6]:PORT to listen on"),
        (
            "FALCON_LOG_PATH_TEMPLATE",
            "logs/{job_id}.log",
            "a relative path that holds {pod_name} and may hold {job_id}",
        ),
        ("FALCON_LOG_PATH_TEMPLATE", "logs/{pod_name", "a relative path that holds {pod_name} and may hold {job_id}"),
        ("FALCON_LOG_PATH_TEMPLATE", "/{pod_name}", "a relative path that holds {pod_name} and may hold {job_id}"),
        (
            "FALCON_LOG_PATH_TEMPLATE",
            "logs/{pod_name!r}",
            "a relative path that holds {pod_name} and may hold {job_id}",
        ),
        (
            "FALCON_LOG_PATH_TEMPLATE",
            "{job_id:>5}/{pod_name}",
            "a relative path that holds {pod_name} and may hold {job_id}",
        ),
        (
            "FALCON_LOG_PATH_TEMPLATE",
            "{actor}/{pod_name}",
            "a relative path that holds {pod_name} and may hold {job_id}",
        ),
        ("FALCON_DATABASE_PASSWORD_FILE", "/nowhere", "the path of a text file that can be read"),
    ],
)
def test_one_fault(name: str, text: str, allowed: str) -> None:
    """A fault names the setting, what it holds and what is allowed."""
    assert (f"{name} holds {text!r}; allowed: {allowed}",) == faults(**{name: text})


def test_all_faults_at_once() -> None:
    """Every fault is told in one go."""
    expected = (
        "FALCON_INTERVALL is no setting; did you mean FALCON_INTERVAL?",
        "FALCON_LANG holds 'xx'; allowed: zh or en",
    )
    assert expected == faults(FALCON_LANG="xx", FALCON_INTERVALL="3s")


def test_backoff_order() -> None:
    """The first wait cannot be longer than the longest."""
    (fault,) = faults(FALCON_BACKOFF_BASE="1h")
    assert fault.startswith("FALCON_BACKOFF_BASE is longer than FALCON_BACKOFF_MAX")


@pytest.mark.parametrize(
    "name",
    [
        "FALCON_TEST_DATABASE_URL",
        "FALCON_RM_SERVICE_HOST",
        "FALCON_RM_SERVICE_PORT_HTTP",
        "FALCON_RM_PORT_80_TCP_ADDR",
        "PATH",
    ],
)
def test_variables_of_others(name: str) -> None:
    """The tests' variables and those that Kubernetes sets for a Service are none of our business."""
    assert load({}) == load({name: "x"})


@pytest.mark.parametrize("url", ["postgres://u:hunter2@h/d", "mysql://u:hunter2@h", "mysql://u:hunter2@h:port/d"])
def test_faulty_url_is_not_shown(url: str) -> None:
    """A database URL that cannot be used is not repeated in the fault: it may hold a password."""
    (fault,) = faults(FALCON_DATABASE_URL=url)
    assert "hunter2" not in fault
    assert fault.startswith("FALCON_DATABASE_URL holds something; allowed: mysql://")


def test_secrets_are_hidden(tmp_path: Path) -> None:
    """Neither the repr nor the origins of settings show a password, from the URL or from the file."""
    file = tmp_path / "password"
    file.write_text("hunter3\n", encoding="utf-8")
    settings = load(
        {"FALCON_DATABASE_URL": "mysql://falcon:hunter2@db/main", "FALCON_DATABASE_PASSWORD_FILE": str(file)}
    )
    assert "hunter3" == settings.database_password
    assert "hunter" not in repr(settings)
    shown = {origin.name: (origin.shown, origin.source) for origin in settings.origins}
    assert ("mysql://falcon:***@db/main", "environment") == shown["FALCON_DATABASE_URL"]
    assert ("***", "file") == shown["(database password)"]


def test_secrets_in_every_form(tmp_path: Path) -> None:
    """What must never show is known as it stands in the file and in the URL, percent-encoded or not."""
    kept = tmp_path / "password"
    kept.write_text("from file\n", encoding="utf-8")
    url = {"FALCON_DATABASE_URL": "mysql://u:p%40ss@h/d"}
    assert {"p%40ss", "p@ss"} == set(load(url).secrets)
    assert {"p%40ss", "p@ss", "from file"} == set(load(url | {"FALCON_DATABASE_PASSWORD_FILE": str(kept)}).secrets)
    assert () == load({"FALCON_DATABASE_URL": "mysql://u@h/d"}).secrets
