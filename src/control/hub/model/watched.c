/* watched.c - see watched.h. */
#include "hub/model/watched.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/server/stream.h"

/* Of an object that is gone. */
struct gone {
    struct watched_change change;
    struct list of_gone; /* in the network's list of that name */
    char name[];
};

/* ---- life ----------------------------------------------------------------------------------- */

void watched_network_init(struct watched_network *net, uint64_t revision)
{
    *net = (struct watched_network){.forgotten = revision};
    list_init(&net->watches);
    list_init(&net->change.link);
    list_init(&net->changes);
    list_init(&net->gone);
}

/* Of a later change there may have been no memory for its entry. */
static void forget(struct watched_network *net, uint64_t serial, uint64_t revision)
{
    if (net->forgotten_serial < serial)
        net->forgotten_serial = serial;
    if (net->forgotten < revision)
        net->forgotten = revision;
}

static void forget_oldest(struct watched_network *net)
{
    struct gone *g = list_first(&net->gone, struct gone, of_gone);

    forget(net, g->change.serial, g->change.revision);
    list_remove(&g->change.link);
    list_remove(&g->of_gone);
    net->n_gone--;
    free(g);
}

void watched_network_deinit(struct watched_network *net)
{
    while (net->n_gone > 0)
        forget_oldest(net);
    net->text = line_unref(net->text);
    for (size_t i = 0; i < net->n_blocks; i++) {
        (void)line_unref(net->blocks[i]->text);
        free(net->blocks[i]);
    }
    free(net->blocks);
    net->blocks = NULL;
    net->n_blocks = 0;
    for (unsigned i = 0; i < WATCHED_TEXTS; i++) {
        (void)line_unref(net->texts[i].line);
        net->texts[i] = (struct watched_text){.line = NULL};
    }
}

void watched_node_init(struct watched_node *node, const struct model_node *of)
{
    *node = (struct watched_node){.node = of};
    list_init(&node->watches);
    list_init(&node->change.link);
}

void watched_node_deinit(struct watched_node *node)
{
    list_remove(&node->change.link);
    node->text = line_unref(node->text);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

/* A block with room for one more; NULL: no memory. */
static struct watched_block *find_block(struct watched_network *net)
{
    struct watched_block **blocks;
    struct watched_block *b;

    for (size_t i = net->n_blocks; i-- > 0;)
        if (net->blocks[i]->n < WATCHED_BLOCK_NODES)
            return net->blocks[i];
    blocks = reallocarray(net->blocks, net->n_blocks + 1, sizeof(struct watched_block *));
    if (!blocks)
        return NULL;
    net->blocks = blocks;
    b = calloc(1, sizeof(*b));
    if (b)
        blocks[net->n_blocks++] = b;
    return b;
}

int watched_node_add(struct watched_network *net, struct watched_node *node)
{
    struct watched_block *b = find_block(net);

    if (!b)
        return -ENOMEM;
    b->nodes[b->n++] = node;
    b->text = line_unref(b->text);
    node->block = b;
    return 0;
}

void watched_node_remove(struct watched_node *node)
{
    struct watched_block *b = node->block;
    unsigned i = 0;

    list_remove(&node->change.link);
    if (!b)
        return;
    while (b->nodes[i] != node)
        i++;
    b->nodes[i] = b->nodes[--b->n];
    b->text = line_unref(b->text);
    node->block = NULL;
}

void watched_node_changed(struct watched_node *node)
{
    node->text = line_unref(node->text);
    if (node->block)
        node->block->text = line_unref(node->block->text);
}

/* ---- changes -------------------------------------------------------------------------------- */

static struct watched_change *change_of(const struct list *link)
{
    return container_of(link, struct watched_change, link);
}

void watched_add(struct watched_network *net, struct watched_change *c,
    const struct object_kind *kind, const char *name, uint64_t revision)
{
    list_remove(&c->link);
    c->kind = kind;
    c->name = name;
    c->serial = ++net->serial;
    c->revision = revision;
    list_add_tail(&net->changes, &c->link);
}

void watched_add_gone(struct watched_network *net, const struct object_kind *kind, const char *name,
    uint64_t revision)
{
    size_t len = strlen(name) + 1;
    struct gone *g = malloc(sizeof(*g) + len);

    if (!g) {
        forget(net, ++net->serial, revision);
        return;
    }
    *g = (struct gone){.change.is_gone = true};
    list_init(&g->change.link);
    memcpy(g->name, name, len);
    list_add_tail(&net->gone, &g->of_gone);
    watched_add(net, &g->change, kind, g->name, revision);
    if (++net->n_gone > WATCHED_GONE_MAX)
        forget_oldest(net);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = (*(struct watched_change *const *)a)->revision;
    uint64_t y = (*(struct watched_change *const *)b)->revision;

    return (x > y) - (x < y);
}

int watched_sort(struct watched_network *net)
{
    struct watched_change *c;
    struct watched_change **all;
    size_t n = 0;

    list_foreach(c, &net->changes, link)
        n++;
    all = calloc(n + 1, sizeof(struct watched_change *));
    if (!all)
        return -ENOMEM;
    n = 0;
    list_foreach(c, &net->changes, link)
        all[n++] = c;
    qsort(all, n, sizeof(struct watched_change *), compare);
    for (size_t i = 0; i < n; i++)
        watched_add(net, all[i], all[i]->kind, all[i]->name, all[i]->revision);
    free(all);
    return 0;
}

bool watched_find(const struct watched_network *net, uint64_t revision, uint64_t *ret_cursor)
{
    const struct list *first = &net->changes;
    uint64_t cursor;

    if (revision <= net->forgotten)
        return false;
    while (first->prev != &net->changes && change_of(first->prev)->revision >= revision)
        first = first->prev;
    cursor = first != &net->changes ? change_of(first)->serial - 1 : net->serial;
    *ret_cursor = cursor < net->ready ? cursor : net->ready;
    return true;
}

size_t watched_read(const struct watched_network *net, uint64_t *cursor,
    const struct watched_change *ret[static WATCHED_READ_MAX], uint64_t *ret_end)
{
    uint64_t last = (*cursor / WATCHED_READ_MAX + 1) * WATCHED_READ_MAX;
    const struct list *head = &net->changes;
    const struct list *at = net->changes.prev;
    size_t n = 0;

    if (last > net->ready)
        last = net->ready;
    while (at != head && change_of(at)->serial > *cursor)
        at = at->prev;
    for (at = at->next; at != head && change_of(at)->serial <= last; at = at->next)
        ret[n++] = change_of(at);
    *cursor = last;
    *ret_end = at != head && change_of(at)->serial <= net->ready ? change_of(at)->revision : 0;
    return n;
}
