"""The log wrapper, run for real in each shell that images have: the workload must not notice it (P60)."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from attrs import frozen

from falcon_rm.core.wrapper import SCRIPT, wrap

SHELLS = ("dash", "bash", "busybox")
TRICKY = [
    "a b",
    "",
    "$HOME $(date) `id` $$ ${x}",
    "'single' \"double\"",
    "line\nbreak\n",
    "\\n \\\\",
    "-n",
    "*",
    "日本 ü",
    "a=b;c",
]


@frozen
class Running:
    """A wrapped workload that was started, and where its log goes."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def ended(self, given: bytes = b"") -> tuple[int, bytes, bytes]:
        """Give the workload its input, wait for the end; return exit code, stdout and what the log holds."""
        out, _ = self.process.communicate(given, timeout=60)
        return self.process.returncode, out, self.log.read_bytes() if self.log.is_file() else b""

    def said(self, word: bytes) -> None:
        """Wait until a line of stdout is *word*."""
        assert self.process.stdout
        assert word + b"\n" in iter(self.process.stdout.readline, b"")


@frozen
class Shell:
    """One shell, with the tools of its kind on PATH."""

    argv: tuple[str, ...]
    path: str
    root: Path

    def start(self, argv: Sequence[str], *, log: Path | None = None, env: Mapping[str, str] | None = None) -> Running:
        """Start *argv* behind the wrapper, as a container would."""
        log = log or self.root / "logs" / "j1" / "pod.log"
        scratch = self.root / "scratch"
        scratch.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [*self.argv, *wrap(argv)[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": self.path, "TMPDIR": str(scratch), "FALCON_LOG_PATH": str(log), **(env or {})},
            start_new_session=True,
        )
        return Running(process, log)

    def run(self, script: str, **env: str) -> tuple[int, bytes, bytes]:
        """Run a user's script to its end."""
        return self.start(["/bin/sh", "-c", script], env=env).ended()


def made(name: str, root: Path) -> Shell:
    """Return the shell called *name*; for busybox, PATH has nothing but busybox."""
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is not on PATH: these tests need dash, bash and busybox")
    if name != "busybox":
        return Shell((found,), os.environ["PATH"], root)
    tools = root / "tools"
    tools.mkdir()
    subprocess.run([found, "--install", "-s", str(tools)], check=True)
    return Shell((found, "sh"), str(tools), root)


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """Each shell in turn."""
    return made(request.param, tmp_path)


@pytest.fixture
def shells(tmp_path: Path) -> list[Shell]:
    """All shells at once, for what takes seconds."""
    roots = [tmp_path / name for name in SHELLS]
    for root in roots:
        root.mkdir()
    return [made(root.name, root) for root in roots]


def test_both_streams_in_order(shell: Shell) -> None:
    """Both streams are in the log and on stdout, each in its own order."""
    code, out, log = shell.run("for i in 1 2 3; do echo out $i; echo err $i >&2; done")
    assert (0, out) == (code, log)
    lines = log.decode().splitlines()
    assert ["out 1", "out 2", "out 3"] == [line for line in lines if line.startswith("out")]
    assert ["err 1", "err 2", "err 3"] == [line for line in lines if line.startswith("err")]


@pytest.mark.parametrize("code", [0, 1, 3, 7, 126, 127, 255])
def test_exit_codes_pass_through(shell: Shell, code: int) -> None:
    """The workload's exit code is the wrapper's (P60)."""
    assert (code, b"x\n", b"x\n") == shell.run(f"echo x; exit {code}")


@pytest.mark.parametrize(("name", "code"), [("KILL", 137), ("TERM", 143), ("SEGV", 139)])
def test_death_by_signal(shell: Shell, name: str, code: int) -> None:
    """A workload that a signal ends has 128 and the signal as its code, and its log is whole."""
    assert (code, b"x\n", b"x\n") == shell.run(f"echo x; kill -{name} $$")


@pytest.mark.parametrize(("argv", "code"), [(["/no/such/program"], 127), (["/etc/passwd"], 126)])
def test_a_program_that_cannot_start(shell: Shell, argv: list[str], code: int) -> None:
    """A missing program is 127 and one that is none is 126; the log says so."""
    ended = shell.start(argv).ended()
    assert code == ended[0]
    assert argv[0].encode() in ended[2]


def test_term_is_forwarded(shell: Shell) -> None:
    """TERM reaches the workload, whose handler may take its time; what it says then is kept (P60)."""
    saved = shell.root / "saved"
    script = f"trap 'sleep 1; echo saved >{saved}; echo bye; exit 9' TERM; echo ready; while :; do sleep 0.1; done"
    running = shell.start(["/bin/sh", "-c", script])
    running.said(b"ready")
    running.process.send_signal(signal.SIGTERM)
    assert (9, b"bye\n", b"ready\nbye\n") == running.ended()
    assert "saved\n" == saved.read_text()


def test_term_without_a_handler(shell: Shell) -> None:
    """A workload that does not catch TERM ends with 143."""
    running = shell.start([sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)"])
    running.said(b"ready")
    running.process.send_signal(signal.SIGTERM)
    assert (143, b"", b"ready\n") == running.ended()


def test_a_workload_may_refuse_to_stop(shell: Shell) -> None:
    """TERM may come again and again: the code is still the one with which the workload ends."""
    script = "trap 'echo no' TERM; echo ready; n=0; while [ $n -lt 10 ]; do sleep 0.1; n=$((n + 1)); done; exit 4"
    running = shell.start(["/bin/sh", "-c", script])
    running.said(b"ready")
    for _ in range(5):
        running.process.send_signal(signal.SIGTERM)
        running.said(b"no")
    assert (4, b"", b"ready\n" + b"no\n" * 5) == running.ended()


def test_int_is_forwarded(shell: Shell) -> None:
    """INT reaches a workload that listens to it."""
    program = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: sys.exit(5))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)"
    )
    running = shell.start([sys.executable, "-c", program])
    running.said(b"ready")
    running.process.send_signal(signal.SIGINT)
    assert 5 == running.ended()[0]


