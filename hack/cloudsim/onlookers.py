"""
What the simulated Google Cloud answers those who only look: what they are permitted, and its buckets.

1. Who asks is permitted what `world.permissions` holds: everything, if it is None.
2. A bucket that may not be read is as Cloud Storage has it: 403, whether or not it is there.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, cast

from attrs import frozen

from cloudsim.errors import SimError
from cloudsim.values import Json

if TYPE_CHECKING:
    from cloudsim.world import World


@frozen
class Onlookers:
    """Resource Manager and Cloud Storage."""

    world: "World"

    def test_permissions(self, project: str, permissions: Collection[str]) -> Json:
        """Return those of the permissions that the caller has."""
        call = self.world.call
        return cast(Json, call("iam.test_permissions", f"projects/{project}", self._permitted, permissions))

    def get_bucket(self, name: str) -> Json:
        """Return a bucket."""
        return cast(Json, self.world.call("storage.get_bucket", f"b/{name}", self._get_bucket, name))

    def get_policy(self, name: str) -> Json:
        """Return a bucket's policy."""
        return cast(Json, self.world.call("storage.get_policy", f"b/{name}", self._get_policy, name))

    def _permitted(self, permissions: Collection[str]) -> Json:
        granted = self.world.permissions
        return {"permissions": [each for each in permissions if granted is None or each in granted]}

    def _get_bucket(self, name: str) -> Json:
        uniform = {"enabled": self._bucket(name, "storage.buckets.get")["uniform"]}
        return {"kind": "storage#bucket", "name": name, "iamConfiguration": {"uniformBucketLevelAccess": uniform}}

    def _get_policy(self, name: str) -> Json:
        bindings = self._bucket(name, "storage.buckets.getIamPolicy")["bindings"]
        return {"kind": "storage#policy", "version": 3, "bindings": bindings}

    def _bucket(self, name: str, permission: str) -> Json:
        if self.world.permissions is not None and permission not in self.world.permissions:
            text = f"falcon-rm does not have {permission} access to the Google Cloud Storage bucket."
            raise SimError("PERMISSION_DENIED", text, reason="forbidden")
        if name not in self.world.buckets:
            raise SimError("NOT_FOUND", "The specified bucket does not exist.", reason="notFound")
        return self.world.buckets[name]
