/* prices.c - see prices.h. */
#include "mesh/object/prices.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/fields.h"

/* Most zones of an island. */
#define PRICES_ZONES_MAX 64

#define AMOUNT_MAX 1e9
#define RATE_MAX   1e15 /* bits per second */

/*
 * AWS, us-east-1, list prices of 2025: data out to the internet, NAT gateway data processing, data
 * transfer between zones; Direct Connect's port of 10 Gbit/s for 730 hours and its data out, with a
 * cross-connect at each end. GPUs: an H100 of p5.48xlarge on demand.
 */
void prices_default(struct prices *ret)
{
    *ret = (struct prices){
        .currency = "USD",
        .islands = {{.name = "", .egress = 0.09, .cross_zone = 0.01, .zones = 1, .gpu_hour = 3.93}},
        .n_islands = 1,
        .lines = {{.name = "Direct Connect 10G", .month = 2042.5, .gb = 0.02, .bps = 10e9}},
        .n_lines = 1,
    };
}

static void take_number(
    struct fields *f, const char *name, enum fields_need need, double max, double *ret)
{
    const json_t *json = fields_get(f, name, need);
    double value = fields_decimal(json);

    if (json && (!isfinite(value) || value < 0 || value > max))
        fields_fail(f, "\"%s\" is no number from 0 to %.0g", name, max);
    else if (json)
        *ret = value;
}

static int take_island(struct prices *p, const json_t *json, enum object_mode mode, struct err *e)
{
    struct prices_island island = {.egress = NAN, .cross_zone = NAN, .zones = 1};
    struct fields f = fields_make(json, "an island of the price table", e);

    fields_name(&f, "name", FIELDS_OPTIONAL, island.name);
    take_number(&f, "egressPerGB", FIELDS_OPTIONAL, AMOUNT_MAX, &island.egress);
    take_number(&f, "natPerGB", FIELDS_OPTIONAL, AMOUNT_MAX, &island.nat);
    take_number(&f, "natPerHour", FIELDS_OPTIONAL, AMOUNT_MAX, &island.nat_hour);
    fields_int(&f, "zones", FIELDS_OPTIONAL, 1, PRICES_ZONES_MAX, &island.zones);
    take_number(&f, "crossZonePerGB", FIELDS_OPTIONAL, AMOUNT_MAX, &island.cross_zone);
    take_number(&f, "gpuPerHour", FIELDS_OPTIONAL, AMOUNT_MAX, &island.gpu_hour);
    if (prices_find(p, island.name))
        fields_fail(&f, "\"%s\" stands there twice", island.name);
    p->islands[p->n_islands++] = island;
    return object_fields_end(&f, mode);
}

static int take_line(struct prices *p, const json_t *json, enum object_mode mode, struct err *e)
{
    struct prices_line *line = &p->lines[p->n_lines++];
    struct fields f = fields_make(json, "a line of the price table", e);

    fields_text(&f, "name", FIELDS_REQUIRED, 1, sizeof(line->name), line->name);
    take_number(&f, "perMonth", FIELDS_REQUIRED, AMOUNT_MAX, &line->month);
    take_number(&f, "perGB", FIELDS_REQUIRED, AMOUNT_MAX, &line->gb);
    take_number(&f, "bitsPerSecond", FIELDS_REQUIRED, RATE_MAX, &line->bps);
    return object_fields_end(&f, mode);
}

