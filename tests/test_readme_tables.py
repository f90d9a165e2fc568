"""
The README's tables say what the code says. `python tests/test_readme_tables.py` rewrites the table of settings.

What is named in passing exists: commands with their options, files, settings.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import attrs
import click
import pytest
import yaml
from readme_parts import CHINESE, CODE, ENGLISH, ROOT, row, sections, table

from falcon_rm.cli import commands
from falcon_rm.cli_base import ERROR, INTERRUPTED, USAGE
from falcon_rm.cli_pass import BRAKE_HOLDS, CHANGES, PLAN_DIFFERS
from falcon_rm.config import KINDS, SETTINGS, Setting
from falcon_rm.core import spec
from falcon_rm.core.scene import PHASE
from falcon_rm.core.words import Reason, Status
from falcon_rm.metrics import API_REQUESTS, COUNTERS, GAUGES, HISTOGRAMS

BOTH = pytest.mark.parametrize("path", [ENGLISH, CHINESE], ids=["English", "Chinese"])

SETTINGS_HEAD = {ENGLISH: ("setting", "default", "allowed", "meaning"), CHINESE: ("设置", "默认", "允许", "含义")}
REASONS_HEAD = {ENGLISH: ("status / reason", "meaning", "what to do"), CHINESE: ("status / reason", "含义", "怎么办")}
CODES_HEAD = {ENGLISH: ("code", "means"), CHINESE: ("退出码", "含义")}
COLUMNS_HEAD = {ENGLISH: ("column", "by", "meaning"), CHINESE: ("列", "写入方", "含义")}
SPEC_HEAD = {ENGLISH: ("field (alias)", ""), CHINESE: ("字段（别名）", "")}
PERMISSIONS_HEAD = {ENGLISH: ("permission", "without it"), CHINESE: ("权限", "缺少时")}
ALERTS_HEAD = {ENGLISH: ("alert", "severity", "says", "what to do"), CHINESE: ("告警", "级别", "说明", "怎么办")}
METRICS_HEAD = {ENGLISH: ("asked", "metric"), CHINESE: ("问题", "指标")}

LITERAL = re.compile(r"[^\s,]*[\d{:][^\s,]*|\b[A-Z]{4,}\b")
"""What stands for itself in the words that say what a setting takes."""

FILE = re.compile(r"(hack|sql|falcon_rm|tests)/")
LINK = re.compile(r"\]\(([^)]+)\)")


def settings() -> list[tuple[str, ...]]:
    """Return the table of settings as it has to stand."""
    return [
        (f"`{each.name}`", f"`{each.default}`" if each.default else "", allowed(each), each.help) for each in SETTINGS
    ]


def allowed(setting: Setting) -> str:
    """Return what a setting takes, in its own words; how times are written is said once, below the table."""
    with pytest.raises(ValueError) as refusal:
        KINDS[setting.kind](setting, "/no/such/file ")
    text = re.split(r", (?:written|special)", str(refusal.value))[0]
    literal = "|".join(map(re.escape, setting.choices)) if setting.choices else LITERAL
    return re.sub(literal, lambda match: f"`{match[0]}`", text)


def codes(path: Path, head: tuple[str, ...]) -> list[str]:
    """Return the code spans of a table's first column."""
    return [code for first, *_ in table(path, *head) for code in CODE.findall(first)]


def test_settings() -> None:
    """Every setting stands there with its default, what it takes and what it means."""
    assert settings() == table(ENGLISH, *SETTINGS_HEAD[ENGLISH])


@BOTH
def test_statuses_and_reasons(path: Path) -> None:
    """Every status has its row, and every reason below the status that has it."""
    pending = [reason for status, reason in PHASE if status == Status.PENDING and reason]
    failed = [reason for reason in Reason if reason not in pending]
    told = [first for first, *_ in table(path, *REASONS_HEAD[path])]
    assert [
        *(f"{Status.PENDING}/{reason}" for reason in pending),
        Status.RUNNING,
        Status.SUCCEEDED,
        *(f"{Status.FAILED}/{reason}" for reason in failed),
        Status.ABORTING,
        Status.ABORTED,
    ] == told


@BOTH
def test_exit_codes(path: Path) -> None:
    """Every exit code stands there once."""
    told = [int(first) for first, _ in table(path, *CODES_HEAD[path])]
    assert [0, ERROR, CHANGES, BRAKE_HOLDS, PLAN_DIFFERS, USAGE, INTERRUPTED] == told


@BOTH
def test_columns_of_job(path: Path) -> None:
    """The columns are those of the reference form, none twice."""
    text = (ROOT / "sql" / "job.sql").read_text(encoding="utf-8")
    columns = re.findall(r"^  ([a-z_]+) +[A-Z]", text, re.MULTILINE)
    assert sorted(columns) == sorted(codes(path, COLUMNS_HEAD[path]))


