"""Functional mock-up units (FMI 2.0 and 3.0) of whole machines, from their C code."""

from ramify.fmi.package import to_fmu

__all__ = ["to_fmu"]
