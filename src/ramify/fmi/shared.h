/* Functions that FMI 2.0 and 3.0 have in common but for their names, which unit.c defines: a fresh
   start, saved states, and the continuous states of model exchange. */

static Machine *machine(void *c) { return &((Unit *)c)->machine; }

#define NO_DERIVATIVE                                                                             \
    "derivatives exist of states, rates, outputs and indicators, by states, inputs and time"

static Status wrong_size(void *c) { return fail(c, "the number of values does not fit"); }

/* A communication step of co-simulation. */
static Status stepped(void *c, double t, double step)
{
    if (!(fabs(t - machine(c)->t) <= 1e-9 * (1.0 + fabs(t))))
        return fail(c, "a step must start where the last one ended");
    if (!(step >= 0.0 && step < HUGE_VAL))
        return fail(c, "the length of a step must be finite and >= 0");
    if (advance(machine(c), t + step))
        return fail(c, "the motion cannot be followed: the step of the integrator became too small");
    return OK;
}

EXPORT Status NAME(Reset)(void *c)
{
    machine_start(machine(c));
    return OK;
}

EXPORT Status NAME(ExitInitializationMode)(void *c)
{
    return settle(machine(c)) ? fail(c, "the loops of the machine are open at the start") : OK;
}

EXPORT Status SAVED(Get)(void *c, void **state)
{
    if (!*state)
        *state = malloc(sizeof(Machine));
    if (!*state)
        return fail(c, "not enough memory");
    memcpy(*state, machine(c), sizeof(Machine));
    return OK;
}

EXPORT Status SAVED(Set)(void *c, void *state)
{
    memcpy(machine(c), state, sizeof(Machine));
    return OK;
}

EXPORT Status SAVED(Free)(void *c, void **state)
{
    (void)c;
    free(*state);
    *state = NULL;
    return OK;
}

EXPORT Status SAVED_SIZE(void *c, void *state, size_t *size)
{
    (void)c, (void)state;
    *size = sizeof(Machine);
    return OK;
}

EXPORT Status SAVED(Serialize)(void *c, void *state, Byte bytes[], size_t size)
{
    if (size < sizeof(Machine))
        return wrong_size(c);
    memcpy(bytes, state, sizeof(Machine));
    return OK;
}

EXPORT Status SAVED_AGAIN(void *c, const Byte bytes[], size_t size, void **state)
{
    if (size != sizeof(Machine))
        return fail(c, "these bytes are not a state of this unit");
    if (!*state)
        *state = malloc(sizeof(Machine));
    if (!*state)
        return fail(c, "not enough memory");
    memcpy(*state, bytes, sizeof(Machine));
    return OK;
}

EXPORT Status NAME(SetTime)(void *c, double t)
{
    machine(c)->t = t;
    machine(c)->known = 0;
    return OK;
}

EXPORT Status NAME(SetContinuousStates)(void *c, const double x[], size_t n)
{
    if (n != NX)
        return wrong_size(c);
    memcpy(machine(c)->x, x, n * sizeof *x);
    machine(c)->known = 0;
    return OK;
}

EXPORT Status NAME(GetContinuousStates)(void *c, double x[], size_t n)
{
    if (n != NX)
        return wrong_size(c);
    memcpy(x, machine(c)->x, n * sizeof *x);
    return OK;
}

EXPORT Status GET_RATES(void *c, double rate[], size_t n)
{
    if (n != NX)
        return wrong_size(c);
    refresh(machine(c));
    memcpy(rate, machine(c)->rate, n * sizeof *rate);
    return OK;
}

EXPORT Status NAME(GetEventIndicators)(void *c, double value[], size_t n)
{
    if (n != NE)
        return wrong_size(c);
    refresh(machine(c));
    memcpy(value, machine(c)->depth, n * sizeof *value);
    return OK;
}

EXPORT Status NAME(GetNominalsOfContinuousStates)(void *c, double x[], size_t n)
{
    size_t i;
    (void)c;
    for (i = 0; i < n; i++)
        x[i] = 1.0;
    return OK;
}
