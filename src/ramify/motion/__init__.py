"""Motions of the joints over time."""

from ramify.motion.cycloid import Motion, cycloid, example_ends

__all__ = ["Motion", "cycloid", "example_ends"]
