"""modelDescription.xml and buildDescription.xml of a functional mock-up unit."""

from __future__ import annotations

from typing import Final, Literal
from xml.sax.saxutils import quoteattr

from ramify.core.version import __version__
from ramify.fmi.machine_unit import MachineUnit, UnitVariable

Version = Literal["2.0", "3.0"]
_UNITS: Final = {
    "s": {"s": 1}, "rad": {"rad": 1}, "rad/s": {"rad": 1, "s": -1}, "rad/s2": {"rad": 1, "s": -2},
    "m": {"m": 1}, "m/s": {"m": 1, "s": -1}, "m/s2": {"m": 1, "s": -2}, "1/s": {"s": -1},
    "N": {"kg": 1, "m": 1, "s": -2}, "N.m": {"kg": 1, "m": 2, "s": -2},
}  # fmt: skip
_DERIVATIVES: Final = {
    "2.0": ("providesDirectionalDerivative",),
    "3.0": ("providesDirectionalDerivatives", "providesAdjointDerivatives"),
}
SOURCES: Final = ("machine.c", "derivatives.c", "unit.c")
"""Names of the C files to compile."""


def model_description(unit: MachineUnit, identifier: str, token: str, version: Version) -> str:
    """The text of modelDescription.xml."""
    newer = version == "3.0"
    robot = unit.field.model
    head = {
        "fmiVersion": version, "modelName": robot.name,
        "instantiationToken" if newer else "guid": token,
        "description": str(robot.metadata.get("description", "")),
        "generationTool": f"ramify {__version__}", "variableNamingConvention": "flat",
    }  # fmt: skip
    if not newer:
        head["numberOfEventIndicators"] = str(len(unit.points))
    state = "FMUState" if newer else "FMUstate"
    able = {
        "modelIdentifier": identifier,
        f"canGetAndSet{state}": "true",
        f"canSerialize{state}": "true",
    }
    if unit.derivatives:
        able |= dict.fromkeys(_DERIVATIVES[version], "true")
    stepping = {**able, "canHandleVariableCommunicationStepSize": "true"}
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<fmiModelDescription{_attributes(head)}>"]
    for kind, attributes in (("ModelExchange", able), ("CoSimulation", stepping)):
        if newer:
            lines.append(f"  <{kind}{_attributes(attributes)}/>")
        else:
            files = "".join(f"<File{_attributes({'name': name})}/>" for name in SOURCES)
            lines.append(
                f"  <{kind}{_attributes(attributes)}><SourceFiles>{files}</SourceFiles></{kind}>"
            )
    lines.append("  <UnitDefinitions>")
    for name, base in _UNITS.items():
        powers = _attributes({key: str(value) for key, value in base.items()})
        lines.append(f"    <Unit{_attributes({'name': name})}><BaseUnit{powers}/></Unit>")
    lines += ["  </UnitDefinitions>", '  <DefaultExperiment startTime="0.0" stopTime="1.0"/>']
    lines.append("  <ModelVariables>")
    lines += [_variable(x, newer) for x in unit.variables]
    lines += ["  </ModelVariables>", "  <ModelStructure>"]
    lines += _structure(unit, newer)
    lines += ["  </ModelStructure>", "</fmiModelDescription>", ""]
    return "\n".join(lines)


def build_description(identifier: str) -> str:
    """The text of buildDescription.xml, which tells how the sources of FMI 3.0 are compiled."""
    files = "".join(f"<SourceFile{_attributes({'name': name})}/>" for name in SOURCES)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<fmiBuildDescription fmiVersion="3.0">\n'
        f"  <BuildConfiguration{_attributes({'modelIdentifier': identifier})}>\n"
        f'    <SourceFileSet language="C99">{files}</SourceFileSet>\n'
        "  </BuildConfiguration>\n</fmiBuildDescription>\n"
    )


def _attributes(values: dict[str, str]) -> str:
    return "".join(f" {name}={quoteattr(value)}" for name, value in values.items())


def _variable(x: UnitVariable, newer: bool) -> str:
    about = {
        "name": x.name,
        "valueReference": str(x.reference),
        "causality": x.causality,
        "variability": "fixed" if x.causality == "parameter" else "continuous",
    }
    if x.causality not in ("independent", "input"):  # there it says how the start is meant
        about["initial"] = "calculated" if x.start is None else "exact"
    about["description"] = x.description
    real = {} if x.unit == "1" else {"unit": x.unit}
    if x.derivative is not None:  # in FMI 2.0 the place in the list, from 1
        real["derivative"] = str(x.derivative if newer else x.derivative + 1)
    if x.start is not None:
        real["start"] = repr(float(x.start))
    if newer:
        return f"    <Float64{_attributes(about | real)}/>"
    inner = f"<Real{_attributes(real)}/>"
    return f"    <ScalarVariable{_attributes(about)}>{inner}</ScalarVariable>"


def _structure(unit: MachineUnit, newer: bool) -> list[str]:
    outputs = [x for x in unit.variables if x.causality == "output"]
    rates = [x for x in unit.variables if x.derivative is not None]
    unknown = [x for x in outputs if x.start is None] + rates
    if newer:
        depths = [x for x in unit.variables if x.name.startswith("depth.")]
        tagged = [("Output", outputs), ("ContinuousStateDerivative", rates)]
        tagged += [("InitialUnknown", unknown), ("EventIndicator", depths)]
        return [
            f'    <{tag} valueReference="{x.reference}"/>'
            for tag, variables in tagged
            for x in variables
        ]
    unknown = sorted(unknown, key=lambda x: x.reference)
    lines: list[str] = []
    for tag, variables in zip(
        ("Outputs", "Derivatives", "InitialUnknowns"), (outputs, rates, unknown), strict=True
    ):
        lines.append(f"    <{tag}>")
        lines += [f'      <Unknown index="{x.reference + 1}"/>' for x in variables]
        lines.append(f"    </{tag}>")
    return lines
