"""The documentation names what exists: links, roles, modules, playbooks, every key of the intent and its default."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gpufabric.rdma.plugins.module_utils._common import reader as _common_reader
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.addressing import V6, read_family
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.host_classes import read_fabric
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.intent import Intent
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "roles").glob("*/README.md")])
# Galaxy shows these away from the repository.
GALAXY = [ROOT / "README.md", *sorted((ROOT / "roles").glob("*/README.md"))]
README_LINES = 225
# A table that grows with the registries.
GENERATED = re.compile(r"<!-- models: from.*?models: end -->", re.DOTALL)
MAIN = re.compile(
    r"https://(?:github\.com/gpufabric/gpufabric\.rdma/(?:blob|tree)|raw\.githubusercontent\.com/gpufabric/gpufabric\.rdma)/main/"
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
ROW = re.compile(r"^\| `(?P<key>[^`]+)` \| [^|]* \| (?P<default>[^|]*) \|", re.MULTILINE)
SMALLEST = {"rails": [{"name": "NAME"}], "supernet": "10.0.0.0/16", "thresholds": {"overrides": [{"floor": 1}]}}


def slug(heading: str) -> str:
    """The anchor that code hosts make of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def broken(page: Path) -> list[str]:
    """Links of a page, relative or to this repository's main, whose file or heading does not exist."""
    found = []
    for link in LINK.findall(page.read_text()):
        own = MAIN.match(link)
        if not own and re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link[own.end() if own else 0 :].partition("#")
        target = (ROOT if own else page.parent) / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


