"""Completion: what each shell that is here makes of the script it is given."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from falcon_rm.cli import commands

ASK = {
    "bash": """
        eval "$(falcon-rm completion bash)"; complete -p falcon-rm >/dev/null || exit 1
        read -r -a COMP_WORDS <<<"$LINE"; [[ $LINE == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _falcon_rm_completion falcon-rm; printf '%s\\n' "${COMPREPLY[@]}"
    """,
    "zsh": """
        compdef() { [[ "$*" == "_falcon_rm_completion falcon-rm" ]] || exit 1 }
        compadd() { print -l -- ${(P)@[-1]} }
        _describe() { for each in ${(P)3}; do print -r -- "${each/:/\t}"; done }
        eval "$(falcon-rm completion zsh)"
        words=(${(s: :)LINE}); [[ $LINE == *" " ]] && words+=(""); CURRENT=$#words
        _falcon_rm_completion
    """,
    "fish": """
        falcon-rm completion fish | source
        complete -C $LINE
    """,
}
"""How a shell is asked what completes a line; a completion may be followed by a tabulator and what it does."""

QUIET = {"bash": ("--norc",), "zsh": ("-f",), "fish": ("--no-config",)}
THERE = [shell for shell in ASK if shutil.which(shell)]

LINES = {
    "falcon-rm sta": {"status"},
    "falcon-rm cluster s": {"set"},
    "falcon-rm status --wa": {"--watch"},
    "falcon-rm status -o ": {"wide", "json", "yaml", "name"},
    "falcon-rm run": {"run", "run-once"},
    "falcon-rm completion ": {"bash", "zsh", "fish"},
    "falcon-rm usage --by j": {"job"},
}


@pytest.mark.parametrize("shell", list(ASK))
def test_completion(shell: str) -> None:
    """What a shell is given asks falcon-rm itself what completes."""
    script = CliRunner().invoke(commands, ["completion", shell]).stdout
    assert "_FALCON_RM_COMPLETE" in script
    assert f"{shell}_complete" in script
    assert "falcon-rm" in script


@pytest.mark.parametrize("line", list(LINES))
@pytest.mark.parametrize("shell", THERE)
def test_completion_in_a_shell(tmp_path: Path, shell: str, line: str) -> None:
    """A shell that has read its script completes commands, options and their values."""
    assert LINES[line] == {each.split("\t")[0] for each in completed(shell, line, tmp_path)}


@pytest.mark.parametrize("shell", sorted({"zsh", "fish"} & set(THERE)))
def test_what_a_completion_does(tmp_path: Path, shell: str) -> None:
    """A shell that tells what a completion does tells the whole sentence, commas too."""
    assert ["status\tShow clusters, queues, pools and jobs."] == completed(shell, "falcon-rm sta", tmp_path)


def completed(shell: str, line: str, folder: Path) -> list[str]:
    """Return what completes a line in a shell, a line each."""
    program = folder / "falcon-rm"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m falcon_rm "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    there = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder), "LINE": line}
    answer = subprocess.run(
        [shell, *QUIET[shell], "-c", ASK[shell]], env=there, capture_output=True, text=True, check=True, timeout=60
    )
    return answer.stdout.splitlines()
