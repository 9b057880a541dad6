"""Studies: one scenario, many runs, kept in a ledger that survives whatever ends them."""
