"""OLM on the API server in memory: it makes InstallPlans and, once they are approved, releases of operators.

Written by hand after the API types and controllers of operator-framework; a cluster with OLM was not at hand.
"""

from __future__ import annotations

from typing import Any, Callable

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.poll import Clock

from .cluster_fake import FakeClock, FakeCluster

OLM = "operators.coreos.com/v1alpha1"
NAMESPACE = "nvidia-network-operator"
PACKAGE = "nvidia-network-operator"
CHANNELS = {
    "v26.4": ["nvidia-network-operator.v26.4.2", "nvidia-network-operator.v26.4.1"],
    "v26.7": ["nvidia-network-operator.v26.7.1", "nvidia-network-operator.v26.7.0"],
}
SUBSCRIPTIONS = f"/apis/{OLM}/namespaces/{NAMESPACE}/subscriptions/"
PLANS = f"/apis/{OLM}/namespaces/{NAMESPACE}/installplans/"
VERSIONS = f"/apis/{OLM}/namespaces/{NAMESPACE}/clusterserviceversions/"


def manifest(channels: dict[str, list[str]], source: str = "certified-operators") -> dict[str, Any]:
    return {
        "apiVersion": "packages.operators.coreos.com/v1",
        "kind": "PackageManifest",
        "metadata": {"name": PACKAGE, "namespace": "openshift-marketplace", "labels": {"catalog": source}},
        "status": {
            "catalogSource": source,
            "channels": [
                {"name": name, "currentCSV": entries[0], "entries": [{"name": entry} for entry in entries]}
                for name, entries in channels.items()
            ],
        },
    }


def item(kind: str, name: str, version: str = OLM, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": NAMESPACE, **more.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **more}


class Olm:
    """Takes one step whenever time passes. ``proposes``: instead of the release that the Subscription names.

    ``ends``: status of the release once its objects exist; ``plan_ends``: that of an approved InstallPlan.
    """

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.time = FakeClock()
        self.proposes: list[str] = []
        self.ends: dict[str, Any] = {"phase": "Succeeded", "reason": "InstallSucceeded"}
        self.plan_ends: dict[str, Any] = {"phase": "Complete"}
        self.conditions: list[dict[str, Any]] = []
        #: Releases that an InstallPlan has installed: it does so once.
        self.done: set[str] = set()
        #: Runs before each step, such as another client.
        self.meanwhile: Callable[[], None] = lambda: None
        cluster.put(manifest(CHANNELS))

    def clock(self) -> Clock:
        return Clock(lambda: self.time.time, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.time.sleep(seconds)
        self.meanwhile()
        self.step()

    def of(self, prefix: str) -> list[dict[str, Any]]:
        return [found for path, found in sorted(self.cluster.objects.items()) if path.startswith(prefix)]

    def step(self) -> None:
        for subscription in self.of(SUBSCRIPTIONS):
            status = subscription.setdefault("status", {})
            status["conditions"] = self.conditions
            if not self.conditions:
                self._resolve(subscription, status)
        for plan in self.of(PLANS):
            if plan["spec"]["approved"]:
                self._install(plan)

    def _resolve(self, subscription: dict[str, Any], status: dict[str, Any]) -> None:
        """Propose the release by which a Subscription starts, and the newest of its channel after that."""
        spec, installed = subscription["spec"], status.get("installedCSV")
        newest = CHANNELS[spec["channel"]][0]
        wanted = newest if installed else spec.get("startingCSV", newest)
        names = self.proposes or [wanted]
        if installed == names[0]:
            return
        pending = {tuple(plan["spec"]["clusterServiceVersionNames"]) for plan in self.of(PLANS)}
        if tuple(names) not in pending:
            number = len(pending) + 1
            self.cluster.put(
                item(
                    "InstallPlan",
                    f"install-{number}",
                    metadata={"ownerReferences": [self.owner(subscription)], "resourceVersion": f"v{number}"},
                    spec={
                        "clusterServiceVersionNames": names,
                        "approval": "Manual",
                        "approved": False,
                        "generation": number,
                    },
                    status={"phase": "RequiresApproval"},
                ),
                manager="catalog",
            )
            status["installPlanRef"] = {"name": f"install-{number}"}
            status["currentCSV"] = names[0]

    def owner(self, found: dict[str, Any]) -> dict[str, Any]:
        return {"apiVersion": OLM, "kind": found["kind"], **{k: found["metadata"][k] for k in ("name", "uid")}}

    def _install(self, plan: dict[str, Any]) -> None:
        plan["status"] = dict(self.plan_ends)
        if self.plan_ends["phase"] != "Complete":
            return
        for name in plan["spec"]["clusterServiceVersionNames"]:
            if name in self.done:
                continue
            if VERSIONS + name not in self.cluster.objects:
                self.cluster.put(item("ClusterServiceVersion", name, status={"phase": "Installing"}), manager="olm")
                return
            live = self.cluster.objects[VERSIONS + name]
            live["status"] = dict(self.ends)
            if live["status"]["phase"] == "Succeeded":
                self.done.add(name)
                self._installed(name)

    def _installed(self, name: str) -> None:
        package = name.partition(".")[0]
        for old in self.of(VERSIONS + package):
            if old["metadata"]["name"] != name:
                del self.cluster.objects[VERSIONS + old["metadata"]["name"]]
        for subscription in self.of(SUBSCRIPTIONS):
            if subscription["spec"]["name"] == package:
                subscription["status"]["installedCSV"] = name

    def installed(self, csv: str, **labels: str) -> None:
        """Make a Subscription and its release that are there already, as somebody else's work."""
        channel = next(name for name, entries in CHANNELS.items() if csv in entries)
        spec = {"name": PACKAGE, "source": "certified-operators", "sourceNamespace": "openshift-marketplace"}
        self.cluster.put(
            item(
                "Subscription",
                "theirs",
                metadata={"labels": labels},
                spec={**spec, "channel": channel},
                status={"installedCSV": csv, "currentCSV": csv},
            )
        )
        self.cluster.put(item("ClusterServiceVersion", csv, status={"phase": "Succeeded"}), manager="olm")
