/* traffic.c - see traffic.h. */
#include "mesh/object/traffic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"
#include "mesh/object/fields.h"

#define DAY_S     86400
#define METER_MAX INT64_MAX
#define ITEMS_MAX 4096 /* flows of one JSON text */

void traffic_deinit(struct traffic *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->flows[i].peer);
    free(t->flows);
    *t = (struct traffic)TRAFFIC_NULL;
}

/* ---- days ----------------------------------------------------------------------------------- */

int32_t traffic_day(int64_t wall_s)
{
    int64_t day = wall_s / DAY_S;

    if (wall_s < 0)
        return 0;
    return day > TRAFFIC_DAY_MAX ? TRAFFIC_DAY_MAX : (int32_t)day;
}

/* The day of a date, by the rules of the Gregorian calendar. A year begins in March here, so that
 * the leap day is its last. */
static int32_t day_of_date(int32_t year, int32_t month, int32_t of_month)
{
    year -= month < 3;
    month = (month + 9) % 12;
    return 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + of_month - 1 -
           719468;
}

const char *traffic_day_format(int32_t day, char buf[static TRAFFIC_DAY_TEXT_MAX])
{
    int32_t year = 1970 + day / 366;
    int32_t month = 12;

    while (day_of_date(year + 1, 1, 1) <= day)
        year++;
    while (day_of_date(year, 1, 1) > day)
        year--;
    while (day_of_date(year, month, 1) > day)
        month--;
    (void)snprintf(buf, TRAFFIC_DAY_TEXT_MAX, "%04d-%02d-%02d", (int)year % 10000, (int)month % 100,
        (int)(day - day_of_date(year, month, 1) + 1) % 100);
    return buf;
}

static int32_t digits(const char *text, unsigned n)
{
    int32_t value = 0;

    for (unsigned i = 0; i < n; i++)
        value = 10 * value + (text[i] - '0');
    return value;
}

int traffic_day_parse(int32_t *ret, const char *text, struct err *e)
{
    int32_t day = strlen(text) == 10
                      ? day_of_date(digits(text, 4), digits(text + 5, 2), digits(text + 8, 2))
                      : -1;
    char again[TRAFFIC_DAY_TEXT_MAX];

    /* What is no date comes back as another one. */
    if (day < 0 || strcmp(traffic_day_format(day, again), text) != 0)
        return err_set(
            e, -EINVAL, "\"%.20s\" is no day such as 2026-11-23, from 1970 to 9999", text);
    *ret = day;
    return 0;
}

/* ---- sums ----------------------------------------------------------------------------------- */

static int compare(const void *item, const void *wanted)
{
    const struct traffic_flow *a = item;
    const struct traffic_flow *b = wanted;
    int order;

    if (a->meter != b->meter)
        return a->meter < b->meter ? -1 : 1;
    order = strcmp(a->peer, b->peer);
    if (order == 0)
        order = strcmp(a->job, b->job);
    return order != 0 ? order : (int)a->path - (int)b->path;
}

/* Where it is, or belongs. */
static size_t place_of(const struct traffic *t, const struct traffic_flow *flow, bool *ret_found)
{
    return sorted_place(t->flows, t->n, sizeof(*t->flows), compare, flow, ret_found);
}

static size_t count_of_meter(const struct traffic *t, uint64_t meter)
{
    struct traffic_flow first = {.meter = meter, .peer = (char *)"", .job = ""};
    struct traffic_flow next = {.meter = meter + 1, .peer = (char *)"", .job = ""};
    bool found;

    return place_of(t, &next, &found) - place_of(t, &first, &found);
}

/* Both names are in one piece of memory. */
static struct traffic_flow *insert(struct traffic *t, size_t i, const struct traffic_flow *key)
{
    struct traffic_flow *flows;
    char *names;

    if (asprintf(&names, "%s%c%s", key->peer, '\0', key->job) < 0)
        return NULL;
    flows = sorted_open(t->flows, t->n, sizeof(*flows), i, &t->cap);
    if (!flows) {
        free(names);
        return NULL;
    }
    t->flows = flows;
    t->n++;
    t->flows[i] = (struct traffic_flow){
        .meter = key->meter, .peer = names, .job = names + strlen(names) + 1, .path = key->path};
    return &t->flows[i];
}

struct traffic_flow *traffic_at(
    struct traffic *t, uint64_t meter, const char *peer, const char *job, enum path_kind path)
{
    struct traffic_flow key = {.meter = meter, .peer = (char *)peer, .job = job, .path = path};
    bool found;
    size_t i = place_of(t, &key, &found);

    if (!found && (peer[0] || job[0]) && count_of_meter(t, meter) >= TRAFFIC_FLOWS_MAX)
        return traffic_at(t, meter, "", "", path);
    return found ? &t->flows[i] : insert(t, i, &key);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return b > TRAFFIC_BYTES_MAX - a ? TRAFFIC_BYTES_MAX : a + b;
}

