/* enrol_batch.c - machines that may enter, on their way to the store; see enrol_internal.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "hub/enrol/enrol_internal.h"

/* Times that a batch is judged when others change the same keys. */
#define RETRIES 8

/* Most keys that a batch writes: one for each node, each network and each token in it. */
#define WRITES_MAX (4 * ENROL_BATCH_MAX)

/* ---- the end of one ------------------------------------------------------------------------- */

void enrol__free(struct enrolment *x)
{
    list_remove(&x->link);
    json_decref((json_t *)x->rq.labels);
    free(x);
}

void enrol__count(struct enrol *en, const struct enrolment *x, int r, nsec_t now)
{
    if (x->is_added)
        return;
    if (r == 0)
        en->n_enrolled++;
    else
        en->n_refused++;
    if (r == ENROL_E_DENIED)
        limiter_failed(&en->limiter, &x->by.from, now);
}

static void finish(
    struct enrol *en, struct enrolment *x, int r, struct model_node *node, const struct err *e)
{
    list_remove(&x->link);
    en->n_waiting--;
    enrol__count(en, x, r, en->now);
    x->done(x->ctx, r, r == 0 ? node : NULL, e);
    enrol__free(x);
}

/* What is kept of a token after its end, so that the sentence can say "expired". The lease counts
 * from the start of the hub, so it may be longer, never shorter. */
#define TOKEN_LINGER_S 86400

uint32_t enrol__token_ttl(const struct token_record *t, int64_t wall_s)
{
    int64_t left = t->expires_at > wall_s ? t->expires_at - wall_s : 0;

    return (uint32_t)left + TOKEN_LINGER_S;
}

/* ---- what a batch writes -------------------------------------------------------------------- */

struct writes {
    struct store_op ops[WRITES_MAX];
    char keys[WRITES_MAX][RECORD_KEY_MAX];
    char *values[WRITES_MAX]; /* owns */
    struct audit_by by[WRITES_MAX];
    size_t n;
};

static void writes_freep(struct writes **p)
{
    for (size_t i = 0; *p && i < (*p)->n; i++)
        free((*p)->values[i]);
    free(*p);
}

/* The next key to be filled in by the caller is w->keys[w->n]; @value is taken. */
static void add_write(
    struct writes *w, const struct enrolment *x, char *value, uint64_t expect, uint32_t ttl_seconds)
{
    w->values[w->n] = value;
    w->by[w->n] = x->by;
    w->ops[w->n] = (struct store_op){.kind = value ? STORE_OP_PUT : STORE_OP_CHECK,
        .key = w->keys[w->n],
        .value = value,
        .expect = expect,
        .ttl_seconds = ttl_seconds};
    w->n++;
}

/* ---- who is in it ---------------------------------------------------------------------------- */

/* Those of the batch before @x that use its token, if it has one (and @x itself); the first. */
static unsigned uses_before(
    const struct enrol *en, const struct enrolment *x, const struct enrolment **ret_first)
{
    const struct enrolment *it;
    unsigned n = 0;

    *ret_first = NULL;
    list_foreach(it, &en->coming, link) {
        if (x->token && it->token == x->token) {
            *ret_first = *ret_first ? *ret_first : it;
            n++;
        }
        if (it == x)
            break;
    }
    return n;
}

/* Does @x want what another of the batch is being given? Then it has to wait for the outcome. */
static bool is_in_the_way(const struct enrol *en, const struct enrolment *x)
{
    const struct enrolment *first;
    const struct enrolment *it;

    list_foreach(it, &en->coming, link) {
        if (it->net == x->net &&
            (x25519_public_equal(&it->rq.key, &x->rq.key) || strcmp(it->name, x->name) == 0 ||
                (it->rq.routes.n > 0 && x->rq.routes.n > 0)))
            return true;
    }
    return x->token && uses_before(en, x, &first) >= x->token->record.uses;
}

/* Take the host number of @x, so that the rest of the batch gets others. Returns the cursor as it
 * was, which is put back when the batch is complete. */
static uint32_t hold_number(struct enrolment *x)
{
    uint32_t before = x->net->ipam.next;

    (void)ipam_take(&x->net->ipam, x->number);
    x->net->ipam.next = x->number + 1;
    return before;
}

/*
 * Make a batch of the oldest machines that wait: as many as fit one commit. Those that are refused
 * are told so.
 */
static void gather(struct enrol *en)
{
    uint32_t before[ENROL_BATCH_MAX];
    struct enrolment *x;
    unsigned n = 0;

    while (n < ENROL_BATCH_MAX && (x = list_first(&en->waiting, struct enrolment, link))) {
        struct model_node *known = NULL;
        struct err e = ERR_NULL;
        int r = enrol__judge(en, x, &known, &e);

        if (r == 0 && !known && is_in_the_way(en, x))
            break;
        list_remove(&x->link);
        if (r == 0 && !known) {
            list_add_tail(&en->coming, &x->link);
            before[n++] = hold_number(x);
            continue;
        }
        finish(en, x, r, known, &e);
    }
    /* From the last to the first, so that each cursor is put back to where it was. */
    for (struct list *l = en->coming.prev; l != &en->coming; l = l->prev) {
        x = container_of(l, struct enrolment, link);
        (void)ipam_release(&x->net->ipam, x->number);
        x->net->ipam.next = before[--n];
    }
}

