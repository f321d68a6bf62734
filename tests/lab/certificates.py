# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of the lab's cluster, made by openssl: one authority, EC keys. openssl gives keys mode 0600."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab import command

_DAYS = "3650"
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_CONFIG = "[req]\nprompt = no\ndistinguished_name = name\nx509_extensions = extensions\n[name]\n"


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, both PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Subject:
    """Who a certificate is for. dns and addresses are served names; without any it is a client's."""

    name: str
    common_name: str
    organization: str = ""
    dns: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


def authority(folder: Path) -> Pair:
    """Make an authority in folder: ca.crt and ca.key."""
    extensions = ["basicConstraints = critical,CA:TRUE", "keyUsage = critical,keyCertSign,cRLSign"]
    return _request(pair(folder, "ca"), {"CN": "gpufabric lab"}, extensions)


def issue(folder: Path, subject: Subject) -> Pair:
    """Make NAME.crt and NAME.key in folder, signed by the authority there."""
    name = {"CN": subject.common_name}
    if subject.organization:
        name["O"] = subject.organization
    return _request(pair(folder, subject.name), name, _leaf_extensions(subject), pair(folder, "ca"))


def signing_key(path: Path) -> None:
    """Make the key that signs service account tokens (also read for its public half)."""
    # `genpkey` would write PKCS#8, in which the API server finds no public half.
    _openssl(["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path)])


def pair(folder: Path, name: str) -> Pair:
    """The files of a certificate called name in folder."""
    return Pair(folder / f"{name}.crt", folder / f"{name}.key")


def _leaf_extensions(subject: Subject) -> list[str]:
    names = [f"DNS:{name}" for name in subject.dns]
    names += [f"IP:{address}" for address in subject.addresses]
    usages = "serverAuth,clientAuth" if names else "clientAuth"
    extensions = [
        "basicConstraints = critical,CA:FALSE",
        "keyUsage = critical,digitalSignature",
        f"extendedKeyUsage = {usages}",
    ]
    return extensions + ([f"subjectAltName = {','.join(names)}"] if names else [])


def _request(made: Pair, name: dict[str, str], extensions: Sequence[str], signer: Pair | None = None) -> Pair:
    fields = "".join(f"{key} = {value}\n" for key, value in name.items())
    config = _CONFIG + fields + "[extensions]\n" + "\n".join(extensions) + "\n"
    signing = ["-CA", str(signer.certificate), "-CAkey", str(signer.key)] if signer else []
    files = ["-keyout", str(made.key), "-out", str(made.certificate)]
    # The configuration comes by standard input, so that the machine's own openssl.cnf has no say.
    options = ["-days", _DAYS, "-config", "/dev/stdin", *signing, *files]
    _openssl(["req", "-x509", *_CURVE, *options], config)
    return made


def _openssl(arguments: Sequence[str], config: str = "") -> None:
    command.run(["openssl", *arguments], stdin=config.encode())
