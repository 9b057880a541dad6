/* The functions of FMI 2.0 around a machine. */

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#include "solver.h"

typedef void *Component;
typedef const char *String;
typedef unsigned int Reference;
typedef int Boolean;
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL, PENDING } Status;
typedef struct {
    void (*logger)(void *, String, Status, String, String, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, Status);
    void *environment;
} Callbacks;
typedef struct {
    Boolean newDiscreteStatesNeeded, terminateSimulation, nominalsChanged, valuesChanged;
    Boolean nextEventTimeDefined;
    double nextEventTime;
} EventInfo;
typedef struct {
    Machine machine;
    const Callbacks *callbacks;
    char name[128];
} Unit;

static Status fail(Unit *unit, const char *why)
{
    if (unit->callbacks && unit->callbacks->logger)
        unit->callbacks->logger(unit->callbacks->environment, unit->name, ERROR, "logStatusError",
                                "%s", why);
    return ERROR;
}

#define NAME(verb) fmi2##verb
#define SAVED(verb) fmi2##verb##FMUstate
#define SAVED_SIZE fmi2SerializedFMUstateSize
#define SAVED_AGAIN fmi2DeSerializeFMUstate
#define GET_RATES fmi2GetDerivatives
typedef char Byte;
#include "shared.h"

EXPORT String fmi2GetTypesPlatform(void) { return "default"; }
EXPORT String fmi2GetVersion(void) { return "2.0"; }

EXPORT Status fmi2SetDebugLogging(Component c, Boolean on, size_t n, const String categories[])
{
    (void)c, (void)on, (void)n, (void)categories;
    return OK;
}

EXPORT Component fmi2Instantiate(String name, int type, String token, String resources,
                                 const Callbacks *callbacks, Boolean visible, Boolean logging)
{
    Unit *unit;
    (void)type, (void)resources, (void)visible, (void)logging;
    if (!token || strcmp(token, TOKEN) != 0)
        return NULL;
    unit = calloc(1, sizeof *unit);
    if (!unit)
        return NULL;
    unit->callbacks = callbacks;
    if (name)
        strncpy(unit->name, name, sizeof unit->name - 1);
    machine_start(&unit->machine);
    return unit;
}

EXPORT void fmi2FreeInstance(Component c) { free(c); }

EXPORT Status fmi2SetupExperiment(Component c, Boolean tolerant, double tolerance, double start,
                                  Boolean bounded, double stop)
{
    Machine *m = &((Unit *)c)->machine;
    (void)bounded, (void)stop;
    m->t = start;
    m->known = 0;
    if (tolerant)
        set(m, TOLERANCE, tolerance);
    return OK;
}

EXPORT Status fmi2EnterInitializationMode(Component c) { return c ? OK : ERROR; }
EXPORT Status fmi2Terminate(Component c) { return c ? OK : ERROR; }

EXPORT Status fmi2GetReal(Component c, const Reference r[], size_t n, double value[])
{
    size_t i;
    for (i = 0; i < n; i++)
        if (get(&((Unit *)c)->machine, r[i], &value[i]))
            return fail(c, "there is no variable with this reference");
    return OK;
}

EXPORT Status fmi2SetReal(Component c, const Reference r[], size_t n, const double value[])
{
    size_t i;
    for (i = 0; i < n; i++)
        if (set(&((Unit *)c)->machine, r[i], value[i]))
            return fail(c, "this variable cannot be set, or not to this value");
    return OK;
}

#define NONE(name, type)                                                                          \
    EXPORT Status fmi2Get##name(Component c, const Reference r[], size_t n, type value[])         \
    {                                                                                             \
        (void)r, (void)value;                                                                     \
        return n ? fail(c, "all variables are real numbers") : OK;                                \
    }                                                                                             \
    EXPORT Status fmi2Set##name(Component c, const Reference r[], size_t n, const type value[])   \
    {                                                                                             \
        (void)r, (void)value;                                                                     \
        return n ? fail(c, "all variables are real numbers") : OK;                                \
    }
NONE(Integer, int)
NONE(Boolean, Boolean)
NONE(String, String)

EXPORT Status fmi2GetDirectionalDerivative(Component c, const Reference unknown[], size_t n,
                                           const Reference known[], size_t k, const double seed[],
                                           double value[])
{
    return along(machine(c), known, k, seed, unknown, n, value) ? fail(c, NO_DERIVATIVE) : OK;
}

/* ---- model exchange ---- */

EXPORT Status fmi2EnterEventMode(Component c) { return c ? OK : ERROR; }
EXPORT Status fmi2EnterContinuousTimeMode(Component c) { return c ? OK : ERROR; }

EXPORT Status fmi2NewDiscreteStates(Component c, EventInfo *info)
{
    (void)c;
    memset(info, 0, sizeof *info);
    return OK;
}

EXPORT Status fmi2CompletedIntegratorStep(Component c, Boolean settled, Boolean *event,
                                          Boolean *terminate)
{
    (void)c, (void)settled;
    *event = *terminate = 0;
    return OK;
}

/* ---- co-simulation ---- */

EXPORT Status fmi2SetRealInputDerivatives(Component c, const Reference r[], size_t n,
                                          const int order[], const double value[])
{
    (void)r, (void)order, (void)value;
    return n ? fail(c, "inputs are held during a step; their derivatives are not used") : OK;
}

EXPORT Status fmi2GetRealOutputDerivatives(Component c, const Reference r[], size_t n,
                                           const int order[], double value[])
{
    (void)r, (void)order, (void)value;
    return n ? fail(c, "this unit gives no derivatives of outputs") : OK;
}

EXPORT Status fmi2DoStep(Component c, double t, double step, Boolean settled)
{
    (void)settled;
    return stepped(c, t, step);
}

EXPORT Status fmi2CancelStep(Component c) { return fail(c, "no step is pending"); }

#define NO_STATUS(name, type)                                                                     \
    EXPORT Status fmi2Get##name(Component c, int kind, type *value)                               \
    {                                                                                             \
        (void)c, (void)kind, (void)value;                                                         \
        return DISCARD;                                                                           \
    }
NO_STATUS(Status, Status)
NO_STATUS(IntegerStatus, int)
NO_STATUS(BooleanStatus, Boolean)
NO_STATUS(StringStatus, String)

EXPORT Status fmi2GetRealStatus(Component c, int kind, double *value)
{
    if (kind != 2)
        return DISCARD;
    *value = ((Unit *)c)->machine.t; /* the time that the last step reached */
    return OK;
}
