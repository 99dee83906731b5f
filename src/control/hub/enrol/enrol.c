/* enrol.c - see enrol.h: what is asked of it, and what is answered at once. */
#include "enrol.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/secret.h"
#include "hub/enrol/enrol_internal.h"

void enrol_init(struct enrol *en, struct model *model, const struct rng *rng)
{
    *en = (struct enrol){.model = model, .rng = *rng};
    list_init(&en->waiting);
    list_init(&en->coming);
    limiter_init(&en->limiter, rng_u64(rng));
}

static void free_all(struct list *l)
{
    struct enrolment *x;
    struct enrolment *tmp;

    list_foreach_safe(x, tmp, l, link)
        enrol__free(x);
}

void enrol_deinit(struct enrol *en)
{
    limiter_deinit(&en->limiter);
    if (!en->model)
        return;
    free_all(&en->waiting);
    free_all(&en->coming);
}

/* ---- asking --------------------------------------------------------------------------------- */

static struct enrolment *new_enrolment(const struct enrol_request *rq)
{
    struct enrolment *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    list_init(&x->link);
    x->rq = *rq;
    x->hash = token_hash_of(&rq->secret);
    secret_wipe(&x->rq.secret, sizeof(x->rq.secret));
    x->rq.labels = json_incref((json_t *)rq->labels);
    return x;
}

/* Could a node be made of it? Asked before it joins a batch, which must not fail because of one. */
static int check_node(const struct enrolment *x, struct err *e)
{
    struct node node = NODE_NULL;
    int r = enrol__make_node(&node, x, e);

    node_deinit(&node);
    return r;
}

/* Free @x, for which there is an answer at once: @r is a refusal, or 0: its node is there. */
static int refuse(struct enrol *en, struct enrolment *x, int r, nsec_t now)
{
    enrol__count(en, x, r, now);
    enrol__free(x);
    return r;
}

/* Answer @x at once if that is possible, or else let it wait for the next batch. @x: taken. */
static int wait_for_batch(
    struct enrol *en, struct enrolment *x, nsec_t now, struct model_node **ret, struct err *e)
{
    int r = enrol__judge(en, x, ret, e);

    if (r == 0 && !*ret)
        r = check_node(x, e);
    if (r == 0 && !*ret && en->n_waiting >= ENROL_WAITING_MAX)
        r = err_set(e, -EAGAIN,
            "%u machines wait to be taken in already, as many as may; try again",
            ENROL_WAITING_MAX);
    if (r != 0 || *ret)
        return refuse(en, x, r, now);
    list_add_tail(&en->waiting, &x->link);
    en->n_waiting++;
    enrol__next_batch(en);
    return 0;
}

/* What both a machine that enters and one that only tries need. 0 or as enrol_node(). */
static int begin(struct enrol *en, const struct enrol_request *rq, const struct enrol_proof *proof,
    const struct audit_by *by, nsec_t now, int64_t wall_s, struct enrolment **ret, struct err *e)
{
    struct enrolment *x;

    en->now = now;
    if (!limiter_allows(&en->limiter, &by->from, now)) {
        en->n_refused++;
        return err_set(e, ENROL_E_TOO_OFT,
            "too many enrolments from this address have failed: try again in a minute");
    }
    x = new_enrolment(rq);
    if (!x)
        return err_set(e, -ENOMEM, "no memory for a node");
    x->by = *by;
    x->wall_s = wall_s;
    enrol__check_proof(en, x, proof);
    *ret = x;
    return 0;
}

int enrol_node(struct enrol *en, const struct enrol_request *rq, const struct enrol_proof *proof,
    const struct audit_by *by, nsec_t now, int64_t wall_s, enrol_done_fn done, void *ctx,
    struct model_node **ret, struct err *e)
{
    struct enrolment *x;
    int r = begin(en, rq, proof, by, now, wall_s, &x, e);

    *ret = NULL;
    if (r != 0)
        return r;
    x->done = done;
    x->ctx = ctx;
    return wait_for_batch(en, x, now, ret, e);
}

