/* model_commit.c - what the hub writes, on its way to the store; see model.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/audit/audit.h"
#include "hub/model/model.h"
#include "hub/record/record.h"

/* Most records whose lease has ended that one commit removes. */
#define EXPIRE_MAX 256

static void free_values(struct store_op *ops, size_t n_ops)
{
    for (size_t i = 0; ops && i < n_ops; i++)
        free((char *)ops[i].value);
    free(ops);
}

/* The same operations with values of their own, sealed where the model knows the kind. */
static struct store_op *seal(const struct store_op *ops, size_t n_ops)
{
    struct store_op *sealed = calloc(n_ops, sizeof(*sealed));

    for (size_t i = 0; sealed && i < n_ops; i++) {
        bool is_ours = record_key_parse(ops[i].key).kind != RECORD_NONE;

        sealed[i] = ops[i];
        if (ops[i].value)
            sealed[i].value = is_ours ? seal_add(ops[i].key, ops[i].value) : strdup(ops[i].value);
        if (ops[i].value && !sealed[i].value) {
            free_values(sealed, i);
            return NULL;
        }
    }
    return sealed;
}

/* @audit: NULL: no log tells of it. */
static int write_sealed(struct model *m, struct audit *audit, const struct store_op *ops,
    size_t n_ops, nsec_t now, store_done_fn done, void *ctx, struct err *e)
{
    struct store_op *sealed = seal(ops, n_ops);
    int r;

    if (!sealed)
        r = err_set(e, -ENOMEM, "no memory for a commit");
    else if (audit)
        r = audit_commit(audit, sealed, n_ops, now, done, ctx, e);
    else
        r = store_commit(m->store, sealed, n_ops, now, done, ctx, e);
    free_values(sealed, n_ops);
    return r;
}

int model_store(struct model *m, const struct store_op *ops, size_t n_ops, nsec_t now,
    store_done_fn done, void *ctx, struct err *e)
{
    return write_sealed(m, NULL, ops, n_ops, now, done, ctx, e);
}

int model_commit(struct model *m, const struct store_op *ops, size_t n_ops, nsec_t now,
    store_done_fn done, void *ctx, struct err *e)
{
    return write_sealed(m, m->audit, ops, n_ops, now, done, ctx, e);
}

/* ---- what ends by itself -------------------------------------------------------------------- */

static void on_expired(void *ctx, const struct store_answer *a)
{
    struct model *m = ctx;
    struct err e = ERR_NULL;

    m->is_expiring = false;
    /* If nothing was removed, the nodes are ordinary again, until the next try. */
    for (size_t i = 0; a->r != 0 && i < m->networks.n; i++)
        for (size_t k = 0; k < model_network_at(m, i)->nodes.n; k++)
            model_node_at(model_network_at(m, i), k)->is_expired = false;
    /* One of them was changed meanwhile, and perhaps it stays: the next call looks again. */
    if (a->r == STORE_E_CONFLICT)
        return;
    /* What fails is tried again by the next call; after a success there may be more. */
    if (a->r != 0)
        m->listener.broken(m->listener.ctx, "", a->e);
    else if (model_expire(m, m->expired_at, &e) != 0)
        m->listener.broken(m->listener.ctx, "", &e);
}

int model_expire(struct model *m, nsec_t now, struct err *e)
{
    const char *ended[EXPIRE_MAX];
    struct store_op ops[EXPIRE_MAX];
    size_t n = m->is_expiring ? 0 : store_ended(m->store, now, ended, EXPIRE_MAX);
    int r;

    if (n == 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t held = model_revision(m, ended[i]);

        /* The model knows no revision of records that it does not keep; their owners follow the
         * store by themselves. */
        ops[i] = (struct store_op){
            .kind = STORE_OP_DELETE, .key = ended[i], .expect = held ? held : STORE_EXPECT_ANY};
    }
    r = model_commit(m, ops, n, now, on_expired, m, e);
    if (r != 0)
        return r;
    m->is_expiring = true;
    m->expired_at = now;
    for (size_t i = 0; i < n; i++) {
        struct record_key k = record_key_parse(ended[i]);
        struct model_node *node = model_find_node(model_find_network(m, k.network), k.name);

        /* Its removal is on its way: nothing more is written of it. */
        if (k.kind == RECORD_NODE && node)
            node->is_expired = true;
    }
    return 0;
}
