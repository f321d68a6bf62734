"""Cards that answer mlxconfig or mstconfig, on a machine of ``sysfs_tree``; by hand, after mstflint's mlxcfg_ui.cpp."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit.support.sysfs_tree import Host

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import CommandError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import command

DONE = "Applying... Done!\n-I- Please {} machine to load new configurations.\n"


class Cards:
    """PCI address -> parameter -> [default, current, next]; ``ran`` lists what the tool was asked.

    ``hidden`` parameters are shown while ADVANCED_PCI_SETTINGS is on (``gate`` tells whether now or at the next boot),
    ``stubborn`` ones say yes and keep their value.
    """

    def __init__(
        self, host: Host, monkeypatch: pytest.MonkeyPatch, tool: str = "mstconfig", json: bool = False
    ) -> None:
        self.host, self.json, self.path = host, json, f"/usr/bin/{tool}"
        self.cards: dict[str, dict[str, list[str]]] = {}
        self.ran: list[list[str]] = []
        self.hidden: tuple[str, ...] = ()
        self.stubborn: tuple[str, ...] = ()
        self.gate, self.load = 1, "reboot"
        self.labels = {"SRIOV_EN": ("False", "True"), "ADVANCED_PCI_SETTINGS": ("False", "True")}
        host.prints[self.path] = ""
        self.boot_file = host.root / "proc/sys/kernel/random/boot_id"
        self.boot_file.parent.mkdir(parents=True)
        self.boot_file.write_text("boot-0\n")
        self.others = host.run
        monkeypatch.setattr(command, "run", self.run)

    def run(self, argv: Sequence[str], timeout: float = 60, check: bool = True) -> command.Result:
        if argv[0] != self.path:
            return self.others(argv, timeout, check)
        words = list(argv[1:])
        if words == ["--help"]:
            return command.Result(0, "-j|--json_format <file>" if self.json else "-e|--enable_verbosity", "")
        self.ran.append(words)
        pci = words[words.index("-d") + 1]
        result = self.set(pci, words[4:]) if "set" in words else self.query(pci, words)
        if check and result.rc:
            raise CommandError(f"'{' '.join(argv)}' failed with status {result.rc}: {result.stdout}")
        return result

    def query(self, pci: str, words: list[str]) -> command.Result:
        rows = {}
        for name in words[words.index("query") + 1 :]:
            if name not in self.cards[pci] or (name in self.hidden and not self.open(pci)):
                return command.Result(3, f"-E- The Device doesn't support {name} parameter\n", "")
            rows[name] = [self.shown(name, value) for value in self.cards[pci][name]]
        if self.json:
            keys = ("default_value", "current_value", "next_value")
            table = {name: {**dict(zip(keys, values)), "read_only": name == "RO_ONE"} for name, values in rows.items()}
            Path(words[words.index("-j") + 1]).write_text(json.dumps({"Device #1": {"tlv_configuration": table}}))
            return command.Result(0, "Query output saved\n", "")
        lines = [f"{' RO' if name == 'RO_ONE' else '   '}     {name:48}{'  '.join(v)}" for name, v in rows.items()]
        return command.Result(0, "\n".join(["Configurations:   Default   Current   Next Boot", *lines, ""]), "")

    def open(self, pci: str) -> bool:
        return self.cards[pci]["ADVANCED_PCI_SETTINGS"][self.gate] == "1"

    def shown(self, name: str, value: str) -> str:
        return f"{self.labels[name][int(value)]}({value})" if name in self.labels else value

    def set(self, pci: str, pairs: list[str]) -> command.Result:
        for name, _equals, value in (pair.partition("=") for pair in pairs):
            if name not in self.stubborn:
                self.cards[pci][name][2] = value
        return command.Result(0, DONE.format(self.load), "")

    def reboot(self, loads: bool = True) -> None:
        """Boot the host; the cards load their next values unless only a power cycle does that."""
        self.boot_file.write_text(f"boot-{len(self.ran)}-after\n")
        for values in (values for card in self.cards.values() for values in card.values() if loads):
            values[1] = values[2]
