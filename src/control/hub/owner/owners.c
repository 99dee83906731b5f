/* owners.c - see owners.h. */
#include "owners.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/model/model.h"
#include "os/log.h"
#include "rendezvous/shared/rdzv_record.h"
#include "store/store.h"

/* How many heartbeats of the former run are needed to say that it lives: one may have been on its
 * way when it was killed. */
#define DUPLICATE_FORMER_HEARTBEATS 2

/* How often a hub writes its heartbeat. */
#define OWNER_HEARTBEAT_EACH (2 * NSEC_PER_SEC)

/* How long a network must have been absent: its owner may be deleting its jobs itself. */
#define ORPHANS_AFTER (10 * NSEC_PER_SEC)

/* ---- which hub serves the jobs of a network: what one of them decides ------------------------ */

enum owner_decision owner_decide(const struct owner_facts *f)
{
    bool is_alive = f->stored_at > 0 && f->now - f->stored_at < OWNER_SERVE_FOR;
    bool is_late = f->now - f->heard_at >= OWNER_TAKE_AFTER;

    /* Who cannot write could not keep what it takes, either. */
    if (!is_alive)
        return OWNER_WAIT;
    if (!f->has_record)
        return f->is_maker || is_late ? OWNER_TAKE : OWNER_WAIT;
    if (f->is_own)
        return OWNER_SERVE;
    return f->is_nobodys || is_late ? OWNER_TAKE : OWNER_WAIT;
}

/* ---- another process that runs as this hub --------------------------------------------------- */

enum duplicate_verdict duplicate_hear(
    struct duplicate *t, uint64_t run, nsec_t stored_at, nsec_t now)
{
    bool is_new = run != t->other;

    if (run == t->own)
        t->has_begun = true;
    else if (!t->has_begun)
        t->former = run;
    if (run == t->own || !t->has_begun)
        return DUPLICATE_NONE;
    t->n_heard = is_new ? 1 : t->n_heard + 1;
    t->other = run;
    t->heard_at = now;
    if (stored_at != 0 && now - stored_at >= OWNER_TAKE_AFTER)
        return DUPLICATE_REPLACED;
    if (run == t->former)
        return t->n_heard >= DUPLICATE_FORMER_HEARTBEATS ? DUPLICATE_IS_OLDER : DUPLICATE_NONE;
    return is_new ? DUPLICATE_NEW : DUPLICATE_NONE;
}

bool duplicate_has_left(struct duplicate *t, nsec_t now)
{
    if (t->other == 0 || now - t->heard_at < OWNER_TAKE_AFTER)
        return false;
    t->other = 0;
    return true;
}

/* ---- what the store says -------------------------------------------------------------------- */

static struct owners_hub *find_hub(const struct owners *o, const char *name)
{
    for (size_t i = 0; i < o->n_hubs; i++)
        if (strcmp(o->hubs[i].name, name) == 0)
            return &o->hubs[i];
    return NULL;
}

static struct owners_network *find_network(const struct owners *o, const char *name)
{
    for (size_t i = 0; i < o->n_networks; i++)
        if (strcmp(o->networks[i].name, name) == 0)
            return &o->networks[i];
    return NULL;
}

/* The one of that name, made if there is none; NULL: there are too many. */
static struct owners_network *get_network(struct owners *o, const char *name)
{
    struct owners_network *n = find_network(o, name);

    if (n || o->n_networks == OWNERS_NETWORKS_MAX || strlen(name) > NAME_MAX_LEN)
        return n;
    n = &o->networks[o->n_networks++];
    *n = (struct owners_network){.known_at = o->clock()};
    (void)snprintf(n->name, sizeof(n->name), "%s", name);
    return n;
}

/* A heartbeat of this hub's name, perhaps of another process that has it. */
static void hear_own(struct owners *o, const struct heartbeat_record *heartbeat)
{
    static const char ends[] =
        "another process runs as hub \"%s\" on this store, with its name and its key, and this one "
        "%s, so it ends: a state directory is for one hub only; start others with an empty one and "
        "another --name";

    switch (duplicate_hear(&o->duplicate, heartbeat->boot, o->stored_at, o->clock())) {
    case DUPLICATE_NEW:
        log_warning(
            "another process was started as hub \"%s\" on this store, with its name and its "
            "key: that one is to end; a state directory is for one hub only",
            o->model->self);
        break;
    case DUPLICATE_IS_OLDER:
        (void)err_set(&o->failure, -EEXIST, ends, o->model->self, "was started later");
        break;
    case DUPLICATE_REPLACED:
        (void)err_set(&o->failure, -EEXIST, ends, o->model->self, "was taken for dead");
        break;
    case DUPLICATE_NONE:
        break;
    }
}

