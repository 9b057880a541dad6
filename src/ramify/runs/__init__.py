"""Runs: what users ask for, what is recorded, audited, stored and exported."""
