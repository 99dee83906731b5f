/* traffic.c - see traffic.h. */
#include "base/traffic.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"

const char *const traffic_class_names[] = {
    [TRAFFIC_CLASS_CONTROL] = "control",
    [TRAFFIC_CLASS_PRIORITY] = "priority",
    [TRAFFIC_CLASS_NORMAL] = "normal",
    [TRAFFIC_CLASS_BULK] = "bulk",
};
_Static_assert(
    sizeof(traffic_class_names) / sizeof(*traffic_class_names) == TRAFFIC_CLASS_N, "a name each");

bool traffic_class_parse(enum traffic_class *ret, const char *text, size_t len)
{
    for (int i = 0; i < TRAFFIC_CLASS_N; i++) {
        if (strlen(traffic_class_names[i]) != len || memcmp(traffic_class_names[i], text, len) != 0)
            continue;
        *ret = (enum traffic_class)i;
        return true;
    }
    return false;
}

int traffic_rate_parse(uint64_t *ret, const char *text, const char *what, struct err *e)
{
    uint64_t v;
    int r = parse_rate(&v, text, what, e);

    if (r < 0)
        return r;
    if (!traffic_rate_is_allowed(v))
        return err_set(e, -EINVAL, "%s \"%s\" is not from 100kbit to 1000Gbit", what, text);
    *ret = v;
    return 0;
}

const char *traffic_rate_format(uint64_t bits_per_s, char buf[static TRAFFIC_RATE_TEXT_MAX])
{
    static const struct {
        const char *suffix;
        uint64_t unit;
    } units[] = {{"Gbit", 1000000000}, {"Mbit", 1000000}, {"kbit", 1000}};

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        uint64_t unit = units[i].unit;
        unsigned thousandths = (unsigned)(bits_per_s % unit / (unit / 1000)) % 1000;
        char part[sizeof(".999")];
        size_t len = sizeof(part) - 1;

        if (bits_per_s < unit || bits_per_s % (unit / 1000) != 0)
            continue;
        (void)snprintf(part, sizeof(part), ".%03u", thousandths);
        while (len > 0 && (part[len - 1] == '0' || part[len - 1] == '.'))
            len--;
        (void)snprintf(buf, TRAFFIC_RATE_TEXT_MAX, "%" PRIu64 "%.*s%s", bits_per_s / unit, (int)len,
            part, units[i].suffix);
        return buf;
    }
    (void)snprintf(buf, TRAFFIC_RATE_TEXT_MAX, "%" PRIu64 "bit", bits_per_s);
    return buf;
}

const char *traffic_bytes_format(uint64_t bytes, char buf[static TRAFFIC_BYTES_TEXT_MAX])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    double n = (double)bytes;
    unsigned unit = 0;

    while (n >= 1000 && unit < sizeof(units) / sizeof(*units) - 1) {
        n /= 1000;
        unit++;
    }
    (void)snprintf(buf, TRAFFIC_BYTES_TEXT_MAX, unit == 0 ? "%.0f %s" : "%.2f %s", n, units[unit]);
    return buf;
}

bool traffic_rates_any(const struct traffic_rates *r)
{
    uint64_t any = r->all;

    for (unsigned i = 0; i < TRAFFIC_CLASS_N; i++)
        any |= r->classes[i];
    return any != 0;
}
