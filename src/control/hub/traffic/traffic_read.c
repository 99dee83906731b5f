/* traffic_read.c - see traffic_read.h. */
#include "hub/traffic/traffic_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"
#include "hub/model/model.h"
#include "hub/record/record.h"
#include "hub/traffic/traffic_book.h"
#include "store/store.h"

/* Of a sender so much counts beside: some messages that nobody has received. */
#define TRAFFIC_LOST_BYTES 65536

/* A difference beyond that tenth of as much is a dispute. */
#define TRAFFIC_DISPUTE_BYTES (UINT64_C(16) << 20)

/* ---- what went each way of each edge --------------------------------------------------------- */

/* The two ends of a direction, as indices. */
enum end {
    END_RECEIVER,
    END_SENDER,
    END_N,
};

/* What one end says of one direction, job and path. */
struct claim {
    struct traffic_row row; /* its word is not known yet */
    enum end end;           /* that says so */
};

/* What both ends say of one job. */
struct words {
    const char *job;
    uint64_t by_path[END_N][PATH_KIND_N];
    uint64_t sum[END_N];
};

/* What went from one node to another. */
struct direction {
    const struct claim *claims; /* in the order of jobs */
    size_t n;
    struct words all;
    enum traffic_word word;
    bool is_mute;           /* the other end is in no job */
    uint64_t others[END_N]; /* what each end has not told apart */
    struct traffic_edges *edges;
};

const char *const traffic_word_names[TRAFFIC_WORD_N] = {"both", "one", "waiting"};

/* ---- what they say -------------------------------------------------------------------------- */

/* Of rows, and of the claims that begin with one. */
static int compare_rows(const void *a, const void *b)
{
    const struct traffic_row *x = a;
    const struct traffic_row *y = b;
    int order = strcmp(x->from, y->from);

    if (order == 0)
        order = strcmp(x->to, y->to);
    if (order == 0)
        order = strcmp(x->job, y->job);
    return order != 0 ? order : (int)x->path - (int)y->path;
}

/* What a node claims, and what it has not told apart. Return: how many are in @ret, at most two for
 * each of its flows. */
static size_t claims_of(struct traffic_node *node, struct claim *ret)
{
    size_t n = 0;

    memset(node->others, 0, sizeof(node->others));
    for (size_t i = 0; i < node->traffic.n; i++) {
        const struct traffic_flow *f = &node->traffic.flows[i];
        /* No job has all others as its members. */
        const char *job = f->peer[0] ? f->job : "";

        if (f->sent > 0)
            ret[n++] = (struct claim){
                {node->keyed.key, f->peer, job, f->path, .bytes = f->sent}, END_SENDER};
        if (f->received > 0 && f->peer[0])
            ret[n++] = (struct claim){
                {f->peer, node->keyed.key, job, f->path, .bytes = f->received}, END_RECEIVER};
        if (f->peer[0])
            continue;
        node->others[END_SENDER] = traffic_total(node->others[END_SENDER], f->sent);
        node->others[END_RECEIVER] = traffic_total(node->others[END_RECEIVER], f->received);
    }
    return n;
}

static void add_words(struct words *w, const struct claim *c)
{
    uint64_t *of_path = &w->by_path[c->end][c->row.path];

    *of_path = traffic_total(*of_path, c->row.bytes);
    w->sum[c->end] = traffic_total(w->sum[c->end], c->row.bytes);
}

/* ---- who has told ---------------------------------------------------------------------------- */

/* Who bears the direction out: at least one end has told of it. */
static void find_word(
    struct direction *d, const struct keys *nodes, const struct model_network *net)
{
    const char *names[END_N] = {
        [END_SENDER] = d->claims[0].row.from, [END_RECEIVER] = d->claims[0].row.to};

    for (unsigned k = 0; k < END_N; k++) {
        const struct traffic_node *reported = keys_find(nodes, names[k]);
        const struct model_node *member = reported ? NULL : model_find_node(net, names[k]);

        if (reported) {
            d->others[k] = reported->others[k];
        } else if (member && node_has_agent(&member->spec)) {
            d->word = TRAFFIC_WORD_WAITING;
        } else {
            /* A hub, a stock WireGuard and all others never tell, and are in no job. */
            d->word = TRAFFIC_WORD_ONE;
            d->is_mute = member || names[k][0] == '\0';
        }
    }
}

/* ---- what counts ---------------------------------------------------------------------------- */

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Up to where an end bears the other one out, by what it has told that may be of this direction.
 * Nobody is charged by another's word alone, but a few messages of one's own may all be lost. */
static uint64_t borne_out_by(const struct direction *d, const struct words *w, enum end end)
{
    uint64_t own = traffic_total(w->sum[end], d->others[end]);

    own = traffic_total(own, own / 10);
    return end == END_RECEIVER ? traffic_total(own, TRAFFIC_LOST_BYTES) : own;
}

