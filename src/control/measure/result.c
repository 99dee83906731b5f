/* result.c - see result.h. */
#include "measure/result.h"

#include <stdio.h>
#include <string.h>

#include "mesh/object/fields.h"

#define COUNT_MAX 1000000u
#define USEC_MAX  600000000u
#define BYTES_MAX (1ull << 50)
#define RATE_MAX  (1ull << 50)

bool result_is_bbr(const char *congestion)
{
    return strncmp(congestion, "bbr", strlen("bbr")) == 0;
}

double result_window_kept(const char *congestion)
{
    if (result_is_bbr(congestion))
        return 1;
    return strcmp(congestion, "cubic") == 0 ? 0.7 : 0.5;
}

static void get_u32(struct fields *f, const char *name, uint64_t max, uint32_t *ret)
{
    uint64_t v = 0;

    fields_u64(f, name, FIELDS_REQUIRED, 0, max, &v);
    *ret = (uint32_t)v;
}

/* ---- without load -------------------------------------------------------------------------- */

json_t *idle_test_encode(const struct idle_test *l)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:i, s:i, s:i, s:b, s:i, s:b, s:s, "
                     "s:b, s:s}",
        "path", l->path, "sent", (int)l->sent, "heard", (int)l->heard, "back", (int)l->back,
        "rttMinUs", (int)l->rtt_min_us, "rttMedianUs", (int)l->rtt_median_us, "rttP99Us",
        (int)l->rtt_p99_us, "clockUs", (json_int_t)l->clock_us, "clockErrorUs",
        (int)l->clock_error_us, "routeMtu", (int)l->route_mtu, "packetMax", (int)l->packet_max,
        "connected", (int)l->connected, "mss", (int)l->mss, "transferred", (int)l->transferred,
        "congestion", l->congestion, "tcpRestarts", (int)l->restarts, "why", l->why);
}

int idle_test_decode(struct idle_test *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the light result", e);
    struct idle_test l = {.restarts = true};
    const json_t *clock;

    fields_text(&f, "path", FIELDS_REQUIRED, 0, sizeof(l.path), l.path);
    get_u32(&f, "sent", COUNT_MAX, &l.sent);
    get_u32(&f, "heard", COUNT_MAX, &l.heard);
    get_u32(&f, "back", COUNT_MAX, &l.back);
    get_u32(&f, "rttMinUs", USEC_MAX, &l.rtt_min_us);
    get_u32(&f, "rttMedianUs", USEC_MAX, &l.rtt_median_us);
    get_u32(&f, "rttP99Us", USEC_MAX, &l.rtt_p99_us);
    get_u32(&f, "clockErrorUs", USEC_MAX, &l.clock_error_us);
    get_u32(&f, "routeMtu", UINT16_MAX, &l.route_mtu);
    get_u32(&f, "packetMax", UINT16_MAX, &l.packet_max);
    fields_bool(&f, "connected", FIELDS_REQUIRED, &l.connected);
    get_u32(&f, "mss", UINT16_MAX, &l.mss);
    fields_bool(&f, "transferred", FIELDS_REQUIRED, &l.transferred);
    /* A member of an earlier version does not say these two. */
    fields_text(&f, "congestion", FIELDS_OPTIONAL, 0, sizeof(l.congestion), l.congestion);
    fields_bool(&f, "tcpRestarts", FIELDS_OPTIONAL, &l.restarts);
    fields_text(&f, "why", FIELDS_REQUIRED, 0, sizeof(l.why), l.why);
    clock = fields_get(&f, "clockUs", FIELDS_REQUIRED);
    if (clock && !json_is_integer(clock))
        fields_fail(&f, "\"clockUs\" is no integer");
    else if (clock)
        l.clock_us = json_integer_value(clock);
    if (fields_end(&f) == 0)
        *ret = l;
    return fields_end(&f);
}

/* ---- bulk ---------------------------------------------------------------------------------- */

static json_t *flow_encode(const struct flow *f)
{
    return json_pack("{s:I, s:I, s:i}", "bytes", (json_int_t)f->bytes, "bitsPerSecond",
        (json_int_t)f->bits_per_s, "retransmits", (int)f->retransmits);
}

json_t *bulk_encode(const struct bulk *b)
{
    return json_pack("{s:o, s:o, s:s, s:s}", "out", flow_encode(&b->out), "in", flow_encode(&b->in),
        "via", b->via, "why", b->why);
}

static void get_flow(struct fields *f, const char *name, struct flow *ret)
{
    struct fields g;

    if (!fields_object(f, name, FIELDS_REQUIRED))
        return;
    g = fields_make(fields_object(f, name, FIELDS_REQUIRED), name, f->e);
    fields_u64(&g, "bytes", FIELDS_REQUIRED, 0, BYTES_MAX, &ret->bytes);
    fields_u64(&g, "bitsPerSecond", FIELDS_REQUIRED, 0, RATE_MAX, &ret->bits_per_s);
    get_u32(&g, "retransmits", INT32_MAX, &ret->retransmits);
    if (fields_end(&g) != 0)
        f->failed = fields_end(&g);
}

int bulk_decode(struct bulk *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the bulk result", e);
    struct bulk b = {0};

    get_flow(&f, "out", &b.out);
    get_flow(&f, "in", &b.in);
    fields_text(&f, "via", FIELDS_REQUIRED, 0, sizeof(b.via), b.via);
    fields_text(&f, "why", FIELDS_REQUIRED, 0, sizeof(b.why), b.why);
    if (fields_end(&f) == 0)
        *ret = b;
    return fields_end(&f);
}

/* ---- all-reduce ---------------------------------------------------------------------------- */

json_t *allreduce_encode(const struct allreduce *rd)
{
    return json_pack("{s:I, s:i, s:b, s:s}", "elapsedNs", (json_int_t)rd->elapsed, "repeats",
        (int)rd->repeats, "correct", (int)rd->correct, "why", rd->why);
}

int allreduce_decode(struct allreduce *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the all-reduce result", e);
    struct allreduce rd = {0};
    uint64_t elapsed = 0;

    fields_u64(&f, "elapsedNs", FIELDS_REQUIRED, 0, USEC_MAX * 1000ull, &elapsed);
    get_u32(&f, "repeats", COUNT_MAX, &rd.repeats);
    fields_bool(&f, "correct", FIELDS_REQUIRED, &rd.correct);
    fields_text(&f, "why", FIELDS_REQUIRED, 0, sizeof(rd.why), rd.why);
    rd.elapsed = (nsec_t)elapsed;
    if (fields_end(&f) == 0)
        *ret = rd;
    return fields_end(&f);
}

/* ---- names ---------------------------------------------------------------------------------- */

bool wrong_name_decode(struct wrong_name *ret, const char *name, const json_t *where)
{
    const char *text = json_string_value(where);
    struct ip_addr address;

    if (!text || parse_name(name, "name", NULL) != 0 ||
        (text[0] != '\0' && ip_addr_parse(&address, text, NULL) != 0))
        return false;
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    ret->where[0] = '\0';
    if (text[0] != '\0')
        (void)ip_addr_format(&address, ret->where);
    return true;
}
