"""
The alert rules in the forms of the operators that take them: hack/deploy/alerts is the source, the rest is written.
"""

from pathlib import Path

import yaml
from attrs import frozen

DEPLOY = Path(__file__).resolve().parent / "deploy"
RULES = DEPLOY / "alerts" / "falcon.rules.yaml"
HEAD = "# Written by `hack/telemetry write` from hack/deploy/alerts/falcon.rules.yaml: change that.\n"
WIDTH = 110


@frozen
class Form:
    """A kind of somebody's operator that holds rules, and where it stands."""

    group: str
    kind: str
    path: Path


FORMS = (
    Form(
        "monitoring.coreos.com",
        "PrometheusRule",
        DEPLOY / "components" / "prometheus-operator" / "prometheus-rule.yaml",
    ),
    Form("monitoring.googleapis.com", "Rules", DEPLOY / "components" / "pod-monitoring" / "rules.yaml"),
)


def written(form: Form) -> str:
    """Return the file of a form."""
    made = {
        "apiVersion": f"{form.group}/v1",
        "kind": form.kind,
        "metadata": {"name": "falcon-controller", "namespace": "falcon"},
        "spec": yaml.safe_load(RULES.read_text(encoding="utf-8")),
    }
    return HEAD + yaml.safe_dump(made, sort_keys=False, width=WIDTH)
