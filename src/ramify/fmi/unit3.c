/* The functions of FMI 3.0 around a machine. */

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#include <stdbool.h>
#include <stdint.h>

#include "solver.h"

typedef void *Instance;
typedef const char *String;
typedef const uint8_t *Binary;
typedef uint32_t Reference;
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL } Status;
typedef void (*Logger)(void *, Status, String, String);
typedef struct {
    Machine machine;
    Logger log;
    void *environment;
} Unit;

static Status fail(Unit *unit, const char *why)
{
    if (unit->log)
        unit->log(unit->environment, ERROR, "logStatusError", why);
    return ERROR;
}

static Instance instance(String token, void *environment, Logger log)
{
    Unit *unit;
    if (!token || strcmp(token, TOKEN) != 0) {
        if (log)
            log(environment, ERROR, "logStatusError", "the instantiation token does not fit");
        return NULL;
    }
    unit = calloc(1, sizeof *unit);
    if (!unit)
        return NULL;
    unit->log = log;
    unit->environment = environment;
    machine_start(&unit->machine);
    return unit;
}

#define NAME(verb) fmi3##verb
#define SAVED(verb) fmi3##verb##FMUState
#define SAVED_SIZE fmi3SerializedFMUStateSize
#define SAVED_AGAIN fmi3DeserializeFMUState
#define GET_RATES fmi3GetContinuousStateDerivatives
typedef uint8_t Byte;
#include "shared.h"

EXPORT String fmi3GetVersion(void) { return "3.0"; }

EXPORT Status fmi3SetDebugLogging(Instance c, bool on, size_t n, const String categories[])
{
    (void)c, (void)on, (void)n, (void)categories;
    return OK;
}

EXPORT Instance fmi3InstantiateModelExchange(String name, String token, String resources,
                                             bool visible, bool logging, void *environment,
                                             Logger log)
{
    (void)name, (void)resources, (void)visible, (void)logging;
    return instance(token, environment, log);
}

EXPORT Instance fmi3InstantiateCoSimulation(String name, String token, String resources,
                                            bool visible, bool logging, bool events, bool early,
                                            const Reference required[], size_t n,
                                            void *environment, Logger log, void (*update)(void))
{
    (void)name, (void)resources, (void)visible, (void)logging, (void)events, (void)early;
    (void)required, (void)n, (void)update;
    return instance(token, environment, log);
}

EXPORT Instance fmi3InstantiateScheduledExecution(String name, String token, String resources,
                                                  bool visible, bool logging, void *environment,
                                                  Logger log, void (*clock)(void),
                                                  void (*lock)(void), void (*unlock)(void))
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)clock;
    (void)lock, (void)unlock;
    if (log)
        log(environment, ERROR, "logStatusError", "this unit has no scheduled execution");
    return NULL;
}

EXPORT void fmi3FreeInstance(Instance c) { free(c); }

EXPORT Status fmi3EnterInitializationMode(Instance c, bool tolerant, double tolerance,
                                          double start, bool bounded, double stop)
{
    Machine *m = &((Unit *)c)->machine;
    (void)bounded, (void)stop;
    m->t = start;
    m->known = 0;
    if (tolerant)
        set(m, TOLERANCE, tolerance);
    return OK;
}

EXPORT Status fmi3EnterEventMode(Instance c) { return c ? OK : ERROR; }
EXPORT Status fmi3EnterStepMode(Instance c) { return c ? OK : ERROR; }
EXPORT Status fmi3EnterConfigurationMode(Instance c) { return c ? OK : ERROR; }
EXPORT Status fmi3ExitConfigurationMode(Instance c) { return c ? OK : ERROR; }
EXPORT Status fmi3Terminate(Instance c) { return c ? OK : ERROR; }

EXPORT Status fmi3GetFloat64(Instance c, const Reference r[], size_t n, double value[], size_t k)
{
    size_t i;
    for (i = 0; i < n && i < k; i++)
        if (get(&((Unit *)c)->machine, r[i], &value[i]))
            return fail(c, "there is no variable with this reference");
    return OK;
}

EXPORT Status fmi3SetFloat64(Instance c, const Reference r[], size_t n, const double value[],
                             size_t k)
{
    size_t i;
    for (i = 0; i < n && i < k; i++)
        if (set(&((Unit *)c)->machine, r[i], value[i]))
            return fail(c, "this variable cannot be set, or not to this value");
    return OK;
}

#define NONE(name, type)                                                                          \
    EXPORT Status fmi3Get##name(Instance c, const Reference r[], size_t n, type value[],          \
                                size_t k)                                                         \
    {                                                                                             \
        (void)r, (void)value, (void)k;                                                            \
        return n ? fail(c, "all variables are Float64") : OK;                                     \
    }                                                                                             \
    EXPORT Status fmi3Set##name(Instance c, const Reference r[], size_t n, const type value[],    \
                                size_t k)                                                         \
    {                                                                                             \
        (void)r, (void)value, (void)k;                                                            \
        return n ? fail(c, "all variables are Float64") : OK;                                     \
    }
NONE(Float32, float)
NONE(Int8, int8_t)
NONE(UInt8, uint8_t)
NONE(Int16, int16_t)
NONE(UInt16, uint16_t)
NONE(Int32, int32_t)
NONE(UInt32, uint32_t)
NONE(Int64, int64_t)
NONE(UInt64, uint64_t)
NONE(Boolean, bool)
NONE(String, String)

EXPORT Status fmi3GetBinary(Instance c, const Reference r[], size_t n, size_t size[],
                            Binary value[], size_t k)
{
    (void)r, (void)size, (void)value, (void)k;
    return n ? fail(c, "all variables are Float64") : OK;
}

