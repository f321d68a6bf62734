"""`python -m tests.tools.support_matrix`: writes the table of network models and release lines in README.md.

A row is a page of the gallery, a column a release line. Both registries are read, so none can be forgotten; what is
proven beyond the gate `cluster` and unit tests is in `PROVEN`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from . import gallery, importable
from .release_page import filled, table

# isort: split
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import releases

PAGE = importable.ROOT / "README.md"
BEGIN = "<!-- models: from tests/tools/support_matrix.py by python -m tests.tools.support_matrix -->"
END = "<!-- models: end -->"
GALLERY = "https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/gallery"

# Pages that the gate `cluster` (test_models.py) applies with the stand-in, in an order in which each follows one of
# another kind: all network models on every line, and variants of them on the newest.
MODELS = ("macvlan", "host_device", "sriov", "sriov_device_plugin", "ipoib", "sriov_ib", "raw", "nested_vm", "classes")
VARIANTS = ("driver", "nic_configuration", "dual_stack", "vlan", "routed", "sriov_external", "sriov_ib_opensm")

# What the words of the table mean.
WORDS = {
    "no": "not run",
    "refused": "the line lacks a kind or a field of the example, and `plan` names it",
    "unit tests": "fixtures of hosts, of their ports and of what testers print; not run on such hardware",
    "dry run": "the objects match the schemas of the line, and a real API server with its CRDs accepts them",
    "API server": "as above; and they are installed, replaced by the next model, renamed and removed there",
    "stand-in": "as above; and a stand-in for the operator, which follows recordings of the real one, works on them",
    "SR-IOV operator": "the upstream SR-IOV operator (December 2025) and its device plugin create VFs on emulated NICs,"
    " without RDMA; pods hold VFs and do not use them",
    "lab": "a complete run on virtual machines, with the stand-in for the operator",
}


@dataclass(frozen=True)
class Proven:
    """What is proven of a page: on `lines` where it is not the usual, its part on hosts, its measurement."""

    lines: Mapping[str, str] = field(default_factory=dict)
    hosts: str = "unit tests"
    measured: str = "no"


PROVEN: dict[str, Proven] = {
    "macvlan": Proven({"26.7": "lab"}, hosts="lab", measured="lab"),
    # Scenario `sriov` of `make test`, with `sriov.rdma: false`; the role `sriov` in scenario `site`.
    "sriov": Proven({"26.7": "SR-IOV operator"}, hosts="lab"),
    "sriov_external": Proven(hosts="lab"),
    "sriov_device_plugin": Proven(hosts="lab"),
    # No models of another platform replace those of this one on a cluster.
    "openshift": Proven(dict.fromkeys(releases.LINES, "dry run")),
    "ipoib": Proven(measured="unit tests"),
    "sriov_ib": Proven(measured="unit tests"),
    "sriov_ib_opensm": Proven(measured="unit tests"),
}


def main() -> int:
    PAGE.write_text(written(PAGE.read_text()))
    return 0


def written(text: str) -> str:
    """The page with its tables as the registries have it now; ValueError when there is no place for it."""
    return filled(text, BEGIN, END, f"{matrix()}\n\n{legend()}")


def matrix() -> str:
    """The table, the newest release line first."""
    lines = list(releases.LINES.values())[::-1]
    head = ("profile", "network model", *(line.name for line in lines), "on hosts", "measured")
    return table(head, [row(name, lines) for name in by_profile()])


def legend() -> str:
    return table(("word", "meaning"), WORDS.items())


def by_profile() -> list[str]:
    """The pages of the gallery, those of one profile together."""
    profiles = {name: profile(name) for name in gallery.ENTRIES}
    first = list(dict.fromkeys(profiles.values()))
    return sorted(profiles, key=lambda name: first.index(profiles[name]))


def profile(name: str) -> str:
    return str(yaml.safe_load(gallery.intent_text(gallery.ENTRIES[name]))["profile"])


def row(name: str, lines: list[releases.Line]) -> list[str]:
    known = PROVEN.get(name, Proven())
    title = f"[{gallery.ENTRIES[name].title}]({GALLERY}/{name}.md)"
    return [profile(name), title, *(word(name, line) for line in lines), known.hosts, known.measured]


def word(name: str, line: releases.Line) -> str:
    """How a page is proven on a line: the gate `cluster` applies what the line does not refuse."""
    if gallery.refusal(gallery.ENTRIES[name], list(line.releases)[-1]):
        return "refused"
    newest = line.name == list(releases.LINES)[-1]
    usual = "stand-in" if name in MODELS or (newest and name in VARIANTS) else "API server"
    return PROVEN.get(name, Proven()).lines.get(line.name, usual)


if __name__ == "__main__":
    sys.exit(main())
