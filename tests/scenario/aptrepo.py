"""A signed Debian package source of small stand-in packages, made by a test and served to the lab's hosts.

The packages are empty but for one file each: they stand for vendor packages that no test may download. What is real is
apt, dpkg, the signature and its check.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.server
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

SUITE, COMPONENT = "stable", "main"
#: The test's machine, as the lab's hosts see it.
OUTSIDE = "10.0.2.2"


@dataclass(frozen=True)
class Stub:
    """A package: name, version, what it depends on, and files by path."""

    name: str
    version: str
    depends: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        return f"{self.name}_{self.version}_all.deb"

    @property
    def control(self) -> str:
        depends = f"Depends: {', '.join(self.depends)}\n" if self.depends else ""
        return (
            f"Package: {self.name}\nVersion: {self.version}\nArchitecture: all\nMaintainer: lab <lab@example.com>\n"
            f"{depends}Description: stand-in of the tests for {self.name}\n"
        )


class Key:
    """A signing key of the test's own, in a private folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.home = folder / f"gnupg-{name}"
        self.home.mkdir(mode=0o700)
        self.gpg("--quick-generate-key", "--passphrase", "", f"{name} <{name}@example.com>", "ed25519", "sign", "never")
        listing = self.gpg("--with-colons", "--list-keys").stdout.splitlines()
        self.fingerprint = next(line.split(":")[9] for line in listing if line.startswith("fpr:"))
        self.public = folder / f"{name}.asc"
        self.public.write_text(self.gpg("--armor", "--export").stdout)

    def gpg(self, *args: str) -> subprocess.CompletedProcess[str]:
        home = ["--homedir", str(self.home)]
        argv = ["gpg", *home, "--batch", "--pinentry-mode", "loopback", *args]
        try:
            return subprocess.run(argv, check=True, text=True, capture_output=True, timeout=120)
        finally:
            # gpg starts an agent, which would outlive the tests.
            subprocess.run(["gpgconf", *home, "--kill", "gpg-agent"], check=False, timeout=120)

    def sign(self, path: Path, target: Path) -> None:
        target.unlink(missing_ok=True)
        self.gpg("--clearsign", "--output", str(target), str(path))


def build(folder: Path, key: Key, stubs: Sequence[Stub]) -> None:
    """Write the source below folder: pool, Packages, Release and its signed form."""
    pool, dist = folder / "pool", folder / "dists" / SUITE
    binary = dist / COMPONENT / "binary-amd64"
    for path in (pool, binary):
        path.mkdir(parents=True, exist_ok=True)
    packages = "\n".join(_entry(_deb(folder, pool, stub), stub) for stub in stubs)
    (binary / "Packages").write_text(packages)
    (binary / "Packages.gz").write_bytes(gzip.compress(packages.encode(), mtime=0))
    indexes = [_index(path, dist) for path in (binary / "Packages", binary / "Packages.gz")]
    release = dist / "Release"
    release.write_text(
        f"Origin: lab\nSuite: {SUITE}\nCodename: {SUITE}\nArchitectures: amd64\nComponents: {COMPONENT}\n"
        "Date: Sat, 01 Aug 2026 00:00:00 UTC\nSHA256:\n" + "".join(f" {line}\n" for line in indexes)
    )
    key.sign(release, dist / "InRelease")


def _deb(folder: Path, pool: Path, stub: Stub) -> Path:
    tree = folder / "trees" / f"{stub.name}-{stub.version}"
    note = {f"usr/share/doc/{stub.name}/README": "a stand-in of the tests\n"}
    for name, text in {"DEBIAN/control": stub.control, **note, **stub.files}.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    target = pool / stub.file_name
    argv = ["dpkg-deb", "--root-owner-group", "--build", str(tree), str(target)]
    subprocess.run(argv, check=True, capture_output=True, timeout=120)
    return target


def _entry(deb: Path, stub: Stub) -> str:
    data = deb.read_bytes()
    place = f"Filename: pool/{stub.file_name}\nSize: {len(data)}\n"
    return f"{stub.control}{place}SHA256: {hashlib.sha256(data).hexdigest()}\n"


def _index(path: Path, dist: Path) -> str:
    data = path.read_bytes()
    return f"{hashlib.sha256(data).hexdigest()} {len(data)} {path.relative_to(dist)}"


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on the loopback; its address as the hosts of the lab see it."""
    handler = partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://{OUTSIDE}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        """Nothing: a test prints what matters to it."""
