"""A simulated InfiniBand switch with hosts (ibsim), for real programs of opensm and infiniband-diags."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PRELOAD = next(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"), None)
MISSING = [name for name in ("opensm", "ibsim", "smpquery") if not shutil.which(name, path="/usr/sbin:/usr/bin:/bin")]
simulated = pytest.mark.skipif(
    bool(MISSING) or PRELOAD is None,
    reason=f"needs {', '.join(MISSING) or 'libumad2sim.so'}: install opensm, ibsim-utils and infiniband-diags",
)


class Fabric:
    """A simulated switch with hosts, whose ports have the GUIDs of the plan's members."""

    def __init__(self, folder: Path, ports: dict[str, str]) -> None:
        self.folder = folder
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/bin", "LD_PRELOAD": str(PRELOAD)}
        self.environment.update({"OSM_TMP_DIR": str(folder), "OSM_CACHE_DIR": str(folder)})
        self.environment["IBSIM_SOCKNAME"] = f"gpufabric{os.getpid()}"
        links = [f'[{number}] "{name}"[1]' for number, name in enumerate(ports, 1)]
        # The simulator numbers the port of a node from the node's own GUID.
        nodes = [
            f'\ncaguid=0x{int(guid, 16) - 1:016x}\nHca 1 "{name}"\n[1] "SW"[{number}]'
            for number, (name, guid) in enumerate(ports.items(), 1)
        ]
        (folder / "net").write_text("\n".join([f'Switch {len(ports) + 1} "SW"', *links, *nodes]) + "\n")
        own = {key: value for key, value in self.environment.items() if key != "LD_PRELOAD"}
        self.simulator = subprocess.Popen(
            ["ibsim", "-s", "net"],
            cwd=folder,
            env=own,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.simulator.stdout
        for line in self.simulator.stdout:
            if "simulator ready" in line:
                break

    def run(self, *argv: str) -> str:
        """Return what a program prints that is attached to the switch."""
        done = subprocess.run(
            argv, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=30, check=False
        )
        return done.stdout + done.stderr

    def configure(self, partitions: str) -> str:
        """Run OpenSM once and return its log."""
        (self.folder / "partitions.conf").write_text(partitions)
        log = self.folder / "opensm.log"
        log.unlink(missing_ok=True)
        self.run("opensm", "-o", "-P", str(self.folder / "partitions.conf"), "-f", str(log), "-D", "0x43")
        return log.read_text()

    def keys(self, port: int) -> list[str]:
        """Return the partition keys that the subnet manager wrote to the host at a port of the switch."""
        found = self.run("smpquery", "-D", "pkeys", f"0,{port}", "1")
        return [key for key in re.findall(r"0x[0-9a-f]{4}", found) if key != "0x0000"]

    def program(self, name: str, host: str) -> str:
        """Return a script that runs a program on a host, without the names of device and port."""
        known = " ".join(f"{key}={value}" for key, value in {**self.environment, "SIM_HOST": host}.items())
        return f'#!/bin/sh\nshift 4\nexec env {known} {shutil.which(name, path=self.environment["PATH"])} "$@"\n'

    def end(self) -> None:
        """End the simulator."""
        self.simulator.kill()
        self.simulator.wait()
