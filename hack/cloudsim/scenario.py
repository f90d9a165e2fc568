"""
A world from a file: YAML or JSON, one object.

seed            what chance begins with, by default 0
speed           how many times as fast as real time the world's clock goes, by default 1
tempo           `brisk`, or fields of Tempo that differ from its defaults
permissions     what IAM grants the caller, a list; by default everything
token_lifetime  seconds that an access token is good for, by default 300; google-auth takes less than 225 for ended
clusters        a list of arguments of World.add_cluster
reservations    a list of arguments of World.add_reservation
scripts         job id -> what its pods do, the fields of Workload
otherwise       what all other pods do
acts            a list of {do, args} of admin.WORLD_ACTS, done before the doors open

Unknown keys are mistakes, and every mistake is a ScenarioError.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from attrs import frozen

from cloudsim.admin import WORLD_ACTS, WRONG
from cloudsim.tempo import Tempo, brisk
from cloudsim.workload import workload
from cloudsim.world import World

KEYS = {
    "seed", "speed", "tempo", "token_lifetime", "permissions",
    "clusters", "reservations", "scripts", "otherwise", "acts",
}  # fmt: skip


class ScenarioError(Exception):
    """The file does not describe a world."""


@frozen
class Scenario:
    """What a file asks for."""

    world: World
    speed: float
    token_lifetime: float


def load(path: Path) -> Scenario:
    """Read a file."""
    try:
        return scenario(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError, *WRONG) as error:
        raise ScenarioError(f"{path}: {type(error).__name__}: {error}") from error


def scenario(data: Mapping[str, Any]) -> Scenario:
    """Return what *data* asks for; the world's clock begins now."""
    if unknown := set(data) - KEYS:
        raise ValueError(f"unknown: {', '.join(sorted(map(str, unknown)))}")
    tempo = brisk() if data.get("tempo") == "brisk" else Tempo(**data.get("tempo", {}))
    world = World(data.get("seed", 0), time.time(), tempo)
    for arguments in data.get("clusters", ()):
        world.add_cluster(**arguments)
    for arguments in data.get("reservations", ()):
        world.add_reservation(**arguments)
    for job_id, does in data.get("scripts", {}).items():
        world.scripts_by_job_id[job_id] = workload(does)
    if "permissions" in data:
        world.permissions = frozenset(data["permissions"])
    if "otherwise" in data:
        world.default_workload = workload(data["otherwise"])
    for item in data.get("acts", ()):
        WORLD_ACTS[item["do"]](world, **item.get("args", {}))
    return Scenario(world, float(data.get("speed", 1)), float(data.get("token_lifetime", 300)))
