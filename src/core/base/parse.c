/* parse.c - see parse.h. */
#include "parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* Digits up to @end; false when there are none or the value does not fit. */
static bool read_digits(const char *text, const char **end, uint64_t *ret)
{
    uint64_t v = 0;
    const char *p = text;

    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    *end = p;
    *ret = v;
    return p != text;
}

int parse_u64(
    uint64_t *ret, const char *text, uint64_t min, uint64_t max, const char *what, struct err *e)
{
    const char *end;
    uint64_t v;

    if (!read_digits(text, &end, &v) || *end != '\0' || v < min || v > max)
        return err_set(e, -EINVAL, "%s \"%.40s\" is not a number from %" PRIu64 " to %" PRIu64,
            what, text, min, max);
    *ret = v;
    return 0;
}

int parse_duration(
    nsec_t *ret, const char *text, nsec_t min, nsec_t max, const char *what, struct err *e)
{
    static const struct {
        const char *suffix;
        uint64_t seconds;
    } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    char lo[32];
    char hi[32];
    const char *end;
    uint64_t v;

    if (read_digits(text, &end, &v))
        for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
            nsec_t d;

            if (strcmp(end, units[i].suffix) != 0 ||
                __builtin_mul_overflow(v, units[i].seconds, &v) ||
                __builtin_mul_overflow(v, (uint64_t)NSEC_PER_SEC, &d) || d < min || d > max)
                continue;
            *ret = d;
            return 0;
        }
    return err_set(e, -EINVAL,
        "%s \"%.40s\" is not a duration from %s to %s (such as 90s, 15m, 1h, 7d)", what, text,
        format_duration(min, lo), format_duration(max, hi));
}

/* Of a number with up to nine decimals, times @unit; false when it is none or does not fit. */
static bool read_decimal(const char *text, const char **end, uint64_t unit, uint64_t *ret)
{
    uint64_t v = 0;

    if (!read_digits(text, end, &v) || __builtin_mul_overflow(v, unit, &v))
        return false;
    if (**end == '.') {
        uint64_t part = unit;

        for ((*end)++; **end >= '0' && **end <= '9'; (*end)++) {
            part /= 10;
            if (__builtin_add_overflow(v, part * (uint64_t)(**end - '0'), &v))
                return false;
        }
    }
    *ret = v;
    return true;
}

/* "Mbit", or "Mbit/s". */
static bool is_unit(const char *text, const char *unit)
{
    size_t len = strlen(unit);

    if (strncmp(text, unit, len) != 0)
        return false;
    return text[len] == '\0' || (len > 0 && strcmp(text + len, "/s") == 0);
}

int parse_rate(uint64_t *ret, const char *text, const char *what, struct err *e)
{
    static const struct {
        const char *suffix;
        uint64_t unit;
    } units[] = {{"", 1}, {"bit", 1}, {"kbit", 1000}, {"Mbit", 1000000}, {"Gbit", 1000000000},
        {"Tbit", 1000000000000}};

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        const char *end;
        uint64_t v;

        if (!read_decimal(text, &end, units[i].unit, &v) || !is_unit(end, units[i].suffix) ||
            v < 1 || v > 1000000000000000)
            continue;
        *ret = v;
        return 0;
    }
    return err_set(e, -EINVAL,
        "%s \"%.40s\" is not a rate in bits per second, such as 10Gbit, 2.5Gbit or 500Mbit", what,
        text);
}

int parse_name(const char *text, const char *what, struct err *e)
{
    size_t len = strnlen(text, NAME_MAX_LEN + 1);
    bool good = len > 0 && len <= NAME_MAX_LEN && text[0] != '-' && text[len - 1] != '-';

    for (size_t i = 0; good && i < len; i++)
        good = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9') ||
               text[i] == '-';
    if (good)
        return 0;
    return err_set(e, -EINVAL,
        "%s \"%.70s\" is not a name: 1 to 63 of a-z, 0-9 and '-', not first or last a '-'", what,
        text);
}

size_t parse_word(const char *text, const char *const words[], size_t n)
{
    size_t i = 0;

    while (i < n && (!text || strcmp(text, words[i]) != 0))
        i++;
    return i;
}

double parse_decimal(const char *text, char **ret_end)
{
    *ret_end = (char *)text;
    if (text[0] < '0' || text[0] > '9' || text[1] == 'x' || text[1] == 'X')
        return 0;
    return strtod(text, ret_end);
}

const char *format_duration(nsec_t d, char buf[static 32])
{
    int64_t s = d / NSEC_PER_SEC;

    if (s < 60)
        (void)snprintf(buf, 32, "%" PRId64 " s", s);
    else if (s < 3600)
        (void)snprintf(buf, 32, "%" PRId64 " min %" PRId64 " s", s / 60, s % 60);
    else if (s < 86400)
        (void)snprintf(buf, 32, "%" PRId64 " h %" PRId64 " min", s / 3600, s / 60 % 60);
    else
        (void)snprintf(buf, 32, "%" PRId64 " d %" PRId64 " h", s / 86400, s / 3600 % 24);
    return buf;
}
