/* A machine that is integrated: its variables, and an adaptive step (Dormand and Prince, order 5).
   Included once by unit.c. SI units, radians. */

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "derivatives.h"
#include "machine.h"
#include "sizes.h"

#define MOST_STEPS 1000000 /* of one communication step */
#define FASTEST 1e5         /* rad/s or m/s beyond which a motion has run away */
#define RATES (1 + NX)
#define INPUTS (1 + 2 * NX)
#define OUTPUTS (INPUTS + NU)
#define INDICATORS (OUTPUTS + NW)
#define TOLERANCE (INDICATORS + NE)
#define VARIABLES (TOLERANCE + 1)

/* All that a run depends on: copied whole when a state is saved. */
typedef struct {
    double t, h, tolerance;
    double x[NX], u[NU + 1];
    int known; /* whether rate, shown and depth belong to t, x and u */
    double rate[NX], shown[NW], depth[NE + 1];
} Machine;

static void machine_start(Machine *m)
{
    static const double start[NX] = START;
    memset(m, 0, sizeof *m);
    memcpy(m->x, start, sizeof start);
    m->tolerance = 1e-9;
}

static void rates(const Machine *m, double t, const double *x, double *rate)
{
    machine_rates(&t, x, m->u, rate);
}

static void refresh(Machine *m)
{
    if (m->known)
        return;
    rates(m, m->t, m->x, m->rate);
    machine_outputs(&m->t, m->x, m->u, m->shown);
#if NE > 0
    machine_indicators(m->x, m->depth);
#endif
    m->known = 1;
}

/* 0, or 1 where there is no such variable. */
static int get(Machine *m, unsigned int reference, double *value)
{
    if (reference >= VARIABLES)
        return 1;
    if (reference == 0)
        *value = m->t;
    else if (reference < RATES)
        *value = m->x[reference - 1];
    else if (reference >= INPUTS && reference < OUTPUTS)
        *value = m->u[reference - INPUTS];
    else if (reference == TOLERANCE)
        *value = m->tolerance;
    else {
        refresh(m);
        *value = reference < INPUTS       ? m->rate[reference - RATES]
                 : reference < INDICATORS ? m->shown[reference - OUTPUTS]
                                          : m->depth[reference - INDICATORS];
    }
    return 0;
}

/* 0, or 1 where the variable cannot be set to this value. */
static int set(Machine *m, unsigned int reference, double value)
{
    if (!(fabs(value) <= 1e300))
        return 1;
    m->known = 0;
    if (reference >= 1 && reference < RATES)
        m->x[reference - 1] = value;
    else if (reference >= INPUTS && reference < OUTPUTS)
        m->u[reference - INPUTS] = value;
    else if (reference == TOLERANCE && value > 0.0)
        m->tolerance = value < 1e-13 ? 1e-13 : value;
    else
        return 1;
    return 0;
}

/* The derivatives of some variables along a direction in states, inputs and time. 0, or 1 where a
   variable has none. */
static int along(const Machine *m, const unsigned int known[], size_t k, const double seed[],
                 const unsigned int unknown[], size_t n, double value[])
{
#if DERIVATIVES
    double dt = 0.0, dx[NX] = {0.0}, du[NU + 1] = {0.0};
    double rate[NX] = {0.0}, shown[NW] = {0.0}, depth[NE + 1] = {0.0};
    int of_rates = 0, of_outputs = 0, of_depths = 0;
    size_t i;

    for (i = 0; i < k; i++)
        if (known[i] == 0)
            dt += seed[i];
        else if (known[i] < RATES)
            dx[known[i] - 1] += seed[i];
        else if (known[i] >= INPUTS && known[i] < OUTPUTS)
            du[known[i] - INPUTS] += seed[i];
        else
            return 1;
    for (i = 0; i < n; i++) {
        of_rates |= unknown[i] >= RATES && unknown[i] < INPUTS;
        of_outputs |= unknown[i] >= OUTPUTS && unknown[i] < INDICATORS;
        of_depths |= unknown[i] >= INDICATORS && unknown[i] < TOLERANCE;
    }
    if (of_rates)
        machine_rates_tangent(&m->t, m->x, m->u, &dt, dx, du, rate);
    if (of_outputs)
        machine_outputs_tangent(&m->t, m->x, m->u, &dt, dx, du, shown);
#if NE > 0
    if (of_depths)
        machine_indicators_tangent(m->x, dx, depth);
#endif
    for (i = 0; i < n; i++)
        if (unknown[i] >= 1 && unknown[i] < RATES)
            value[i] = dx[unknown[i] - 1];
        else if (unknown[i] >= RATES && unknown[i] < INPUTS)
            value[i] = rate[unknown[i] - RATES];
        else if (unknown[i] >= OUTPUTS && unknown[i] < INDICATORS)
            value[i] = shown[unknown[i] - OUTPUTS];
        else if (unknown[i] >= INDICATORS && unknown[i] < TOLERANCE)
            value[i] = depth[unknown[i] - INDICATORS];
        else
            return 1;
    return 0;
#else
    (void)m, (void)known, (void)k, (void)seed, (void)unknown, (void)n, (void)value;
    return 1;
#endif
}

