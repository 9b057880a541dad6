"""The compiled code of a problem, and the memory it works on."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import RamifyError
from ramify.kernels.robot_keys import robot_key
from ramify.optimal.adjoint_pass import AdjointWriter
from ramify.optimal.forward_pass import LENGTHS, ForwardWriter, LinearWriter
from ramify.optimal.iteration import IterationWriter
from ramify.optimal.pass_writer import HISTORY, INTEGERS, JOB, POINTERS, PassWriter
from ramify.optimal.programs import Programs
from ramify.optimal.riccati_pass import RiccatiWriter
from ramify.runtime.cache_keys import digest
from ramify.runtime.compile import Compiled, aligned_address, compiled
from ramify.runtime.compiled_program import CompiledProgram
from ramify.runtime.target import host, llvm_available
from ramify.trace.program import Program


class ProblemCode:
    """The functions of a problem: one for its iterations, kernels of its derivatives, and of what
    reports need.
    """

    def __init__(self, programs: Programs, boxed: bool) -> None:
        if not llvm_available():
            raise RamifyError("rf.optimal needs llvmlite, which is not installed")
        self.programs, self.layout, self.boxed = programs, programs.layout, boxed
        step = programs.step
        self.key = digest(
            "optimal", robot_key(step.robot), step.field.fingerprint, step.scheme.name,
            repr((step.dt, step.driven.v, boxed, programs.layout)),
            programs.residuals.digest, programs.final_residuals.digest,
        )  # fmt: skip
        self.derivatives = self._kernel("derivatives")
        self.final_derivatives = self._kernel("final_derivatives")

    def _kernel(self, name: str) -> CompiledProgram:
        programs = self.programs
        return CompiledProgram(
            f"optimal_{name}", lambda: getattr(programs, name), digest(name, self.key)
        )

    def _small_kernel(self, name: str, program: Program) -> CompiledProgram:
        """A kernel that is known by its program: equal residuals may be other terms."""
        return CompiledProgram(f"optimal_{name}", program, digest(name, program.digest))

    @cached_property
    def step(self) -> CompiledProgram:
        """x, u -> the next x."""
        return self._kernel("step_program")

    @cached_property
    def terms(self) -> CompiledProgram:
        """x, u, p -> costs of the terms, constraints."""
        return self._small_kernel("terms", self.programs.term_costs)

    @cached_property
    def final_terms(self) -> CompiledProgram:
        """x, p -> the same at the last knot."""
        return self._small_kernel("final_terms", self.programs.final_term_costs)

    # ---- passes ----

    def _writer(self, kind: type[Any]) -> Any:
        target = host().with_width(self.layout.width)
        writer = kind(target, self.layout, self.programs.hessian, self.boxed)
        writer.dt = self.programs.step.dt or 0.0
        writer.x_size = self.programs.step.size
        return writer

    def _text(self) -> str:
        writers: list[PassWriter] = []

        def write(kind: type[Any], name: str, *programs: Program) -> str:
            writers.append(self._writer(kind))
            return str(getattr(writers[-1], name)(*programs))

        texts = [
            write(RiccatiWriter, "backward"),
            write(LinearWriter, "linear"),
            write(AdjointWriter, "adjoint"),
            write(ForwardWriter, "forward", self.programs.forward, self.programs.final_cost),
            write(IterationWriter, "evaluate"),
            write(IterationWriter, "accept"),
            write(IterationWriter, "take"),
            write(IterationWriter, "iterate"),
        ]
        declared = set().union(*(writer.intrinsics for writer in writers))
        return "\n".join([*sorted(declared), *texts, ""])

    @cached_property
    def passes(self) -> Compiled:
        """The object with all passes."""
        target = host().with_width(self.layout.width)
        return compiled(self._text, "iterate", target, digest("passes", self.key))

    @cached_property
    def iterate(self) -> Any:
        """int64 iterate(ptr job)."""
        return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self.passes.address)

    def part(self, name: str) -> Any:
        """A single pass, int64 NAME(ptr job): for tests and timing."""
        return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self.passes.function(name))

    @cached_property
    def adjoint(self) -> Any:
        """int64 adjoint(ptr job)."""
        return self.part("adjoint")

    @cached_property
    def evaluate(self) -> Any:
        """int64 evaluate(ptr job)."""
        return self.part("evaluate")

    @cached_property
    def scratch_size(self) -> int:
        return max(self._writer(kind).scratch_size for kind in (RiccatiWriter, LinearWriter))


class KnotWorkspace:
    """The arrays of a problem of a number of knots, and the job that refers to them."""

    def __init__(self, code: ProblemCode, knots: int, iterations: int) -> None:
        layout, step = code.layout, code.programs.step
        size, w = code.programs.texts.parameter_size, layout.width
        self.code, self.knots = code, knots
        shapes = {
            "x": (knots + 1, step.size), "u": (knots, layout.m), "p": (knots + 1, size),
            "low": (layout.m,), "high": (layout.m,),
            "slopes": (knots, layout.rows * layout.stride),
            "hessian": (knots, code.programs.hessian.size), "cost": (knots, 1),
            "gap": (knots, layout.n), "carried": (knots, layout.moved),
            "turns": (knots, layout.turn_size),
            "final_value": (1 + layout.n, layout.state_stride), "final_cost": (1,),
            "gains": (knots, layout.m, layout.state_stride), "scratch": (code.scratch_size,),
            "trial_x": (LENGTHS // w, knots + 1, step.size, w),
            "trial_u": (LENGTHS // w, knots, layout.m, w), "trial_cost": (LENGTHS,),
            "lengths": (LENGTHS,), "history": (iterations, len(HISTORY)),
        }  # fmt: skip
        total = sum(-(-int(np.prod(shape)) // 8) * 8 + 8 for shape in shapes.values())
        self._memory = np.zeros(total + 8)
        start = (aligned_address(self._memory) - self._memory.ctypes.data) // 8
        self.arrays: dict[str, Array] = {}
        for name, shape in shapes.items():
            count = int(np.prod(shape))
            self.arrays[name] = self._memory[start : start + count].reshape(shape)
            start += -(-count // 8) * 8 + 8
        self.arrays["lengths"][:] = 0.5 ** np.arange(LENGTHS)
        self._connect(code)

    def _connect(self, code: ProblemCode) -> None:
        wide = code.layout.width if self.knots >= host().width else 1
        self._functions = (
            code.derivatives.function(wide if wide <= host().width else 1),
            code.final_derivatives.function(1),
        )
        arrays = self.arrays
        x = arrays["x"]
        following = x.ctypes.data + x.strides[0]
        self._tables = {
            "kernel_in": [*(self._address(name) for name in ("x", "u", "p")), following],
            "kernel_out": [
                self._address(name)
                for name in ("slopes", "hessian", "cost", "gap", "carried", "turns")
            ],
            "final_in": [
                x.ctypes.data + self.knots * x.strides[0],
                arrays["p"].ctypes.data + self.knots * arrays["p"].strides[0],
            ],
            "final_out": [self._address("final_value"), self._address("final_cost")],
        }
        self._address_tables = {
            name: np.array(row, dtype=np.int64) for name, row in self._tables.items()
        }
        self.job = np.zeros(len(JOB), dtype=np.int64)
        addresses = {name: table.ctypes.data for name, table in self._address_tables.items()}
        addresses |= {"kernel": self._functions[0].address, "final": self._functions[1].address}
        for i, name in enumerate(POINTERS):
            self.job[i] = addresses[name] if name in addresses else self._address(name)
        self.numbers = self.job.view(np.float64)
        self["knots"] = self.knots
        self.pointer = self.job.ctypes.data

    def _address(self, name: str) -> int:
        return int(self.arrays[name].ctypes.data)

    def __setitem__(self, name: str, value: float) -> None:
        place = JOB.index(name)
        if name in INTEGERS:
            self.job[place] = int(value)
        else:
            self.numbers[place] = value

    def __getitem__(self, name: str) -> float:
        place = JOB.index(name)
        return int(self.job[place]) if name in INTEGERS else float(self.numbers[place])

    def gains(self) -> tuple[Array, Array]:
        """k (knots, m) and K (knots, m, n): du = k + K dx."""
        rows, n = self.arrays["gains"], self.code.layout.n
        return rows[:, :, 0].copy(), rows[:, :, 1 : 1 + n].copy()
