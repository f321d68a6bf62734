"""Fingerprints of keys that gpg made, against those that gpg printed."""

from __future__ import annotations

import base64
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.rdma_stack.openpgp import (
    armored,
    check_key,
    fingerprints,
)

FOLDER = Path(__file__).resolve().parents[5] / "fixtures" / "openpgp"
SMALL, LARGE = "04B5269410BCCA8EEB615B2E510A5488D02777A1", "9CB54819BFE96CFE4B15FCCD8F2E02FCFE248FF2"
NO_KEY = (
    "The package key is not exactly one ASCII-armored OpenPGP public key. Remove all text outside of the key block, "
    "or export the key with 'gpg --armor --export FINGERPRINT'."
)


def text(name: str) -> str:
    return (FOLDER / f"{name}.asc").read_text()


def armor(data: bytes) -> str:
    body = base64.b64encode(data).decode()
    return f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{body}\n-----END PGP PUBLIC KEY BLOCK-----\n"


@pytest.mark.parametrize(
    ("name", "expected"), [("ed25519", [SMALL]), ("rsa3072", [LARGE]), ("both", [SMALL, LARGE])]
)  # fmt: skip
def test_fingerprints_are_those_of_gpg(name: str, expected: list[str]) -> None:
    assert fingerprints(text(name)) == expected
    assert fingerprints("\r\n" + text(name).replace("\n", "\r\n")) == expected
    assert fingerprints(text(name).replace("BLOCK-----\n\n", "BLOCK-----\nVersion: GnuPG v2\n\n", 1)) == expected


@pytest.mark.parametrize("given_as", [SMALL, SMALL.lower(), "04B5 2694 10BC CA8E EB61  5B2E 510A 5488 D027 77A1"])
def test_the_right_key_passes(given_as: str) -> None:
    check_key(text("ed25519"), given_as)


@pytest.mark.parametrize(
    ("key", "fingerprint", "message"),
    [
        (text("ed25519"), "510A5488D02777A1",
         "'510A5488D02777A1' is not the full fingerprint of a key; expected 40 hexadecimal digits, as "
         "'gpg --show-keys' prints them; correct doca.fingerprint"),
        (text("ed25519"), LARGE,
         f"The package key has the fingerprint {SMALL}, expected {LARGE} alone. Nothing was changed. Ask the vendor "
         "which one is right, then correct doca.key or doca.fingerprint."),
        (text("both"), SMALL,
         f"The package key has the fingerprint {SMALL} and {LARGE}, expected {SMALL} alone. Nothing was changed. Ask "
         "the vendor which one is right, then correct doca.key or doca.fingerprint."),
        # A package manager reads every block of the file that it is given.
        (text("ed25519") + text("rsa3072"), SMALL, NO_KEY),
        (text("rsa3072") + text("ed25519"), LARGE, NO_KEY),
        ("a note\n" + text("ed25519"), SMALL, NO_KEY),
        (text("ed25519") + "a note\n", SMALL, NO_KEY),
        (text("ed25519").replace("BLOCK-----\n\n", "BLOCK-----\n", 1), SMALL, NO_KEY),
        (armor(b"\xb4\x01a" + base64.b64decode("")), SMALL, NO_KEY),
        ("", SMALL, NO_KEY),
        ("<html>404</html>", SMALL, NO_KEY),
        (text("ed25519").replace("mDME", "mDMF"), SMALL, NO_KEY),
        (armor(b"\x99\x00\x02\x03\x00"), SMALL, NO_KEY),
        (armor(b"\xe0"), SMALL, NO_KEY),
    ],
)  # fmt: skip
def test_other_keys_are_refused(key: str, fingerprint: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_key(key, fingerprint)
    assert str(caught.value) == message


@given(st.binary())
def test_any_bytes_are_a_key_or_are_refused(data: bytes) -> None:
    try:
        assert all(len(found) == 40 for found in fingerprints(armor(data)))
    except InputError as error:
        assert str(error) == NO_KEY


@pytest.mark.parametrize("name", ["ed25519", "rsa3072"])
def test_what_is_installed_is_what_was_checked(name: str) -> None:
    """gpg wrote these files: the same bytes give the same armor, whatever was in its headers."""
    assert armored(text(name)) == text(name)
    assert armored(text(name).replace("BLOCK-----\n\n", "BLOCK-----\nComment: more\n\n", 1)) == text(name)


def test_a_packet_that_no_key_has_is_refused() -> None:
    literal = b"\xcb\x05b\x00\x00\x00\x00"
    data = base64.b64decode("".join(text("ed25519").splitlines()[2:-2]))
    assert fingerprints(armor(data)) == [SMALL]
    with pytest.raises(InputError, match="not exactly one"):
        fingerprints(armor(data + literal))


@pytest.mark.parametrize("row", ["a:\n", ":", "a: b\r\n", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n"])
def test_the_time_grows_no_faster_than_the_text(row: str) -> None:
    """142 bytes of the first kind took 70 s when headers were a regular expression."""
    begin = time.process_time()
    with pytest.raises(InputError):
        fingerprints(f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n{row * (200_000 // len(row))}")
    assert time.process_time() - begin < 1.0
