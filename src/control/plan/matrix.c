/* matrix.c - see matrix.h. */
#include "plan/matrix.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "measure/result.h"
#include "mesh/object/fields.h"

#define USEC_MAX  600000000ull        /* of a round trip: ten minutes */
#define RATE_MAX  1000000000000000ull /* bits per second, as parse_rate() allows */
#define PINGS_MAX 1000000

void matrix_deinit(struct matrix *m)
{
    free(m->nodes);
    free(m->links);
    *m = (struct matrix)MATRIX_NULL;
}

int matrix_new(struct matrix *ret, size_t n)
{
    struct matrix m = {.n = n,
        .nodes = calloc(n + 1, sizeof(*m.nodes)),
        .links = calloc(n * n + 1, sizeof(*m.links))};

    if (!m.nodes || !m.links) {
        matrix_deinit(&m);
        return -ENOMEM;
    }
    *ret = m;
    return 0;
}

/* Index of the node with that name; SIZE_MAX: there is none. */
static size_t find_node(const struct matrix *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->nodes[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

const struct matrix_link *matrix_link(const struct matrix *m, size_t from, size_t to)
{
    return &m->links[from * m->n + to];
}

bool matrix_is_measured(const struct matrix *m, size_t a, size_t b)
{
    const struct matrix_link *out = matrix_link(m, a, b);
    const struct matrix_link *in = matrix_link(m, b, a);

    return out->rtt > 0 && out->one_bps > 0 && in->one_bps > 0;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

/* `weft bench` lists names, and `weft preflight` objects with a name. */
static int take_node(struct matrix *m, const json_t *json, size_t i, struct err *e)
{
    struct matrix_node node = {.name = ""};
    const char *text = json_string_value(json);

    if (text) {
        int r = parse_name(text, "node", e);

        if (r < 0)
            return err_prefix(e, "nodes");
        memcpy(node.name, text, strlen(text) + 1);
    } else {
        struct fields f = fields_make(json, "a node of the matrix", e);

        fields_name(&f, "name", FIELDS_REQUIRED, node.name);
        fields_text(&f, "island", FIELDS_OPTIONAL, 0, sizeof(node.island), node.island);
        if (fields_end(&f) < 0)
            return fields_end(&f);
        /* "" is of none. */
        if (node.island[0] != '\0' && parse_name(node.island, "island", e) < 0)
            return err_prefix(e, "nodes");
    }
    if (find_node(m, node.name) != SIZE_MAX)
        return err_set(e, -EINVAL, "nodes: \"%s\" stands there twice", node.name);
    m->nodes[i] = node;
    return 0;
}

/* The rates of one transfer, as bits per second there and back; null leaves them at 0. */
static void take_rates(struct fields *f, const char *name, double ret[static 2], struct err *e)
{
    const json_t *json = fields_object(f, name, FIELDS_OPTIONAL);
    struct fields rates;
    uint64_t out = 0;
    uint64_t in = 0;

    if (!json)
        return;
    rates = fields_make(json, name, e);
    fields_u64(&rates, "outBitsPerSecond", FIELDS_REQUIRED, 0, RATE_MAX, &out);
    fields_u64(&rates, "inBitsPerSecond", FIELDS_REQUIRED, 0, RATE_MAX, &in);
    if (fields_end(&rates) < 0) {
        f->failed = fields_end(&rates);
        return;
    }
    ret[0] = (double)out;
    ret[1] = (double)in;
}

/* What `weft preflight` knows of one way; `weft bench` has the round trip in the pair itself. */
static int take_way(const json_t *json, uint64_t *usec, struct err *e)
{
    struct fields f = fields_make(json, "a way of a pair", e);
    uint64_t sent = 0;
    uint64_t heard = 0;

    fields_u64(&f, "rttMedianUs", FIELDS_REQUIRED, 0, USEC_MAX, usec);
    fields_u64(&f, "sent", FIELDS_REQUIRED, 0, PINGS_MAX, &sent);
    fields_u64(&f, "heard", FIELDS_REQUIRED, 0, PINGS_MAX, &heard);
    return fields_end(&f);
}

static int read_directions(struct fields *f, uint64_t *usec, struct err *e)
{
    const json_t *directions = fields_array(f, "ways", FIELDS_REQUIRED, 2, 2);
    int r = fields_end(f);

    for (size_t i = 0; r == 0 && i < 2; i++) {
        const json_t *way = json_array_get(directions, i);

        if (!json_is_null(way))
            r = take_way(way, usec, e);
    }
    return r;
}

/* Index of the node that item @i of the pair's "nodes" names; SIZE_MAX with words otherwise. */
static size_t end_of(const struct matrix *m, struct fields *f, const json_t *names, size_t i)
{
    const char *name = json_string_value(json_array_get(names, i));
    size_t found = name ? find_node(m, name) : SIZE_MAX;

    if (found == SIZE_MAX)
        fields_fail(f, "\"%.63s\" is no node of the matrix", name ? name : "(no text)");
    return found;
}

/* A file of an earlier version says only what TCP does after a pause. */
static void take_congestion(struct fields *f, bool restarts, double ret[static 2])
{
    const json_t *names = fields_array(f, "congestion", FIELDS_OPTIONAL, 2, 2);

    for (size_t i = 0; i < 2; i++) {
        const char *name = json_string_value(json_array_get(names, i));

        if (names && !name)
            fields_fail(f, "\"congestion\" is no list of two names");
        ret[i] = result_window_kept(name ? name : "", restarts);
    }
}

static int take_pair(struct matrix *m, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "a pair of the matrix", e);
    const json_t *names = fields_array(&f, "nodes", FIELDS_REQUIRED, 2, 2);
    size_t a = names ? end_of(m, &f, names, 0) : SIZE_MAX;
    size_t b = names ? end_of(m, &f, names, 1) : SIZE_MAX;
    double one[2] = {0};
    double many[2] = {0};
    double both[2] = {0};
    uint64_t usec = 0;
    bool restarts = true;
    double kept[2] = {0};
    int r;

    if (fields_end(&f) == 0 && a == b)
        fields_fail(&f, "\"%s\" is both of its nodes", m->nodes[a].name);
    fields_u64(&f, "rttMedianUs", FIELDS_OPTIONAL, 0, USEC_MAX, &usec);
    fields_bool(&f, "tcpRestarts", FIELDS_OPTIONAL, &restarts);
    take_congestion(&f, restarts, kept);
    take_rates(&f, "oneStream", one, e);
    take_rates(&f, "streams", many, e);
    take_rates(&f, "bothWays", both, e);
    r = fields_end(&f);
    if (r == 0 && json_object_get(json, "ways"))
        r = read_directions(&f, &usec, e);
    for (size_t way = 0; r == 0 && way < 2; way++) {
        struct matrix_link *l = &m->links[way == 0 ? a * m->n + b : b * m->n + a];

        *l = (struct matrix_link){.rtt = (double)usec / 1e6,
            .one_bps = one[way],
            .many_bps = many[way] > one[way] ? many[way] : one[way],
            .both_bps = both[way],
            .restarts = restarts,
            .kept = kept[way]};
    }
    return r;
}

int matrix_decode(struct matrix *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the matrix", e);
    const json_t *nodes = fields_array(&f, "nodes", FIELDS_REQUIRED, 2, MATRIX_NODES_MAX);
    const json_t *pairs = fields_array(
        &f, "pairs", FIELDS_REQUIRED, 1, MATRIX_NODES_MAX * (MATRIX_NODES_MAX - 1) / 2);
    struct matrix m = MATRIX_NULL;
    int r = fields_end(&f);

    if (r == 0)
        r = matrix_new(&m, json_array_size(nodes));
    for (size_t i = 0; r == 0 && i < json_array_size(nodes); i++)
        r = take_node(&m, json_array_get(nodes, i), i, e);
    for (size_t i = 0; r == 0 && i < json_array_size(pairs); i++)
        r = take_pair(&m, json_array_get(pairs, i), e);
    if (r == 0)
        *ret = m;
    else
        matrix_deinit(&m);
    return r;
}

/* ---- of a matrix another one --------------------------------------------------------------- */

/* Index of the name at the beginning of @p, which is @len bytes long; SIZE_MAX with words: there is
 * none, or it is @seen. */
static size_t name_at(const struct matrix *m, const char *what, const char *text, const char *p,
    size_t len, bool *seen, struct err *e)
{
    char name[NAME_MAX_LEN + 1] = "";
    size_t i;

    if (len > 0 && len < sizeof(name))
        memcpy(name, p, len);
    i = find_node(m, name);
    if (i == SIZE_MAX || seen[i]) {
        (void)err_set(e, -EINVAL, "%s \"%.80s\": \"%.*s\" is %s", what, text,
            (int)(len < 80 ? len : 80), p, i == SIZE_MAX ? "no node of the matrix" : "there twice");
        return SIZE_MAX;
    }
    seen[i] = true;
    return i;
}

static int keep_nodes(struct matrix *m, const size_t *kept, size_t n)
{
    struct matrix fewer;
    int r = matrix_new(&fewer, n);

    for (size_t a = 0; r == 0 && a < n; a++) {
        fewer.nodes[a] = m->nodes[kept[a]];
        for (size_t b = 0; b < n; b++)
            fewer.links[a * n + b] = *matrix_link(m, kept[a], kept[b]);
    }
    if (r == 0) {
        matrix_deinit(m);
        *m = fewer;
    }
    return r;
}

int matrix_pick(struct matrix *m, const char *names, struct err *e)
{
    bool seen[MATRIX_NODES_MAX] = {false};
    size_t kept[MATRIX_NODES_MAX];
    size_t n = 0;

    for (const char *p = names; *p != '\0';) {
        size_t len = strcspn(p, ",");

        if (name_at(m, "nodes", names, p, len, seen, e) == SIZE_MAX)
            return -EINVAL;
        p += len;
        p += *p != '\0';
    }
    for (size_t i = 0; i < m->n; i++)
        if (seen[i])
            kept[n++] = i;
    if (n < 2)
        return err_set(e, -EINVAL, "nodes \"%.80s\": a plan is for two nodes at least", names);
    return keep_nodes(m, kept, n);
}

int matrix_replace(struct matrix *m, const struct matrix *next, struct err *e)
{
    size_t places[MATRIX_NODES_MAX];

    for (size_t i = 0; i < next->n; i++) {
        places[i] = find_node(m, next->nodes[i].name);
        if (places[i] == SIZE_MAX)
            return err_set(
                e, -EINVAL, "\"%s\" is no node of the first matrix", next->nodes[i].name);
    }
    for (size_t a = 0; a < next->n; a++)
        for (size_t b = 0; b < next->n; b++)
            if (a != b && matrix_is_measured(next, a, b))
                m->links[places[a] * m->n + places[b]] = *matrix_link(next, a, b);
    return 0;
}

/* ---- islands ------------------------------------------------------------------------------- */

void matrix_declare(struct matrix *m, const json_t *json)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const char *island = json_string_value(json_object_get(json, "island"));
    size_t i = name ? find_node(m, name) : SIZE_MAX;

    if (i != SIZE_MAX && island && strlen(island) < sizeof(m->nodes[i].island))
        memcpy(m->nodes[i].island, island, strlen(island) + 1);
}

int matrix_set_islands(struct matrix *m, const char *text, struct err *e)
{
    bool seen[MATRIX_NODES_MAX] = {false};
    const char *island = NULL;

    for (const char *p = text; *p != '\0';) {
        size_t len = strcspn(p, ",/");
        size_t i = name_at(m, "islands", text, p, len, seen, e);

        if (i == SIZE_MAX)
            return -EINVAL;
        if (!island)
            island = m->nodes[i].name;
        memcpy(m->nodes[i].island, island, strlen(island) + 1);
        p += len;
        if (*p == '/')
            island = NULL;
        p += *p != '\0';
    }
    return 0;
}

/* Gives the island of node @from to all nodes that are near it and have none, and so on. */
static void spread(struct matrix *m, size_t from)
{
    for (size_t i = 0; i < m->n; i++) {
        double rtt = matrix_link(m, from, i)->rtt;

        if (m->nodes[i].island[0] != '\0' || rtt <= 0 || rtt > MATRIX_ISLAND_RTT)
            continue;
        memcpy(m->nodes[i].island, m->nodes[from].island, sizeof(m->nodes[i].island));
        spread(m, i);
    }
}

size_t matrix_find_islands(struct matrix *m)
{
    bool had[MATRIX_NODES_MAX];
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        had[i] = m->nodes[i].island[0] != '\0';
    for (size_t i = 0; i < m->n; i++) {
        n += !had[i];
        if (m->nodes[i].island[0] != '\0')
            continue;
        memcpy(m->nodes[i].island, m->nodes[i].name, sizeof(m->nodes[i].island));
        spread(m, i);
    }
    return n;
}