static uint64_t count(const struct direction *d, const struct words *w)
{
    uint64_t sent = w->sum[END_SENDER];
    uint64_t received = w->sum[END_RECEIVER];
    uint64_t most = sent > received ? sent : received;

    if (d->word != TRAFFIC_WORD_BOTH)
        return most;
    /* What the sender has not told apart is in the row of all others already. */
    if (d->others[END_SENDER] > 0)
        most = sent;
    most = lesser(most, borne_out_by(d, w, END_SENDER));
    return lesser(most, borne_out_by(d, w, END_RECEIVER));
}

/* Return: it is one. */
static bool find_dispute(const struct direction *d, const struct words *w, uint64_t counted)
{
    struct traffic_edges *edges = d->edges;
    uint64_t sent = w->sum[END_SENDER];
    uint64_t received = w->sum[END_RECEIVER];

    if (d->word != TRAFFIC_WORD_BOTH ||
        (sent <= borne_out_by(d, w, END_RECEIVER) + TRAFFIC_DISPUTE_BYTES &&
            received <= borne_out_by(d, w, END_SENDER) + TRAFFIC_DISPUTE_BYTES))
        return false;
    if (edges->n_disputes < TRAFFIC_DISPUTES_MAX)
        edges->disputes[edges->n_disputes++] =
            (struct traffic_dispute){.from = d->claims[0].row.from,
                .to = d->claims[0].row.to,
                .job = w->job,
                .sent = sent,
                .received = received,
                .counted = counted};
    return true;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* @bytes of them for that job, on the paths that @w has, and in their proportion. */
static void add_rows(const struct direction *d, const struct words *w, uint64_t bytes)
{
    enum end end = w->sum[END_SENDER] > 0 ? END_SENDER : END_RECEIVER;
    const uint64_t *by_path = w->by_path[end];
    unsigned most = 0;
    uint64_t parts[PATH_KIND_N];
    uint64_t rest = bytes;

    for (unsigned k = 0; k < PATH_KIND_N; k++) {
        unsigned __int128 part = (unsigned __int128)by_path[k] * bytes;

        parts[k] = w->sum[end] > 0 ? (uint64_t)(part / w->sum[end]) : 0;
        /* Sums that stopped at their end could be less than their parts. */
        parts[k] = lesser(parts[k], rest);
        rest -= parts[k];
        if (by_path[k] > by_path[most])
            most = k;
    }
    parts[most] += rest;
    for (unsigned k = 0; k < PATH_KIND_N; k++)
        if (parts[k] > 0)
            d->edges->rows[d->edges->n++] = (struct traffic_row){.from = d->claims[0].row.from,
                .to = d->claims[0].row.to,
                .job = w->job,
                .path = (enum path_kind)k,
                .word = d->word,
                .bytes = parts[k]};
}

static void settle(const struct direction *d)
{
    uint64_t left = count(d, &d->all); /* that no job is counted for yet */
    bool is_disputed = find_dispute(d, &d->all, left);
    struct words none = d->all;

    for (size_t i = 0; i < d->n;) {
        struct words w = {.job = d->claims[i].row.job};
        uint64_t part;

        for (; i < d->n && strcmp(d->claims[i].row.job, w.job) == 0; i++)
            add_words(&w, &d->claims[i]);
        if (w.job[0] == '\0') {
            none = w;
            continue;
        }
        part = d->is_mute ? 0 : lesser(count(d, &w), left);
        left -= part;
        if (!is_disputed)
            (void)find_dispute(d, &w, part);
        add_rows(d, &w, part);
    }
    add_rows(d, &none, left);
}

/* ---- a whole day ---------------------------------------------------------------------------- */

static struct traffic_node *node_at(const struct keys *nodes, size_t i)
{
    return container_of(nodes->items[i], struct traffic_node, keyed);
}

int traffic_edges_make(
    struct traffic_edges *ret, const struct keys *nodes, const struct model_network *net)
{
    _cleanup_(freep) struct claim *claims = NULL;
    size_t n_claims = 0;

    *ret = (struct traffic_edges){.n = 0};
    for (size_t i = 0; i < nodes->n; i++)
        n_claims += 2 * node_at(nodes, i)->traffic.n;
    claims = calloc(n_claims + 1, sizeof(*claims));
    /* A claim's path has a row of its job, and one of no job, at most. */
    ret->rows = calloc(2 * n_claims + 1, sizeof(*ret->rows));
    if (!claims || !ret->rows) {
        free(ret->rows);
        return -ENOMEM;
    }
    n_claims = 0;
    for (size_t i = 0; i < nodes->n; i++)
        n_claims += claims_of(node_at(nodes, i), claims + n_claims);
    qsort(claims, n_claims, sizeof(*claims), compare_rows);
    for (size_t i = 0; i < n_claims;) {
        struct direction d = {.claims = claims + i, .all.job = "", .edges = ret};

        for (; i < n_claims && strcmp(d.claims->row.from, claims[i].row.from) == 0 &&
               strcmp(d.claims->row.to, claims[i].row.to) == 0;
             i++, d.n++)
            add_words(&d.all, &claims[i]);
        find_word(&d, nodes, net);
        settle(&d);
    }
    qsort(ret->rows, ret->n, sizeof(*ret->rows), compare_rows);
    return 0;
}

/* ---- reading day by day from the store ------------------------------------------------------- */

/* Records of a page. */
#define PAGE_MAX 1024

/* A walk through the records, which come in the order of days and nodes. */
struct walk {
    struct traffic_book *book; /* pins */
    struct traffic_reader reader;
    char prefix[RECORD_KEY_MAX];
    char last[RECORD_KEY_MAX]; /* where the next page begins behind */
    int32_t day;               /* of @nodes */
    struct keys nodes;         /* of struct traffic_node: those of that day */
};

static void forget_day(struct walk *w)
{
    for (size_t i = 0; i < w->nodes.n; i++)
        traffic_deinit(&node_at(&w->nodes, i)->traffic);
    keys_free_all(&w->nodes);
}

/* All records of the day have been read. */
static int end_day(struct walk *w)
{
    struct traffic_edges edges;
    int r;

    if (w->nodes.n == 0)
        return 0;
    r = traffic_edges_make(
        &edges, &w->nodes, model_find_network(w->book->model, w->reader.network));
    if (r == 0) {
        w->reader.on_day(w->reader.ctx, w->day, &edges);
        free(edges.rows);
    }
    forget_day(w);
    return r;
}

/* What a node has told one hub, with what it has told another one. 0 or -ENOMEM. */
static int take_record(struct walk *w, const char *name, const struct store_item *item)
{
    struct traffic_node *node;
    struct traffic read;
    int r = 0;

    if (!traffic_record_decode(&read, item))
        return 0;
    node = keys_open(&w->nodes, name, sizeof(*node));
    if (!node || traffic_merge(&node->traffic, &read, SIZE_MAX) < 0)
        r = -ENOMEM;
    traffic_deinit(&read);
    return r;
}

static int ask(struct walk *w, struct err *e);

static void on_page(void *ctx, const struct store_answer *a)
{
    struct walk *w = ctx;
    struct err e = ERR_NULL;
    bool has_more = a->has_more;
    int r = a->r;

    if (r != 0)
        e = *a->e;
    for (size_t i = 0; r == 0 && i < a->n_items; i++) {
        struct traffic_key key;

        (void)snprintf(w->last, sizeof(w->last), "%s", a->items[i].key);
        if (!traffic_key_parse(&key, a->items[i].key))
            continue;
        if (key.day > w->reader.until) {
            has_more = false;
            break;
        }
        if (key.day != w->day)
            r = end_day(w);
        w->day = key.day;
        if (r == 0)
            r = take_record(w, key.node, &a->items[i]);
    }
    if (r == 0 && has_more && (r = ask(w, &e)) == 0)
        return;
    if (r == 0)
        r = end_day(w);
    if (r != 0 && e.code == 0)
        (void)err_set(&e, r, "no memory for what nodes have moved");
    w->reader.on_end(w->reader.ctx, r, &e);
    forget_day(w);
    free(w);
}

static int ask(struct walk *w, struct err *e)
{
    struct store_range range = {.prefix = w->prefix, .from = w->last, .limit = PAGE_MAX};

    return store_list(w->book->model->store, &range, on_page, w, e);
}

int traffic_read(
    struct traffic_book *b, const struct traffic_reader *reader, nsec_t now, struct err *e)
{
    int r = traffic_book_write(b, reader->network, now, e);
    struct walk *w = r == 0 ? calloc(1, sizeof(*w)) : NULL;

    if (r == 0 && !w)
        return err_set(e, -ENOMEM, "no memory for what nodes have moved");
    if (!w)
        return r;
    *w = (struct walk){.book = b, .reader = *reader, .day = -1};
    (void)traffic_key_format(w->prefix, reader->network, -1, "", "");
    (void)traffic_key_format(w->last, reader->network, reader->since, "", "");
    r = ask(w, e);
    if (r != 0)
        free(w);
    return r;
}

json_t *traffic_read_nodes(const struct model_network *net)
{
    json_t *islands = json_object();
    json_t *hubs = json_array();

    for (size_t i = 0; net && i < net->nodes.n; i++) {
        const struct node *node = &model_node_at(net, i)->spec;

        if (node->island[0])
            (void)json_object_set_new(islands, node->meta.name, json_string(node->island));
        if (node->hub)
            (void)json_array_append_new(hubs, json_string(node->meta.name));
    }
    return json_pack("{s:o, s:o}", "islands", islands, "hubs", hubs);
}
