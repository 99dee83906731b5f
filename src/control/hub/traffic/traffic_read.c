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

/* ---- what went each way of each edge --------------------------------------------------------- */

/* The two ends of a direction, as indices. */
enum end {
    END_RECEIVER,
    END_SENDER,
    END_N,
};

/* What one end says of one direction, job and path. */
struct claim {
    const char *from; /* borrowed, like @to and @job */
    const char *to;
    const char *job;
    enum path_kind path;
    enum end end; /* that says so */
    uint64_t bytes;
};

/* A node that has told something. */
struct teller {
    const char *name;
    uint64_t others[END_N];
};

struct tellers {
    struct teller *items; /* owns; sorted */
    size_t n;
    const struct traffic_facts *facts; /* of the others */
};

/* What both ends say of one job. */
struct words {
    const char *job;
    uint64_t by_path[END_N][PATH_KIND_N];
    uint64_t sum[END_N];
    uint64_t counted;
};

/* What is worked with. */
struct settling {
    const struct tellers *tellers;
    struct traffic_edges *edges;
    struct words *words; /* owns; room for those of one direction */
    size_t cap_words;
    size_t n_words;
};

/* What went from one node to another. */
struct direction {
    const struct claim *claims;
    size_t n;
    struct words all;
    enum traffic_word word;
    const char *teller;     /* NULL: both ends */
    bool is_mute;           /* the other end is in no job */
    uint64_t others[END_N]; /* what each end has not told apart */
};

const char *traffic_word_name(enum traffic_word word)
{
    static const char *const names[] = {"both", "one", "waiting"};

    _Static_assert(sizeof(names) / sizeof(*names) == TRAFFIC_WORD_N, "a name each");
    return names[word];
}

void traffic_edges_free(struct traffic_edges *edges)
{
    if (edges)
        free(edges->rows);
    free(edges);
}

/* ---- what they say -------------------------------------------------------------------------- */

static int compare_claims(const void *a, const void *b)
{
    const struct claim *x = a;
    const struct claim *y = b;
    int order = strcmp(x->from, y->from);

    if (order == 0)
        order = strcmp(x->to, y->to);
    return order != 0 ? order : strcmp(x->job, y->job);
}

/* What @f, told by @node, claims. Return: how many are in @ret, 0 to 2. */
static size_t claims_of(const char *node, const struct traffic_flow *f, struct claim ret[static 2])
{
    /* No job has all others as its members. */
    struct claim claim = {.job = f->peer[0] ? f->job : "", .path = f->path};
    size_t n = 0;

    if (f->sent > 0) {
        ret[n] = claim;
        ret[n].from = node;
        ret[n].to = f->peer;
        ret[n].end = END_SENDER;
        ret[n++].bytes = f->sent;
    }
    if (f->received > 0 && f->peer[0]) {
        ret[n] = claim;
        ret[n].from = f->peer;
        ret[n].to = node;
        ret[n].end = END_RECEIVER;
        ret[n++].bytes = f->received;
    }
    return n;
}

static void add_words(struct words *w, const struct claim *c)
{
    w->by_path[c->end][c->path] = traffic_total(w->by_path[c->end][c->path], c->bytes);
    w->sum[c->end] = traffic_total(w->sum[c->end], c->bytes);
}

/* ---- who has told ---------------------------------------------------------------------------- */

static int compare_tellers(const void *a, const void *b)
{
    return strcmp(((const struct teller *)a)->name, ((const struct teller *)b)->name);
}

static int make_tellers(struct tellers *t, const struct traffic_node *nodes, size_t n)
{
    t->items = calloc(n + 1, sizeof(*t->items));
    if (!t->items)
        return -ENOMEM;
    t->n = n;
    for (size_t i = 0; i < n; i++) {
        uint64_t *others = t->items[i].others;

        t->items[i].name = nodes[i].name;
        for (size_t k = 0; k < nodes[i].traffic.n; k++) {
            const struct traffic_flow *f = &nodes[i].traffic.flows[k];

            if (f->peer[0])
                continue;
            others[END_SENDER] = traffic_total(others[END_SENDER], f->sent);
            others[END_RECEIVER] = traffic_total(others[END_RECEIVER], f->received);
        }
    }
    qsort(t->items, n, sizeof(*t->items), compare_tellers);
    return 0;
}

