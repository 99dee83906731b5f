/* linear.c - see linear.h. */
#include "test/support/linear.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

/* What was looked at already: which requests were placed, and the register's value then. */
struct visited {
    uint64_t *placed; /* owns; 0: free */
    unsigned *state;  /* owns */
    size_t cap;       /* a power of two */
    size_t n;
};

/* False: it was there. */
static bool visit(struct visited *v, uint64_t placed, unsigned state)
{
    size_t i = (placed * 0x9e3779b97f4a7c15u ^ state * 0xff51afd7ed558ccdu) >> 20;

    /* All of a search fits, or the history is too long for this test. */
    assert_true(v->n < v->cap / 2);
    for (i &= v->cap - 1; v->placed[i]; i = (i + 1) & (v->cap - 1))
        if (v->placed[i] == placed && v->state[i] == state)
            return false;
    v->placed[i] = placed;
    v->state[i] = state;
    v->n++;
    return true;
}

/* Can @op come next where the register holds *@state? Then that becomes what it leaves. */
static bool can_follow(const struct linear_op *op, unsigned *state)
{
    if (op->kind == LINEAR_READ)
        return op->value == *state;
    if (op->kind == LINEAR_REFUSED)
        return op->expect != *state;
    if (op->expect != *state)
        return false;
    *state = op->value;
    return true;
}

/* The highest bit of @placed is always set, so that none of them is 0. */
static bool search(
    const struct linear_op *ops, size_t n, struct visited *v, uint64_t placed, unsigned state)
{
    nsec_t first_answer = NSEC_NEVER;

    if (!visit(v, placed, state))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!(placed >> i & 1))
            first_answer = nsec_min(first_answer, ops[i].answered_at);
    /* All whose answer is known have a place. */
    if (first_answer == NSEC_NEVER)
        return true;
    for (size_t i = 0; i < n; i++) {
        unsigned then = state;

        if (!(placed >> i & 1) && ops[i].called_at <= first_answer && can_follow(&ops[i], &then) &&
            search(ops, n, v, placed | (uint64_t)1 << i, then))
            return true;
    }
    return false;
}

bool linear_check(const struct linear_op *ops, size_t n)
{
    struct visited v = {.cap = 1 << 20};
    bool ok;

    assert_true(n <= LINEAR_OPS_MAX);
    v.placed = calloc(v.cap, sizeof(*v.placed));
    v.state = calloc(v.cap, sizeof(*v.state));
    ok = search(ops, n, &v, (uint64_t)1 << 63, 0);
    free(v.placed);
    free(v.state);
    return ok;
}

void linear_print(const struct linear_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        print_error("%d %u->%u  %lld %lld\n", (int)ops[i].kind, ops[i].expect, ops[i].value,
            (long long)ops[i].called_at, (long long)ops[i].answered_at);
}
