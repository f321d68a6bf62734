"""docs/gallery/ shows what each network model becomes, as the playbook plan writes it. About 1 s."""

from __future__ import annotations

import re

import pytest
import yaml
from tests.tools import gallery

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import releases
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.manifests import Chart, manifests
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry

BLOCK = re.compile(r"`(\S+\.yaml)`\n\n```yaml\n(.*?)```", re.DOTALL)
RAIL, NETWORK = re.compile(r"rail\d+"), re.compile(r"\d+\.\d+\.\d+\.\d+(/\d+)?|fd00:[0-9a-f:]+")


def test_the_pages_are_those_that_the_tool_writes() -> None:
    found = {path.name: path.read_text() for path in gallery.FOLDER.iterdir()}
    assert found == gallery.pages(), "run python -m tests.tools.gallery"


def test_every_network_model_and_release_line_is_shown() -> None:
    shown = {yaml.safe_load(gallery.intent_text(entry))["profile"] for entry in gallery.ENTRIES.values()}
    assert shown == set(registry.PROFILES)
    others = [name for name in releases.LINES if not releases.DEFAULT.startswith(f"{name}.")]
    for name in gallery.ENTRIES:
        text = (gallery.FOLDER / f"{name}.md").read_text()
        assert [line for line in releases.LINES if f"\n### {line}\n" in text] == others


@pytest.mark.parametrize("name", gallery.ENTRIES)
def test_a_page_shows_the_objects_of_the_plan(name: str) -> None:
    made = gallery.planned(gallery.ENTRIES[name], releases.DEFAULT)
    text = (gallery.FOLDER / f"{name}.md").read_text().partition("## Other release lines")[0]
    shown = {path: yaml.safe_load(block) for path, block in BLOCK.findall(text)}
    applied = [item for step in ("policy", "networks") for item in made["objects"][step]]
    first = [item for item in applied if not re.search(r"rail[1-9]", item["metadata"]["name"])]
    assert [item for item in applied if item in shown.values()] == first
    files = manifests(made, Chart())
    for path, (item,) in ((path, items) for path, items in files.items() if gallery.OF_OTHER_RAIL.search(path)):
        like = yaml.safe_dump(shown[RAIL.sub("rail0", path)])
        assert NETWORK.sub("", RAIL.sub("rail0", yaml.safe_dump(item))) == NETWORK.sub("", like)
