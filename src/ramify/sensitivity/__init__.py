"""Derivatives of steps and runs: tangents, adjoints, linear systems."""
