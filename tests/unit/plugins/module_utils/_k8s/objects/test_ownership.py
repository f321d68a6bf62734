"""Which fields are ours, and what a diff shows of them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator import common
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.objects import ownership

OBJECT = {
    "kind": "Thing",
    "metadata": {"name": "x", "labels": {"ours": "1", "theirs": "2"}},
    "spec": {
        "mtu": 9000,
        "list": [{"name": "a", "v": 1}, {"name": "b", "v": 2}],
        "set": ["p", "q"],
        "whole": {"k": {"deep": True}},
    },
}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"f:spec": {"f:mtu": {}}}, {"spec": {"mtu": 9000}}),
        ({"f:metadata": {"f:labels": {".": {}, "f:ours": {}}}}, {"metadata": {"labels": {"ours": "1"}}}),
        ({"f:spec": {"f:list": {'k:{"name":"b"}': {".": {}, "f:name": {}}}}}, {"spec": {"list": [{"name": "b"}]}}),
        ({"f:spec": {"f:set": {'v:"q"': {}}}}, {"spec": {"set": ["q"]}}),
        ({"f:spec": {"f:whole": {}}}, {"spec": {"whole": {"k": {"deep": True}}}}),
        ({"f:spec": {"f:gone": {}}}, {"spec": {}}),
        ({"f:spec": {"f:mtu": {"f:x": {}}}}, {"spec": {"mtu": 9000}}),
    ],
)
def test_project(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert ownership.project(OBJECT, fields) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({"f:a": {}}, {"f:b": {}}, {"f:a": {}, "f:b": {}}),
        ({"f:a": {"f:x": {}}}, {"f:a": {"f:y": {}}}, {"f:a": {"f:x": {}, "f:y": {}}}),
        ({"f:a": {}}, {"f:a": {"f:y": {}}}, {"f:a": {}}),
    ],
)
def test_union(left: dict[str, Any], right: dict[str, Any], expected: dict[str, Any]) -> None:
    assert ownership.union(left, right) == expected


def test_only_what_we_applied_counts_as_ours() -> None:
    entries = [
        {"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:a": {}}},
        {"manager": "gpufabric", "operation": "Update", "fieldsV1": {"f:b": {}}},
        {"manager": "gpufabric", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:c": {}}},
        {"manager": "gpufabric", "operation": "Apply", "fieldsV1": {"f:d": {}}},
    ]
    assert ownership.owned_fields({"metadata": {"managedFields": entries}}) == {"f:d": {}}
    assert ownership.owned_fields(None) == {}


def test_values_of_a_secret_are_hidden() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"token": "cGxhbnRlZA=="}}
    assert ownership.shown(secret, {"f:data": {"f:token": {}}}) == {"data": "(hidden)"}


def test_mark() -> None:
    ours = {"kind": "X", "metadata": {"name": "x", "labels": {ownership.MARK: "gpufabric", "a": "b"}}}
    assert common.made_by_us(ours)
    assert ownership.without_mark(ours) == {"kind": "X", "metadata": {"name": "x", "labels": {"a": "b"}}}
    assert not common.made_by_us(ownership.without_mark(ours))
