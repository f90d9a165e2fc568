"""What a user writes reaches the pod's shell as the user's own command alone, whatever its bytes, in each shell."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from builders import INSTANCE, cluster, job, task
from test_wrapper import SHELLS, Shell, made

from falcon_rm.config import load
from falcon_rm.core.manifest import build
from falcon_rm.core.scene import work_name
from falcon_rm.core.wrapper import SCRIPT

HOSTILE = (
    "$(touch {canary})",
    "`touch {canary}`",
    "'; touch {canary}; '",
    '"; touch {canary}; "',
    "x\ntouch {canary}\n",
    "$$(touch {canary}) ${{IFS}} $(HOME)",
    "-e --help ;&|<>*?[a]~ \\",
    "../../{canary}",
)
POD = "falcon-x-0-abcde"


def expanded(text: str, env: Mapping[str, str]) -> str:
    """Return *text* as the kubelet hands it over: `$$` is `$`, `$(NAME)` is a variable if there is one."""

    def replaced(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else env.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)", replaced, text)


def environment(container: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables as the kubelet sets them."""
    env: dict[str, str] = {}
    for entry in container["env"]:
        env[entry["name"]] = expanded(entry["value"], env) if "value" in entry else POD
    return env


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """Each shell in turn."""
    return made(request.param, tmp_path)


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_words_are_words(shell: Shell, tmp_path: Path, number: int) -> None:
    """Job id, exp id, owner, label, variable and argument come as they are; nothing of them is carried out."""
    canary = tmp_path / "canary"
    value = HOSTILE[number].format(canary=canary)
    script = 'printf "%s\\0" "$FALCON_JOB_ID" "$FALCON_EXP_ID" "$HOSTILE" "$@"'
    asked = task(args=(value, "end"), envs={"HOSTILE": value}, exp_id=value, owner=value, labels={"team": value})
    asked = evolve(asked, command=("/bin/sh", "-c", script, "user"))
    row = job(value, "Pending/Dispatching", asked, attempt=1)
    template = load({}).limits.log_path_template
    manifest, _ = build(
        job=row, task=asked, cluster=cluster(gcs_bucket="b"), name=work_name(row), pool="p", instance=INSTANCE,
        log_path_template=template,
    )  # fmt: skip
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    env = environment(container)
    _, _, wrapper, _, *argv = (expanded(word, env) for word in (*container["command"], *container.get("args", ())))
    assert SCRIPT == wrapper
    log = Path(env["FALCON_LOG_PATH"].replace("/gcs", str(tmp_path / "gcs"), 1)).resolve()
    assert log.is_relative_to(tmp_path / "gcs" / "logs")
    code, out, kept = shell.start(argv, log=log, env={k: v for k, v in env.items() if k != "FALCON_LOG_PATH"}).ended()
    assert (0, [value, value, value, value, "end", ""]) == (code, out.decode().split("\0"))
    assert out == kept
    assert not canary.exists()


def test_the_wrapper_holds_nothing_of_anybody() -> None:
    """It is one constant text: what differs from pod to pod stands behind it, word by word, or in the environment."""
    first, second = (
        build(
            job=job(name, "Pending/Dispatching", task(), attempt=1), task=task(), cluster=cluster(gcs_bucket="b"),
            name="n", pool="p", instance=INSTANCE, log_path_template="{job_id}/{pod_name}.log",
        )[0]["spec"]["template"]["spec"]["containers"][0]["command"]
        for name in ("a", "'; touch /x; '")
    )  # fmt: skip
    assert first == second
    assert "touch" not in json.dumps(second)