static int take_heartbeat(void *ctx, const struct store_item *item)
{
    const char *name = item->key + strlen(OWNER_HEARTBEAT_PREFIX);
    struct owners *o = ctx;
    struct owners_hub *hub = find_hub(o, name);
    struct heartbeat_record heartbeat;

    if (!item->value || heartbeat_record_decode(&heartbeat, item->value, NULL) != 0) {
        if (hub)
            *hub = o->hubs[--o->n_hubs];
        return 0;
    }
    if (!hub && (o->n_hubs == OWNERS_HUBS_MAX || strlen(name) > NAME_MAX_LEN))
        return 0;
    if (!hub) {
        hub = &o->hubs[o->n_hubs++];
        (void)snprintf(hub->name, sizeof(hub->name), "%s", name);
    }
    hub->revision = item->revision;
    hub->heard_at = o->clock();
    if (strcmp(name, o->model->self) == 0)
        hear_own(o, &heartbeat);
    return 0;
}

static int take_owner(void *ctx, const struct store_item *item)
{
    struct owners *o = ctx;
    struct owners_network *n = get_network(o, item->key + strlen(OWNER_RECORD_PREFIX));
    struct err e = ERR_NULL;

    if (!n)
        return 0;
    n->record = (struct owner_record){.epoch = 0};
    n->revision = item->value ? item->revision : 0;
    /* One that cannot be read names nobody; who takes over writes it anew. */
    if (item->value && owner_record_decode(&n->record, item->value, &e) != 0)
        log_warning("\"%s\" is taken for nobody's: %s", item->key, err_text(&e));
    return 0;
}

static void on_heartbeat(void *ctx, const struct store_item *item)
{
    if (item)
        (void)take_heartbeat(ctx, item);
}

static void on_owner(void *ctx, const struct store_item *item)
{
    if (item)
        (void)take_owner(ctx, item);
}

/* ---- life ----------------------------------------------------------------------------------- */

void owners_init(struct owners *o, struct model *model, nsec_t (*clock)(void))
{
    *o = (struct owners){.model = model, .clock = clock};
}

int owners_load(struct owners *o, struct err *e)
{
    struct store *s = o->model->store;
    uint64_t from = store_revision(s) + 1;
    int r;

    if (!store_is_shared(s))
        return 0;
    o->hubs = calloc(OWNERS_HUBS_MAX, sizeof(*o->hubs));
    o->networks = calloc(OWNERS_NETWORKS_MAX, sizeof(*o->networks));
    if (!o->hubs || !o->networks)
        return err_set(e, -ENOMEM, "no memory for other hubs");
    o->duplicate.own = o->model->boot;
    r = store_watch(s, OWNER_HEARTBEAT_PREFIX, from, on_heartbeat, o, &o->watches[0], e);
    if (r == 0)
        r = store_watch(s, OWNER_RECORD_PREFIX, from, on_owner, o, &o->watches[1], e);
    if (r == 0)
        r = store_now_list(s, OWNER_HEARTBEAT_PREFIX, take_heartbeat, o, NULL, e);
    if (r == 0)
        r = store_now_list(s, OWNER_RECORD_PREFIX, take_owner, o, NULL, e);
    return r;
}

void owners_deinit(struct owners *o)
{
    for (unsigned i = 0; i < 2; i++)
        o->watches[i] = store_watch_close(o->watches[i]);
    free(o->hubs);
    free(o->networks);
    o->hubs = NULL;
    o->networks = NULL;
    o->n_hubs = 0;
    o->n_networks = 0;
}

/* ---- heartbeats
 * ---------------------------------------------------------------------------------- */

static void on_stored(void *ctx, const struct store_answer *a)
{
    struct owners *o = ctx;

    o->is_beating = false;
    if (a->r == 0)
        o->stored_at = o->begun_at;
}

/* Nothing is said about what fails: the store's other users do that. */
static void send_heartbeat(struct owners *o, nsec_t now)
{
    struct heartbeat_record heartbeat = {.boot = o->model->boot, .heartbeat = ++o->heartbeat};
    _cleanup_(freep) char *text = heartbeat_record_encode(&heartbeat);
    char key[RECORD_KEY_MAX];
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = owner_key(key, OWNER_HEARTBEAT_PREFIX, o->model->self),
        .value = text,
        .expect = STORE_EXPECT_ANY};

    o->begun_at = now;
    o->is_beating = text && store_commit(o->model->store, &op, 1, now, on_stored, o, NULL) == 0;
}

/* ---- networks ------------------------------------------------------------------------------- */

bool owners_is_of(const struct owners_network *n, const struct model_network *net)
{
    return n->revision == 0 || !n->record.has_network ||
           x25519_public_equal(&n->record.network, &net->maker.key);
}