EXPORT Status fmi3SetBinary(Instance c, const Reference r[], size_t n, const size_t size[],
                            const Binary value[], size_t k)
{
    (void)r, (void)size, (void)value, (void)k;
    return n ? fail(c, "all variables are Float64") : OK;
}

EXPORT Status fmi3GetClock(Instance c, const Reference r[], size_t n, bool value[])
{
    (void)r, (void)value;
    return n ? fail(c, "this unit has no clocks") : OK;
}

EXPORT Status fmi3SetClock(Instance c, const Reference r[], size_t n, const bool value[])
{
    (void)r, (void)value;
    return n ? fail(c, "this unit has no clocks") : OK;
}

#define NO_CLOCK(name, ...)                                                                       \
    EXPORT Status fmi3##name(Instance c, const Reference r[], size_t n, __VA_ARGS__)              \
    {                                                                                             \
        (void)r, (void)x, (void)y;                                                                \
        return n ? fail(c, "this unit has no clocks") : OK;                                       \
    }
NO_CLOCK(GetIntervalDecimal, double x[], int y[])
NO_CLOCK(GetShiftFraction, uint64_t x[], uint64_t y[])
NO_CLOCK(SetIntervalFraction, const uint64_t x[], const uint64_t y[])
NO_CLOCK(SetShiftFraction, const uint64_t x[], const uint64_t y[])

#define NO_CLOCKS(name, ...)                                                                      \
    EXPORT Status fmi3##name(Instance c, const Reference r[], size_t n, __VA_ARGS__)              \
    {                                                                                             \
        (void)r, (void)x;                                                                         \
        return n ? fail(c, "this unit has no clocks") : OK;                                       \
    }
NO_CLOCKS(GetShiftDecimal, double x[])
NO_CLOCKS(SetIntervalDecimal, const double x[])
NO_CLOCKS(SetShiftDecimal, const double x[])

EXPORT Status fmi3GetIntervalFraction(Instance c, const Reference r[], size_t n, uint64_t x[],
                                      uint64_t y[], int z[])
{
    (void)r, (void)x, (void)y, (void)z;
    return n ? fail(c, "this unit has no clocks") : OK;
}

EXPORT Status fmi3GetNumberOfVariableDependencies(Instance c, Reference r, size_t *n)
{
    (void)r, (void)n;
    return fail(c, "this unit does not list dependencies");
}

EXPORT Status fmi3GetVariableDependencies(Instance c, Reference r, size_t element[],
                                          Reference independent[], size_t other[], int kind[],
                                          size_t n)
{
    (void)r, (void)element, (void)independent, (void)other, (void)kind, (void)n;
    return fail(c, "this unit does not list dependencies");
}

EXPORT Status fmi3GetDirectionalDerivative(Instance c, const Reference unknown[], size_t n,
                                           const Reference known[], size_t k, const double seed[],
                                           size_t s, double value[], size_t m)
{
    if (s != k || m != n)
        return wrong_size(c);
    return along(machine(c), known, k, seed, unknown, n, value) ? fail(c, NO_DERIVATIVE) : OK;
}

/* One direction after the other: exact, at the cost of as many derivatives as there are knowns. */
EXPORT Status fmi3GetAdjointDerivative(Instance c, const Reference unknown[], size_t n,
                                       const Reference known[], size_t k, const double seed[],
                                       size_t s, double value[], size_t m)
{
    const double one = 1.0;
    double slope[VARIABLES];
    size_t i, j;
    if (s != n || m != k || n > VARIABLES)
        return wrong_size(c);
    for (j = 0; j < k; j++) {
        if (along(machine(c), &known[j], 1, &one, unknown, n, slope))
            return fail(c, NO_DERIVATIVE);
        value[j] = 0.0;
        for (i = 0; i < n; i++)
            value[j] += seed[i] * slope[i];
    }
    return OK;
}

/* ---- model exchange ---- */

EXPORT Status fmi3EvaluateDiscreteStates(Instance c) { return c ? OK : ERROR; }
EXPORT Status fmi3EnterContinuousTimeMode(Instance c) { return c ? OK : ERROR; }

EXPORT Status fmi3UpdateDiscreteStates(Instance c, bool *needed, bool *terminate, bool *nominals,
                                       bool *values, bool *defined, double *next)
{
    (void)c;
    *needed = *terminate = *nominals = *values = *defined = false;
    *next = 0.0;
    return OK;
}

EXPORT Status fmi3CompletedIntegratorStep(Instance c, bool settled, bool *event, bool *terminate)
{
    (void)c, (void)settled;
    *event = *terminate = false;
    return OK;
}

EXPORT Status fmi3GetNumberOfEventIndicators(Instance c, size_t *n)
{
    (void)c;
    *n = NE;
    return OK;
}

EXPORT Status fmi3GetNumberOfContinuousStates(Instance c, size_t *n)
{
    (void)c;
    *n = NX;
    return OK;
}

/* ---- co-simulation ---- */

EXPORT Status fmi3GetOutputDerivatives(Instance c, const Reference r[], size_t n,
                                       const int32_t order[], double value[], size_t k)
{
    (void)r, (void)order, (void)value, (void)k;
    return n ? fail(c, "this unit gives no derivatives of outputs") : OK;
}

EXPORT Status fmi3DoStep(Instance c, double t, double step, bool settled, bool *event,
                         bool *terminate, bool *early, double *reached)
{
    const Status status = stepped(c, t, step);
    (void)settled;
    *event = *terminate = *early = false;
    *reached = machine(c)->t;
    return status;
}

EXPORT Status fmi3ActivateModelPartition(Instance c, Reference clock, double t)
{
    (void)clock, (void)t;
    return fail(c, "this unit has no scheduled execution");
}
