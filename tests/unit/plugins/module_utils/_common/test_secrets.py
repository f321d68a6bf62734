"""What counts as a secret, in texts and in objects; hostile texts cost no more than others. About 1 s."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common import secrets

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nq83vEjRWeJA=\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UFM_PASSWORD=hunter2 next", "UFM_PASSWORD=<removed> next"),
        ("password: 'two words' next", "password: <removed> next"),
        ('{"token":"a b","x":1}', '{"token":<removed>,"x":1}'),
        ('said "password\\":\\"a \\\\\\" b\\" c', 'said "password\\":<removed> c'),
        ('cut "password":"abc de', 'cut "password":<removed>'),
        ("started with --api-key abc --verbose", "started with --api-key <removed> --verbose"),
        ("client-key-data: LS0tLS1CRUdJTg==", "client-key-data: <removed>"),
        ("curl https://user:pass@host/path", "curl https://<removed>@host/path"),
        ("sent Bearer abcdefgh1234", "sent Bearer <removed>"),
        (f"token is {JWT}.", "token is <removed>."),
        ("join abcdef.0123456789abcdef now", "join <removed> now"),
        ("m_key=0x1234", "m_key=<removed>"),
        ('{"name":"DB_PASSWORD","value":"x \\" y"}', '{"name":"DB_PASSWORD","value":"<removed>"}'),
        (f"a\n{KEY}\nb", "a\n<removed>\nb"),
        ("a " + KEY.replace("\n", "\\n") + '" b', 'a <removed>" b'),
        (KEY[:60], "<removed>"),
        ("QUFBQQ==\n" + KEY[50:] + "\nb", "<removed>\nb"),
        (
            "- name: NGC_API_KEY\n  value: nvhunter2\n- name: MODE",
            "- name: NGC_API_KEY\n  value: <removed>\n- name: MODE",
        ),
        ("  password: |\n    hunter2\n  user: a", "  password: <removed>\n  user: a"),
        ("- --token\n- abcdefgh", "- --token\n- <removed>"),
        ('{"auths":{"nvcr.io":{"auth":"dXNlcg=="}}}', '{"auths":{"nvcr.io":{"auth":<removed>}}}'),
        (
            "export REDIS_AUTH=abc DB_PASS=x LICENSE_KEY=y",
            "export REDIS_AUTH=<removed> DB_PASS=<removed> LICENSE_KEY=<removed>",
        ),
        ("passwordHash: $6$abc", "passwordHash: <removed>"),
        ("https://user:p@ss@host/x", "https://<removed>@host/x"),
        # What helps to find errors stays.
        ("- name: MODE\n  value: vlan\n- name: rail0", "- name: MODE\n  value: vlan\n- name: rail0"),
        ('"pass": 3, "last_pass": 4, unauthorized, author: me', '"pass": 3, "last_pass": 4, unauthorized, author: me'),
        ("secretName: ufm, imagePullSecrets: [registry]", "secretName: ufm, imagePullSecrets: [registry]"),
        ('secret "ufm" not found; token expired', 'secret "ufm" not found; token expired'),
        ("pkey=0x8001 iommu.passthrough=1 topologyKey: zone", "pkey=0x8001 iommu.passthrough=1 topologyKey: zone"),
        ("mlx5_core 0000:18:00.0: Port module event: module 0", "mlx5_core 0000:18:00.0: Port module event: module 0"),
    ],
)
def test_text(text: str, expected: str) -> None:
    assert secrets.hide(text) == expected
    assert secrets.hide(expected) == expected


def test_objects() -> None:
    pod = {
        "metadata": {
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": '{"env":[{"name":"X","value":"s3cret"}]}',
                "network": '[{"name": "rail0", "password": "s3cret"}]',
            },
            "managedFields": [{"manager": "x"}],
        },
        "spec": {
            "automountServiceAccountToken": True,
            "imagePullSecrets": [{"name": "registry"}],
            "tolerations": [{"key": "nvidia.com/gpu", "value": "x"}],
            "containers": [
                {
                    "args": ["--token", "s3cret", "--verbose", "--password=s3cret", "--api-key"],
                    "env": [
                        {"name": "UFM_PASSWORD", "value": "s3cret"},
                        {"name": "SSH_KEY", "value": "s3cret"},
                        {"name": "MODE", "value": "vlan"},
                        {"name": "UFM_TOKEN", "valueFrom": {"secretKeyRef": {"name": "ufm", "key": "token"}}},
                    ],
                }
            ],
            "volumes": [{"name": "x", "secret": {"secretName": "ufm"}}],
        },
        "apiKey": {"deep": ["s3cret"]},
    }
    found = secrets.hide_in(pod)
    assert "s3cret" not in json.dumps(found) and "managedFields" not in found["metadata"]
    container = found["spec"]["containers"][0]
    assert container["args"] == ["--token", "<removed>", "--verbose", "--password=<removed>", "--api-key"]
    assert container["env"] == [
        {"name": "UFM_PASSWORD", "value": "<removed>"},
        {"name": "SSH_KEY", "value": "<removed>"},
        {"name": "MODE", "value": "vlan"},
        {"name": "UFM_TOKEN", "valueFrom": {"secretKeyRef": {"name": "ufm", "key": "token"}}},
    ]
    for key in ("automountServiceAccountToken", "imagePullSecrets", "tolerations", "volumes"):
        assert found["spec"][key] == pod["spec"][key]  # type: ignore[index]
    assert found["apiKey"] == "<removed>"


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY-----" + "A" * 200_000,
        "-----BEGIN PRIVATE KEY-----" * 7_000,
        "password " * 22_000,
        '"name":"' * 25_000,
        "token" + " " * 200_000,
        '\\"' * 100_000,
        'token=\\"' * 25_000,
        "://" * 66_000,
        "x_" * 100_000 + "password",
        "-password=" * 20_000,
    ],
    ids=range(10),
)
def test_hostile_text_is_no_slower(text: str) -> None:
    begin = time.process_time()
    secrets.hide(text)
    assert time.process_time() - begin < 2


def test_deep_json_in_a_text_ends() -> None:
    value: Any = {"annotation": "[" * 100_000}
    assert secrets.hide_in(value) == value
