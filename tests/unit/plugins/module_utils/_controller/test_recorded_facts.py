"""Facts in a folder: written, read again, and refused by name when they are damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._controller import recorded_facts


def test_what_is_written_is_read_in_the_order_of_the_group(tmp_path: Path) -> None:
    texts = {
        "b": recorded_facts.text(0, ["rdma_hosts", "rack1"], {"number": 7}, facts={"schema": 3}),
        "a": recorded_facts.text(1, ["rdma_hosts"], {}, facts={"schema": 3}),
    }
    folder = tmp_path / "facts"
    assert recorded_facts.write(str(folder), texts, True) == ["b.json", "a.json"]
    assert not folder.exists()
    assert recorded_facts.write(str(folder), texts, False) == ["b.json", "a.json"]
    assert recorded_facts.write(str(folder), texts, False) == []
    hosts, groups = recorded_facts.read(str(folder))
    assert list(hosts) == ["b", "a"]
    assert hosts["b"] == {"facts": {"schema": 3}, "rdma_host": {"number": 7}}
    assert groups == {"rdma_hosts": ["b", "a"], "rack1": ["b"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("[" * 100000, "not valid JSON"),
        ("[]", 'expected the schema "gpufabric.rdma/facts/1", found a list'),
        ('{"schema": "gpufabric.rdma/facts/2"}', 'found "gpufabric.rdma/facts/2" (text)'),
        (json.dumps({"schema": recorded_facts.SCHEMA, "groups": []}), "expected position (a whole number) and groups"),
    ],
)
def test_a_file_that_is_none_of_ours_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "gpu-1.json").write_text(text)
    with pytest.raises(InputError) as error:
        recorded_facts.read(str(tmp_path))
    assert "1 of 1 files are not facts of a host: gpu-1.json:" in str(error.value) and message in str(error.value)


def test_a_folder_without_facts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file or directory. Expected the folder that playbook discover wrote"):
        recorded_facts.read(str(tmp_path / "none"))
    with pytest.raises(InputError, match="has 0 files NAME.json, expected one per host"):
        recorded_facts.read(str(tmp_path))


def test_a_host_whose_name_is_a_path(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='the host "../x" has a name that cannot be a file'):
        recorded_facts.write(str(tmp_path), {"../x": ""}, False)