/* @others: what it has in the sum of all others; left as it is where it has told nothing. */
static enum traffic_voice teller_voice(
    const struct tellers *t, const char *node, uint64_t others[static END_N])
{
    struct teller wanted = {.name = node};
    const struct teller *found = bsearch(&wanted, t->items, t->n, sizeof(wanted), compare_tellers);

    if (!found)
        return t->facts->voice(t->facts->ctx, node);
    memcpy(others, found->others, sizeof(found->others));
    return TRAFFIC_VOICE_TOLD;
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
static bool find_dispute(
    struct traffic_edges *edges, const struct direction *d, const struct words *w)
{
    uint64_t sent = w->sum[END_SENDER];
    uint64_t received = w->sum[END_RECEIVER];

    if (d->word != TRAFFIC_WORD_BOTH ||
        (sent <= borne_out_by(d, w, END_RECEIVER) + TRAFFIC_DISPUTE_BYTES &&
            received <= borne_out_by(d, w, END_SENDER) + TRAFFIC_DISPUTE_BYTES))
        return false;
    if (edges->n_disputes < TRAFFIC_DISPUTES_MAX)
        edges->disputes[edges->n_disputes++] = (struct traffic_dispute){.from = d->claims[0].from,
            .to = d->claims[0].to,
            .job = w->job,
            .sent = sent,
            .received = received,
            .counted = w->counted};
    return true;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static int add_row(
    struct traffic_edges *edges, const struct direction *d, const struct traffic_row *row)
{
    struct traffic_row *rows =
        sorted_open(edges->rows, edges->n, sizeof(*rows), edges->n, &edges->cap);

    if (!rows)
        return -ENOMEM;
    edges->rows = rows;
    rows[edges->n] = *row;
    rows[edges->n].from = d->claims[0].from;
    rows[edges->n].to = d->claims[0].to;
    rows[edges->n].word = d->word;
    rows[edges->n++].teller = d->teller;
    return 0;
}

/* @bytes for that job, on the paths that @w has, and in their proportion. */
static int add_rows(struct traffic_edges *edges, const struct direction *d, const char *job,
    const struct words *w, uint64_t bytes)
{
    enum end end = w->sum[END_SENDER] > 0 ? END_SENDER : END_RECEIVER;
    const uint64_t *by_path = w->by_path[end];
    unsigned most = 0;
    uint64_t parts[PATH_KIND_N];
    uint64_t rest = bytes;
    int r = 0;

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
    for (unsigned k = 0; r == 0 && k < PATH_KIND_N; k++)
        if (parts[k] > 0)
            r = add_row(edges, d,
                &(struct traffic_row){.job = job, .path = (enum path_kind)k, .bytes = parts[k]});
    return r;
}

/* The words of each job of the direction, and of all. 0 or -ENOMEM. */
static int sort_words(struct settling *s, struct direction *d)
{
    s->n_words = 0;
    d->all = (struct words){.job = ""};
    for (size_t i = 0; i < d->n; i++) {
        const struct claim *c = &d->claims[i];

        if (s->n_words == 0 || strcmp(s->words[s->n_words - 1].job, c->job) != 0) {
            struct words *words =
                sorted_open(s->words, s->n_words, sizeof(*words), s->n_words, &s->cap_words);

            if (!words)
                return -ENOMEM;
            s->words = words;
            words[s->n_words++] = (struct words){.job = c->job};
        }
        add_words(&s->words[s->n_words - 1], c);
        add_words(&d->all, c);
    }
    return 0;
}

/* Who bears the direction out. */
static void judge(const struct settling *s, struct direction *d)
{
    const char *names[END_N] = {[END_SENDER] = d->claims[0].from, [END_RECEIVER] = d->claims[0].to};
    enum traffic_voice voices[END_N] = {TRAFFIC_VOICE_MUTE, TRAFFIC_VOICE_MUTE};
    enum end silent;

    for (unsigned k = 0; k < END_N; k++) {
        uint64_t others[END_N] = {0, 0};

        if (names[k][0])
            voices[k] = teller_voice(s->tellers, names[k], others);
        d->others[k] = others[k];
    }
    silent = voices[END_SENDER] == TRAFFIC_VOICE_TOLD ? END_RECEIVER : END_SENDER;
    d->is_mute = voices[silent] == TRAFFIC_VOICE_MUTE;
    d->teller = names[silent == END_SENDER ? END_RECEIVER : END_SENDER];
    if (voices[silent] == TRAFFIC_VOICE_AGENT)
        d->word = TRAFFIC_WORD_WAITING;
    else if (voices[silent] != TRAFFIC_VOICE_TOLD)
        d->word = TRAFFIC_WORD_ONE;
    else
        d->word = TRAFFIC_WORD_BOTH, d->teller = NULL;
}

static int settle(struct settling *s, struct direction *d)
{
    struct words *none;
    uint64_t left;
    bool is_disputed;
    int r = sort_words(s, d);

    if (r != 0)
        return r;
    judge(s, d);
    d->all.counted = count(d, &d->all);
    is_disputed = find_dispute(s->edges, d, &d->all);
    left = d->all.counted;
    none = s->words[0].job[0] == '\0' ? &s->words[0] : &d->all;
    for (size_t i = 0; i < s->n_words; i++) {
        struct words *w = &s->words[i];

        if (w->job[0] == '\0' || d->is_mute)
            continue;
        w->counted = lesser(count(d, w), left);
        left -= w->counted;
        if (!is_disputed)
            (void)find_dispute(s->edges, d, w);
    }
    /* What no job is counted for comes first, as in the order of names. */
    r = add_rows(s->edges, d, "", none, left);
    for (size_t i = 0; r == 0 && i < s->n_words; i++)
        if (s->words[i].job[0])
            r = add_rows(s->edges, d, s->words[i].job, &s->words[i], s->words[i].counted);
    return r;
}

/* From claims, which are sorted, to rows and disputes. 0 or -ENOMEM. */
static int settle_all(
    struct claim *claims, size_t n, const struct tellers *tellers, struct traffic_edges *ret)
{
    struct settling s = {.tellers = tellers, .edges = ret};
    int r = 0;

    qsort(claims, n, sizeof(*claims), compare_claims);
    for (size_t i = 0, end; r == 0 && i < n; i = end) {
        struct direction d = {.claims = claims + i};

        for (end = i + 1; end < n && strcmp(claims[i].from, claims[end].from) == 0 &&
                          strcmp(claims[i].to, claims[end].to) == 0;
             end++)
            continue;
        d.n = end - i;
        r = settle(&s, &d);
    }
    free(s.words);
    return r;
}

/* ---- a whole day ---------------------------------------------------------------------------- */

int traffic_edges_make(const struct traffic_node *nodes, size_t n,
    const struct traffic_facts *facts, struct traffic_edges **ret)
{
    struct tellers tellers = {.facts = facts};
    struct traffic_edges *edges = calloc(1, sizeof(*edges));
    struct claim *claims;
    size_t n_claims = 0;
    int r = -ENOMEM;

    for (size_t i = 0; i < n; i++)
        n_claims += 2 * nodes[i].traffic.n;
    claims = calloc(n_claims + 1, sizeof(*claims));
    if (edges && claims)
        r = make_tellers(&tellers, nodes, n);
    if (r == 0) {
        n_claims = 0;
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < nodes[i].traffic.n; k++)
                n_claims += claims_of(nodes[i].name, &nodes[i].traffic.flows[k], claims + n_claims);
        r = settle_all(claims, n_claims, &tellers, edges);
    }
    free(claims);
    free(tellers.items);
    if (r == 0)
        *ret = edges;
    else
        traffic_edges_free(edges);
    return r;
}

/* ---- reading day by day from the store ------------------------------------------------------- */

/* Records of a page. */
#define PAGE_MAX 1024

/* A walk through the records, which come in the order of days and nodes. */
struct walk {
    struct traffic_book *book; /* pins */
    struct traffic_query query;
    struct traffic_reader reader;
    char prefix[RECORD_KEY_MAX];
    char last[RECORD_KEY_MAX];  /* where the next page begins behind */
    int32_t day;                /* of @nodes */
    struct traffic_node *nodes; /* owns; those of that day */
    size_t n_nodes;
    size_t cap;
};

static void forget_day(struct walk *w)
{
    for (size_t i = 0; i < w->n_nodes; i++)
        traffic_deinit(&w->nodes[i].traffic);
    w->n_nodes = 0;
}

/* The walk has ended; @w is taken. */
static void end(struct walk *w, int r, const struct err *e)
{
    w->reader.on_end(w->reader.ctx, r, e);
    forget_day(w);
    free(w->nodes);
    free(w);
}

/* Of a node without a record of that day. */
static enum traffic_voice absent_voice(const void *ctx, const char *name)
{
    const struct walk *w = ctx;
    const struct model_network *net = model_find_network(w->book->model, w->query.network);
    const struct model_node *node = net ? model_find_node(net, name) : NULL;

    if (!node)
        return TRAFFIC_VOICE_GONE;
    return node_has_agent(&node->pub.spec) ? TRAFFIC_VOICE_AGENT : TRAFFIC_VOICE_MUTE;
}

/* All records of the day have been read. */
static int end_day(struct walk *w)
{
    struct traffic_facts facts = {.voice = absent_voice, .ctx = w};
    struct traffic_edges *edges;
    int r;

    if (w->n_nodes == 0)
        return 0;
    r = traffic_edges_make(w->nodes, w->n_nodes, &facts, &edges);
    if (r == 0) {
        w->reader.on_day(w->reader.ctx, w->day, edges);
        traffic_edges_free(edges);
    }
    forget_day(w);
    return r;
}

/* The place for what a node has told one hub: that of what it has told another one, or a new one.
 * NULL: no memory. */
static struct traffic *place_for(struct walk *w, const struct traffic_key *key)
{
    struct traffic_node *node = w->n_nodes > 0 ? &w->nodes[w->n_nodes - 1] : NULL;

    if (node && strcmp(node->name, key->node) == 0)
        return &node->traffic;
    if (w->n_nodes == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 64;

        node = realloc(w->nodes, cap * sizeof(*node));
        if (!node)
            return NULL;
        w->nodes = node;
        w->cap = cap;
    }
    node = &w->nodes[w->n_nodes++];
    *node = (struct traffic_node){.traffic = {.day = key->day}};
    (void)snprintf(node->name, sizeof(node->name), "%s", key->node);
    return &node->traffic;
}

/* False: it cannot be understood. A node writes it anew when it speaks of it. */
static bool decode(const struct store_item *item, struct traffic *ret)
{
    json_t *json = seal_check(item->key, item->value, NULL) == 0
                       ? json_loads(item->value, JSON_REJECT_DUPLICATES, NULL)
                       : NULL;
    bool ok = json && traffic_decode(ret, json, "record", NULL) == 0;

    json_decref(json);
    return ok;
}

static int take_record(struct walk *w, const struct traffic_key *key, const struct store_item *item)
{
    struct traffic *place;
    struct traffic read;
    int r = 0;

    if (!decode(item, &read))
        return 0;
    place = place_for(w, key);
    if (!place || traffic_merge(place, &read, SIZE_MAX) < 0)
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

    for (size_t i = 0; r == 0 && i < a->n_items; i++) {
        struct traffic_key key;

        (void)snprintf(w->last, sizeof(w->last), "%s", a->items[i].key);
        if (!traffic_key_parse(&key, a->items[i].key))
            continue;
        if (key.day > w->query.until) {
            has_more = false;
            break;
        }
        if (key.day != w->day)
            r = end_day(w);
        w->day = key.day;
        if (r == 0)
            r = take_record(w, &key, &a->items[i]);
    }
    if (r == 0 && has_more)
        r = ask(w, &e);
    else if (r == 0)
        r = end_day(w);
    if (r == 0 && has_more)
        return;
    if (r != 0 && r == a->r)
        e = *a->e;
    else if (r == -ENOMEM)
        (void)err_set(&e, r, "no memory for what nodes have moved");
    end(w, r, &e);
}

static int ask(struct walk *w, struct err *e)
{
    struct store_range range = {.prefix = w->prefix, .from = w->last, .limit = PAGE_MAX};

    return store_list(w->book->model->store, &range, on_page, w, e);
}

int traffic_read(struct traffic_book *b, const struct traffic_query *query,
    const struct traffic_reader *reader, nsec_t now, struct err *e)
{
    int r = traffic_book_write(b, query->network, now, e);
    struct walk *w = r == 0 ? calloc(1, sizeof(*w)) : NULL;

    if (r == 0 && !w)
        return err_set(e, -ENOMEM, "no memory for what nodes have moved");
    if (!w)
        return r;
    *w = (struct walk){.book = b, .query = *query, .reader = *reader, .day = -1};
    (void)traffic_key_network(w->prefix, query->network);
    (void)traffic_key_day(w->last, query->network, query->since);
    r = ask(w, e);
    if (r != 0)
        free(w);
    return r;
}

json_t *traffic_read_islands(const struct model_network *net)
{
    json_t *islands = json_object();

    for (size_t i = 0; net && i < net->nodes.n; i++) {
        const struct node *node = &model_node_at(net, i)->pub.spec;

        if (node->island[0])
            (void)json_object_set_new(islands, node->meta.name, json_string(node->island));
    }
    return islands;
}

json_t *traffic_read_hubs(const struct model_network *net)
{
    json_t *hubs = json_array();

    for (size_t i = 0; net && i < net->nodes.n; i++) {
        const struct node *node = &model_node_at(net, i)->pub.spec;

        if (node->hub)
            (void)json_array_append_new(hubs, json_string(node->meta.name));
    }
    return hubs;
}