uint64_t traffic_total(uint64_t a, uint64_t b)
{
    return a > INT64_MAX || b > INT64_MAX - a ? INT64_MAX : a + b;
}

void traffic_add(struct traffic_flow *flow, uint64_t sent, uint64_t received)
{
    flow->sent = sum(flow->sent, sent);
    flow->received = sum(flow->received, received);
}

int traffic_merge_flow(struct traffic *t, const struct traffic_flow *f, size_t max)
{
    bool found;
    size_t i = place_of(t, f, &found);

    if (!found && t->n >= max)
        return 1;
    if (!found && !insert(t, i, f))
        return -ENOMEM;
    if (f->sent > t->flows[i].sent)
        t->flows[i].sent = f->sent;
    if (f->received > t->flows[i].received)
        t->flows[i].received = f->received;
    return 0;
}

int traffic_merge(struct traffic *t, const struct traffic *from, size_t max)
{
    int n_left_out = 0;
    int r = 0;

    for (size_t k = 0; r >= 0 && k < from->n; k++) {
        r = traffic_merge_flow(t, &from->flows[k], max);
        n_left_out += r > 0;
    }
    return r < 0 ? r : n_left_out;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static int decode_flow(
    struct traffic *t, uint64_t meter, const json_t *json, const char *where, struct err *e)
{
    const char *const paths[] = {path_kind_names[PATH_KIND_LAN], path_kind_names[PATH_KIND_DIRECT],
        path_kind_names[PATH_KIND_RELAY], path_kind_names[PATH_KIND_STREAM]};
    struct fields f = fields_make(json, where, e);
    char peer[NAME_MAX_LEN + 1] = "";
    char job[NAME_MAX_LEN + 1] = "";
    struct traffic_flow *flow;
    unsigned path = 0;
    uint64_t sent = 0;
    uint64_t received = 0;

    fields_name(&f, "peer", FIELDS_OPTIONAL, peer);
    fields_name(&f, "job", FIELDS_OPTIONAL, job);
    fields_enum(&f, "path", FIELDS_REQUIRED, paths, sizeof(paths) / sizeof(*paths), &path);
    fields_u64(&f, "meter", FIELDS_OPTIONAL, 1, METER_MAX, &meter);
    fields_u64(&f, "sent", FIELDS_REQUIRED, 0, TRAFFIC_BYTES_MAX, &sent);
    fields_u64(&f, "received", FIELDS_REQUIRED, 0, TRAFFIC_BYTES_MAX, &received);
    if (fields_end(&f) == 0 && meter == 0)
        fields_fail(&f, "\"meter\" is missing");
    if (fields_end(&f) != 0)
        return fields_end(&f);
    flow = traffic_at(t, meter, peer, job, PATH_KIND_LAN + path);
    if (!flow)
        return err_set(e, -ENOMEM, "no memory for what was moved");
    traffic_add(flow, sent, received);
    return 0;
}

int traffic_decode(struct traffic *ret, const json_t *json, const char *where, struct err *e)
{
    struct traffic t = TRAFFIC_NULL;
    struct fields f = fields_make(json, where, e);
    const char *day = fields_string(&f, "day", FIELDS_REQUIRED, 1, TRAFFIC_DAY_TEXT_MAX);
    const json_t *flows = fields_array(&f, "flows", FIELDS_REQUIRED, 0, ITEMS_MAX);
    uint64_t meter = 0;
    struct err why = ERR_NULL;
    int r;

    fields_u64(&f, "meter", FIELDS_OPTIONAL, 1, METER_MAX, &meter);
    if (day && traffic_day_parse(&t.day, day, &why) != 0)
        fields_fail(&f, "\"day\": %s", err_text(&why));
    r = fields_end(&f);
    for (size_t i = 0; r == 0 && i < json_array_size(flows); i++)
        r = decode_flow(&t, meter, json_array_get(flows, i), where, e);
    if (r == 0)
        *ret = t;
    else
        traffic_deinit(&t);
    return r;
}

json_t *traffic_encode(const struct traffic *t)
{
    char day[TRAFFIC_DAY_TEXT_MAX];
    json_t *flows = json_array();

    for (size_t i = 0; flows && i < t->n; i++) {
        const struct traffic_flow *flow = &t->flows[i];
        json_t *item = json_pack("{s:I, s:s*, s:s*, s:s, s:I, s:I}", "meter",
            (json_int_t)flow->meter, "peer", flow->peer[0] ? flow->peer : NULL, "job",
            flow->job[0] ? flow->job : NULL, "path", path_kind_names[flow->path], "sent",
            (json_int_t)flow->sent, "received", (json_int_t)flow->received);

        fields_append(&flows, item);
    }
    return json_pack("{s:s, s:o}", "day", traffic_day_format(t->day, day), "flows", flows);
}
