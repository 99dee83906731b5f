/* audit_read.c - see audit_read.h. */
#include "audit_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "store/store.h"

/* Records that are looked at for one page, of each kind. */
#define LOOK_MAX 2000

/* A walk over one kind, and what it found. */
struct walk {
    const struct audit_query *query; /* borrowed */
    enum audit_kind kind;
    bool is_up;                 /* from old to new */
    struct audit_record *found; /* owns; room for the query's limit; in the order of the walk */
    unsigned n;
    unsigned n_looked;
    char last[AUDIT_ID_MAX]; /* the last that was looked at */
    bool is_cut;             /* it ended before the log did */
};

static void walk_deinit(struct walk *w)
{
    free(w->found);
}

static int look(void *ctx, const struct store_item *item)
{
    struct walk *w = ctx;
    const char *id = item->key + strlen(audit_record_prefix(w->kind));
    struct audit_record record;

    if (w->n == w->query->limit || w->n_looked == LOOK_MAX) {
        w->is_cut = true;
        return 1;
    }
    w->n_looked++;
    if (!audit_id_check(id))
        return 0;
    memcpy(w->last, id, sizeof(w->last));
    /* That there was an entry is told, even if what it said cannot be read any more. */
    if (audit_record_decode(&record, item->key, item->value, NULL) != 0) {
        record = (struct audit_record){.kind = w->kind,
            .time = w->query->since,
            .actor = "unknown",
            .operation = "unreadable",
            .status = 500};
        memcpy(record.id, id, sizeof(record.id));
    }
    if (record.time < w->query->since)
        return w->is_up ? 0 : 1;
    if (w->query->network[0] == '\0' || strcmp(record.network, w->query->network) == 0)
        w->found[w->n++] = record;
    return 0;
}

static int walk_kind(struct walk *w, struct store *store, struct err *e)
{
    const char *from = w->is_up ? w->query->after : w->query->before;
    char key[RECORD_KEY_MAX];
    int r;

    w->found = calloc(w->query->limit, sizeof(*w->found));
    if (!w->found)
        return err_set(e, -ENOMEM, "no memory for a page of the audit log");
    r = store_walk(store, audit_record_prefix(w->kind),
        from[0] ? audit_record_key(key, w->kind, from) : NULL,
        w->is_up ? STORE_ASCENDING : STORE_DESCENDING, look, w, e);
    return r < 0 ? r : 0;
}

/* Which of two IDs a walk meets first. */
static bool is_sooner(bool is_up, const char *a, const char *b)
{
    return is_up ? strcmp(a, b) < 0 : strcmp(a, b) > 0;
}

/* Up to where both walks have seen everything; "" when they have seen all there is. */
static const char *horizon(const struct walk *w)
{
    const char *end = "";

    for (unsigned i = 0; i < AUDIT_KIND_N; i++)
        if (w[i].is_cut && (!end[0] || is_sooner(w[i].is_up, w[i].last, end)))
            end = w[i].last;
    return end;
}

/* The next of both, if it is not beyond @end. */
static const struct audit_record *next(
    const struct walk *w, unsigned taken[AUDIT_KIND_N], const char *end)
{
    const struct audit_record *best = NULL;

    for (unsigned i = 0; i < AUDIT_KIND_N; i++) {
        const struct audit_record *r = taken[i] < w[i].n ? &w[i].found[taken[i]] : NULL;

        if (r && (!end[0] || !is_sooner(w[i].is_up, end, r->id)) &&
            (!best || is_sooner(w[i].is_up, r->id, best->id)))
            best = r;
    }
    if (best)
        taken[best->kind]++;
    return best;
}

/* The walks' entries in the order of events. @stop: the place where this page ends; "": nowhere. */
static json_t *merge(const struct walk *w, unsigned limit, char stop[static AUDIT_ID_MAX])
{
    unsigned taken[AUDIT_KIND_N] = {0};
    const char *end = horizon(w);
    const struct audit_record *r = NULL;
    json_t *list = json_array();
    unsigned n = 0;

    memcpy(stop, end, strlen(end) + 1);
    while (n < limit && (r = next(w, taken, end))) {
        n++;
        if (w[0].is_up)
            json_array_append_new(list, audit_record_json(r));
        else
            json_array_insert_new(list, 0, audit_record_json(r));
        if (n == limit)
            memcpy(stop, r->id, sizeof(r->id));
    }
    return list;
}

/* Where a reader goes on who has seen everything up to now. */
static void find_newest(const struct audit_query *query, const json_t *list, struct store *store,
    char ret[static AUDIT_ID_MAX])
{
    const json_t *last = json_array_get(list, json_array_size(list) - 1);
    const char *id = json_string_value(json_object_get(last, "id"));

    if (query->after[0]) {
        memcpy(ret, query->after, AUDIT_ID_MAX);
        if (id)
            memcpy(ret, id, AUDIT_ID_MAX);
    } else {
        /* Everything that is written later has a later revision. */
        (void)audit_id(ret, store_revision(store), 0xfff);
    }
}

int audit_read(struct store *store, const struct audit_query *query, json_t **ret, struct err *e)
{
    _cleanup_(walk_deinit) struct walk changes = {
        .query = query, .kind = AUDIT_CHANGE, .is_up = query->after[0] != '\0'};
    _cleanup_(walk_deinit) struct walk refusals = changes;
    char newest[AUDIT_ID_MAX];
    char stop[AUDIT_ID_MAX];
    json_t *list;
    int r;

    refusals.kind = AUDIT_REFUSAL;
    r = walk_kind(&changes, store, e);
    if (r == 0)
        r = walk_kind(&refusals, store, e);
    if (r != 0)
        return r;
    list = merge((const struct walk[]){changes, refusals}, query->limit, stop);
    find_newest(query, list, store, newest);
    if (changes.is_up)
        *ret = json_pack("{s:o, s:s}", "entries", list, "next", stop[0] ? stop : newest);
    else if (stop[0])
        *ret = json_pack("{s:o, s:s, s:s}", "entries", list, "next", newest, "previous", stop);
    else
        *ret = json_pack("{s:o, s:s}", "entries", list, "next", newest);
    return *ret ? 0 : err_set(e, -ENOMEM, "no memory for a page of the audit log");
}
