"""What ansible-doc shows of `rdma_fabric`, and what the module accepts, come from the reference page."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from tests.tools import fabric_options, gallery

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.given import given
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.options import FABRIC


def test_the_generated_files_are_those_of_the_page() -> None:
    options = fabric_options.tree(fabric_options.rows())
    remedy = "run python -m tests.tools.fabric_options"
    assert fabric_options.FRAGMENT.read_text() == fabric_options.fragment(options), remedy
    assert fabric_options.SPEC.read_text() == fabric_options.spec(options), remedy


def test_no_row_of_the_page_is_left_out() -> None:
    """Names with digits, too: a key that is no option is refused by the module, although the intent reads it."""
    (page,) = [part for part in fabric_options.PAGE.read_text().split("\n## ") if part.startswith("rdma_fabric\n")]
    named = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert [row["key"] for row in fabric_options.rows()] == named


@pytest.mark.parametrize("name", gallery.ENTRIES)
def test_the_module_accepts_the_intents_of_the_gallery(name: str) -> None:
    intent = yaml.safe_load(gallery.intent_text(gallery.ENTRIES[name]))
    found = ArgumentSpecValidator({"fabric": {"type": "dict", "options": FABRIC}}).validate({"fabric": intent})
    assert found.error_messages == []


def test_every_key_of_the_page_is_an_option() -> None:
    """A test of the page proves that these are the keys that the intent reads."""

    def keys(options: dict[str, Any], path: str = "") -> set[str]:
        found = set()
        for name, one in options.items():
            found |= keys(one["options"], f"{path}{name}.") if "options" in one else {f"{path}{name}"}
        return found

    pages = {row["key"].replace("[]", "") for row in fabric_options.rows()}
    assert keys(FABRIC) == {key for key in pages if not any(other.startswith(f"{key}.") for other in pages)}


def test_what_is_not_given_has_its_default() -> None:
    filled = {"mtu": None, "rename": False, "rails": [{"name": "rail0", "pci": None}], "tests": {"size": None}}
    assert given(filled) == {"rename": False, "rails": [{"name": "rail0"}], "tests": {}}


def test_a_free_dict_stays_as_the_user_wrote_it() -> None:
    groups = {"rack1": None, "rack2": [None]}
    assert given({"tests": {"groups": groups, "size": None}}) == {"tests": {"groups": groups}}
