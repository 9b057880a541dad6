"""The tables of the benchmark, still empty: titles, columns, and what the numbers mean."""

from __future__ import annotations

from report import Table, digits, duration

import ramify as rf

STATES = 4096
CHAIN_STATES = 256
PINOCCHIO_LINKS = (
    256  # its workspace takes memory with the cube of the links: 4 GB for 512, 35 GB for 1024
)
UNROLLED_LINKS = 64
ROLLOUT_STEPS = 50
PEER_SHARE = 32  # MuJoCo rolls out one in so many states
GROUND_STEPS = 50
MUJOCO_STEP = 2e-3  # seconds, MuJoCo's default
COARSE = 1e-2  # step of the first comparison of rollouts, halved for the second


def single_table() -> Table:
    return Table(
        "One state per call",
        (
            "robot, algorithm",
            "ramify",
            "its kernel",
            "Pinocchio",
            "MuJoCo",
            "ramify / Pinocchio",
            "ramify / MuJoCo",
            "error",
        ),
        "From Python, with a fresh array for the result: `m.forward_dynamics(q, v, tau)`, "
        "`kernel(q, v, tau)`, "
        "`pin.aba(model, data, q, v, tau)`, `mj_forward`. MuJoCo computes more than was asked: all "
        "poses, the inertia matrix.",
    )


def question_table() -> Table:
    return Table(
        "Other questions, one state per call",
        ("robot, question", "ramify", "Pinocchio", "ramify / Pinocchio", "error"),
        "From Python; ramify returns fresh arrays, Pinocchio leaves its answers in `data`: for "
        "kinematics it writes nothing out. UDUᵀ is compared with `crba`, which does not factorise.",
    )


def batch_table(count: int) -> Table:
    return Table(
        f"Batch of {STATES} states, {'one thread' if count == 1 else f'{count} threads'}",
        (
            "robot, algorithm",
            "unrolled",
            "rolled",
            "Pinocchio",
            "MuJoCo",
            *(["bound"] if count == 1 else []),
            "Pinocchio / ramify",
            "MuJoCo / ramify",
            "error",
        ),
        "Time per state. ramify: arrays (N, nq) and (N, nv) in, (N, nv) out, everything included; "
        "both tiers. Pinocchio: "
        "`abaInParallel`, `rneaInParallel` with arrays in its own layout and coordinates and a "
        "ready result. MuJoCo: `rollout` of "
        "one step; it has no batched inverse dynamics. The robots called free stand on a free "
        "joint with a unit quaternion. "
        "*Bound*: the counted operations at the speed of the FMA lanes (see *Work*)."
        if count == 1
        else f"The same with {count} threads in every program.",
    )


def rollout_table(states: int) -> Table:
    return Table(
        f"Rollouts of {states} states, one thread",
        (
            "robot, scheme",
            "ramify",
            "with history",
            "MuJoCo",
            "MuJoCo / ramify",
            "MuJoCo / with history",
            "difference",
            "order",
        ),
        f"Time per state and step; {ROLLOUT_STEPS} steps without contact or joint forces. "
        "`rf.rollout` keeps the last state, or "
        "with `every=1` all of them; `mujoco.rollout` with the same integrator always keeps all, "
        "in ready memory. MuJoCo rolls out "
        f"one in {PEER_SHARE} of the states: it takes one after the other. *Difference*: the "
        "largest relative one of any state "
        f"after 0.1 s in steps of {COARSE:g} s. On a fixed base both programs take the same steps. "
        "On a free base they turn the "
        "quaternion differently (ramify by its rate, then normalised; MuJoCo's semi-implicit Euler "
        "by the exponential map), so "
        "there it is checked that halving the step makes the difference fall with the right "
        "*order*: 4 for RK4; 2 for "
        "semi-implicit Euler, whose own error is of order 1.",
    )


def ground_table(states: int) -> Table:
    return Table(
        f"Rollouts of {states} robots on the ground, one thread",
        (
            "ground, scheme, step",
            "ramify",
            "MuJoCo",
            "MuJoCo / ramify, per step",
            "per simulated second",
            "trunk heights",
        ),
        "A quadruped (18, free) with springs and dampers in its joints stands on four round feet "
        f"for {GROUND_STEPS} steps. Time "
        "per state and step. ramify: a law of `rf.contact`, a compiled `rf.control.PD`, the last "
        "state kept. MuJoCo: the same "
        "tree, the same springs, four spheres on a plane, its own soft contact (Newton's solver), "
        "semi-implicit Euler in steps of "
        f"{MUJOCO_STEP * 1e3:g} ms; one in {PEER_SHARE} of the states. "
        "The contact models differ, and so do the motions; *trunk heights*: difference of the mean "
        "height of the trunks after "
        "0.1 s. The book's firm ground is stiff and needs short steps; *per simulated second* "
        "counts that.",
    )


def work_table() -> Table:
    return Table(
        "Work",
        (
            "robot, algorithm", "+ and ×", "÷", "sin, cos", "per state", "operations per ns",
            "part of the FMA lanes",
        ),
        "Operations per state after folding and sharing, without those inside sine and cosine; "
        "time in a batch, one thread. FMA lanes: what a loop of independent fused multiply adds "
        "reaches in the same run, each counted as one operation a lane.",
    )  # fmt: skip


def bound(model: rf.Model, algorithm: str, lanes: float) -> str:
    """The time that the counted operations take in FMA lanes, which are counted per ns."""
    count = model.op_count(algorithm)
    return duration(1e-9 * (count.add + count.mul) / lanes)


def add_work(
    table: Table, title: str, model: rf.Model, algorithm: str, seconds: float, lanes: float
) -> float:
    """A row; gives the part of the FMA lanes, which are counted per ns."""
    count = model.op_count(algorithm)
    sums = count.add + count.mul
    speed = sums / (seconds * 1e9)
    shown = (duration(seconds), digits(speed), f"{speed / lanes:.2f}")
    table.add(title, sums, count.div, count.sincos, *shown)
    return speed / lanes


def chain_table() -> Table:
    return Table(
        "Chains: forward dynamics per link",
        (
            "links", "batch, unrolled", "batch, rolled", "batch, Pinocchio", "one, unrolled",
            "one, rolled", "one, Pinocchio",
            "Pinocchio / rolled, batch", "error",
        ),
        f"Time per state and link, one thread; in batches of {CHAIN_STATES} states (with few links "
        "a call's fixed cost shows) and "
        f"one state per call. Straight-line code up to {UNROLLED_LINKS} links. Pinocchio's "
        "workspace takes memory with the cube of "
        f"the links (4 GB for 512, 35 GB for 1024), so it takes part up to {PINOCCHIO_LINKS}; "
        "beyond, the error is the residual of "
        "the inverse dynamics in units of the largest bias force.",
    )  # fmt: skip


def first_table() -> Table:
    return Table(
        "The first seconds",
        ("in a fresh interpreter", "cold cache", "warm cache", "peak memory"),
        "Cold: an empty kernel cache, so that everything is compiled. Warm: a second process finds "
        "it on disk. Answers count from "
        "the start of the interpreter and include loading the robot; imports are above a bare "
        "interpreter.",
    )
