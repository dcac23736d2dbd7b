"""The machine that a benchmark ran on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("numpy", "scipy", "igraph", "numba")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a benchmark ran, without names or paths.

    Attributes:
        processor: model name; empty where the system does not tell.
        cores: how many this process may use.
        memory: bytes; 0 where the system does not tell.
        caches: size of each level of the first core's data caches, as the system spells it.
        system: operating system and architecture.
        packages: version of Python and of what the engines run on.
        load: mean number of running processes over the last minute, before the benchmark began.
    """

    processor: str
    cores: int
    memory: int
    caches: dict[str, str]
    system: str
    packages: dict[str, str]
    load: float


def describe_machine() -> Machine:
    """Return what is known of this machine."""
    return Machine(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory=_memory(),
        caches=_caches(),
        system=f"{platform.system()} {platform.machine()}",
        packages={"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan"),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0


def _caches() -> dict[str, str]:
    found = {}
    for folder in sorted(_CACHES.glob("index*")):
        level, sort, size = ((folder / name).read_text(encoding="ascii").strip() for name in ("level", "type", "size"))
        if sort != "Instruction":
            found[f"L{level}"] = size
    return found


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
