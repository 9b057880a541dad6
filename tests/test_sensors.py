"""What a controller sees: encoders that round and add noise, alone and in runs, rollouts and files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.control.sensors import SENSORS, Encoder, Sensor, noise


def arm() -> rf.Model:
    robot = rf.Builder("arm").link("upper", axis=(0, 1, 0), mass=1.0, com=(0.2, 0, 0))
    return robot.link("lower", "upper", axis=(0, 1, 0), at=(0.4, 0, 0), mass=0.5, com=(0.1, 0, 0)).model()  # fmt: skip


def held(**options: Any) -> rf.control.PD:
    return rf.control.PD(rf.motion.Hold([0.0, 0.0]), 20.0, 0.2, **options)


def test_an_encoder_rounds_to_the_nearest_step() -> None:
    m, sensor = arm(), Encoder(resolution=0.01, rate_resolution=0.5)
    rng = np.random.default_rng(1)
    q, v = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    seen = 0.01 * np.round(q / 0.01), 0.5 * np.round(v / 0.5)
    law = held(sensor=sensor)
    exact = held().torque(m, 0.0, *seen)
    for _ in range(4):  # on NumPy, then compiled
        np.testing.assert_allclose(law.torque(m, 0.0, q, v), exact, rtol=0, atol=1e-12)


def test_quaternions_are_measured_exactly() -> None:
    m = rf.Builder("body").link("body", joint="free", mass=1.0, inertia=(1, 1, 1)).model()
    q, v = m.random(seed=3)
    angles, rates = Encoder(resolution=0.1).measured(
        rf.control.RobotText(m), 0.0, q.tolist(), v.tolist()
    )
    assert angles[3:] == q[3:].tolist()
    np.testing.assert_allclose(angles[:3], 0.1 * np.floor(q[:3] / 0.1 + 0.5), rtol=0, atol=1e-15)
    assert rates == v.tolist()


def test_noise_has_its_moments_and_no_memory() -> None:
    t = np.arange(20_000) * 1e-3
    a, b, other = noise(t, 0, 0), noise(t, 1, 0), noise(t, 0, 1)
    for x in (a, b, other):
        assert abs(x.mean()) < 0.03
        assert abs(x.var() - 1.0) < 0.03
        assert np.abs(x).max() <= 2.0 * 3.0**0.5
        for lag in (1, 2, 10):
            assert abs(np.corrcoef(x[lag:], x[:-lag])[0, 1]) < 0.03
    assert max(abs(np.corrcoef(a, x)[0, 1]) for x in (b, other)) < 0.03
    assert noise(float(t[17]), 0, 0) == a[17]


def test_sampled_runs_and_rollouts_have_the_same_noise() -> None:
    m, q = arm(), np.array([0.3, -0.2])
    law = held(sensor=Encoder(resolution=1e-4, noise=2e-3, rate_noise=0.05, seed=4), rate_hz=100.0)
    options: dict[str, Any] = {"step": 1e-3, "method": "rk4"}
    run, again = (rf.simulate(m, 0.2, q, control=law, **options) for _ in range(2))
    np.testing.assert_allclose(again.q, run.q, rtol=0, atol=1e-13)  # the law is compiled meanwhile
    batch = rf.rollout(m, np.tile(q, (3, 1)), np.zeros((3, 2)), steps=200, dt=1e-3, control=law, method="rk4", every=10)  # fmt: skip
    np.testing.assert_allclose(batch.q[1], run.q[1:], rtol=0, atol=1e-12)
    other = rf.simulate(m, 0.2, q, control=replace(law, sensor=replace(law.sensor, seed=5)), **options)  # fmt: skip
    exact = rf.simulate(m, 0.2, q, control=held(rate_hz=100.0), **options)
    for changed in (other, exact):
        assert 1e-5 < np.abs(changed.q - run.q).max() < 0.1
    assert run.audit.passed  # noise is in the forces, and their work is counted


def test_files_and_records_have_the_sensor(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(
        "name: measured\nrobot: planar_3r\nt_end: 0.02\nmotion: {type: hold, q: [0, 0, 0]}\n"
        "control: {type: pd, kp: 5, kd: 0.1, rate_hz: 200, sensor: {type: encoder, resolution: 0.001, noise: 0.01}}\n"
    )
    run = rf.scenario(str(file)).run()
    assert run.options["control"]["sensor"]["noise"] == 0.01
    law = rf.control.as_controller(run.options["control"], rf.load("planar_3r"))
    assert law is not None
    assert law.sensor == Encoder(resolution=0.001, noise=0.01)


def test_a_staircase_has_no_derivative() -> None:
    m, law = arm(), held(sensor=Encoder(resolution=0.01))
    state = np.zeros(2), np.zeros(2)
    with pytest.raises(rf.SimulationError, match="a staircase has no slope"):
        rf.linearize(m, *state, np.zeros(2), control=rf.control.Sum([law]))
    with pytest.raises(rf.SimulationError, match="and sensors that round"):
        rf.rollout(m, *state, steps=2, dt=1e-3, control=law).gradient(q=np.ones(2))
    exact = rf.linearize(m, *state, np.zeros(2), control=held(sensor=Encoder())).A
    assert exact.tobytes() == rf.linearize(m, *state, np.zeros(2), control=held()).A.tobytes()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: held(sensor=Encoder(noise=0.1)), "give the controller a rate_hz"),
        (lambda: held(sensor="encoder"), r"sensor must be one of rf\.control such as Encoder"),
        (lambda: Encoder(resolution=-1.0), r"resolution is -1\.0; it must be"),
        (lambda: rf.control.Prescribed(rf.motion.Hold([0.0]), sensor=Encoder()), "sensor does not go with a prescribed"),
    ],
)  # fmt: skip
def test_wrong_sensors_are_refused(make: Any, message: str) -> None:
    with pytest.raises(rf.StateError, match=message):
        make()


def test_a_sensor_from_outside_is_one_class() -> None:
    @SENSORS.add("misaligned")
    @dataclass(frozen=True)
    class Misaligned(Sensor):
        """A constant error of the first joint, rad."""

        angle: float = 0.0

        def measured(self, robot: Any, t: Any, q: Any, v: Any) -> Any:
            return [q[0] + self.angle, *q[1:]], list(v)

    try:
        m = arm()
        law = rf.control.CONTROLLERS.from_document(
            {"type": "pd", "kp": 20.0, "kd": 2.0, "motion": {"type": "hold", "q": [0.0, 0.0]}, "sensor": {"type": "misaligned", "angle": 0.1}}
        )  # fmt: skip
        run = rf.simulate(m, 0.1, [0.2, 0.1], control=law)
        exact = held().torque(m, 0.0, run.q + np.array([0.1, 0.0]), 10.0 * run.v)
        np.testing.assert_allclose(run.tau, exact, rtol=0, atol=1e-9)
        assert run.audit.passed
    finally:
        SENSORS.remove("misaligned")
