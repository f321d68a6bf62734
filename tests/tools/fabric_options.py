"""`python -m tests.tools.fabric_options`: writes the options of `rdma_fabric` from the tables of docs/inventory.md.

A test proves that the tables have every key that the reader of the intent asks for. From them come the suboptions that
`ansible-doc gpufabric.rdma.fabric_plan` shows (plugins/doc_fragments/fabric.py), and the argument specification of the
module (plugins/module_utils/_fabric/intent/options.py), which sanity holds against each other.
"""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "inventory.md"
FRAGMENT = ROOT / "plugins" / "doc_fragments" / "fabric.py"
SPEC = ROOT / "plugins" / "module_utils" / "_fabric" / "intent" / "options.py"
ROW = re.compile(
    r"^\| `(?P<key>[a-zA-Z0-9_.\[\]]+)` \| (?P<type>[^|]+) \| (?P<default>[^|]+) \| (?P<text>.+) \|$", re.MULTILINE
)
HEADER = """\
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""
WIDTH = 140
LISTS = {
    "list of texts": "str",
    "list of dicts": "dict",
    "list of numbers": "int",
    "list of decimals": "float",
    "list of lists": "list",
    "list": "dict",
}
# Sections have no row of their own.
SECTIONS = {
    "select": "Which ports can be rails when C(pci) is not set.",
    "ipv6": "IPv6 addresses of rails, alone or beside IPv4.",
    "classes.match": "Fingerprint of the hosts. Without C(hosts) it selects the hosts, with C(hosts) it is a check.",
    "capacity": "Size of the address blocks of each rail.",
    "operator": "The network operator.",
    "operator.telemetry": "DOCA Telemetry Service.",
    "operator.nic_configuration": "The NIC configuration operator.",
    "operator.nic_configuration.storage": "Where firmware files are.",
    "operator.driver": "The driver container of the operator.",
    "operator.driver.upgrade": "How the operator replaces the driver.",
    "pools": "Addresses of pods.",
    "networks": "Networks of pods, and what is set on their interfaces.",
    "sriov": "Virtual functions of profiles C(sriov) and C(sriov_ib).",
    "sriov.ib_kubernetes": "Partitions of InfiniBand through UFM.",
    "thresholds": "What results must reach.",
    "thresholds.gpu_paths": "Share of the host's own rate that GPU memory reaches, by path from NIC to GPU.",
    "thresholds.unsteady": "Low readings of what passes at other times.",
    "thresholds.outliers": "Values that are worse than those of the rest of the fleet.",
    "tests": "What is measured.",
    "tests.nccl": "Collectives of NCCL, run in pods after the measurement.",
    "tests.nccl.minimum": "Least bus bandwidths in GB/s.",
    "tests.only": "A part of the schedule.",
}
# Ansible takes these names for those of secrets: they are names of Secrets and of taints.
NO_SECRETS = ("image_pull_secrets", "key", "pkey", "pkey_index", "ufm_secret")
# Values that are texts with digits, and numbers that may have a fraction.
FLOATS = ("Gb/s", "microseconds", "0.0", "0.01", "0.001", "0.000001", "1 to 1000")


def main() -> None:
    options = tree(rows())
    FRAGMENT.write_text(fragment(options))
    SPEC.write_text(spec(options))


def rows() -> list[dict[str, str]]:
    """The rows of the tables below `rdma_fabric`."""
    parts = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    (page,) = [part for part in parts if part.startswith("rdma_fabric\n")]
    return [match.groupdict() for match in ROW.finditer(page)]


def tree(found: list[dict[str, str]]) -> dict[str, Any]:
    """Options by name, nested as suboptions."""
    options: dict[str, Any] = {}
    for row in found:
        *parents, name = row["key"].replace("[]", "").split(".")
        level, path = options, ""
        for parent in parents:
            path = f"{path}.{parent}".lstrip(".")
            if parent not in level:
                level[parent] = {"description": [SECTIONS[path]], "type": "dict"}
            level = level[parent].setdefault("suboptions", {})
        level[name] = {**level.get(name, {}), **option(row)}
    return options


def option(row: dict[str, str]) -> dict[str, Any]:
    return {"description": sentences(row), **kind(row)}


def kind(row: dict[str, str]) -> dict[str, Any]:
    """Type, elements and choices of a row."""
    text, default = row["type"].strip(), row["default"].strip().strip("`")
    if text in LISTS:
        return {"type": "list", "elements": LISTS[text]}
    if text.startswith("dict"):
        return {"type": "dict"}
    if text.startswith("true or false"):
        return {"type": "bool"}
    if text.startswith("number"):
        return {"type": "float" if any(word in f"{text} {default}" for word in FLOATS) else "int"}
    if re.fullmatch(r"[\d, ]+", text):
        return {"type": "int", "choices": [int(number) for number in text.split(",")]}
    choices = re.findall(r"`([^`]+)`", text)
    return {"type": "str", **({"choices": choices} if choices else {})}


def sentences(row: dict[str, str]) -> list[str]:
    text = row["text"].replace("\\|", "|")
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`([^`]*)`", lambda found: f"C({found[1]})" if not set("()") & set(found[1]) else found[1], text)
    default = row["default"].strip().strip("`")
    if default not in ("-", "all", "unchanged", "[]", "{}", ""):
        text += f" Default: C({default})."
    return [text]


def documented(options: dict[str, Any], depth: int) -> list[str]:
    lines = []
    pad = "  " * depth
    for name, found in options.items():
        lines += [f"{pad}{name}:", f"{pad}  description:"]
        for one in found["description"]:
            lines += [
                f"{pad}    {'  ' if at else '- '}{line}" for at, line in enumerate(wrapped(one, WIDTH - len(pad)))
            ]
        lines += [f"{pad}  {key}: {found[key]}" for key in ("type", "elements") if key in found]
        if "choices" in found:
            lines.append(f"{pad}  choices: {json.dumps(found['choices'])}")
        if "suboptions" in found:
            lines += [f"{pad}  suboptions:", *documented(found["suboptions"], depth + 2)]
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """A text as lines of YAML, in quotes where it would not be a text without them."""
    needs = ": " in text or " #" in text
    text = '"' + text.replace('"', "'") + '"' if needs else text
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def fragment(options: dict[str, Any]) -> str:
    intro = [
        "options:",
        "  fabric:",
        "    description:",
        "      - The intent, as C(rdma_fabric) in the inventory. A key without a value has its default.",
        "    type: dict",
        "    required: true",
        "    suboptions:",
    ]
    text = "\n".join([*intro, *documented(options, 3)])
    return (
        f'{HEADER}"""Written by python -m tests.tools.fabric_options from the tables of docs/inventory.md."""\n\n'
        f'from __future__ import annotations\n\n\nclass ModuleDocFragment:\n    DOCUMENTATION = r"""\n{text}\n"""\n'
    )


def argument(options: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, one in options.items():
        found[name] = {key: one[key] for key in ("type", "elements", "choices") if key in one}
        if "suboptions" in one:
            found[name]["options"] = argument(one["suboptions"])
        if name in NO_SECRETS:
            found[name]["no_log"] = False
    return found


def spec(options: dict[str, Any]) -> str:
    """The argument specification, laid out as the formatter does: one key per line."""
    body = laid_out(argument(options), 0)
    return (
        f'{HEADER}"""The argument specification of ``rdma_fabric``.\n\n'
        "Written by python -m tests.tools.fabric_options from the tables of docs/inventory.md.\n"
        '"""\n\nfrom __future__ import annotations\n\nfrom typing import Any\n\n'
        f"FABRIC: dict[str, Any] = {body}\n"
    )


def laid_out(value: Any, depth: int) -> str:
    if not isinstance(value, dict):
        return repr(value) if isinstance(value, bool) else json.dumps(value)
    short = "{" + ", ".join(f"{json.dumps(key)}: {laid_out(one, 0)}" for key, one in value.items()) + "}"
    if depth and "options" not in value and "\n" not in short and len(short) < 95:
        return short
    pad = "    " * (depth + 1)
    inner = "".join(f"{pad}{json.dumps(key)}: {laid_out(one, depth + 1)},\n" for key, one in value.items())
    return "{\n" + inner + "    " * depth + "}"


if __name__ == "__main__":
    main()
