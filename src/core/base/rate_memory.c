/* rate_memory.c - see rate_memory.h. */
#include "base/rate_memory.h"

#include <stddef.h>

/* An hour of samples. */
#define RATES_MAX 1200

/* The first step is up to 2^10. */
#define FIRST_OCTAVE 10

void rate_memory_add(struct rate_memory *m, uint64_t rate)
{
    unsigned octave = rate > 0 ? 63U - (unsigned)__builtin_clzll(rate) : 0;
    size_t step = octave < FIRST_OCTAVE
                      ? 0
                      : (octave - FIRST_OCTAVE) * 4U + (size_t)((rate >> (octave - 2)) & 3);

    if (m->total >= RATES_MAX) {
        m->total = 0;
        for (size_t i = 0; i < RATE_MEMORY_STEPS; i++) {
            m->n[i] /= 2;
            m->total = (uint16_t)(m->total + m->n[i]);
        }
    }
    m->n[step < RATE_MEMORY_STEPS ? step : RATE_MEMORY_STEPS - 1]++;
    m->total++;
}

uint64_t rate_memory_median(const struct rate_memory *m)
{
    size_t step = 0;
    unsigned sum = m->n[0];

    if (m->total == 0)
        return 0;
    while (2 * sum < m->total && step < RATE_MEMORY_STEPS - 1)
        sum += m->n[++step];
    /* The middle of the step. */
    return ((uint64_t)(9 + 2 * (step % 4))) << (step / 4 + FIRST_OCTAVE - 3);
}
