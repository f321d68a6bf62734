# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of the lab's cluster, made by openssl: one authority, short EC keys, files of mode 0600."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_DAYS = "3650"
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_CONFIG = "[req]\nprompt = no\ndistinguished_name = name\nx509_extensions = extensions\n[name]\n"


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, both PEM files."""

    certificate: Path
    key: Path


def authority(folder: Path) -> Pair:
    """The authority in folder, made when it is not there yet."""
    pair = _pair(folder, "ca")
    if not pair.certificate.exists():
        extensions = ["basicConstraints = critical,CA:TRUE", "keyUsage = critical,keyCertSign,cRLSign"]
        _openssl_req(pair, {"CN": "lab"}, extensions)
    return pair


def issue(
    folder: Path,
    name: str,
    *,
    common_name: str,
    organization: str = "",
    dns: Sequence[str] = (),
    addresses: Sequence[str] = (),
) -> Pair:
    """NAME.crt and NAME.key in folder, signed by its authority, for server and client; made once.

    dns and addresses are the names it serves; without any it is good for a client only.
    """
    pair = _pair(folder, name)
    if pair.certificate.exists():
        return pair
    signer = authority(folder)
    subject = {"O": organization, "CN": common_name} if organization else {"CN": common_name}
    _openssl_req(pair, subject, _leaf_extensions(dns, addresses), signer)
    return pair


def signing_key(folder: Path) -> Path:
    """The key that signs service account tokens (also read for its public half); made once."""
    path = folder / "service-accounts.key"
    if not path.exists():
        # `genpkey` would write PKCS#8, in which the API server finds no public half.
        _openssl(["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path)])
    return path


def _pair(folder: Path, name: str) -> Pair:
    return Pair(folder / f"{name}.crt", folder / f"{name}.key")


def _leaf_extensions(dns: Sequence[str], addresses: Sequence[str]) -> list[str]:
    names = [f"DNS:{name}" for name in dns] + [f"IP:{address}" for address in addresses]
    usages = "serverAuth,clientAuth" if names else "clientAuth"
    extensions = [
        "basicConstraints = critical,CA:FALSE",
        "keyUsage = critical,digitalSignature",
        f"extendedKeyUsage = {usages}",
    ]
    return extensions + ([f"subjectAltName = {','.join(names)}"] if names else [])


def _openssl_req(
    pair: Pair, subject: dict[str, str], extensions: Sequence[str], signer: Pair | None = None
) -> None:
    name = "".join(f"{key} = {value}\n" for key, value in subject.items())
    config = _CONFIG + name + "[extensions]\n" + "\n".join(extensions) + "\n"
    signing = ["-CA", str(signer.certificate), "-CAkey", str(signer.key)] if signer else []
    # The certificate gets its name last: what is there under its name is whole, with its key.
    unfinished = pair.certificate.with_suffix(".new")
    _openssl(
        ["req", "-x509", *_CURVE, "-days", _DAYS, "-config", "/dev/stdin", *signing]
        + ["-keyout", str(pair.key), "-out", str(unfinished)],
        config,
    )
    unfinished.replace(pair.certificate)


def _openssl(arguments: Sequence[str], text: str = "") -> None:
    before = os.umask(0o077)
    try:
        done = subprocess.run(
            ["openssl", *arguments], input=text, text=True, capture_output=True, check=False
        )
    finally:
        os.umask(before)
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]} failed: {done.stderr.strip()}")
