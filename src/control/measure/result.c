/* result.c - see result.h. */
#include "measure/result.h"

#include <stdio.h>
#include <string.h>

#include "measure/table.h"
#include "mesh/object/fields.h"

#define COUNT_MAX 1000000u
#define USEC_MAX  600000000u
#define BYTES_MAX (1ull << 50)
#define RATE_MAX  (1ull << 50)

#define DATAGRAMS_MAX 10000000u /* of one burst */

bool result_is_bbr(const char *congestion)
{
    return strncmp(congestion, "bbr", strlen("bbr")) == 0;
}

double result_window_kept(const char *congestion, bool restarts)
{
    if (congestion[0] == '\0')
        congestion = restarts ? "cubic" : "bbr";
    if (result_is_bbr(congestion))
        return 1;
    return strcmp(congestion, "cubic") == 0 ? 0.7 : 0.5;
}

/* ---- fields --------------------------------------------------------------------------------- */

static const struct row idle_test_rows[] = {
    {ROW(TEXT, "path", struct idle_test, path)},
    {ROW(U32, "sent", struct idle_test, sent), .max = COUNT_MAX},
    {ROW(U32, "heard", struct idle_test, heard), .max = COUNT_MAX},
    {ROW(U32, "back", struct idle_test, back), .max = COUNT_MAX},
    {ROW(U32, "rttMinUs", struct idle_test, rtt_min_us), .max = USEC_MAX},
    {ROW(U32, "rttMedianUs", struct idle_test, rtt_median_us), .max = USEC_MAX},
    {ROW(U32, "rttP99Us", struct idle_test, rtt_p99_us), .max = USEC_MAX},
    {ROW(I64, "clockUs", struct idle_test, clock_us)},
    {ROW(U32, "clockErrorUs", struct idle_test, clock_error_us), .max = USEC_MAX},
    {ROW(U32, "routeMtu", struct idle_test, route_mtu), .max = UINT16_MAX},
    {ROW(U32, "packetMax", struct idle_test, packet_max), .max = UINT16_MAX},
    {ROW(BOOL, "connected", struct idle_test, connected)},
    {ROW(U32, "mss", struct idle_test, mss), .max = UINT16_MAX},
    {ROW(BOOL, "transferred", struct idle_test, transferred)},
    /* A member of an earlier version does not say these two. */
    {ROW(TEXT, "congestion", struct idle_test, congestion), .is_optional = true},
    {ROW(BOOL, "tcpRestarts", struct idle_test, restarts), .is_optional = true},
    {ROW(TEXT, "why", struct idle_test, why)},
    {.type = ROW_END},
};

static const struct row flow_rows[] = {
    {ROW(U64, "bytes", struct flow, bytes), .max = BYTES_MAX},
    {ROW(U64, "bitsPerSecond", struct flow, bits_per_s), .max = RATE_MAX},
    {ROW(U32, "retransmits", struct flow, retransmits), .max = INT32_MAX},
    {.type = ROW_END},
};

static const struct row bulk_rows[] = {
    {ROW(OBJECT, "out", struct bulk, out), .rows = flow_rows},
    {ROW(OBJECT, "in", struct bulk, in), .rows = flow_rows},
    {ROW(TEXT, "via", struct bulk, via)},
    {ROW(TEXT, "why", struct bulk, why)},
    {.type = ROW_END},
};

static const struct row loss_test_rows[] = {
    {ROW(U32, "sent", struct loss_test, sent), .max = COUNT_MAX},
    {ROW(U32, "heard", struct loss_test, heard), .max = COUNT_MAX},
    {ROW(U32, "ms", struct loss_test, ms), .max = USEC_MAX / 1000},
    {ROW(TEXT, "why", struct loss_test, why)},
    {.type = ROW_END},
};

static const struct row train_rows[] = {
    {ROW(ENUM, "verdict", struct train_result, verdict), .names = train_verdict_names,
        .max = TRAIN_VERDICT_N},
    {ROW(U64, "bitsPerSecond", struct train_result, bits_per_s), .max = RATE_MAX},
    {ROW(U64, "sentBitsPerSecond", struct train_result, sent_bits_per_s), .max = RATE_MAX},
    {.type = ROW_END},
};

static const struct row burst_rows[] = {
    {ROW(U32, "rttMinUs", struct burst, rtt_min_us), .max = USEC_MAX},
    {ROW(U32, "rttMedianUs", struct burst, rtt_median_us), .max = USEC_MAX},
    {ROW(U32, "size", struct burst, size), .max = UINT16_MAX},
    {ROW(U32, "sent", struct burst, sent), .max = DATAGRAMS_MAX},
    {ROW(U32, "heard", struct burst, heard), .max = DATAGRAMS_MAX},
    {ROW(U64, "bitsPerSecond", struct burst, bits_per_s), .max = RATE_MAX},
    /* A member of an earlier version does not say this. */
    {ROW(OBJECT, "train", struct burst, train), .is_optional = true, .rows = train_rows},
    {ROW(TEXT, "via", struct burst, via)},
    {ROW(TEXT, "why", struct burst, why)},
    {.type = ROW_END},
};

