"""The machine we compile for: vector width, fused multiply-add, and LLVM itself (imported on first
use).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

from ramify.core.errors import RamifyError


@cache
def llvm() -> Any:
    """llvmlite's binding layer, initialised for this machine."""
    import llvmlite.binding as binding

    for start in ("initialize_native_target", "initialize_native_asmprinter"):
        getattr(binding, start)()
    return binding


@cache
def llvm_available() -> bool:
    """Whether llvmlite can be imported."""
    from importlib.util import find_spec

    return find_spec("llvmlite") is not None and os.environ.get("RAMIFY_NO_LLVM", "") in ("", "0")


@dataclass(frozen=True)
class Target:
    """What code is emitted for: ``width`` lanes of doubles, ``fma`` where the machine has it, the
    CPU's name and features.
    """

    width: int
    fma: bool
    cpu: str
    features: str

    def with_width(self, width: int) -> Target:
        return Target(width, self.fma, self.cpu, self.features)


@cache
def host() -> Target:
    """This machine; ``RAMIFY_WIDTH`` (1, 2, 4, 8) forces the number of lanes."""
    binding = llvm()
    features = binding.get_host_cpu_features()
    has = features.get if isinstance(features, dict) else (lambda name: False)
    width = 8 if has("avx512f") else 4 if has("avx") else 2
    forced = os.environ.get("RAMIFY_WIDTH")
    if forced:
        if forced not in ("1", "2", "4", "8"):
            raise RamifyError(f"RAMIFY_WIDTH={forced!r} must be 1, 2, 4 or 8")
        width = int(forced)
    flat = features.flatten() + (",-prefer-256-bit" if has("avx512f") else "")
    arm = binding.get_process_triple().startswith(("aarch64", "arm64"))
    return Target(width, bool(has("fma")) or arm, binding.get_host_cpu_name(), flat)


def machine(target: Target, optimise: int) -> Any:
    """LLVM's code generator for a target."""
    binding = llvm()
    triple = binding.Target.from_triple(binding.get_process_triple())
    return triple.create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=optimise,
        reloc="pic",
        codemodel="default",
        jit=True,
    )