def test_int_stops_a_workload_that_does_not_listen(shell: Shell) -> None:
    """INT ends a workload, as TERM where the shell started it deaf to INT and nothing can undo that."""
    running = shell.start(["/bin/sh", "-c", "echo ready; exec sleep 60"])
    running.said(b"ready")
    running.process.send_signal(signal.SIGINT)
    assert (143 if "busybox" in shell.argv[0] else 130) == running.ended()[0]


def test_arguments_arrive_unchanged(shell: Shell) -> None:
    """The user's words are not parsed again, whatever is in them."""
    program = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    _, out, log = shell.start([sys.executable, "-c", program, *TRICKY]).ended()
    assert TRICKY == out.decode().split("\0")
    assert out == log


def test_a_script_arrives_unchanged(shell: Shell) -> None:
    """Here-documents, quotes and dollar signs of a script mean what they mean without the wrapper."""
    script = """cat <<'EOF'
$HOME "quotes" 'both' $(echo no) `echo no` \\ 日本
EOF
x='a  b'; echo "$x" $((1 + 2)) '$x'
printf '%s' "no newline"
"""
    direct = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True).stdout
    assert (0, direct, direct) == shell.run(script)


def test_the_longest_command(shell: Shell) -> None:
    """A command of 120,000 bytes runs."""
    script = "echo start\n#" + "x" * 119_979 + "\necho end"
    assert 120_000 == len(script)
    assert (0, b"start\nend\n", b"start\nend\n") == shell.run(script)


def test_the_environment_arrives_unchanged(shell: Shell) -> None:
    """No variable of the wrapper reaches the workload, also where the user exports one of the same name."""
    given = dict.fromkeys(("first", "from", "file", "nap", "total", "x"), "mine")
    code, out, _ = shell.run(f"exec {sys.executable} -c 'import os; print(dict(os.environ))'", **given)
    seen = {name: value for name, value in eval(out).items() if name not in {"_", "PWD", "OLDPWD", "SHLVL", "LC_CTYPE"}}
    own = {name: seen.pop(name) for name in ("PATH", "TMPDIR", "FALCON_LOG_PATH")}
    assert (0, given, shell.path) == (code, seen, own["PATH"])


def test_stdin_arrives(shell: Shell) -> None:
    """What is written to the container's stdin is read by the workload."""
    running = shell.start(["/bin/sh", "-c", "cat; echo end"])
    assert (0, b"given\nend\n", b"given\nend\n") == running.ended(b"given\n")


@pytest.mark.parametrize("lines", [1, 30_000])
def test_binary_output(shell: Shell, lines: int) -> None:
    """Every byte is kept, without a line break at the end, in one write and in many."""
    program = f"import os\nfor i in range({lines}): os.write(1, bytes(range(256)) + b'%d' % i)"
    code, out, log = shell.start([sys.executable, "-c", program]).ended()
    assert (0, b"".join(bytes(range(256)) + b"%d" % i for i in range(lines))) == (code, log)
    assert out == log