int enrol_try(struct enrol *en, const struct enrol_request *rq, const struct enrol_proof *proof,
    const struct audit_by *by, nsec_t now, int64_t wall_s, const struct model_network **ret,
    struct err *e)
{
    struct model_node *known = NULL;
    struct enrolment *x;
    int r = begin(en, rq, proof, by, now, wall_s, &x, e);

    if (r != 0)
        return r;
    r = enrol__judge(en, x, &known, e);
    if (r == 0 && !known)
        r = check_node(x, e);
    if (r != 0)
        return refuse(en, x, r, now);
    *ret = x->net;
    enrol__free(x);
    return 0;
}

int enrol_add(struct enrol *en, struct model_network *net, const struct node_request *rq,
    const struct audit_by *by, nsec_t now, enrol_done_fn done, void *ctx, struct err *e)
{
    struct enrol_request er = {.key = rq->key, .labels = rq->labels, .routes = rq->routes};
    struct enrolment *x = new_enrolment(&er);
    struct model_node *known;

    if (!x)
        return err_set(e, -ENOMEM, "no memory for a node");
    en->now = now;
    x->is_added = true;
    x->by = *by;
    x->done = done;
    x->ctx = ctx;
    (void)snprintf(x->name, sizeof(x->name), "%s", rq->name);
    (void)snprintf(x->network, sizeof(x->network), "%.*s", NAME_MAX_LEN, net->pub.spec.meta.name);
    return wait_for_batch(en, x, now, &known, e);
}

/* ---- tokens --------------------------------------------------------------------------------- */

void enrol_token_deinit(struct enrol_token *t)
{
    free(t->value);
    t->value = NULL;
}

int enrol_new_secret(struct enrol *en, struct model_network *net, const struct token_request *rq,
    const char *by, int64_t wall_s, struct enrol_token *ret, struct token_secret *ret_secret,
    struct err *e)
{
    struct token_record record = {.hub_key = net->maker.key,
        .expires_at = wall_s + rq->ttl_seconds,
        .uses = rq->uses,
        .ephemeral = rq->ephemeral,
        .relay = rq->relay,
        .routes = rq->routes,
        .created_at = wall_s};
    struct token_hash hash;

    if (net->n_tokens >= ENROL_TOKENS_MAX)
        return err_set(e, ENROL_E_TOKENS,
            "network \"%.*s\" has %d join tokens, as many as a hub keeps for one: each goes by "
            "itself when its time is over, \"weft token rm\" removes one, and one made with --uses "
            "lets many machines in",
            NAME_MAX_LEN, net->pub.spec.meta.name, ENROL_TOKENS_MAX);
    (void)snprintf(
        record.network, sizeof(record.network), "%.*s", NAME_MAX_LEN, net->pub.spec.meta.name);
    (void)snprintf(record.created_by, sizeof(record.created_by), "%s", by);
    rng_fill(&en->rng, ret_secret->b, sizeof(ret_secret->b));
    hash = token_hash_of(ret_secret);
    ret->value = record_token_encode(&record);
    if (!ret->value)
        return err_set(e, -ENOMEM, "no memory for a token");
    ret->op = (struct store_op){.kind = STORE_OP_PUT,
        .key = token_hash_key(ret->key, &hash),
        .value = ret->value,
        .expect = STORE_EXPECT_ABSENT,
        .ttl_seconds = enrol__token_ttl(&record, wall_s)};
    return 0;
}

void enrol_give_back(const struct model_token *t, int64_t wall_s, struct enrol_token *ret)
{
    struct token_record more = t->record;

    *ret = (struct enrol_token){.value = NULL};
    if (more.expires_at <= wall_s || more.uses >= REQUEST_USES_MAX)
        return;
    more.uses++;
    ret->value = record_token_encode(&more);
    (void)token_hash_key(ret->key, &t->hash);
    ret->op = (struct store_op){.kind = STORE_OP_PUT,
        .key = ret->key,
        .value = ret->value,
        .expect = t->revision,
        .ttl_seconds = enrol__token_ttl(&more, wall_s)};
}
