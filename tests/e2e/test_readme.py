"""
Every command of the README, run in its order: as processes on a private server and the simulated cloud of the
demonstration.

1. A line of a shell block runs, or stands in ELSEWHERE with the reason; a line in neither fails.
2. What a reader fills in is in FILLED_IN; the job file and the SQL are the README's own.
3. `falcon-rm run` goes on from its line until a plan is reviewed, as it would for a reader.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

import demonstration
import pytest
import yaml
from processes import PROJECT, Ended, Process, Site, environment, people, site, until
from readme_parts import ENGLISH, ROOT, Block, sections

from falcon_rm.cloud.database import Database, parse_url
from falcon_rm.cloud.schema import sql_files

DATABASE = "mysql://falcon:PASSWORD@10.0.0.5/falcon"

FILLED_IN = {"PROJECT": PROJECT, "BUCKET": "demo-logs", "RESERVATION": "demo-reservation"}

BUILDER = "needs a builder of images; hack/image --check runs tests/image"
GCLOUD = "needs gcloud and a project; what it says with DRY_RUN=1 is run here and read by tests/test_deploy.py"
KUBECTL = "needs a cluster; tests/kube_contract/test_real_deploy.py gives the same files to a real control plane"
PLANES = "needs a real control plane; tests/kube_contract and tests/test_kube_planes.py"
LONG = "takes minutes, and runs tests or passes itself"

ELSEWHERE: Mapping[str, str] = {
    "hack/demo": "takes a minute; tests/e2e/test_process_demo.py carries its load",
    "hack/test": "runs this",
    "hack/image": BUILDER,
    "hack/image --build-arg BASE=python:3.11.14-slim-bookworm@sha256:DIGEST": BUILDER,
    "hack/image --build-arg LOCK=requirements-cloudsql.lock": BUILDER,
    "hack/image --base debian": BUILDER,
    "hack/image --check": BUILDER,
    "EDGE_PROJECT=PROJECT BUCKET=BUCKET hack/deploy/iam/bind": GCLOUD,
    "gcloud storage buckets add-iam-policy-binding gs://BUCKET --role roles/storage.objectUser --member "
    "principal://iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/PROJECT.svc.id.goog"
    "/subject/ns/falcon-jobs/sa/falcon-job": "needs gcloud; tests/test_deploy.py reads the same from bind",
    "kubectl apply -k hack/deploy/overlays/example/edge": KUBECTL,
    "kubectl create namespace falcon": KUBECTL,
    f"kubectl -n falcon create secret generic falcon-database --from-literal=url='{DATABASE}'": KUBECTL,
    "kubectl apply --server-side -k hack/deploy/overlays/example": KUBECTL,
    "hack/proof": LONG,
    "hack/proof --only R4": LONG,
    "hack/test --junit-xml=report.xml": "runs this",
    "hack/proof --report report.xml": "tests/test_proof.py tells a report",
    "hack/soak": LONG,
    "hack/bench": LONG,
    "hack/check --fix": "changes files; without --fix it is part of .ci/run",
    "hack/test tests/core": "is part of hack/test",
    "hack/mysql --server mysql --get": "fetches a server; tests/test_private_mysql.py",
    "hack/kube up --clusters 3": PLANES,
    "hack/kube kubectl get jobs,pods,nodes -A": PLANES,
    "hack/kube down": PLANES,
    "hack/kube test": PLANES,
}
"""Command -> why it is not run here."""

CODES = {
    "falcon-rm cluster check tpuv7x-64-node": 1,
    "falcon-rm events --pool falcon-job-b7m2k9x4qa -o json": 1,
}
"""What does not end with 0: the simulated cloud begins without a bucket, and no pass has made a pool."""

FOLLOWING = {"falcon-rm status --watch", "falcon-rm events -f"}
"""What goes on until Control-C."""

LIMIT_SECONDS = 30


class Reader:
    """Who reads the README and does what it says."""

    def __init__(self, there: Site, url: str, folder: Path) -> None:
        self.there, self.url, self.folder = there, url, folder
        self.numbers = count()
        self.controller: Process | None = None

    def does(self, block: Block) -> None:
        """Do what one block says."""
        match block.language:
            case "sh":
                for line in block.text.splitlines():
                    if line not in ELSEWHERE:
                        self.runs(line)
            case "sql":
                self.asks(block.text)
            case "yaml":
                (self.folder / "bench.yaml").write_text(block.text, encoding="utf-8")
            case other:
                assert "text" == other

    def runs(self, line: str) -> None:
        """Run a command."""
        if line == "falcon-rm run":
            self.controller = self.there.begin(self.url, "run")
            until(self.controller.made_a_pass, LIMIT_SECONDS)
        elif line in FOLLOWING:
            self.follows(line)
        else:
            ended = self.ended(self.filled_in(line))
            assert CODES.get(line, 0) == ended.code, f"{line}: {ended}"

    def ended(self, line: str) -> Ended:
        """Return how a command ended; one without a shell's words starts faster."""
        words = shlex.split(line)
        settings = (
            dict(word.split("=", 1) for word in words[: words.index("falcon-rm")]) if "falcon-rm" in words else {}
        )
        if words[len(settings)] == "falcon-rm" and not {">", "|", "&&"} & {*words}:
            return self.there.falcon(self.url, *words[len(settings) + 1 :], **settings)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euc", line],
            env=environment(self.there.cloud, self.url) | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def follows(self, line: str) -> None:
        """Run a command until it has shown something, and interrupt it; jobs come meanwhile."""
        process = self.there.begin(self.url, *shlex.split(line)[1:])
        out = process.base.with_suffix(".out")

        def shown() -> bool:
            job = {"id": f"meanwhile-{next(self.numbers)}", "actor": "user-c", "spec": {}}
            people(self.url, "submit", "-f", "-", text=json.dumps(job))
            return out.exists() and out.stat().st_size > 0

        until(shown, LIMIT_SECONDS)
        process.kill(signal.SIGINT)
        assert 130 == process.wait().code, line

    def asks(self, text: str) -> None:
        """Run SQL."""
        rows = Database(parse_url(self.url))
        for statement in self.filled_in(text).split(";"):
            if statement.strip():
                rows.unit(lambda run, statement=statement: run.must(statement))  # type: ignore[misc]
        rows.close()

    def filled_in(self, text: str) -> str:
        """Return a text with what a reader fills in; who reviews a plan lets nobody change the world meanwhile."""
        if "CHECKSUM" in text:
            assert self.controller is not None
            self.controller.kill(signal.SIGTERM)
            assert 0 == self.controller.wait().code
            told = self.there.falcon(self.url, "plan", "-o", "json")
            text = text.replace("CHECKSUM", json.loads(told.out)["checksum"])
        text = text.replace(DATABASE, self.url)
        return re.sub(rf"(?<=[ ='])({'|'.join(FILLED_IN)})\b(?!=)", lambda match: FILLED_IN[match[0]], text)


