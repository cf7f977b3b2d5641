"""A description of this machine for the results."""

import os
import platform
from pathlib import Path
from typing import Any

_TOLD = (
    "avx2", "fma", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile",
    "amx_bf16", "amx_int8", "asimd", "asimddp", "sve", "sve2", "i8mm", "bf16",
)  # fmt: skip
"""The CPU flags that are relevant to matrix products."""


def machine(cpuinfo: Path = Path("/proc/cpuinfo")) -> dict[str, Any]:
    """Describe this machine. processor: its name; cores: available to this process; instructions: relevant flags."""
    facts: dict[str, str] = {}
    if cpuinfo.exists():
        for line in cpuinfo.read_text("utf-8", "replace").splitlines():
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    flags = (facts.get("flags") or facts.get("Features") or "").split()
    family = " ".join(facts[key] for key in ("cpu family", "model") if key in facts)
    name = facts.get("model name") or platform.processor() or platform.machine()
    return {
        "processor": f"{name} (family {family.replace(' ', ' model ')})" if family else name,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "instructions": [flag for flag in _TOLD if flag in flags],
    }
