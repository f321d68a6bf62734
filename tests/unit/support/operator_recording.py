"""A recording of the real operator, replayed as the objects that an API server would have returned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "operator"
NEWEST = "v26.7.0-rc.2"
NIC_LABEL = "feature.node.kubernetes.io/pci-15b3.present"


class World:
    """The objects at one moment; the recordings leave out what never changed, this puts it back."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.spec: dict[str, Any] = {}
        self.labelled = True

    def kind(self, kind: str) -> list[dict[str, Any]]:
        return [item for (own, _name), item in self.objects.items() if own == kind]

    def one(self, kind: str, name: str) -> dict[str, Any] | None:
        return self.objects.get((kind, name))

    def policy(self) -> dict[str, Any] | None:
        found = self.one("NicClusterPolicy", "nic-cluster-policy")
        return {**found, "spec": self.spec} if found else None

    def nodes(self) -> list[dict[str, Any]]:
        extra = {NIC_LABEL: "true"} if self.labelled else {}
        return [{"metadata": {"name": n["metadata"]["name"], "labels": {**n["metadata"]["labels"], **extra}}}
                for n in self.kind("Node")]  # fmt: skip

    def step(self, line: dict[str, Any]) -> None:
        """What the recorder did: only changes of the policy's spec and of the nodes' label matter here."""
        if (line.get("object") or {}).get("kind") == "NicClusterPolicy":
            self.spec = line["object"]["spec"]
        elif "patch NicClusterPolicy/" in line["do"]:
            self.spec = merged(self.spec, line["patch"].get("spec", {}))
        elif line["do"].startswith("NIC label"):
            self.labelled = line["do"] == "NIC label back"

    def event(self, line: dict[str, Any]) -> None:
        key = (line["kind"], line["name"])
        if line["event"] == "DELETED":
            self.objects.pop(key, None)
            return
        before = self.objects.get(key, {"metadata": {}})
        meta = {**before["metadata"], **line.get("metadata", {}), "name": line["name"]}
        meta["generation"] = line.get("generation")
        if "ns" in line:
            meta["namespace"] = line["ns"]
        if line["kind"] == "Node":
            meta["labels"] = line["labels"]
        status = line.get("status")
        self.objects[key] = {
            "kind": line["kind"],
            "metadata": meta,
            "spec": self._spec(line),
            "status": status if isinstance(status, dict) else {},
        }

    @staticmethod
    def _spec(line: dict[str, Any]) -> dict[str, Any]:
        if line["kind"] == "DaemonSet":
            return {"template": {"spec": {"containers": [{"image": line["image0"]}]}}}
        if line["kind"] == "NetworkAttachmentDefinition":
            config = line.get("spec.config")
            return {"config": line["spec.config.raw"] if config is None else json.dumps(config)}
        return {"replicas": line.get("replicas")}


def merged(target: Any, patch: Any) -> Any:
    """JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    found.update({key: merged(found.get(key), value) for key, value in patch.items()})
    return {key: value for key, value in found.items() if value is not None}


def moments(name: str, recorded: str = NEWEST) -> Iterator[tuple[float, World, dict[str, Any]]]:
    """Yield (t, world, line) after each line. A patch and the change that it makes are told in either order."""
    world = World()
    lines = [json.loads(text) for text in (RECORDINGS / recorded / f"{name}.jsonl").read_text().splitlines()]
    for line in lines:
        if line["event"] == "STEP":
            world.step(line)
        else:
            world.event(line)
        yield line["t"], world, line
