# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How images, their repositories, tags and pull secrets are written.

Nodes pull images, perhaps over another network than the controller's, so whether a registry answers is not checked.
"""

from __future__ import annotations

from ..._common.reader import Form

_HOST = r"([A-Za-z0-9]+([.-]+[A-Za-z0-9]+)*|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?"
_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"@sha256:[0-9a-f]{64}"

REPOSITORY = Form(
    rf"{_HOST}(/{_PART})*",
    "a repository such as registry.example.com:5000/mellanox (no https://, tag, digest or slash at the end; lowercase"
    " path)",
)
TAG = Form(_TAG, "a tag such as network-operator-v26.7.1")
VERSION = Form(
    rf"{_TAG}|sha256:[0-9a-f]{{64}}",
    "a tag such as network-operator-v26.7.1, or a digest such as sha256:0123... in full",
)
IMAGE = Form(
    rf"({_HOST}/)?{_PART}(/{_PART})*(:{_TAG})?({_DIGEST})?",
    "an image such as registry.example.com:5000/tools/perftest:26.4 (no https://; lowercase path; then a tag, a digest"
    " @sha256:..., or both)",
)
PULL_SECRET = Form(
    r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*",
    'the name of one Secret such as registry-login (lowercase letters, digits, "-" and "." inside)',
)