@pytest.fixture
def reader(empty_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """A reader in a folder with the tree's tools; upstream's table is there, and pods run until they are stopped."""
    scenario = yaml.safe_load(demonstration.SCENARIO.read_text(encoding="utf-8"))
    rows = Database(parse_url(empty_database))
    rows.rows(sql_files()["job.sql"])
    rows.close()
    (tmp_path / "hack").symlink_to(ROOT / "hack")
    monkeypatch.chdir(tmp_path)
    with site(tmp_path, {**scenario, "otherwise": {"seconds": None}}) as there:
        yield Reader(there, empty_database, tmp_path)


def test_every_command(reader: Reader) -> None:
    """What the README shows works as shown, from the first command to the last."""
    for section in sections(ENGLISH):
        for block in section.blocks:
            reader.does(block)
    assert (reader.folder / "november.csv").read_text(encoding="utf-8").startswith("actor,day,")
    assert "<svg" in (reader.folder / "pools.svg").read_text(encoding="utf-8")
    rows = Database(parse_url(reader.url))
    ends = demonstration.states(rows)
    rows.close()
    assert {"job-b7m2k9x4qa": "Aborted", "bench-7": "Aborted"}.items() <= ends.items()
    assert [] == reader.there.cloud.leftovers()


def test_what_is_run_elsewhere_is_shown() -> None:
    """No reason outlives its command."""
    shown = {line for section in sections(ENGLISH) for block in section.blocks for line in block.text.splitlines()}
    assert set() == {*ELSEWHERE, *CODES, *FOLLOWING} - shown
