/* audit_trim.c - see audit_trim.h. */
#include "hub/audit/audit_trim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* True: the entry is too old, and the next one may be so too. */
static bool pick_old(struct trim *t, const struct store_item *item)
{
    struct audit_record record;
    bool is_damaged = audit_record_decode(&record, item->key, item->value, NULL) != 0;

    /* An entry that cannot be read is removed once it is the oldest: it tells nobody anything. */
    if (t->n == TRIM_MAX || (!is_damaged && record.time >= t->oldest))
        return false;
    audit_rings_remove(&t->a->rings[t->kind], is_damaged ? "" : record.network,
        item->key + strlen(audit_record_prefix(t->kind)));
    (void)snprintf(t->keys[t->n++], RECORD_KEY_MAX, "%s", item->key);
    return true;
}

/* Of entries that are too many, the oldest of whoever has the most. Should the commit fail they are
 * not looked for again before they are too old, or the hub starts anew. */
static void pick_most(struct trim *t)
{
    char id[AUDIT_ID_MAX];

    while (t->n < TRIM_MAX && t->a->n[t->kind] > t->a->max[t->kind] + t->n &&
           audit_rings_take(&t->a->rings[t->kind], id))
        (void)audit_record_key(t->keys[t->n++], t->kind, id);
}

static void on_trimmed(void *ctx, const struct store_answer *answer)
{
    struct trim *t = ctx;
    size_t *n = &t->a->n[t->kind];

    if (answer->r == 0)
        *n -= t->n < *n ? t->n : *n;
    /* As many as one commit removes: there may be more, and they do not wait. */
    if (answer->r == 0 && t->n == TRIM_MAX)
        t->a->trimmed_at = 0;
    end_trim(t, answer->r == 0 ? NULL : answer->e);
}

static void on_oldest(void *ctx, const struct store_answer *answer)
{
    struct trim *t = ctx;
    struct store_op ops[TRIM_MAX];
    struct err e = ERR_NULL;

    for (size_t i = 0; answer->r == 0 && i < answer->n_items && pick_old(t, &answer->items[i]); i++)
        continue;
    if (answer->r == 0)
        pick_most(t);
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