@BOTH
def test_fields_of_a_spec(path: Path) -> None:
    """The fields are those that are read, with their other names."""
    fields = [each.name for each in attrs.fields(spec._Fields)]
    assert sorted([*fields, *spec.ALIASES]) == sorted(codes(path, SPEC_HEAD[path]))


@BOTH
def test_permissions(path: Path) -> None:
    """The permissions are those of the role, and the one on the nodes' account."""
    role = yaml.safe_load((ROOT / "hack/deploy/iam/falcon-controller.role.yaml").read_text(encoding="utf-8"))
    expected = [*role["includedPermissions"], "iam.serviceAccounts.actAs"]
    assert sorted(expected) == sorted(codes(path, PERMISSIONS_HEAD[path]))


@BOTH
def test_alerts(path: Path) -> None:
    """Every alert stands there with its severity."""
    rules = yaml.safe_load((ROOT / "hack/deploy/alerts/falcon.rules.yaml").read_text(encoding="utf-8"))
    alerts = [
        (f"`{rule['alert']}`", rule["labels"]["severity"]) for group in rules["groups"] for rule in group["rules"]
    ]
    assert sorted(alerts) == sorted(cells[:2] for cells in table(path, *ALERTS_HEAD[path]))


@BOTH
def test_metrics(path: Path) -> None:
    """Every metric stands there, with labels that it has."""
    every = {each.name: each.labels for each in (*GAUGES, *COUNTERS, API_REQUESTS, *HISTOGRAMS)}
    every |= {"falcon_last_success_timestamp_seconds": (), "falcon_build_info": ()}
    told = [metric.partition("{") for _, cell in table(path, *METRICS_HEAD[path]) for metric in CODE.findall(cell)]
    assert sorted(every) == sorted(name for name, _, _ in told)
    assert [] == [name for name, _, labels in told if labels and labels != ",".join(every[name]) + "}"]


def every_command(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command that does something."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))
        else:
            yield (*path, name)


@BOTH
def test_every_command_is_mentioned(path: Path) -> None:
    """No command is left out."""
    text = path.read_text(encoding="utf-8")
    missing = [
        command
        for command in map(" ".join, every_command(commands))
        if not re.search(rf"(falcon-rm |`){command}\b", text)
    ]
    assert [] == missing


def asked(path: Path) -> Iterator[str]:
    """Yield every command line of `falcon-rm`, whose name prose may leave out."""
    for section in sections(path):
        yield from (line for line in section.lines if line.startswith("falcon-rm "))
        for span in section.spans:
            if span.startswith("falcon-rm "):
                yield span
            elif span.partition(" ")[0] in commands.commands:
                yield f"falcon-rm {span}"


@BOTH
def test_commands_in_passing_exist(path: Path) -> None:
    """What is said of `falcon-rm` names commands, and options that they have."""
    found = list(asked(path))
    assert len(found) > 50
    for text in found:
        here: click.Command = commands
        for word in shlex.split(text)[1:]:
            if isinstance(here, click.Group) and not word.startswith("-"):
                here = here.commands[word]
            elif word.startswith("--"):
                options = [name for each in here.params for name in each.opts] + ["--help", "--version"]
                assert word in options, text


@BOTH
def test_files_exist(path: Path) -> None:
    """Every file of the tree that is named is there."""
    named = [text for section in sections(path) for text in (*section.spans, *section.lines)]
    found = {text.split()[0] for text in named if FILE.match(text)}
    links = {link for link in LINK.findall(path.read_text(encoding="utf-8")) if ":" not in link}
    assert links
    assert [] == [name for name in sorted(found | links) if not (ROOT / name).exists()]


@BOTH
def test_settings_named_exist(path: Path) -> None:
    """Every `FALCON_*` that is named is a setting, what a pod gets, or what tests take."""
    known = {setting.name for setting in SETTINGS} | {"FALCON_TEST_DATABASE_URL", "FALCON_TEST_KUBE_DOORS", "FALCON_"}
    package = "\n".join(each.read_text(encoding="utf-8") for each in (ROOT / "falcon_rm" / "core").glob("*.py"))
    for name in set(re.findall(r"FALCON_[A-Z_]*", path.read_text(encoding="utf-8"))) - known:
        assert f'"{name}"' in package, name


if __name__ == "__main__":
    lines = ENGLISH.read_text(encoding="utf-8").splitlines()
    first = lines.index(row(*SETTINGS_HEAD[ENGLISH])) + 2
    last = next(index for index in range(first, len(lines)) if not lines[index].startswith("|"))
    lines[first:last] = [row(*cells) for cells in settings()]
    ENGLISH.write_text("\n".join(lines) + "\n", encoding="utf-8")
