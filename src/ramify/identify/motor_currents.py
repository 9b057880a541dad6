def from_currents(*a):
    raise NotImplementedError