int prices_decode(struct prices *ret, const json_t *json, enum object_mode mode, struct err *e)
{
    struct prices p = {.currency = "USD"};
    struct fields f = fields_make(json, "the price table", e);
    const json_t *islands;
    const json_t *lines;
    const json_t *one;
    int r;

    fields_text(&f, "currency", FIELDS_OPTIONAL, 1, sizeof(p.currency), p.currency);
    islands = fields_array(&f, "islands", FIELDS_REQUIRED, 1, PRICES_ISLANDS_MAX);
    lines = fields_array(&f, "lines", FIELDS_OPTIONAL, 0, PRICES_LINKS_MAX);
    one = fields_object(&f, "onePlace", FIELDS_OPTIONAL);
    r = object_fields_end(&f, mode);
    for (size_t i = 0; r == 0 && i < json_array_size(islands); i++)
        r = take_island(&p, json_array_get(islands, i), mode, e);
    for (size_t i = 0; r == 0 && i < json_array_size(lines); i++)
        r = take_line(&p, json_array_get(lines, i), mode, e);
    if (r == 0 && one) {
        f = fields_make(one, "\"onePlace\" of the price table", e);
        fields_text(&f, "name", FIELDS_REQUIRED, 1, sizeof(p.one_place), p.one_place);
        take_number(&f, "gpuPerHour", FIELDS_REQUIRED, AMOUNT_MAX, &p.one_place_gpu_hour);
        r = object_fields_end(&f, mode);
    }
    if (r == 0)
        *ret = p;
    return r;
}

/* ---- encoding ------------------------------------------------------------------------------- */

static bool put(json_t *json, const char *name, bool is_said, double value)
{
    return !is_said || json_object_set_new(json, name, json_real(value)) == 0;
}

/* NULL: no memory. A row that leaves a price out would be stored as one that has none. */
static json_t *encode_island(const struct prices_island *i)
{
    json_t *json = json_object();
    bool is_whole =
        (i->name[0] == '\0' || json_object_set_new(json, "name", json_string(i->name)) == 0) &&
        put(json, "egressPerGB", i->egress >= 0, i->egress) &&
        put(json, "natPerGB", i->nat > 0, i->nat) &&
        put(json, "natPerHour", i->nat_hour > 0, i->nat_hour) &&
        json_object_set_new(json, "zones", json_integer(i->zones)) == 0 &&
        put(json, "crossZonePerGB", i->cross_zone >= 0, i->cross_zone) &&
        put(json, "gpuPerHour", i->gpu_hour > 0, i->gpu_hour);
    if (!is_whole)
        json = (json_decref(json), NULL);
    return json;
}

json_t *prices_encode(const struct prices *p)
{
    json_t *json = json_object();
    json_auto_t *islands = json_array();
    json_auto_t *lines = json_array();
    int r = json_object_set_new(json, "currency", json_string(p->currency));

    for (size_t i = 0; r == 0 && i < p->n_islands; i++)
        r = json_array_append_new(islands, encode_island(&p->islands[i]));
    for (size_t i = 0; r == 0 && i < p->n_lines; i++)
        r = json_array_append_new(lines,
            json_pack("{s:s, s:f, s:f, s:f}", "name", p->lines[i].name, "perMonth",
                p->lines[i].month, "perGB", p->lines[i].gb, "bitsPerSecond", p->lines[i].bps));
    if (r == 0)
        r = json_object_set(json, "islands", islands);
    if (r == 0 && p->n_lines > 0)
        r = json_object_set(json, "lines", lines);
    if (r == 0 && p->one_place[0])
        r = json_object_set_new(json, "onePlace",
            json_pack("{s:s, s:f}", "name", p->one_place, "gpuPerHour", p->one_place_gpu_hour));
    if (r != 0)
        json = (json_decref(json), NULL);
    return json;
}

const struct prices_island *prices_find(const struct prices *p, const char *name)
{
    for (size_t i = 0; p && i < p->n_islands; i++)
        if (strcmp(p->islands[i].name, name) == 0)
            return &p->islands[i];
    return NULL;
}

const struct prices_island *prices_of(const struct prices *p, const char *island)
{
    static const struct prices_island nothing = {.egress = NAN, .cross_zone = NAN};
    const struct prices_island *found = prices_find(p, island);

    found = found ? found : prices_find(p, "");
    return found ? found : &nothing;
}

double prices_per_gb(const struct prices *p, const char *island)
{
    const struct prices_island *i = prices_of(p, island);

    return fmax(i->egress, 0) + i->nat;
}

double prices_break_even(const struct prices_line *l, double per_gb)
{
    return per_gb > l->gb ? l->month / (per_gb - l->gb) : INFINITY;
}
