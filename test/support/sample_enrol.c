/* sample_enrol.c - see sample_enrol.h. */
#include "test/support/sample_enrol.h"

#include <stdio.h>

#include "base/err.h"

struct enrol_wait {
    int r;
    const struct model_node *node;
    struct err *e; /* NULL: nobody wants the words */
};

static void on_enrolled(void *ctx, int r, const struct model_node *node, const struct err *e)
{
    struct enrol_wait *w = ctx;

    w->r = r;
    w->node = node;
    if (r != 0 && w->e)
        *w->e = *e;
}

int sample_enrol_node(struct enrol *en, const struct enrol_request *rq,
    const struct enrol_proof *proof, const struct ip_addr *from, nsec_t now, int64_t wall_s,
    struct model_node **ret, struct err *e)
{
    struct audit_by by = {.actor = "stranger", .from = *from};
    struct enrol_wait w = {.e = e};
    const struct model_node *known = NULL;
    int r = enrol_node(en, rq, proof, &by, now, wall_s, on_enrolled, &w, &known, e);

    if (r == 0 && !known) {
        store_wait(en->model->store);
        r = w.r;
        known = w.node;
    }
    if (r == 0)
        *ret = model_find_node(known->net, known->spec.meta.name);
    return r;
}

static void on_stored(void *ctx, const struct store_answer *a)
{
    struct enrol_wait *w = ctx;

    w->r = a->r;
    if (a->r != 0 && w->e)
        *w->e = *a->e;
}

int sample_enrol_token(struct enrol *en, struct model_network *net, const struct token_request *rq,
    int64_t wall_s, struct token_secret *ret, struct err *e)
{
    struct token_write made = {.value = NULL};
    struct enrol_wait w = {.e = e};
    int r = enrol_new_secret(en, net, rq, "uid:0", wall_s, &made, ret, e);

    if (r == 0)
        r = model_commit(en->model, &made.op, 1, 0, on_stored, &w, e);
    token_write_deinit(&made);
    store_wait(en->model->store);
    return r == 0 ? w.r : r;
}
