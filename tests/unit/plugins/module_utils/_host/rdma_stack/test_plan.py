"""Plans of the RDMA stack: whatever DOCA-OFED brings and replaces, leaving it gives the packages of before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.loaded_drivers import Driver, stale
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.rdma_stack import doca
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.rdma_stack.plan import Have, Want, plan_stack, settle

FOLDERS = ("/etc/modules-load.d", "/etc/systemd/system")
NAMES = ["perftest", "rdma-core", "mlnx-tools", "openssl", "libibverbs1"]
PACKAGES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["1", "2"]))
DOCA = Want("doca_ofed", packages=("doca-ofed",), pins={"doca-ofed": "3"}, hold=("doca-ofed",))
INBOX = ("perftest", "rdma-core")


def have(installed: dict[str, str]) -> Have:
    return Have({}, (), (), (), installed, (), "apt")


def carried_out(installed: dict[str, str], plan: Any, archive: dict[str, str]) -> dict[str, str]:
    """The packages after the role's package tasks; ``archive``: versions of the distribution."""
    left = {name: version for name, version in installed.items() if name not in plan.remove}
    for item in plan.install:
        name, _mark, version = item.partition("=")
        left[name] = version or archive[name]
    return left


@given(before=PACKAGES, brings=PACKAGES, provider=st.sampled_from([None, "inbox", "soft_roce"]))
def test_leaving_gives_back_what_was_before(
    before: dict[str, str], brings: dict[str, str], provider: str | None
) -> None:
    record: dict[str, Any] = {**plan_stack(DOCA, have(before), {}, folders=FOLDERS).record, "snapshot": before}
    now = {**before, **brings, "doca-ofed": "3"}
    record = settle(plan_stack(DOCA, have(now), record, folders=FOLDERS).record, now)
    want = Want(provider, packages=INBOX if provider else ())
    plan = plan_stack(want, have(now), record, folders=FOLDERS)
    after = carried_out(now, plan, dict.fromkeys(NAMES, "9"))
    wanted = {name: before.get(name, after.get(name, "")) for name in want.packages}
    assert after == {**before, **wanted}
    last = plan_stack(want, have(after), plan.record, folders=FOLDERS)
    assert (last.install, last.remove) == ((), ())
    assert not set(last.record) & {"came", "replaced", "provider"}
    gone = plan_stack(Want(None), have(after), last.record, folders=FOLDERS)
    # A package of the vendor that the next provider wants, too, in the vendor's version is not replaced.
    assert carried_out(after, gone, {}) == before


@given(text=st.text(), version=st.text(), taint=st.text())
def test_any_text_of_drivers_is_read(text: str, version: str, taint: str) -> None:
    loaded = Driver.loaded("mlx5_core", version, taint)
    found = Driver.installed("mlx5_core", text)
    assert stale([loaded], {}) == []
    assert found is None or isinstance(found.title, str)


@pytest.mark.parametrize(
    ("loaded", "modinfo", "expected"),
    [
        (("", ""), "filename: a.ko\nintree: Y\n", []),
        ((None, None), "filename: a.ko\nintree: Y\nversion: 5.0-0\n", []),
        (("25.10-1.2.8", "OE"), "filename: a.ko\nversion: 25.10-1.2.8\n", []),
        (("", ""), "filename: a.ko\nversion: 25.10-1.2.8\n",
         ["mlx5_core (in-tree)", "mlx5_core 25.10-1.2.8 (out-of-tree)"]),
        (("24.10-2", "OE"), "filename: a.ko\nversion: 25.10-1\n",
         ["mlx5_core 24.10-2 (out-of-tree)", "mlx5_core 25.10-1 (out-of-tree)"]),
        (("", ""), "modinfo: ERROR: Module mlx5_core not found.\n", []),
    ],
)  # fmt: skip
def test_which_drivers_are_stale(loaded: tuple[str, str], modinfo: str, expected: list[str]) -> None:
    runs = Driver.loaded("mlx5_core", *loaded)
    there = Driver.installed("mlx5_core", modinfo)
    pairs = stale([runs], {"mlx5_core": there} if there else {})
    assert [driver.title for pair in pairs for driver in pair] == expected


def test_one_text_is_a_list_of_one() -> None:
    params = {
        "release": "3.2.1", "package": "doca-ofed", "version": "1", "repository": "", "suite": "./", "components": [],
        "key": "k", "fingerprint": "f", "build": "dkms", "hold": True, "supported": {"debian13": "6.12."},
    }  # fmt: skip
    assert doca.Wanted.from_params(params).supported == {"debian13": ("6.12.",)}
