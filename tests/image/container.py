"""
Runs the image that `hack/image --check` built as Kubernetes would run the Deployment of hack/deploy.

1. The root file system is read-only, and so is all that is mounted; the process is the manifest's user, gains nothing.
2. There is no shell: what the base has of them cannot be executed.
3. What is handed in from outside is mounted below /run; the network is the tests' loopback.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from attrs import field, frozen

DEPLOY = Path(__file__).parents[2] / "hack" / "deploy"
SECONDS = 120
DEVICES = ("null", "zero", "random", "urandom")
SHELLS = ("dash", "bash", "sh", "busybox")

START = """
set -e
root=$1 mounts=$2 user=$3
shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero random urandom; do
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mount -o remount,ro "$root/dev"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
while read -r name path; do
    if [ -d "$path" ]; then mkdir "$root/run/$name"; else : >"$root/run/$name"; fi
    mount --bind "$path" "$root/run/$name"
    mount -o remount,bind,ro "$root/run/$name"
done <"$mounts"
mount -o remount,ro "$root/run"
for shell in dash bash sh busybox; do
    file=$(readlink -f "$root/usr/bin/$shell" 2>/dev/null) || continue
    [ -f "$file" ] && mount --bind /dev/null "$file"
done
exec setpriv --no-new-privs chroot --userspec="$user" --groups= "$root" "$@"
"""


@frozen
class Container:
    """The image, and how the Deployment runs it."""

    image: Path
    scratch: Path
    pod: Mapping[str, Any] = field(
        factory=lambda: yaml.safe_load((DEPLOY / "base" / "deployment.yaml").read_text())["spec"]["template"]["spec"]
    )

    def config(self) -> Mapping[str, Any]:
        """Return the configuration of the image."""
        manifest = json.loads(self._blob(self.index()["digest"]).read_text(encoding="utf-8"))
        config: Mapping[str, Any] = json.loads(self._blob(manifest["config"]["digest"]).read_text(encoding="utf-8"))
        return config

    def layers(self) -> list[Path]:
        """Return the archives of its layers, those of the base first."""
        manifest = json.loads(self._blob(self.index()["digest"]).read_text(encoding="utf-8"))
        return [self._blob(layer["digest"]) for layer in manifest["layers"]]

    def index(self) -> Mapping[str, Any]:
        """Return what points to the one image that there is."""
        ((found,),) = [json.loads((self.image / "oci" / "index.json").read_text(encoding="utf-8"))["manifests"]]
        pointer: Mapping[str, Any] = found
        return pointer

    def run(
        self,
        *command: str,
        settings: Mapping[str, str] | None = None,
        mounts: Mapping[str, Path] | None = None,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end: the manifest's user, image's and manifest's environment, nothing to write to."""
        wanted = self.scratch / "mounts"
        wanted.write_text("".join(f"{name} {path}\n" for name, path in (mounts or {}).items()), encoding="utf-8")
        user = self.pod["securityContext"]
        image = dict(entry.split("=", 1) for entry in self.config()["config"]["Env"])
        base = dict(line.split("=", 1) for line in (DEPLOY / "base" / "settings.env").read_text().splitlines())
        return subprocess.run(
            [
                *("unshare", "--mount", "--ipc", "--fork", "--kill-child", "/bin/sh", "-c", START, "container"),
                *(str(self.image / "root"), str(wanted), f"{user['runAsUser']}:{user['runAsGroup']}", *command),
            ],
            env={"PATH": f"{image['PATH']}:{os.defpath}", **{k: v for k, v in image.items() if k != "PATH"}}
            | base
            | dict(settings or {}),
            cwd="/",
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def _blob(self, digest: str) -> Path:
        return self.image / "oci" / "blobs" / digest.replace(":", "/")