static const struct row caught_rows[] = {
    {ROW(U32, "heard", struct caught, heard), .max = DATAGRAMS_MAX},
    {ROW(U64, "bitsPerSecond", struct caught, bits_per_s), .max = RATE_MAX},
    /* Likewise, nor the marks. */
    {ROW(U32, "missed", struct caught, missed), .is_optional = true, .max = DATAGRAMS_MAX},
    {.type = ROW_END},
};

static const struct row allreduce_rows[] = {
    {ROW(U64, "elapsedNs", struct allreduce, elapsed), .max = USEC_MAX * 1000ull},
    {ROW(U32, "repeats", struct allreduce, repeats), .max = COUNT_MAX},
    {ROW(BOOL, "correct", struct allreduce, correct)},
    {ROW(TEXT, "why", struct allreduce, why)},
    {.type = ROW_END},
};

/* Reads the fields into @made and, if all are good, copies its @size bytes to @ret. */
static int take(const json_t *json, const char *where, const struct row *rows, void *made,
    void *ret, size_t size, struct err *e)
{
    struct fields f = fields_make(json, where, e);

    table_decode(&f, rows, 0, made);
    if (fields_end(&f) == 0)
        memcpy(ret, made, size);
    return fields_end(&f);
}

json_t *idle_test_encode(const struct idle_test *l)
{
    return table_encode(json_object(), idle_test_rows, 0, l);
}

int idle_test_decode(struct idle_test *ret, const json_t *json, struct err *e)
{
    struct idle_test l = {.restarts = true};

    return take(json, "the light result", idle_test_rows, &l, ret, sizeof(*ret), e);
}

json_t *bulk_encode(const struct bulk *b)
{
    return table_encode(json_object(), bulk_rows, 0, b);
}

int bulk_decode(struct bulk *ret, const json_t *json, struct err *e)
{
    struct bulk b = {0};

    return take(json, "the bulk result", bulk_rows, &b, ret, sizeof(*ret), e);
}

json_t *loss_test_encode(const struct loss_test *l)
{
    return table_encode(json_object(), loss_test_rows, 0, l);
}

int loss_test_decode(struct loss_test *ret, const json_t *json, struct err *e)
{
    struct loss_test l = {0};
    int r = take(json, "the result of loss", loss_test_rows, &l, ret, sizeof(*ret), e);

    /* A duplicate, which the network made, was counted as well. */
    if (r == 0 && ret->heard > ret->sent)
        ret->heard = ret->sent;
    return r;
}

json_t *burst_encode(const struct burst *b)
{
    return table_encode(json_object(), burst_rows, 0, b);
}

int burst_decode(struct burst *ret, const json_t *json, struct err *e)
{
    struct burst b = {0};

    return take(json, "the result of a burst", burst_rows, &b, ret, sizeof(*ret), e);
}

/* [[US, SENT, HEARD], ...] */
static json_t *encode_marks(const struct train_marks *m)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < m->n; i++)
        fields_append(&list, json_pack("[I, I, I]", (json_int_t)(m->items[i].at / NSEC_PER_USEC),
                                 (json_int_t)m->items[i].sent, (json_int_t)m->items[i].heard));
    return list;
}

/* False: it is no mark. */
static bool decode_mark(struct train_mark *ret, const json_t *json)
{
    static const json_int_t max[] = {USEC_MAX, DATAGRAMS_MAX, DATAGRAMS_MAX};
    json_int_t numbers[3];

    if (json_array_size(json) != 3)
        return false;
    for (size_t i = 0; i < 3; i++) {
        const json_t *item = json_array_get(json, i);

        numbers[i] = json_integer_value(item);
        if (!json_is_integer(item) || numbers[i] < 0 || numbers[i] > max[i])
            return false;
    }
    *ret = (struct train_mark){.at = numbers[0] * NSEC_PER_USEC,
        .sent = (uint32_t)numbers[1],
        .heard = (uint32_t)numbers[2]};
    return true;
}

json_t *caught_encode(const struct caught *c)
{
    json_t *json = table_encode(json_object(), caught_rows, 0, c);

    if (c->marks.n > 0)
        fields_set(&json, "marks", encode_marks(&c->marks));
    return json;
}

int caught_decode(struct caught *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "what came of a burst", e);
    struct caught c = {0};
    const json_t *list = fields_array(&f, "marks", FIELDS_OPTIONAL, 0, TRAIN_MARKS_MAX);
    const json_t *item;
    size_t i;

    table_decode(&f, caught_rows, 0, &c);
    json_array_foreach(list, i, item)
        if (decode_mark(&c.marks.items[i], item))
            c.marks.n++;
        else
            fields_fail(&f, "mark %zu of \"marks\" is not three numbers in their bounds", i);
    return fields_give(&f, ret, &c, sizeof(c));
}

json_t *allreduce_encode(const struct allreduce *rd)
{
    return table_encode(json_object(), allreduce_rows, 0, rd);
}

int allreduce_decode(struct allreduce *ret, const json_t *json, struct err *e)
{
    struct allreduce rd = {0};

    return take(json, "the all-reduce result", allreduce_rows, &rd, ret, sizeof(*ret), e);
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
