/* status_cells.c - see status_cells.h. */
#include "agent/status_cells.h"

#include <stdio.h>

const char *status_cells_text(const json_t *obj, const char *field, const char *instead)
{
    const char *text = json_string_value(json_object_get(obj, field));

    return text && text[0] != '\0' ? text : instead;
}

const char *status_cells_age(const json_t *obj, char buf[static STATUS_CELL_MAX])
{
    const json_t *age = json_object_get(obj, "handshakeAgeSeconds");

    if (!json_is_integer(age))
        return "never";
    (void)snprintf(buf, STATUS_CELL_MAX, "%lld s ago", (long long)json_integer_value(age));
    return buf;
}

const char *status_cells_bytes(
    const json_t *obj, const char *field, char buf[static STATUS_CELL_MAX])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double v = (double)json_integer_value(json_object_get(obj, field));
    unsigned unit = 0;

    for (; v >= 1024 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
        v /= 1024;
    (void)snprintf(buf, STATUS_CELL_MAX, unit == 0 ? "%.0f %s" : "%.1f %s", v, units[unit]);
    return buf;
}

const char *status_cells_time(
    const json_t *obj, const char *field, char buf[static STATUS_CELL_MAX])
{
    long long s = (long long)json_integer_value(json_object_get(obj, field));

    if (s < 120)
        (void)snprintf(buf, STATUS_CELL_MAX, "%lld s", s);
    else if (s < 120 * 60)
        (void)snprintf(buf, STATUS_CELL_MAX, "%lld min", s / 60);
    else if (s < 48 * 3600)
        (void)snprintf(buf, STATUS_CELL_MAX, "%lld h", s / 3600);
    else
        (void)snprintf(buf, STATUS_CELL_MAX, "%lld d", s / 86400);
    return buf;
}

const char *status_cells_real(const json_t *obj, const char *field, double factor, const char *unit,
    char buf[static STATUS_CELL_MAX])
{
    const json_t *v = json_object_get(obj, field);

    if (!json_is_number(v))
        return "-";
    (void)snprintf(buf, STATUS_CELL_MAX, "%.1f %s", json_number_value(v) * factor, unit);
    return buf;
}
