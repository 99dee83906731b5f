/* top_rates.c - see top_rates.h. */
#include "top_rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/parse.h"

/* "FROM>TO" */
#define NAME_MAX_BOTH (2 * NAME_MAX_LEN + 2)

struct top_flow {
    char name[NAME_MAX_BOTH];
    uint64_t bytes; /* at the last look, or step */
    uint64_t sum;   /* of the look that is under way */
    nsec_t at;      /* of the last look, or step */
    double rate;    /* bytes/s; NAN: not known */
    unsigned look;  /* the last one that it was in */
    bool is_known;  /* @bytes and @at are */
    bool has_step;  /* @at is that of a step */
};

void top_rates_deinit(struct top_rates *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->items[i]);
    free(r->items);
    *r = (struct top_rates){.is_stepped = r->is_stepped};
}

static int compare(const void *item, const void *wanted)
{
    const struct top_flow *const *flow = item;

    return strcmp((*flow)->name, wanted);
}

static size_t place_of(const struct top_rates *r, const char *name, bool *ret_found)
{
    return sorted_place(r->items, r->n, sizeof(*r->items), compare, name, ret_found);
}

static void make_name(char ret[static NAME_MAX_BOTH], const char *from, const char *to)
{
    (void)snprintf(ret, NAME_MAX_BOTH, "%.*s>%.*s", NAME_MAX_LEN, from, NAME_MAX_LEN, to);
}

static struct top_flow *open_flow(struct top_rates *r, const char *name)
{
    bool found;
    size_t i = place_of(r, name, &found);
    struct top_flow *flow = found ? r->items[i] : calloc(1, sizeof(*flow));
    struct top_flow **items = r->items;

    if (found || !flow)
        return flow;
    items = sorted_open(items, r->n, sizeof(*items), i, &r->cap);
    if (!items) {
        free(flow);
        return NULL;
    }
    (void)snprintf(flow->name, sizeof(flow->name), "%s", name);
    flow->rate = NAN;
    items[i] = flow;
    r->items = items;
    r->n++;
    return flow;
}

void top_rates_begin(struct top_rates *r, nsec_t now)
{
    r->now = now;
    r->look++;
}

void top_rates_add(struct top_rates *r, const char *from, const char *to, uint64_t bytes)
{
    char name[NAME_MAX_BOTH];
    struct top_flow *flow;

    make_name(name, from, to);
    flow = open_flow(r, name);
    if (!flow)
        return;
    if (flow->look != r->look)
        flow->sum = 0;
    flow->look = r->look;
    flow->sum = flow->sum > UINT64_MAX - bytes ? UINT64_MAX : flow->sum + bytes;
}

/* A sum that has become less is counted anew. */
static void update(struct top_flow *flow, nsec_t now, bool is_stepped)
{
    double passed_s = (double)(now - flow->at) / (double)NSEC_PER_SEC;
    bool grows = flow->sum > flow->bytes;

    if (!flow->is_known || flow->sum < flow->bytes) {
        flow->rate = NAN;
        flow->has_step = false;
    } else if (passed_s <= 0) {
        return;
    } else if (!is_stepped || (grows && flow->has_step)) {
        flow->rate = (double)(flow->sum - flow->bytes) / passed_s;
    } else if (grows) {
        flow->rate = NAN;
        flow->has_step = true;
    } else {
        if (now - flow->at >= TOP_RATES_STILL)
            flow->rate = 0;
        return;
    }
    flow->is_known = true;
    flow->bytes = flow->sum;
    flow->at = now;
}

void top_rates_end(struct top_rates *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++) {
        struct top_flow *flow = r->items[i];

        if (flow->look != r->look) {
            free(flow);
            continue;
        }
        update(flow, r->now, r->is_stepped);
        r->items[n++] = flow;
    }
    r->n = n;
}

static uint64_t bytes_of(const json_t *obj, const char *field)
{
    json_int_t bytes = json_integer_value(json_object_get(obj, field));

    return bytes > 0 ? (uint64_t)bytes : 0;
}

void top_rates_take(struct top_rates *r, const json_t *rows, nsec_t now)
{
    const json_t *row;
    size_t i;

    top_rates_begin(r, now);
    json_array_foreach(rows, i, row) {
        const char *from = json_string_value(json_object_get(row, "from"));
        const char *to = json_string_value(json_object_get(row, "to"));

        if (from && to)
            top_rates_add(r, from, to, bytes_of(row, "bytes"));
    }
    top_rates_end(r);
}

static void take_peer(struct top_rates *r, const char *self, const json_t *peer)
{
    const char *name = json_string_value(json_object_get(peer, "name"));

    if (!name)
        return;
    top_rates_add(r, self, name, bytes_of(peer, "txBytes"));
    top_rates_add(r, name, self, bytes_of(peer, "rxBytes"));
}

void top_rates_take_status(struct top_rates *r, const json_t *status, nsec_t now)
{
    const char *self = json_string_value(json_object_get(json_object_get(status, "self"), "name"));
    const json_t *peer;
    size_t i;

    top_rates_begin(r, now);
    if (self) {
        take_peer(r, self, json_object_get(status, "hub"));
        json_array_foreach(json_object_get(status, "peers"), i, peer)
            take_peer(r, self, peer);
    }
    top_rates_end(r);
}

double top_rates_find(const struct top_rates *r, const char *from, const char *to)
{
    char name[NAME_MAX_BOTH];
    bool found;
    size_t i;

    make_name(name, from, to);
    i = place_of(r, name, &found);
    return found ? r->items[i]->rate : NAN;
}

/* NAN is what is not known, and adds nothing to what is. */
static double add(double sum, double rate)
{
    return isnan(rate) ? sum : isnan(sum) ? rate : sum + rate;
}

void top_rates_of_node(
    const struct top_rates *r, const char *node, double *ret_sent, double *ret_received)
{
    size_t len = strlen(node);

    *ret_sent = *ret_received = NAN;
    for (size_t i = 0; i < r->n; i++) {
        const char *name = r->items[i]->name;
        const char *to = strchr(name, '>') + 1;

        if (strncmp(name, node, len) == 0 && name[len] == '>')
            *ret_sent = add(*ret_sent, r->items[i]->rate);
        if (strcmp(to, node) == 0)
            *ret_received = add(*ret_received, r->items[i]->rate);
    }
}

double top_rates_total(const struct top_rates *r)
{
    double sum = NAN;

    for (size_t i = 0; i < r->n; i++)
        sum = add(sum, r->items[i]->rate);
    return sum;
}
