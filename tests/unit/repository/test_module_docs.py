"""Documentation of modules: attributes, action groups and links to neighbours, as ansible-doc shows them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
COLLECTION = "gpufabric.rdma."
MODULES = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("*.py") if path.stem != "__init__")
ATTRIBUTES = ("check_mode", "diff_mode", "idempotent", "platform")
SUPPORT = ("full", "partial", "none", "N/A")
# The first part of a fragment's name -> the action group of the modules that extend it.
GROUPS = {"host": "host", "cluster": "cluster"}


def texts(path: Path) -> dict[str, str]:
    """The strings that a file assigns to names, also those of its class."""
    return {
        target.id: node.value.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def documentation(module: str) -> dict[str, Any]:
    """The documentation of a module, with the attributes of its fragments."""
    doc: dict[str, Any] = yaml.safe_load(texts(ROOT / "plugins" / "modules" / f"{module}.py")["DOCUMENTATION"])
    merged: dict[str, dict[str, Any]] = {}
    for fragment in doc.get("extends_documentation_fragment", []):
        for name, attribute in attributes_of(fragment).items():
            merged[name] = {**merged.get(name, {}), **attribute}
    for name, attribute in doc.get("attributes", {}).items():
        merged[name] = {**merged.get(name, {}), **attribute}
    return {**doc, "attributes": merged}


def attributes_of(fragment: str) -> dict[str, dict[str, Any]]:
    name, _, part = fragment.removeprefix(COLLECTION).partition(".")
    text = texts(ROOT / "plugins" / "doc_fragments" / f"{name}.py")[part.upper() or "DOCUMENTATION"]
    found: dict[str, dict[str, Any]] = yaml.safe_load(text).get("attributes", {})
    return found


def action_groups() -> dict[str, list[str]]:
    groups: dict[str, list[str]] = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())["action_groups"]
    return groups


def roles_with(module: str) -> list[str]:
    """The roles whose tasks run a module."""
    return sorted(
        {
            path.parents[1].name
            for path in (ROOT / "roles").glob("*/tasks/*.yml")
            if f"{COLLECTION}{module}:" in path.read_text()
        }
    )


def unsupported(doc: dict[str, Any]) -> list[str]:
    """Attributes that are missing or incomplete."""
    found = [f"{name}: missing" for name in ATTRIBUTES if name not in doc["attributes"]]
    for name, attribute in doc["attributes"].items():
        found += [f"{name}: description"] if not attribute.get("description") else []
        found += [f"{name}: support"] if attribute.get("support") not in SUPPORT else []
    return found


def misgrouped(module: str, doc: dict[str, Any], groups: dict[str, list[str]]) -> list[str]:
    """Differences between the fragments of a module, its attribute action_group and meta/runtime.yml."""
    fragments = {name.removeprefix(COLLECTION).partition(".")[0] for name in doc["extends_documentation_fragment"]}
    expected = sorted(GROUPS[name] for name in fragments if name in GROUPS)
    documented = doc["attributes"].get("action_group", {}).get("membership", [])
    defined = sorted(name for name, members in groups.items() if module in members)
    found = [f"documents {documented}"] if documented != [COLLECTION + name for name in expected] else []
    return found + ([f"meta/runtime.yml has it in {defined}"] if defined != expected else [])


def unlinked(module: str, doc: dict[str, Any], roles: list[str]) -> list[str]:
    """Links that are missing from seealso, or lead to nothing."""
    links = doc.get("seealso", [])
    modules = [link["module"].removeprefix(COLLECTION) for link in links if "module" in link]
    pages = [
        link["link"].rpartition("/")[2].removesuffix(".md") for link in links if "/docs/roles/" in link.get("link", "")
    ]
    found = [] if modules else ["no other module"]
    found += [f"module {name}" for name in modules if name not in MODULES or name == module]
    found += [f"role {name} does not run it" for name in pages if name not in roles]
    return found + (["no role"] if roles and not pages else [])


@pytest.mark.parametrize("module", MODULES)
def test_module_documents_its_attributes(module: str) -> None:
    assert unsupported(documentation(module)) == []


@pytest.mark.parametrize("module", MODULES)
def test_action_groups_are_documented(module: str) -> None:
    assert misgrouped(module, documentation(module), action_groups()) == []


@pytest.mark.parametrize("module", MODULES)
def test_module_links_to_its_role_and_neighbours(module: str) -> None:
    assert unlinked(module, documentation(module), roles_with(module)) == []


@pytest.mark.parametrize("module", MODULES)
def test_short_description_is_an_imperative_phrase(module: str) -> None:
    text = documentation(module)["short_description"]
    first = text.split()[0]
    assert first[0].isupper()
    assert not first.endswith(("s", "ing"))
    assert not text.endswith(".")
    assert len(text) <= 90


def test_action_groups_hold_only_modules() -> None:
    assert sorted(set(sum(action_groups().values(), [])) - set(MODULES)) == []


COMPLETE: dict[str, Any] = {
    "extends_documentation_fragment": ["gpufabric.rdma.host", "gpufabric.rdma.host.rails"],
    "attributes": {
        **{name: {"description": "Text.", "support": "full"} for name in ATTRIBUTES},
        "action_group": {"description": "Text.", "support": "full", "membership": ["gpufabric.rdma.host"]},
    },
    "seealso": [
        {"module": "gpufabric.rdma.rail_qos"},
        {"name": "Role", "description": "Text.", "link": "https://example.com/docs/roles/rail_links.md"},
    ],
}


def test_complete_documentation_passes() -> None:
    assert unsupported(COMPLETE) == []
    assert misgrouped("rail_links", COMPLETE, {"host": ["rail_links"]}) == []
    assert unlinked("rail_links", COMPLETE, ["rail_links"]) == []


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_missing_attribute_is_seen(name: str) -> None:
    rest = {key: value for key, value in COMPLETE["attributes"].items() if key != name}
    assert unsupported({"attributes": rest}) == [f"{name}: missing"]


def test_an_incomplete_attribute_is_seen() -> None:
    attributes = {**COMPLETE["attributes"], "check_mode": {"support": "yes"}}
    assert unsupported({"attributes": attributes}) == ["check_mode: description", "check_mode: support"]


def test_a_wrong_group_is_seen() -> None:
    assert misgrouped("rail_links", COMPLETE, {"cluster": ["rail_links"]}) == ["meta/runtime.yml has it in ['cluster']"]
    without = {**COMPLETE, "attributes": {}}
    assert misgrouped("rail_links", without, {"host": ["rail_links"]}) == ["documents []"]


def test_a_missing_or_broken_link_is_seen() -> None:
    assert unlinked("rail_links", {}, ["rail_links"]) == ["no other module", "no role"]
    itself = {"seealso": [{"module": "gpufabric.rdma.rail_links"}, {"module": "gpufabric.rdma.nothing"}]}
    assert unlinked("rail_links", itself, []) == ["module rail_links", "module nothing"]
    assert unlinked("rail_qos", COMPLETE, ["sriov"]) == ["module rail_qos", "role rail_links does not run it"]