/* 0, or 1 where loops are not nearly closed, as after an importer has set states. Quaternions get
   length one. */
static int settle(Machine *m)
{
    double y[NX];
    int i;
    machine_closed(m->x, y);
    for (i = 0; i < NQ; i++)
        if (!(fabs(y[i] - m->x[i]) <= 1e-2))
            return 1;
    memcpy(m->x, y, sizeof y);
    m->known = 0;
    return 0;
}

/* From m->t to end with the inputs held. 0, or 1 where the motion cannot be followed. */
static int advance(Machine *m, double end)
{
    static const double c[7] = {0.0, 0.2, 0.3, 0.8, 8.0 / 9.0, 1.0, 1.0};
    static const double a[7][6] = {
        {0.0},
        {1.0 / 5.0},
        {3.0 / 40.0, 9.0 / 40.0},
        {44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0},
        {19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0},
        {9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0},
        {35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0}};
    static const double e[7] = {71.0 / 57600.0,      0.0,          -71.0 / 16695.0, 71.0 / 1920.0,
                                -17253.0 / 339200.0, 22.0 / 525.0, -1.0 / 40.0};
    double k[7][NX], y[NX], z[NX];
    const double start = m->t;
    long steps = 0;
    int i, j, s;

    if (!(end > start))
        return end < start;
    if (!(m->h > 0.0))
        m->h = 1e-4;
    rates(m, m->t, m->x, k[0]);
    while (m->t < end) {
        const int last = m->h >= end - m->t;
        const double h = last ? end - m->t : m->h;
        double error = 0.0, factor;
        if (++steps > MOST_STEPS)
            return 1;
        if (!(h > 1e-14 * (1.0 + fabs(m->t))) && !last)
            return 1;
        for (s = 1; s < 7; s++) {
            for (i = 0; i < NX; i++) {
                double sum = 0.0;
                for (j = 0; j < s; j++)
                    sum += a[s][j] * k[j][i];
                y[i] = m->x[i] + h * sum;
            }
            rates(m, m->t + c[s] * h, y, k[s]);
        }
        for (i = 0; i < NX; i++) {
            double sum = 0.0, scale = fabs(m->x[i]) > fabs(y[i]) ? fabs(m->x[i]) : fabs(y[i]);
            for (s = 0; s < 7; s++)
                sum += e[s] * k[s][i];
            sum *= h / (m->tolerance * (0.01 + scale));
            error += sum * sum / NX;
        }
        error = sqrt(error);
        if (!(error <= 1.0)) { /* also where it is not a number */
            m->h = h * (error > 1.0 && error < 1e10 ? fmax(0.1, 0.9 * pow(error, -0.2)) : 0.1);
            if (!(m->h > 1e-14 * (1.0 + fabs(m->t))))
                return 1;
            continue;
        }
        for (i = NQ; i < NQ + NV; i++)
            if (!(fabs(y[i]) < FASTEST))
                return 1;
        m->t = last ? end : m->t + h;
        machine_closed(y, z);
        memcpy(m->x, z, sizeof z);
        m->known = 0;
        factor = error > 1e-10 ? 0.9 * pow(error, -0.2) : 5.0;
        factor = factor > 5.0 ? 5.0 : factor;
        if (!last || h * factor > m->h)
            m->h = h * factor;
        rates(m, m->t, m->x, k[0]);
    }
    return 0;
}
