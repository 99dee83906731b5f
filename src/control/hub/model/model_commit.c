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

int model_store(struct model *m, const struct store_op *ops, size_t n_ops, nsec_t now,
    store_done_fn done, void *ctx, struct err *e)
{
    struct store_op *sealed = seal(ops, n_ops);
    int r = -ENOMEM;

    if (sealed)
        r = store_commit(m->store, sealed, n_ops, now, done, ctx, e);
    else
        (void)err_set(e, r, "no memory for a commit");
    free_values(sealed, n_ops);
    return r;
}

/* A commit on its way whose outcome the audit log is told. */
struct reported {
    struct audit *audit; /* pins */
    struct audit_commit commit;
    store_done_fn done; /* NULL: nobody */
    void *ctx;          /* pins */
};

static void on_reported(void *ctx, const struct store_answer *a)
{
    struct reported *reported = ctx;

    audit_settled(reported->audit, &reported->commit, a->r == 0);
    if (reported->done)
        reported->done(reported->ctx, a);
    free(reported);
}

/* Commit the operations together with the entries of the audit log that tell of them. */
static int commit_reported(struct model *m, const struct store_op *ops, size_t n_ops, nsec_t now,
    store_done_fn done, void *ctx, struct err *e)
{
    struct reported *reported = calloc(1, sizeof(*reported));
    int r;

    if (!reported)
        return err_set(e, -ENOMEM, "no memory for a commit");
    *reported = (struct reported){.audit = m->audit, .done = done, .ctx = ctx};
    r = audit_prepare(m->audit, ops, n_ops, &reported->commit, e);
    if (r == 0) {
        r = model_store(
            m, reported->commit.ops, reported->commit.n_ops, now, on_reported, reported, e);
        audit_release(&reported->commit);
    }
    if (r != 0) {
        audit_dropped(&reported->commit);
        free(reported);
    }
    return r;
}

int model_commit(struct model *m, const struct store_op *ops, size_t n_ops, nsec_t now,
    store_done_fn done, void *ctx, struct err *e)
{
    return m->audit ? commit_reported(m, ops, n_ops, now, done, ctx, e)
                    : model_store(m, ops, n_ops, now, done, ctx, e);
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
