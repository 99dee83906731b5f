/* audit_trim.c - see audit_trim.h. */
#include "hub/audit/audit_trim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "store/store.h"

/* Most entries that one commit removes. */
#define TRIM_MAX 256

/* The entries that one commit is to remove. */
struct trim {
    struct audit *a; /* pins */
    enum audit_kind kind;
    nsec_t now;
    int64_t oldest; /* s since 1970: entries from before this are removed */
    char keys[TRIM_MAX][RECORD_KEY_MAX];
    size_t n;
};

/* It has ended. @e: why it failed; NULL: it did not. */
static void end_trim(struct trim *t, const struct err *e)
{
    t->a->n_trims--;
    if (e)
        t->a->failure = *e;
    free(t);
}

/* True: the entry is to be removed, and the next one may have to be removed too. */
static bool pick(struct trim *t, const struct store_item *item)
{
    struct audit_record record;
    bool is_damaged = audit_record_decode(&record, item->key, item->value, NULL) != 0;
    bool is_too_many = t->a->n[t->kind] > t->a->max[t->kind] + t->n;

    /* An entry that cannot be read is removed once it is the oldest: it tells nobody anything. */
    if (t->n == TRIM_MAX || (!is_damaged && !is_too_many && record.time >= t->oldest))
        return false;
    (void)snprintf(t->keys[t->n++], RECORD_KEY_MAX, "%s", item->key);
    return true;
}

static void on_trimmed(void *ctx, const struct store_answer *answer)
{
    struct trim *t = ctx;
    size_t *n = &t->a->n[t->kind];

    if (answer->r == 0)
        *n -= t->n < *n ? t->n : *n;
    end_trim(t, answer->r == 0 ? NULL : answer->e);
}

static void on_oldest(void *ctx, const struct store_answer *answer)
{
    struct trim *t = ctx;
    struct store_op ops[TRIM_MAX];
    struct err e = ERR_NULL;

    for (size_t i = 0; answer->r == 0 && i < answer->n_items && pick(t, &answer->items[i]); i++)
        continue;
    if (answer->r != 0 || t->n == 0) {
        end_trim(t, answer->r == 0 ? NULL : answer->e);
        return;
    }
    for (size_t i = 0; i < t->n; i++)
        ops[i] = (struct store_op){
            .kind = STORE_OP_DELETE, .key = t->keys[i], .expect = STORE_EXPECT_ANY};
    if (store_commit(t->a->store, ops, t->n, t->now, on_trimmed, t, &e) != 0)
        end_trim(t, &e);
}

int audit_trim(struct audit *a, enum audit_kind kind, nsec_t now, struct err *e)
{
    struct store_range range = {.prefix = audit_record_prefix(kind), .limit = TRIM_MAX};
    struct trim *t = calloc(1, sizeof(*t));
    int r;

    if (!t)
        return err_set(e, -ENOMEM, "no memory for the audit log");
    t->a = a;
    t->kind = kind;
    t->now = now;
    t->oldest = a->wall() - a->age_s;
    r = store_list(a->store, &range, on_oldest, t, e);
    if (r != 0)
        free(t);
    else
        a->n_trims++;
    return r;
}