static enum owner_decision decide(const struct owners *o, const struct owners_network *n,
    const struct model_network *net, nsec_t now)
{
    const struct owners_hub *holder = find_hub(o, n->record.hub);
    struct owner_facts f = {.has_record = n->revision != 0,
        .is_nobodys = n->record.hub[0] == '\0',
        .is_own = strcmp(n->record.hub, o->model->self) == 0,
        .is_maker = strcmp(net->maker.name, o->model->self) == 0,
        .heard_at = n->revision == 0 ? n->known_at
                    : holder         ? holder->heard_at
                                     : n->known_at,
        .stored_at = o->stored_at,
        .now = now};

    /* What the former network has left goes first (struct orphans), and its owner's record with
     * it. */
    return owners_is_of(n, net) ? owner_decide(&f) : OWNER_WAIT;
}

/* What a commit that takes a network over, or gives it up, needs. */
struct asking {
    struct owners *owners; /* pins */
    char network[NAME_MAX_LEN + 1];
    uint64_t epoch;
};

static void on_asked(void *ctx, const struct store_answer *a)
{
    struct asking *x = ctx;
    struct owners_network *n = find_network(x->owners, x->network);

    if (n)
        n->is_asking = false;
    if (a->r == 0 && x->epoch != 0)
        log_info("hub \"%s\" serves the rendezvous of network \"%s\" now (epoch %llu)",
            x->owners->model->self, x->network, (unsigned long long)x->epoch);
    /* After a conflict another one was faster; what fails otherwise is tried again. */
    free(x);
}

static struct asking *new_asking(struct owners *o, const struct owners_network *n, uint64_t epoch)
{
    struct asking *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->owners = o;
    x->epoch = epoch;
    memcpy(x->network, n->name, sizeof(x->network));
    return x;
}

/* One commit: the former owner has not beaten again, this hub is the owner, and its Node says so.
 */
static void take_over(
    struct owners *o, struct owners_network *n, const struct model_network *net, nsec_t now)
{
    struct owner_record mine = {
        .epoch = n->record.epoch + 1, .has_network = true, .network = net->maker.key};
    const struct owners_hub *holder = find_hub(o, n->record.hub);
    struct node node = net->own->spec;
    struct node_hub nh = *node.hub;
    _cleanup_(freep) char *owner = NULL;
    _cleanup_(freep) char *self = NULL;
    char keys[3][RECORD_KEY_MAX];
    struct asking *x = new_asking(o, n, mine.epoch);
    struct store_op ops[3];
    size_t n_ops = 2;

    memcpy(mine.hub, o->model->self, sizeof(mine.hub));
    nh.rendezvous_epoch = mine.epoch;
    node.hub = &nh;
    owner = owner_record_encode(&mine);
    self = record_node_encode(&node, &net->own->token);
    if (!x || !owner || !self) {
        free(x);
        return;
    }
    ops[0] = (struct store_op){.kind = STORE_OP_PUT,
        .key = owner_key(keys[0], OWNER_RECORD_PREFIX, n->name),
        .value = owner,
        .expect = n->revision};
    ops[1] = (struct store_op){.kind = STORE_OP_PUT,
        .key = record_key(keys[1], RECORD_NODE, n->name, o->model->self),
        .value = self,
        .expect = node.meta.resource_version};
    /* If it was only slow, its next heartbeat makes the record anew. */
    if (n->record.hub[0])
        ops[n_ops++] = (struct store_op){.kind = holder ? STORE_OP_DELETE : STORE_OP_CHECK,
            .key = owner_key(keys[2], OWNER_HEARTBEAT_PREFIX, n->record.hub),
            .expect = holder ? holder->revision : STORE_EXPECT_ABSENT};
    n->is_asking = model_store(o->model, ops, n_ops, now, on_asked, x, NULL) == 0;
    if (!n->is_asking)
        free(x);
}

void owners_tick(struct owners *o, nsec_t now)
{
    if (!o->hubs)
        return;
    if (!o->is_beating &&
        (o->heartbeat == 0 || now - o->begun_at >= OWNER_HEARTBEAT_EACH - NSEC_PER_SEC / 2))
        send_heartbeat(o, now);
    /* What is known of networks that are gone, with their records, makes room for others. */
    for (size_t i = o->n_networks; i-- > 0;) {
        const struct owners_network *n = &o->networks[i];

        if (n->revision == 0 && !n->is_asking && !model_find_network(o->model, n->name))
            o->networks[i] = o->networks[--o->n_networks];
    }
    for (size_t i = 0; i < o->model->networks.n; i++) {
        const struct model_network *net = model_network_at(o->model, i);
        struct owners_network *n = get_network(o, net->spec.meta.name);

        if (n && net->own && net->served->is_up && !net->leaving && !n->is_asking &&
            decide(o, n, net, now) == OWNER_TAKE)
            take_over(o, n, net, now);
    }
}

