"""What ansible-doc shows of `rdma_fabric`, and what the module accepts, come from the reference page."""

from __future__ import annotations

from typing import Any

from hypothesis import given as examples
from hypothesis import strategies as st
from tests.tools import fabric_options

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.options import FABRIC, given

OPTIONS = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def test_the_generated_files_are_those_of_the_page() -> None:
    options = fabric_options.tree(fabric_options.rows())
    remedy = "run python -m tests.tools.fabric_options"
    assert fabric_options.FRAGMENT.read_text() == fabric_options.fragment(options), remedy
    assert fabric_options.SPEC.read_text() == fabric_options.spec(options), remedy


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


@examples(OPTIONS)
def test_no_dict_keeps_a_key_without_a_value(value: Any) -> None:
    def empty(found: Any) -> bool:
        if isinstance(found, dict):
            return any(one is None or empty(one) for one in found.values())
        return isinstance(found, list) and any(map(empty, found))

    assert not empty(given(value))
    assert given(given(value)) == given(value)
