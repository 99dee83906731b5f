/* leftovers.c - see leftovers.h. */
#include "leftovers.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "hub/model/model.h"
#include "hub/owner/owners.h"
#include "os/log.h"
#include "rendezvous/shared/rdzv_record.h"
#include "store/store.h"

/* Keys that are deleted at once. With two checks they fit into one transaction of etcd. */
#define KEYS_MAX 96

/* ---- which network --------------------------------------------------------------------------- */

/* Is the network there again, as another one? */
static bool is_made_again(const struct owners *o, const struct owners_network *n)
{
    const struct model_network *net = model_find_network(o->model, n->name);

    return net && !owners_is_of(n, net);
}

/* Has the network gone, and is it for this hub to clear up? */
static bool is_leftover(const struct owners *o, const struct owners_network *n, nsec_t now)
{
    return n->revision != 0 && (is_made_again(o, n) || !model_find_network(o->model, n->name)) &&
           (n->record.hub[0] == '\0' || strcmp(n->record.hub, o->model->self) == 0 ||
               !owners_is_alive(o, n->record.hub, now));
}

static void look_at(struct leftovers *l, const struct owners_network *n, nsec_t now)
{
    memcpy(l->network, n->name, sizeof(l->network));
    l->since = now;
}

/* One that is there again first: its jobs wait for that. */
static void find_next(struct leftovers *l, nsec_t now)
{
    const struct owners *o = l->owners;
    const struct owners_network *next = NULL;

    for (size_t i = 0; i < o->n_networks; i++) {
        const struct owners_network *n = &o->networks[i];

        if (is_leftover(o, n, now) && (!next || is_made_again(o, n)))
            next = n;
    }
    if (next && (!l->network[0] || is_made_again(o, next)))
        look_at(l, next, now);
}

/* ---- one page -------------------------------------------------------------------------------- */

static void on_deleted(void *ctx, const struct store_answer *a)
{
    struct leftovers *l = ctx;

    /* After a conflict the network, or its owner, is another one; the next look shows it. */
    l->is_busy = false;
    if (l->is_last && a->r == 0)
        log_info("nothing is left of network \"%s\", which was removed", l->network);
}

/* What each of these commits expects. @ops: room for two. Returns how many. A network that is there
 * again as another one takes its owner's record only when that is gone, so that one is enough. */
static size_t add_checks(const struct leftovers *l, struct store_op *ops,
    char keys[static 2][RECORD_KEY_MAX], enum store_op_kind of_owner)
{
    ops[0] = (struct store_op){.kind = of_owner,
        .key = owner_key(keys[0], OWNER_RECORD_PREFIX, l->network),
        .expect = l->revision};
    if (model_find_network(l->owners->model, l->network))
        return 1;
    ops[1] = (struct store_op){.kind = STORE_OP_CHECK,
        .key = record_key(keys[1], RECORD_NETWORK, l->network, ""),
        .expect = STORE_EXPECT_ABSENT};
    return 2;
}

static void on_page(void *ctx, const struct store_answer *a)
{
    struct leftovers *l = ctx;
    struct store *s = l->owners->model->store;
    struct store_op ops[KEYS_MAX + 2];
    char keys[2][RECORD_KEY_MAX];
    size_t n;

    l->is_busy = false;
    l->is_last = a->n_items == 0;
    if (a->r != 0)
        return;
    n = add_checks(l, ops, keys, l->is_last ? STORE_OP_DELETE : STORE_OP_CHECK);
    for (size_t i = 0; i < a->n_items; i++)
        ops[n++] = (struct store_op){.kind = STORE_OP_DELETE,
            .key = a->items[i].key,
            .expect = STORE_EXPECT_ANY,
            .is_untold = true};
    l->is_busy = store_commit(s, ops, n, 0, on_deleted, l, NULL) == 0;
}

static void read_page(struct leftovers *l, uint64_t revision)
{
    char prefix[RDZV_KEY_MAX];
    const struct store_range range = {.prefix = prefix, .limit = KEYS_MAX};

    (void)snprintf(prefix, sizeof(prefix), "%s%s/", RDZV_KEY_PREFIX, l->network);
    l->revision = revision;
    l->is_busy = store_list(l->owners->model->store, &range, on_page, l, NULL) == 0;
}

/* ---- the clock ------------------------------------------------------------------------------- */

void leftovers_init(struct leftovers *l, struct owners *owners)
{
    *l = (struct leftovers){.owners = owners};
}

void leftovers_tick(struct leftovers *l, nsec_t now)
{
    const struct owners_network *n = l->network[0] ? owners_find(l->owners, l->network) : NULL;

    if (l->is_busy)
        return;
    if (!n || !is_leftover(l->owners, n, now))
        l->network[0] = '\0';
    else if (is_made_again(l->owners, n) || now - l->since >= LEFTOVERS_AFTER)
        read_page(l, n->revision);
    if (!l->is_busy)
        find_next(l, now);
}