bool owners_serves(const struct owners *o, const struct model_network *net, nsec_t now)
{
    const struct owners_network *n;

    if (!o->hubs)
        return true;
    n = find_network(o, net->spec.meta.name);
    return n && net->own && decide(o, n, net, now) == OWNER_SERVE;
}

const struct owners_network *owners_find(const struct owners *o, const char *network)
{
    return o->hubs ? find_network(o, network) : NULL;
}

bool owners_is_alive(const struct owners *o, const char *hub, nsec_t now)
{
    const struct owners_hub *other = o->hubs ? find_hub(o, hub) : NULL;

    return strcmp(hub, o->model->self) == 0 || (other && now - other->heard_at < OWNER_TAKE_AFTER);
}

static void give_up(struct owners *o, struct owners_network *n, nsec_t now)
{
    struct owner_record nobodys = n->record;
    _cleanup_(freep) char *text = NULL;
    struct asking *x = new_asking(o, n, 0);
    char key[RECORD_KEY_MAX];
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = owner_key(key, OWNER_RECORD_PREFIX, n->name),
        .expect = n->revision};

    nobodys.hub[0] = '\0';
    text = owner_record_encode(&nobodys);
    op.value = text;
    if (!text || !x || store_commit(o->model->store, &op, 1, now, on_asked, x, NULL) != 0)
        free(x);
}

const struct err *owners_failure(const struct owners *o)
{
    return o->failure.code != 0 ? &o->failure : NULL;
}

void owners_give_up(struct owners *o, nsec_t now)
{
    for (size_t i = 0; i < o->n_networks && !owners_failure(o); i++)
        if (o->networks[i].revision != 0 && strcmp(o->networks[i].record.hub, o->model->self) == 0)
            give_up(o, &o->networks[i], now);
}

/* ---- what removed networks have left --------------------------------------------------------- */

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
static bool is_orphan(const struct owners *o, const struct owners_network *n, nsec_t now)
{
    return n->revision != 0 && (is_made_again(o, n) || !model_find_network(o->model, n->name)) &&
           (n->record.hub[0] == '\0' || strcmp(n->record.hub, o->model->self) == 0 ||
               !owners_is_alive(o, n->record.hub, now));
}

/* One that is there again first: its jobs wait for that. */
static void find_next(struct orphans *l, nsec_t now)
{
    const struct owners *o = l->owners;
    const struct owners_network *next = NULL;

    for (size_t i = 0; i < o->n_networks; i++) {
        const struct owners_network *n = &o->networks[i];

        if (is_orphan(o, n, now) && (!next || is_made_again(o, n)))
            next = n;
    }
    if (next && (!l->network[0] || is_made_again(o, next))) {
        memcpy(l->network, next->name, sizeof(l->network));
        l->since = now;
    }
}

/* ---- one page -------------------------------------------------------------------------------- */

static void on_deleted(void *ctx, const struct store_answer *a)
{
    struct orphans *l = ctx;

    /* After a conflict the network, or its owner, is another one; the next look shows it. */
    l->is_busy = false;
    if (l->is_last && a->r == 0)
        log_info("nothing is left of network \"%s\", which was removed", l->network);
}

/* What each of these commits expects. @ops: room for two. Returns how many. A network that is there
 * again as another one takes its owner's record only when that is gone, so that one is enough. */
static size_t add_checks(const struct orphans *l, struct store_op *ops,
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
    struct orphans *l = ctx;
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
            .is_unwatched = true};
    l->is_busy = store_commit(s, ops, n, 0, on_deleted, l, NULL) == 0;
}

/* ---- the clock ------------------------------------------------------------------------------- */

void orphans_tick(struct orphans *l, nsec_t now)
{
    const struct owners_network *n = l->network[0] ? owners_find(l->owners, l->network) : NULL;
    char prefix[RDZV_KEY_MAX];
    const struct store_range range = {.prefix = prefix, .limit = KEYS_MAX};

    if (l->is_busy)
        return;
    if (!n || !is_orphan(l->owners, n, now)) {
        l->network[0] = '\0';
    } else if (is_made_again(l->owners, n) || now - l->since >= ORPHANS_AFTER) {
        (void)snprintf(prefix, sizeof(prefix), "%s%s/", RDZV_KEY_PREFIX, l->network);
        l->revision = n->revision;
        l->is_busy = store_list(l->owners->model->store, &range, on_page, l, NULL) == 0;
    }
    if (!l->is_busy)
        find_next(l, now);
}
