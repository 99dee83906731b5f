/* roster.c - see roster.h. */
#include "hub/model/roster.h"

#include <errno.h>
#include <stdlib.h>

#include "api/server/stream.h"

void roster_init(struct roster *r)
{
    list_init(&r->blocks);
}

static void block_free(struct roster_block *b)
{
    list_remove(&b->link);
    (void)line_unref(b->text);
    free(b);
}

void roster_deinit(struct roster *r)
{
    struct roster_block *b;
    struct roster_block *tmp;

    list_foreach_safe(b, tmp, &r->blocks, link)
        block_free(b);
}

/* A block with room for one more; NULL: no memory. */
static struct roster_block *find_room(struct roster *r)
{
    struct roster_block *b = list_first(&r->blocks, struct roster_block, link);

    if (b && b->n < ROSTER_BLOCK_NODES)
        return b;
    b = calloc(1, sizeof(*b));
    if (!b)
        return NULL;
    list_init(&b->places);
    list_add(&r->blocks, &b->link);
    return b;
}

int roster_add(struct roster *r, struct roster_place *place)
{
    struct roster_block *b = find_room(r);

    if (!b)
        return -ENOMEM;
    list_add_tail(&b->places, &place->link);
    place->block = b;
    b->text = line_unref(b->text);
    if (++b->n < ROSTER_BLOCK_NODES)
        return 0;
    list_remove(&b->link);
    list_add_tail(&r->blocks, &b->link);
    return 0;
}

void roster_remove(struct roster *r, struct roster_place *place)
{
    struct roster_block *b = place->block;

    if (!b)
        return;
    list_remove(&place->link);
    place->block = NULL;
    b->text = line_unref(b->text);
    if (--b->n == 0) {
        block_free(b);
        return;
    }
    list_remove(&b->link);
    list_add(&r->blocks, &b->link);
}

void roster_forget(struct roster_place *place)
{
    if (place->block)
        place->block->text = line_unref(place->block->text);
}
