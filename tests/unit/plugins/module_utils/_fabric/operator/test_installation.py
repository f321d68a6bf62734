"""Whose the operator is: only what has our mark is upgraded or removed; every state of Helm gets its action."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator import installation
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.removal import Removal, removal

MANAGED = {"app.kubernetes.io/managed-by": "gpufabric"}
ENFORCE = "pod-security.kubernetes.io/enforce"
CRD = "nicclusterpolicies.mellanox.com"
TARGET = installation.Target("op", "net", "26.7.1", True)
USE, ADOPT = (dataclasses.replace(TARGET, existing=rule) for rule in ("use", "adopt"))
MARK = installation.Mark("net", "uid-1", (CRD,), True)
OPERATOR = {"namespace": "op", "name": "network-operator", "version": "26.7.1", "release": "net", "available": True}
NFD = [{"namespace": "op", "name": "nfd-master"}]
NONE = installation.Seen([], None, None, [], [], [], [])


def space(labels: dict[str, str] | None = None, **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "op", "labels": labels, **meta}}


def revision(status: str = "deployed", number: int = 1, release: str = "net") -> installation.Revision:
    return installation.Revision(release, number, status, f"uid-{number}")


def seen(*statuses: str, **more: Any) -> installation.Seen:
    """An operator as our run left it: mark, namespace, Deployment; ``statuses`` of its revisions."""
    history = [revision(status, number) for number, status in enumerate(statuses or ("deployed",), 1)]
    given = {"revisions": history, "mark": MARK, "namespace": space(MANAGED), "operators": [OPERATOR], **more}
    return dataclasses.replace(NONE, **given)


def foreign(**more: Any) -> installation.Seen:
    return seen(mark=None, namespace=space(), **more)


def operator(**more: Any) -> list[dict[str, Any]]:
    return [{**OPERATOR, **more}]


def test_into_an_empty_cluster() -> None:
    decision = installation.decide(TARGET, dataclasses.replace(NONE, definitions=[CRD]))
    assert (decision.action, decision.problems) == ("install", ())
    namespace, mark = decision.objects
    assert namespace["metadata"]["labels"][ENFORCE] == "privileged"
    assert installation.Mark.of(mark) == installation.Mark("net", "", (CRD,), True)


STATES = [
    ((), (), "install"),
    (("deployed",), (OPERATOR,), "install"),
    (("superseded", "deployed"), (OPERATOR,), "install"),
    # The first installation timed out in a hook, an upgrade failed, the Deployment was deleted.
    (("failed",), (), "repair"),
    (("deployed", "failed"), (OPERATOR,), "repair"),
    (("deployed",), (), "repair"),
    (("uninstalled",), (), "install"),
]


@pytest.mark.parametrize(("statuses", "operators", "action"), STATES)
def test_states_that_a_run_can_go_on_from(statuses: Any, operators: Any, action: str) -> None:
    found = seen(*statuses, operators=operators) if statuses else NONE
    decision = installation.decide(TARGET, found)
    assert (decision.action, decision.problems) == (action, ())


BUSY = (
    "Helm release net in namespace op is in state {}: a Helm operation is running or was interrupted. Wait until it is"
    " complete. If none is running, run: {}"
)


@pytest.mark.parametrize(
    ("statuses", "message"),
    [
        (("pending-install",), BUSY.format("pending-install", "helm uninstall net --namespace op")),
        (
            ("superseded", "deployed", "pending-upgrade"),
            BUSY.format("pending-upgrade", "helm rollback net 2 --namespace op"),
        ),
        (
            ("superseded", "failed", "pending-rollback"),
            BUSY.format("pending-rollback", "helm rollback net 1 --namespace op"),
        ),
        (
            ("uninstalling",),
            "Helm release net in namespace op is in state uninstalling: its removal is running or "
            "was interrupted. Wait until"
            " it is complete. If none is running, run: helm uninstall net --namespace op",
        ),
        (("unknown",), "Helm release net in namespace op is in state unknown. Inspect it with: helm history net -n op"),
    ],
)
def test_states_that_need_a_person(statuses: tuple[str, ...], message: str) -> None:
    assert installation.decide(TARGET, seen(*statuses)).problems == (message,)


USED = (
    "network operator op/network-operator: its Helm release net in namespace op is in state {}, so the operator may be"
    " half removed or half upgraded. Repair it with the tool that manages it. Inspect it with: helm history net"
    " --namespace op"
)


@pytest.mark.parametrize("status", ["uninstalling", "pending-rollback", "pending-upgrade", "failed", "unknown"])
def test_an_operator_of_others_is_not_used_in_such_a_state(status: str) -> None:
    decision = installation.decide(USE, foreign(revisions=[revision("superseded"), revision(status, 2)]))
    assert (decision.action, decision.problems) == ("none", (USED.format(status),))


def test_a_lost_deployment_hides_no_downgrade() -> None:
    """The release of the mark counts where there is no Deployment that names one; a first failure installed none."""
    lost = {"mark": dataclasses.replace(MARK, version="26.7.1"), "operators": []}
    older = dataclasses.replace(TARGET, version="26.4.2")
    assert installation.decide(TARGET, seen("deployed", **lost)).problems == ()
    for statuses in (["deployed"], ["superseded", "failed"]):
        assert installation.decide(older, seen(*statuses, **lost)).problems == (
            "Helm release net in namespace op: the installed release 26.7.1 is newer than the requested release 26.4.2,"
            " and a downgrade is not supported. Set rdma_fabric.operator.release to 26.7.1 or newer",
        )
    assert installation.decide(older, seen("failed", operators=[])).problems == ()
    # With the Deployment, its release is what counts.
    assert len(installation.decide(older, seen("deployed", **{**lost, "operators": [OPERATOR]})).problems) == 1


def test_another_name_is_refused_while_a_release_of_ours_exists() -> None:
    """Its first installation failed, so that there is no Deployment: the mark must not move to the other name."""
    other = dataclasses.replace(TARGET, release="net2")
    assert installation.decide(other, seen("failed", operators=[])).problems == (
        "Helm release net in namespace op is in state failed, and this collection manages it. Set operator_name"
        " to net, or remove it with playbook gpufabric.rdma.teardown first",
    )
    assert installation.decide(other, seen("uninstalled", operators=[])).problems == ()


NAME = "network operator op/network-operator: "
REFUSED = (
    f"{NAME}it is not managed by this collection (Helm release net). Set rdma_fabric.operator.existing to use (it stays"
    " as it is) or to adopt (this collection upgrades it, and removes it at teardown)"
)
ELSEWHERE = (
    "network operator x/network-operator: it runs in another namespace than op and is not managed by this collection"
    " (Helm release net). Set rdma_fabric.operator.namespace to x and rdma_fabric.operator.existing to use or adopt, or"
    " remove it"
)
FOREIGN = [
    (TARGET, foreign(), "install", [REFUSED]),
    (USE, foreign(), "none", []),
    (ADOPT, foreign(), "install", []),
    # Ours was removed by hand, and somebody installed theirs under the same name: our mark is there still.
    (TARGET, seen(mark=dataclasses.replace(MARK, secret="gone")), "install", [REFUSED]),
    (TARGET, foreign(operators=operator(namespace="x"), revisions=[]), "install", [ELSEWHERE]),
    (ADOPT, foreign(operators=operator(namespace="x"), revisions=[]), "install", [ELSEWHERE]),
    (TARGET, seen(operators=[OPERATOR, *operator(namespace="x")]), "install", [ELSEWHERE]),
    (
        USE,
        NONE,
        "none",
        [
            "rdma_fabric.operator.existing is use, but no network operator runs in namespace op. Install one, or set"
            " rdma_fabric.operator.existing to refuse"
        ],
    ),
    (
        USE,
        foreign(operators=operator(version="26.4.2")),
        "none",
        [
            f"{NAME}it is of release 26.4.2, and the plan is for release 26.7.1. Set "
            f"rdma_fabric.operator.release to the"
            " installed release, if its line is supported"
        ],
    ),
    (
        USE,
        foreign(operators=operator(available=False)),
        "none",
        [f"{NAME}its Deployment is not available. Repair it, then rerun the playbook"],
    ),
    (USE, foreign(operators=operator(release=""), revisions=[]), "none", []),
    (
        ADOPT,
        foreign(operators=operator(release=""), revisions=[]),
        "install",
        [f"{NAME}it was not installed by Helm and cannot be adopted. Set rdma_fabric.operator.existing to use"],
    ),
    (
        ADOPT,
        foreign(operators=operator(release="other"), revisions=[revision(release="other")]),
        "install",
        [f"{NAME}it belongs to Helm release other. Set operator_name to other"],
    ),
    (
        ADOPT,
        foreign(operators=operator(version="26.10.0")),
        "install",
        [
            f"{NAME}the installed release 26.10.0 is newer than the requested release 26.7.1, and a downgrade is not"
            " supported. Set rdma_fabric.operator.release to 26.10.0 or newer"
        ],
    ),
    (
        TARGET,
        foreign(operators=[], revisions=[revision("failed")]),
        "repair",
        [
            "Helm release net in namespace op is not managed by this collection and has no "
            "Deployment of a network operator"
            " (state failed). Set operator_name to another name, or remove the release with: helm uninstall net"
            " --namespace op"
        ],
    ),
    (
        TARGET,
        seen(
            mark=dataclasses.replace(MARK, release="old"),
            operators=operator(release="old"),
            revisions=[revision(release="old")],
        ),
        "install",
        [f"{NAME}this collection manages it as Helm release old. Set operator_name to old"],
    ),
    (
        TARGET,
        seen(operators=operator(version="26.1.2")),
        "install",
        [
            f"{NAME}an upgrade from 26.1.2 to 26.7.1 would skip a release line. Upgrade one line at a "
            f"time: 26.1 -> 26.4 ->"
            " 26.7"
        ],
    ),
    # The rule is about what is not managed by us.
    (USE, seen(), "install", []),
    (
        TARGET,
        dataclasses.replace(NONE, namespace=space({ENFORCE: "baseline"})),
        "install",
        [
            f"namespace op was not created by this collection, and its label {ENFORCE} is baseline. The operator's pods"
            f" need privileged. Run: kubectl label namespace op {ENFORCE}=privileged --overwrite"
        ],
    ),
    (
        TARGET,
        dataclasses.replace(NONE, namespace=space(deletionTimestamp="2026-01-01T00:00:00Z")),
        "install",
        ["namespace op is being deleted. Wait until it is gone, then rerun the playbook"],
    ),
]


@pytest.mark.parametrize(("target", "found", "action", "problems"), FOREIGN)
def test_what_others_installed(
    target: installation.Target, found: installation.Seen, action: str, problems: list[str]
) -> None:
    decision = installation.decide(target, found)
    assert (decision.action, list(decision.problems)) == (action, problems)


def test_a_namespace_of_others_is_not_applied() -> None:
    decision = installation.decide(TARGET, dataclasses.replace(NONE, namespace=space()))
    assert [item["kind"] for item in decision.objects] == ["ConfigMap"]


def test_the_mark_keeps_what_was_there_first_and_follows_the_revision() -> None:
    found = seen("superseded", "deployed", definitions=[CRD, "ippools.nv-ipam.nvidia.com"], discoveries=NFD)
    assert installation.Mark.of(installation.decide(TARGET, found).objects[-1]) == installation.Mark(
        "net", "uid-2", (CRD,), True, "26.7.1"
    )


def test_the_mark_records_the_release_that_runs() -> None:
    """Without a Deployment, the former one stays."""
    mark = dataclasses.replace(MARK, version="26.4.2")
    for operators, version in ((operator(version="26.7.1"), "26.7.1"), ([], "26.4.2")):
        made = installation.Mark.of(installation.decide(TARGET, seen(mark=mark, operators=operators)).objects[-1])
        assert made == dataclasses.replace(mark, version=version)


def test_an_adopted_installation_keeps_all_definitions_and_labels() -> None:
    found = foreign(definitions=[CRD], discoveries=NFD)
    assert installation.Mark.of(installation.decide(ADOPT, found).objects[-1]) == installation.Mark(
        "net", "uid-1", (CRD,), False, "26.7.1"
    )


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"release": "net"},
        {"release": "net", "definitions": "{"},
        {"release": "net", "definitions": '"x"'},
        {"release": "", "definitions": "[]"},
    ],
)
def test_what_is_no_mark(data: Any) -> None:
    item = {"metadata": {"labels": MANAGED}, "data": data}
    assert installation.Mark.of(item) is None
    assert installation.Mark.of({"metadata": {}, "data": {"release": "net", "definitions": "[]"}}) is None


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (seen(), ""),
        (
            NONE,
            "Helm release net in namespace op is in state absent after the installation, expected deployed. Inspect it"
            " with: helm history net --namespace op",
        ),
        (
            seen("failed"),
            "Helm release net in namespace op is in state failed after the installation, expected deployed."
            " Inspect it with: helm history net --namespace op",
        ),
        (
            seen(operators=[]),
            "Helm release net in namespace op is deployed, but has no Deployment of a network operator."
            " Check that chart_ref is the chart of the network operator",
        ),
    ],
)
def test_after_the_installation(found: installation.Seen, message: str) -> None:
    assert installation.installed_problem(TARGET, found) == message


def workload(name: str, release: str | None = None, **meta: Any) -> dict[str, Any]:
    notes = {"meta.helm.sh/release-name": release} if release else {}
    return {"kind": "Deployment", "metadata": {"name": name, "namespace": "op", "annotations": notes, **meta}}


OURS = [workload("network-operator", "net")]


def kinds(removed: Removal) -> list[str]:
    return [item["kind"] for item in removed.objects]


def test_a_teardown_removes_what_has_our_mark() -> None:
    removed = removal("op", seen(inhabitants=OURS))
    assert (removed.release, kinds(removed), removed.keep) == ("net", ["ConfigMap", "Namespace"], (CRD,))
    assert (removed.leftovers, removed.nfd, removed.notes, removed.problems) == (True, True, (), ())


NOT_OURS = "Network operator op/network-operator is not managed by this collection. It was not removed."
HELD = "Namespace op was not removed: it holds objects that this collection does not manage:"
STAYS = f"{HELD} Deployment network-operator."


@pytest.mark.parametrize(
    ("found", "objects", "notes"),
    [
        (foreign(inhabitants=OURS), [], [NOT_OURS]),
        (seen(mark=dataclasses.replace(MARK, secret="gone"), inhabitants=OURS), ["ConfigMap"], [NOT_OURS, STAYS]),
        (NONE, [], []),
    ],
)
def test_a_teardown_leaves_what_others_installed(
    found: installation.Seen, objects: list[str], notes: list[str]
) -> None:
    removed = removal("op", found)
    assert (removed.release, kinds(removed), removed.leftovers, removed.nfd) == ("", objects, False, False)
    assert list(removed.notes) == notes


def test_a_teardown_goes_on_where_another_one_was_interrupted() -> None:
    removed = removal("op", seen(revisions=[], operators=[]))
    assert (removed.release, kinds(removed), removed.leftovers) == ("", ["ConfigMap", "Namespace"], True)


def test_a_namespace_of_ours_with_workloads_of_others_stays() -> None:
    removed = removal("op", seen(inhabitants=[*OURS, workload("shop"), workload("ci", "other")]))
    assert (removed.release, kinds(removed)) == ("net", ["ConfigMap"])
    assert removed.notes == (f"{HELD} Deployment ci, Deployment shop.",)


def test_labels_stay_while_another_node_feature_discovery_runs() -> None:
    assert removal("op", seen(discoveries=[*NFD, {"namespace": "gpu", "name": "nfd-master"}])).nfd is False
    assert removal("op", seen(mark=dataclasses.replace(MARK, nfd=False))).nfd is False


def test_a_removal_that_was_interrupted_is_reported_with_the_command() -> None:
    assert removal("op", seen("uninstalling")).problems == (
        "Helm release net in namespace op is in state uninstalling: its removal is running or was interrupted. Wait"
        " until it is complete. If none is running, run: helm uninstall net --namespace op",
    )


STATUSES = st.sampled_from(["deployed", "failed", "superseded", "pending-upgrade", "uninstalling", "uninstalled", "?"])
SEEN = st.builds(
    installation.Seen,
    revisions=st.lists(
        st.builds(installation.Revision, st.just("net"), st.integers(1, 9), STATUSES, st.sampled_from("abc"))
    ),
    mark=st.none()
    | st.builds(
        installation.Mark,
        st.sampled_from(["net", "other"]),
        st.sampled_from(["", "a", "x"]),
        st.just(()),
        st.booleans(),
    ),
    namespace=st.sampled_from([None, space(), space(MANAGED)]),
    operators=st.lists(st.sampled_from([OPERATOR, {**OPERATOR, "namespace": "x"}, {**OPERATOR, "release": ""}])),
    discoveries=st.sampled_from([[], NFD]),
    inhabitants=st.sampled_from([[], OURS, [workload("shop")]]),
    definitions=st.just([CRD]),
)


@given(SEEN, st.sampled_from(["refuse", "use"]))
def test_without_a_valid_mark_nothing_is_ever_touched(found: installation.Seen, existing: str) -> None:
    """Neither upgraded nor removed, whatever else is there."""
    if found.managed or not (found.revisions or found.operators):
        return
    target = dataclasses.replace(TARGET, existing=existing)
    decision, removed = installation.decide(target, found), removal("op", found)
    alive = installation.state(found.history("net")) or found.operators
    assert decision.problems or decision.action == "none" or not alive
    assert (removed.release, removed.leftovers, removed.nfd) == ("", False, False)
    if found.namespace == space():
        assert "Namespace" not in kinds(removed)
