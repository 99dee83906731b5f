/* spent_text.c - see spent_text.h. */
#include "cost/spent_text.h"

#include <string.h>

#include "base/str.h"
#include "base/traffic.h"

static double number_of(const json_t *line, const char *name)
{
    double n = json_number_value(json_object_get(line, name));

    return n > 0 ? n : 0;
}

static const char *level_text(const json_t *line)
{
    const char *level = json_string_value(json_object_get(line, "level"));

    if (level && strcmp(level, "near") == 0)
        return ", near its end";
    return level && strcmp(level, "spent") == 0 ? ", spent" : "";
}

static uint64_t bytes_of(const json_t *line, const char *name)
{
    json_int_t n = json_integer_value(json_object_get(line, name));

    return n > 0 ? (uint64_t)n : 0;
}

void spent_format(struct str *out, const json_t *line)
{
    const char *cap = json_string_value(json_object_get(line, "ignoredCap"));
    char used[TRAFFIC_BYTES_TEXT_MAX];
    char all[TRAFFIC_BYTES_TEXT_MAX];

    if (!json_object_get(line, "costPerDay") && !json_object_get(line, "bytesPerDay"))
        str_add(out, "of the day's budget"); /* An earlier hub does not say how much that is. */
    else if (json_object_get(line, "costPerDay"))
        str_addf(out, "%.2f of %.2f a day", number_of(line, "cost"), number_of(line, "costPerDay"));
    else
        str_addf(out, "%s of %s a day", traffic_bytes_format(bytes_of(line, "bytes"), used),
            traffic_bytes_format(bytes_of(line, "bytesPerDay"), all));
    str_addf(out, " (%.1f %%)%s", 100 * number_of(line, "share"), level_text(line));
    if (cap)
        str_addf(out, "; its cap of %s has no effect", cap);
}