/* Write the address cursor of the network of @x, unless one before @x in the batch has done it. */
static int write_network(struct enrol *en, struct writes *w, const struct enrolment *x)
{
    const char *network = x->net->pub.spec.meta.name;
    const struct enrolment *last_of_net = NULL;
    const struct enrolment *first_of_net = NULL;
    uint32_t high = x->net->ipam.high;
    const struct enrolment *it;

    list_foreach(it, &en->coming, link) {
        if (it->net != x->net)
            continue;
        first_of_net = first_of_net ? first_of_net : it;
        last_of_net = it;
        high = it->number > high ? it->number : high;
    }
    if (first_of_net == x) {
        (void)record_key(w->keys[w->n], RECORD_NETWORK, network, "");
        add_write(w, x, NULL, x->net->pub.spec.meta.resource_version, 0);
        (void)record_key(w->keys[w->n], RECORD_IPAM, network, "");
        add_write(
            w, x, record_ipam_encode(last_of_net->number + 1, high), x->net->ipam_revision, 0);
        if (!w->values[w->n - 1])
            return -ENOMEM;
    }
    return 0;
}

/* Write the token of @x, unless one before @x in the batch has done it. */
static int write_token(struct enrol *en, struct writes *w, const struct enrolment *x)
{
    const struct enrolment *first = NULL;
    const struct enrolment *it;
    struct token_record used;

    (void)uses_before(en, x, &first);
    if (first != x)
        return 0;
    used = x->token->record;
    list_foreach(it, &en->coming, link)
        used.uses -= it->token == x->token;
    (void)token_hash_key(w->keys[w->n], &x->token->hash);
    add_write(
        w, x, record_token_encode(&used), x->token->revision, enrol__token_ttl(&used, x->wall_s));
    return w->values[w->n - 1] ? 0 : -ENOMEM;
}

static int write_node(struct writes *w, const struct enrolment *x, struct err *e)
{
    struct node node = NODE_NULL;
    int r = enrol__make_node(&node, x, e);

    if (r != 0)
        return r;
    (void)record_key(w->keys[w->n], RECORD_NODE, x->net->pub.spec.meta.name, node.meta.name);
    add_write(w, x, record_node_encode(&node, &x->hash), STORE_EXPECT_ABSENT,
        node.ephemeral ? ENROL_EPHEMERAL_SECONDS : 0);
    node_deinit(&node);
    return w->values[w->n - 1] ? 0 : err_set(e, -ENOMEM, "no memory for a node");
}

static const struct err busy = {-EAGAIN, "the hub is too busy to take the node in: try again"};

static void on_stored(void *ctx, const struct store_answer *a);

/* Hand the batch to the store as one commit. 0 or negative errno with words. */
static int send_batch(struct enrol *en, struct err *e)
{
    _cleanup_(writes_freep) struct writes *w = calloc(1, sizeof(*w));
    struct audit *audit = en->model->audit;
    const struct enrolment *x;
    int r = w ? 0 : err_set(e, -ENOMEM, "no memory for a node");

    if (r != 0)
        return r;
    list_foreach(x, &en->coming, link) {
        r = write_network(en, w, x) != 0 || write_token(en, w, x) != 0
                ? err_set(e, -ENOMEM, "no memory for a node")
                : write_node(w, x, e);
        if (r != 0)
            return r;
    }
    if (audit)
        audit_act_each(audit, w->by);
    r = model_commit(en->model, w->ops, w->n, en->now, on_stored, en, e);
    if (audit)
        audit_act_each(audit, NULL);
    return r;
}

/* The node that was made; NULL: it has been removed again at once. */
static struct model_node *find_made(const struct enrol *en, const struct enrolment *x)
{
    struct model_network *net = model_find_network(en->model, x->network);
    struct model_node *node = net ? model_find_node(net, x->name) : NULL;

    return node && x25519_public_equal(&node->pub.spec.key, &x->rq.key) ? node : NULL;
}

/* Tell each machine of the batch its outcome, which is the same for all. */
static void end_batch(struct enrol *en, int r, const struct err *e)
{
    struct enrolment *x;

    while ((x = list_first(&en->coming, struct enrolment, link))) {
        struct model_node *node = r == 0 ? find_made(en, x) : NULL;

        if (r == 0 && !node)
            finish(en, x, busy.code, NULL, &busy);
        else
            finish(en, x, r, node, e);
    }
}

/* The batch conflicted: its machines wait again, before those that came later. */
static void put_back(struct enrol *en)
{
    struct list *l;

    while ((l = en->coming.prev) != &en->coming) {
        struct enrolment *x = container_of(l, struct enrolment, link);

        list_remove(&x->link);
        list_add(&en->waiting, &x->link);
        x->n_tries++;
    }
}

void enrol__next_batch(struct enrol *en)
{
    struct err e = ERR_NULL;
    int r;

    while (list_is_empty(&en->coming) && !list_is_empty(&en->waiting)) {
        gather(en);
        if (list_is_empty(&en->coming))
            continue;
        r = send_batch(en, &e);
        if (r != 0)
            end_batch(en, r, &e);
    }
}

static void on_stored(void *ctx, const struct store_answer *a)
{
    struct enrol *en = ctx;
    const struct enrolment *first = list_first(&en->coming, struct enrolment, link);

    if (a->r == STORE_E_CONFLICT && first && first->n_tries + 1 < RETRIES)
        put_back(en);
    else if (a->r == STORE_E_CONFLICT)
        end_batch(en, busy.code, &busy);
    else
        /* If it is not known whether it was stored: a machine that asks again gets the same node.
         */
        end_batch(en, a->r == STORE_E_UNKNOWN ? -EAGAIN : a->r, a->e);
    enrol__next_batch(en);
}
