"""Forces of the machine over any scalar: springs, damping, friction, stops, tendons, actuators."""
