/* params.c - parser of a lane's parameters; see params.h for the language. */
#include "params.h"

#include <stdlib.h>
#include <string.h>

enum key {
    KEY_DELAY,
    KEY_JITTER,
    KEY_RATE,
    KEY_QUEUE,
    KEY_LOSS,
    KEY_REORDER,
    KEY_MTU,
    KEY_N,
};

struct unit {
    const char *name; /* NULL ends a table */
    double factor;
};

static const struct unit time_units[] = {
    {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const struct unit rate_units[] = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {NULL, 0}};
static const struct unit size_units[] = {{"", 1}, {"k", 1024}, {"m", 1024 * 1024}, {NULL, 0}};
static const struct unit share_units[] = {{"%", LANE_PPM / 100.0}, {NULL, 0}};
static const struct unit byte_units[] = {{"", 1}, {NULL, 0}};

static const struct {
    const char *name;
    const struct unit *units;
    double max; /* in the unit with factor 1 */
    const char *error;
} keys[KEY_N] = {
    [KEY_DELAY] = {"delay", time_units, 60e9, "delay is a time up to 60s, such as 20ms"},
    [KEY_JITTER] = {"jitter", time_units, 60e9, "jitter is a time up to 60s, such as 500us"},
    [KEY_RATE] = {"rate", rate_units, 1e12, "rate is bits per second, such as 100mbit"},
    [KEY_QUEUE] = {"queue", size_units, LANE_HELD_MAX, "queue is bytes up to 64m, such as 256k"},
    [KEY_LOSS] = {"loss", share_units, LANE_PPM, "loss is a percentage, such as 0.5%"},
    [KEY_REORDER] = {"reorder", share_units, LANE_PPM, "reorder is a percentage, such as 1%"},
    [KEY_MTU] = {"mtu", byte_units, 65535, "mtu is bytes up to 65535, such as 1400"},
};

static const char *const unknown_key =
    "the keys are delay, jitter, rate, queue, loss, reorder and mtu, with in. or out. before "
    "them for one direction";

/* A plain decimal number followed by exactly one of @units, at most @max. */
static bool parse_quantity(
    const char *text, const struct unit *units, double max, uint64_t *ret_value)
{
    size_t n_digits = strspn(text, "0123456789.");
    char *end;
    double number = strtod(text, &end);

    /* strtod() also takes signs, exponents and names; none of them is meant here. */
    if (n_digits == 0 || end != text + n_digits)
        return false;
    for (const struct unit *unit = units; unit->name; unit++) {
        if (strcmp(end, unit->name) == 0 && number * unit->factor <= max) {
            *ret_value = (uint64_t)(number * unit->factor + 0.5);
            return true;
        }
    }
    return false;
}

static void set(struct lane_params *p, enum key key, uint64_t value)
{
    switch (key) {
    case KEY_DELAY:
        p->delay = (nsec_t)value;
        break;
    case KEY_JITTER:
        p->jitter = (nsec_t)value;
        break;
    case KEY_RATE:
        p->rate = value;
        break;
    case KEY_QUEUE:
        p->queue = (uint32_t)value;
        break;
    case KEY_LOSS:
        p->loss_ppm = (uint32_t)value;
        break;
    case KEY_REORDER:
        p->reorder_ppm = (uint32_t)value;
        break;
    case KEY_MTU:
        p->mtu = (uint32_t)value;
        break;
    case KEY_N:
        break;
    }
}

/* What follows @prefix in @text, or NULL if it does not begin with it. */
static const char *after(const char *text, const char *prefix)
{
    size_t len = strlen(prefix);

    return strncmp(text, prefix, len) == 0 ? text + len : NULL;
}

bool params_parse(
    const char *word, struct lane_params *out, struct lane_params *in, const char **ret_error)
{
    const char *only_out = after(word, "out.");
    const char *only_in = after(word, "in.");
    const char *name = only_out ? only_out : only_in ? only_in : word;

    for (enum key key = 0; key < KEY_N; key++) {
        const char *rest = after(name, keys[key].name);
        uint64_t value;

        if (!rest || *rest != '=')
            continue;
        if (!parse_quantity(rest + 1, keys[key].units, keys[key].max, &value)) {
            *ret_error = keys[key].error;
            return false;
        }
        if (!only_in)
            set(out, key, value);
        if (!only_out)
            set(in, key, value);
        return true;
    }
    *ret_error = unknown_key;
    return false;
}