def test_big_output_is_quick(shell: Shell) -> None:
    """20 MB pass within seconds."""
    begun = time.monotonic()
    program = "import sys\nfor i in range(20): sys.stdout.buffer.write(b'%06d' % i * 166_667)"
    code, out, log = shell.start([sys.executable, "-c", program]).ended()
    assert (0, 20_000_040, out) == (code, len(log), log)
    assert 20 > time.monotonic() - begun


def test_nothing_is_left_behind(shell: Shell) -> None:
    """Many short workloads end at once, each with its own lines in the log, and the scratch directory is empty."""
    for number in range(1, 11):
        assert (0, b"x\n", b"x\n" * number) == shell.run("echo x")
    assert [] == list((shell.root / "scratch").iterdir())


def test_a_log_that_cannot_be_written(shell: Shell) -> None:
    """A log below a regular file does the workload no harm: its output is on stdout, its code its own."""
    blocked = shell.root / "file"
    blocked.touch()
    running = shell.start(["/bin/sh", "-c", "echo out; echo err >&2; exit 7"], log=blocked / "j1" / "pod.log")
    assert (7, b"out\nerr\n", b"") == running.ended()


@pytest.mark.parametrize("env", [{"FALCON_LOG_PATH": ""}, {"PATH": "/nowhere"}])
def test_where_the_wrapper_cannot_work(shell: Shell, env: dict[str, str]) -> None:
    """Without a log path, or without tools, the command runs as if there were no wrapper."""
    assert (7, b"out\nerr\n") == shell.run("echo out; echo err >&2; exit 7", **env)[:2]


def test_a_log_that_vanishes(shell: Shell) -> None:
    """A log that cannot be written any more does the workload no harm."""
    running = shell.start(["/bin/sh", "-c", "echo ready; read -r go; echo $go; exit 3"])
    running.said(b"ready")
    shutil.rmtree(running.log.parent)
    assert (3, b"on\n", b"") == running.ended(b"on\n")


def test_scratch_files_that_vanish(shell: Shell) -> None:
    """A workload that empties the scratch directory keeps its stdout and its exit code."""
    code, out, _ = shell.run('echo one; rm -rf "$TMPDIR"/.falcon*; echo two; exit 3')
    assert (3, b"one\ntwo\n") == (code, out)


def test_a_stdout_that_nobody_reads(shell: Shell) -> None:
    """A closed stdout neither ends the workload nor costs its log."""
    running = shell.start(["/bin/sh", "-c", "read -r go; for i in 1 2 3; do echo $i; sleep 0.1; done; exit 6"])
    assert running.process.stdin
    assert running.process.stdout
    running.process.stdout.close()
    running.process.stdin.write(b"go\n")
    running.process.stdin.close()
    assert (6, b"1\n2\n3\n") == (running.process.wait(timeout=30), running.log.read_bytes())


def test_a_signal_to_the_whole_group(shell: Shell) -> None:
    """A workload that signals its process group does not lose its log by it."""
    script = "trap '' TERM HUP; echo one; kill -TERM 0; kill -HUP 0; sleep 0.2; echo two; exit 8"
    assert (8, b"one\ntwo\n", b"one\ntwo\n") == shell.run(script)


def eventually(holds: Callable[[], bool], seconds: float) -> None:
    """Wait until something holds."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_the_log_is_published_while_the_workload_runs(shells: list[Shell]) -> None:
    """Within seconds the log shows what was said, long before the end."""
    started = [shell.start(["/bin/sh", "-c", "echo early; read -r go; echo late"]) for shell in shells]
    eventually(lambda: all(running.log.is_file() and b"early\n" == running.log.read_bytes() for running in started), 12)
    assert [(0, b"early\nlate\n", b"early\nlate\n")] * 3 == [running.ended(b"go\n") for running in started]


def test_children_that_outlive_the_workload(shells: list[Shell]) -> None:
    """A child that holds the output open does not hold the end for ever."""
    begun = time.monotonic()
    started = [shell.start(["/bin/sh", "-c", "sleep 20 & echo main; exit 4"]) for shell in shells]
    assert [(4, b"main\n", b"main\n")] * 3 == [running.ended() for running in started]
    assert 15 > time.monotonic() - begun
    for running in started:
        os.killpg(running.process.pid, signal.SIGKILL)


def test_wrap() -> None:
    """The script takes the command as its arguments."""
    assert ["/bin/sh", "-c", SCRIPT, "falcon", "a b", "$c"] == wrap(["a b", "$c"])
