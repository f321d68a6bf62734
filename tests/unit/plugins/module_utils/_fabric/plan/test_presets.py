"""Plans of well-known servers, without hosts."""

from __future__ import annotations

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan import presets
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan


@pytest.mark.parametrize("name", presets.PRESETS)
def test_a_preset_is_planned_with_the_rails_that_it_marks(name: str) -> None:
    preset = presets.PRESETS[name]
    found = plan({"supernet": "192.168.0.0/16"}, presets.hosts(name, 2))
    marked = [nic.pci for nic in sorted(preset.nics, key=lambda nic: -1 if nic.rail is None else nic.rail)]
    rails = marked[len(marked) - 8 :]
    assert [rail["pci"] for rail in found["hosts"]["gpu-1"]["rails"]] == rails
    assert len(found["objects"]["policy"]) == 1 and len(found["objects"]["networks"]) == 16
    assert found["warnings"] == []
    assert preset.source


def test_names_of_hosts_sort_as_they_count() -> None:
    assert list(presets.hosts("dell_xe9680_h200", 10))[::9] == ["gpu-01", "gpu-10"]


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(InputError, match='preset: there is none called "dell_xe9680"; did you mean "dell_xe9680_h200"'):
        presets.hosts("dell_xe9680", 2)
