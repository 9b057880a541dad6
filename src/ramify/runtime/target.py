"""The machine that runs the code: vector width, fused multiply-add, and LLVM itself (imported on
first use).
"""

from __future__ import annotations

import os
from functools import cache
from types import ModuleType
from typing import Any

from ramify.core.errors import RamifyError
from ramify.core.forks import LOCK
from ramify.emit.cpu_target import CpuTarget


@cache
def llvm() -> ModuleType:
    """llvmlite's binding layer, initialised for this machine."""
    with LOCK:  # also while it is imported: a child would wait for ever for an import half done
        try:
            import llvmlite.binding as binding
        except ImportError as error:
            raise RamifyError(f"this needs llvmlite, which cannot be imported: {error}") from None

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
    return binding


@cache
def llvm_available() -> bool:
    """Whether llvmlite can be imported."""
    with LOCK:  # see llvm()
        from importlib.util import find_spec

        installed = find_spec("llvmlite") is not None
    return installed and os.environ.get("RAMIFY_NO_LLVM", "") in ("", "0")


@cache
def host() -> CpuTarget:
    """This machine; ``RAMIFY_WIDTH`` (1, 2, 4, 8) forces the number of lanes. Without a compiler it
    has one lane.
    """
    if not llvm_available():
        return CpuTarget(1, False, "", "")
    binding = llvm()
    with LOCK:
        features, cpu = binding.get_host_cpu_features(), binding.get_host_cpu_name()
        triple = binding.get_process_triple()
    has = features.get if isinstance(features, dict) else (lambda name: False)
    width = 8 if has("avx512f") else 4 if has("avx") else 2
    forced = os.environ.get("RAMIFY_WIDTH")
    if forced:
        if forced not in ("1", "2", "4", "8"):
            raise RamifyError(f"RAMIFY_WIDTH={forced!r} must be 1, 2, 4 or 8")
        width = int(forced)
    flat = features.flatten() + (",-prefer-256-bit" if has("avx512f") else "")
    arm = triple.startswith(("aarch64", "arm64"))
    return CpuTarget(width, bool(has("fma")) or arm, cpu, flat)


@cache
def code_generator(cpu: str, features: str, optimise: int) -> Any:
    """LLVM's code generator for a CPU, made once; ask for it under ``LOCK``."""
    binding = llvm()
    return binding.Target.from_triple(binding.get_process_triple()).create_target_machine(
        cpu=cpu, features=features, opt=optimise, reloc="pic", codemodel="default", jit=True
    )
