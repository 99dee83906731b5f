/* behavior.c - see behavior.h. */
#include "path/behavior.h"

#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

/* A larger step between two ports is taken for chance, or for other users of the NAT. */
#define STEP_MAX 32

const char *const behavior_rule_names[] = {
    "unknown", "endpoint-independent", "address-dependent", "address-and-port-dependent"};
_Static_assert(
    sizeof(behavior_rule_names) / sizeof(*behavior_rule_names) == BEHAVIOR_RULE_N, "a name each");

enum behavior_rule behavior_rule_parse(const char *text)
{
    size_t r = parse_word(text, behavior_rule_names, BEHAVIOR_RULE_N);

    return r < BEHAVIOR_RULE_N ? (enum behavior_rule)r : BEHAVIOR_UNKNOWN;
}

void behavior_survey_add(struct behavior_survey *s, const struct endpoint *server,
    const struct endpoint *mapped, nsec_t at)
{
    unsigned i = 0;

    while (i < s->n && !endpoint_equal(&s->samples[i].server, server))
        i++;
    if (i == s->n && s->n == BEHAVIOR_SAMPLES_MAX)
        i = 0;
    if (i < s->n) {
        s->n--;
        memmove(&s->samples[i], &s->samples[i + 1], (s->n - i) * sizeof(s->samples[0]));
    }
    s->samples[s->n++] = (struct behavior_sample){*server, *mapped, at};
}

/* What the mapping depends on, by two more answers; @so_far: by those before. */
static enum behavior_rule compare_samples(
    const struct behavior_sample *a, const struct behavior_sample *b, enum behavior_rule so_far)
{
    bool same_address = ip_addr_equal(&a->server.addr, &b->server.addr);
    bool same_mapping = endpoint_equal(&a->mapped, &b->mapped);

    if (same_mapping) {
        /* Two ports of one address say nothing about another address. */
        if (same_address || so_far != BEHAVIOR_UNKNOWN)
            return so_far;
        return BEHAVIOR_ENDPOINT_INDEPENDENT;
    }
    if (same_address || so_far == BEHAVIOR_PORT_DEPENDENT)
        return BEHAVIOR_PORT_DEPENDENT;
    return BEHAVIOR_ADDRESS_DEPENDENT;
}

/* The smallest step between the ports of mappings that follow each other in time; 0: one of the
 * steps is too large, or they go both up and down. */
static int16_t port_step_of(const struct behavior_sample *samples, unsigned n)
{
    int step = 0;

    for (unsigned i = 1; i < n; i++) {
        int d = (int)samples[i].mapped.port - (int)samples[i - 1].mapped.port;

        if (d == 0)
            continue;
        if (abs(d) > STEP_MAX || (step != 0 && (d > 0) != (step > 0)))
            return 0;
        if (step == 0 || abs(d) < abs(step))
            step = d;
    }
    return (int16_t)step;
}

struct behavior behavior_of(
    const struct behavior_survey *s, const struct endpoint *own, size_t n_own)
{
    struct behavior_sample v4[BEHAVIOR_SAMPLES_MAX];
    struct behavior b = {0};
    unsigned n = 0;

    for (unsigned i = 0; i < s->n; i++)
        if (ip_addr_is_v4(&s->samples[i].mapped.addr))
            v4[n++] = s->samples[i];
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < i; j++)
            b.mapping = compare_samples(&v4[j], &v4[i], b.mapping);
    if (n == 0)
        return b;
    b.last_port = v4[n - 1].mapped.port;
    b.is_natted = true;
    for (size_t i = 0; i < n_own; i++)
        if (ip_addr_equal(&own[i].addr, &v4[n - 1].mapped.addr))
            b.is_natted = false;
    if (!b.is_natted)
        b.mapping = BEHAVIOR_ENDPOINT_INDEPENDENT;
    if (behavior_is_hard(&b))
        b.port_step = port_step_of(v4, n);
    return b;
}

bool behavior_is_hard(const struct behavior *b)
{
    return b->mapping == BEHAVIOR_ADDRESS_DEPENDENT || b->mapping == BEHAVIOR_PORT_DEPENDENT;
}

uint16_t behavior_predict(const struct behavior *b, unsigned i)
{
    int port;

    if (b->port_step == 0 || b->last_port == 0 || i >= BEHAVIOR_GUESSES)
        return 0;
    port = (int)b->last_port + ((int)i + 1) * b->port_step;
    return port >= 1024 && port <= UINT16_MAX ? (uint16_t)port : 0;
}
