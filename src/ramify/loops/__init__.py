"""Closed loops: constraint kinematics, assembly, and the dynamics of trees whose leaves are joined
(chapter 8).
"""
