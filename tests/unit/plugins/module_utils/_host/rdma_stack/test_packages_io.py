"""The probe of a package source with the real apt, against a signed source of stand-in packages. Changes no system."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.scenario import aptrepo

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import CommandError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.rdma_stack import doca, packages_io
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import files

NEEDED = ("apt-get", "dpkg-deb", "gpg")
pytestmark = pytest.mark.skipif(
    not all(shutil.which(name) for name in NEEDED), reason=f"one of {', '.join(NEEDED)} is missing"
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, aptrepo.Key, aptrepo.Key]]:
    """The address of a source that the first key signs, and another key."""
    folder = tmp_path_factory.mktemp("source")
    folder.chmod(0o755)
    own, other = aptrepo.Key(folder, "vendor"), aptrepo.Key(folder, "other")
    site = folder / "site"
    aptrepo.build(site, own, [aptrepo.Stub("doca-ofed", "3.2.1-1"), aptrepo.Stub("doca-all", "3.2.1-2")])
    with aptrepo.served(site) as url:
        yield url.replace(aptrepo.OUTSIDE, "127.0.0.1"), own, other


def offered(tmp_path: Path, url: str, key: aptrepo.Key, package: str = "doca-ofed") -> list[str]:
    wanted = doca.Wanted(
        "3.2.1", package, "3.2.1-1", url, "stable", ("main",), key.public.read_text(), key.fingerprint, "dkms", True, {}
    )
    text = f"Types: deb\nURIs: {url}\nSuites: stable\nComponents: main\nSigned-By: /none.asc\n"
    roots = files.Roots(run=str(tmp_path / "run"))
    try:
        return packages_io.offered(roots, wanted, {"/etc/doca.sources": text}, url=url)
    finally:
        assert not (tmp_path / "run/gpufabric/probe").exists()


def test_versions_of_a_signed_source(tmp_path: Path, source: tuple[str, aptrepo.Key, aptrepo.Key]) -> None:
    url, own, _other = source
    assert offered(tmp_path, url, own) == ["3.2.1-1"]
    assert offered(tmp_path, url, own, "doca-all") == ["3.2.1-2"]
    assert offered(tmp_path, url, own, "absent") == []


def test_a_source_that_another_key_signs(tmp_path: Path, source: tuple[str, aptrepo.Key, aptrepo.Key]) -> None:
    url, _own, other = source
    with pytest.raises(CommandError) as caught:
        offered(tmp_path, url, other)
    assert f"the package source {url} cannot be used; nothing was changed. 'apt-get " in str(caught.value)
    assert "is not signed" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_source_that_is_not_there(tmp_path: Path, source: tuple[str, aptrepo.Key, aptrepo.Key]) -> None:
    with pytest.raises(CommandError, match=r"cannot be used; nothing was changed"):
        offered(tmp_path, "http://127.0.0.1:1/", source[1])