def anchors(page: Path) -> list[str]:
    return [slug(heading) for heading in HEADING.findall(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_the_gate_sees_a_broken_link(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A heading\n[a](page.md) [b](#a-heading) [c](absent.md) [d](page.md#absent) [e](https://x.org)\n")
    assert broken(page) == ["absent.md", "page.md#absent"]


@pytest.mark.parametrize("link", ["blob/main/absent.md", "tree/main/absent", "blob/main/README.md#absent"])
def test_the_gate_sees_a_broken_link_to_main(tmp_path: Path, link: str) -> None:
    page = tmp_path / "page.md"
    good = "https://github.com/gpufabric/gpufabric.rdma/blob/main/README.md#use"
    bad = f"https://github.com/gpufabric/gpufabric.rdma/{link}"
    page.write_text(f"[a]({good}) [b]({bad})\n")
    assert broken(page) == [bad]


@pytest.mark.parametrize("page", GALAXY, ids=lambda p: str(p.relative_to(ROOT)))
def test_galaxy_shows_pages_whose_links_are_absolute(page: Path) -> None:
    assert [link for link in LINK.findall(page.read_text()) if not link.startswith(("https://", "#"))] == []


def names(folder: str, pattern: str) -> set[str]:
    return {path.stem for path in (ROOT / folder).glob(pattern) if path.stem != "__init__"}


def first_cells(text: str) -> set[str]:
    return set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))


def test_readme_names_every_playbook_and_role_and_no_other() -> None:
    text = (ROOT / "README.md").read_text()
    assert first_cells(text) == names("playbooks", "*.yml") | names("roles", "*")


def test_the_page_of_modules_names_all_of_them_and_no_other() -> None:
    assert first_cells((ROOT / "docs" / "modules.md").read_text()) == names("plugins/modules", "*.py")


def test_readme_is_short() -> None:
    assert len(GENERATED.sub("", (ROOT / "README.md").read_text()).splitlines()) < README_LINES


@pytest.mark.parametrize("name", ["hosts.yml", "group_vars/rdma_hosts.yml"])
def test_readme_shows_the_example_inventory(name: str) -> None:
    text = (ROOT / "inventories" / "example" / name).read_text()
    shown = [line for line in text.splitlines() if line != "---" and not line.startswith("# ")]
    assert "\n".join([f"# {name}", *shown]).rstrip() in (ROOT / "README.md").read_text()


def intent_keys(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Every key that the reader of `rdma_fabric` asks for, as it stands in the reference."""
    readers: list[_common_reader.Reader] = []
    init = _common_reader.Reader.__init__

    def remember(self: _common_reader.Reader, *args: Any) -> None:
        init(self, *args)
        readers.append(self)

    monkeypatch.setattr(_common_reader.Reader, "__init__", remember)
    tolerated = [{"operator": "Exists"}]
    nics = {"name": "a", "nic_type": "1021"}
    operator = {
        "tolerations": tolerated,
        "deployment_tolerations": tolerated,
        "components": [{"name": "multus", "resources": [{"container": "kube-multus"}]}],
        "nic_configuration": {
            "enabled": True,
            "templates": [{**nics, "settings": {"numVfs": 0}}],
            "firmware": [{**nics, "urls": ["https://example.com/a"]}],
        },
    }
    classes = [{"name": "some", "match": {"gpus": 8}, "supernet": "10.0.0.0/8"}]
    fabric = {**SMALLEST, "rails": [{"name": "name"}], "operator": operator, "classes": classes}
    read_fabric(fabric, registry.names(), {})
    paths = {f"{reader.path}.{key}" for reader in readers for key in reader._seen}
    return {path.replace("rdma_fabric.", "", 1).replace("[0]", "[]") for path in paths}


def reference() -> dict[str, str]:
    """Key -> default of the tables of docs/inventory.md below `rdma_fabric`."""
    text = (ROOT / "docs" / "inventory.md").read_text()
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    (page,) = [part for part in section if part.startswith("rdma_fabric\n")]
    return {match["key"]: match["default"].strip().strip("`") for match in ROW.finditer(page)}


def test_inventory_reference_has_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = intent_keys(monkeypatch)
    sections = {key for key in keys if any(other.startswith((f"{key}.", f"{key}[].")) for other in keys)}
    # A list of dicts has a row of its own beside those of its keys.
    lists = {key for key in sections if any(other.startswith(f"{key}[].") for other in keys)}
    assert set(reference()) == keys - (sections - lists)


def value_of(intent: Any, path: str) -> Any:
    """The value at a path of the intent; the fleet's own thresholds stand one level lower."""
    for part in path.split("."):
        if hasattr(intent, "fleet") and not hasattr(intent, part):
            intent = intent.fleet
        intent = intent[part] if isinstance(intent, dict) else getattr(intent, part)
    return intent


def shown(value: Any) -> str:
    """A default as the tables show it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(f'"{item}"' for item in value) + "]"
    return str(value)


def test_inventory_reference_has_the_defaults() -> None:
    intent = Intent.from_params({"addresses": "keep"}, registry.names())
    others = ("addresses", "classes")
    told = {key: default for key, default in reference().items() if "[]" not in key and key not in others}
    # Without IPv6 addresses the intent has no part for them.
    values = {"ipv6": read_family(_common_reader.Reader({}, "", []), V6)}
    assert told == {key: shown(value_of(values if key.startswith("ipv6.") else intent, key)) for key in told}


ROLES = sorted(path for path in (ROOT / "roles").glob("*") if (path / "meta" / "argument_specs.yml").is_file())


def inputs(role: Path) -> set[str]:
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())
    return set(specs["argument_specs"]["main"]["options"])


def test_pages_name_only_inputs_that_exist() -> None:
    known = {name for role in ROLES for name in inputs(role)}
    prefixes = tuple(f"{role.name}_" for role in ROLES)
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    named = {name for page in pages for name in re.findall(r"\b[a-z]+_[a-z_]+[a-z]\b", page.read_text())}
    # A network model or a page may have a name like an input.
    known |= {*registry.names(), *names("docs/gallery", "*.md")}
    assert {name for name in named if name.startswith(prefixes)} - known == set()


def test_inventory_reference_has_the_variables_that_playbooks_and_roles_share() -> None:
    files = [*(ROOT / "playbooks").rglob("*.yml"), *(ROOT / "roles").glob("*/defaults/main.yml")]
    used = {name for path in files for name in re.findall(r"(?<![\w.])rdma_[a-z_]+[a-z]\b", path.read_text())}
    shared = {name for name in used if not name.startswith(("rdma_validate", "rdma_stack", "rdma_facts"))}
    text = (ROOT / "docs" / "inventory.md").read_text()
    assert {name for name in shared if f"`{name}`" not in text} - {"rdma_hosts", "rdma_plan"} == set()


def literals() -> list[str]:
    """Every text that the code can print, with what is filled in shown as three dots."""
    found = []
    for path in (ROOT / "plugins").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(str(p.value) if isinstance(p, ast.Constant) else "..." for p in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(re.sub(r"%[-\d.]*[sdgr]|%\(\w+\)s", "...", node.value))
    files = [path for folder in ("roles", "playbooks") for path in (ROOT / folder).rglob("*")]
    return found + [path.read_text() for path in files if path.suffix in (".sh", ".yml") and path.is_file()]


def test_messages_of_the_runbook_are_messages_of_the_code() -> None:
    text = (ROOT / "docs" / "runbook.md").read_text()
    quoted = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    texts = literals()
    fragments = [part.strip() for message in quoted for part in message.split("...") if part.strip(" ,:;(")]
    assert len(quoted) > 30
    assert [part for part in fragments if not any(part in known for known in texts)] == []


def quoted_words(page: str) -> list[str]:
    """The words between names, numbers and punctuation in the output of a faulty run that a page shows."""
    shown = re.search(r"^```\n(FAULT .*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert shown is not None
    words = re.split(r"[:,;()\n]|\b(?:lab-\d+|rail\d+|\d+)\b", shown[1])
    return [part.strip() for part in words if " " in part.strip()]


def test_the_output_in_the_tutorial_is_that_of_the_code() -> None:
    texts = literals()
    words = quoted_words((ROOT / "docs" / "tutorial.md").read_text())
    assert len(words) > 4
    assert [part for part in words if not any(part in known for known in texts)] == []


def test_the_words_of_an_output_are_those_between_names_and_numbers() -> None:
    page = "Text.\n\n```\nFAULT (sure): lab-1: none of its 4 tests passed\n    (lab-1 rail0: rail0 has no link)\n```\n"
    assert quoted_words(page) == ["none of its", "tests passed", "has no link"]


def test_the_page_of_migrations_names_keys_that_exist() -> None:
    rows = re.findall(r"^\| .*? \| (.*) \|$", (ROOT / "docs/migration.md").read_text(), re.M)
    keys = set(re.findall(r"`([a-z_]+(?:\[\])?\.[a-z_]+)`", " ".join(rows)))
    known = (ROOT / "docs/inventory.md").read_text()
    assert len(keys) > 10
    assert {key for key in keys if f"| `{key}" not in known} == set()
