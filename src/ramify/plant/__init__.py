"""The machine's equation of motion: controller, drives, passive forces, contact and dynamics as one
right-hand side.
"""
