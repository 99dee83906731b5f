/* traffic_read.c - see traffic_read.h. */
#include "hub/traffic/traffic_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/model/model.h"
#include "hub/record/seal.h"
#include "hub/traffic/traffic_book.h"
#include "hub/traffic/traffic_key.h"
#include "store/store.h"

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
static enum traffic_voice voice_of(const void *ctx, const char *name)
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
    struct traffic_facts facts = {.voice = voice_of, .ctx = w};
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
