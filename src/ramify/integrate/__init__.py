"""Ways through time: integrators, compiled and fixed steps, closed loops on the way."""
