/* audit_read.c - reads the audit log in pages; see audit.h. */
#include "audit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "store/store.h"

/* How many records of each kind are looked at for one page. */
#define LOOK_MAX 2000

/* A walk over one kind, and what it found. */
struct walk {
    struct reading *rd; /* pins */
    enum audit_kind kind;
    bool is_up;                 /* from old to new */
    struct audit_record *found; /* owns; room for the query's limit; in the order of the walk */
    unsigned n;
    char last[AUDIT_ID_MAX]; /* the last that was looked at */
    bool is_cut;             /* it ended before the log did */
};

/* A page that is asked for. */
struct reading {
    const struct audit *audit; /* pins */
    struct audit_query query;
    struct walk walks[AUDIT_KIND_N];
    unsigned n_left; /* walks whose answer has not come */
    int r;           /* 0, or of the first that failed */
    struct err e;    /* its words */
    audit_read_done_fn done;
    void *ctx; /* pins */
};

static void reading_free(struct reading *rd)
{
    for (unsigned i = 0; i < AUDIT_KIND_N; i++)
        free(rd->walks[i].found);
    free(rd);
}

/* Look at one record. True: the walk goes on with the next one. */
static bool look(struct walk *w, const struct store_item *item)
{
    const char *id = item->key + strlen(audit_prefixes[w->kind]);
    struct audit_record record;

    const struct audit_query *query = &w->rd->query;

    if (w->n == query->limit) {
        w->is_cut = true;
        return false;
    }
    if (!audit_id_check(id))
        return true;
    memcpy(w->last, id, sizeof(w->last));
    /* That there was an entry is told, even if what it said cannot be read any more. */
    if (audit_record_decode(&record, item->key, item->value, NULL) != 0) {
        record = (struct audit_record){.kind = w->kind,
            .time = query->since,
            .actor = "unknown",
            .operation = "unreadable",
            .status = 500};
        memcpy(record.id, id, sizeof(record.id));
    }
    if (record.time < query->since)
        return w->is_up;
    /* The entry and the change are in one commit, so the change's revision is the entry's own. What
     * the entry says is only what was expected when it was made. */
    if (record.new_revision > 0)
        record.new_revision = item->revision;
    if (query->network[0] == '\0' || strcmp(record.network, query->network) == 0)
        w->found[w->n++] = record;
    return true;
}

/* Does a walk meet the ID @a before @b? */
static bool is_sooner(bool is_up, const char *a, const char *b)
{
    return is_up ? strcmp(a, b) < 0 : strcmp(a, b) > 0;
}

/* The next entry of both walks, if it is not beyond @end; NULL: there is none. */
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
    const char *end = ""; /* up to which the walk has seen everything; "": it has seen all */
    const struct audit_record *r = NULL;
    json_t *list = json_array();
    unsigned n = 0;

    for (unsigned i = 0; i < AUDIT_KIND_N; i++)
        if (w[i].is_cut && (!end[0] || is_sooner(w[i].is_up, w[i].last, end)))
            end = w[i].last;
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
static void find_newest(const struct reading *rd, const json_t *list, char ret[static AUDIT_ID_MAX])
{
    const json_t *last = json_array_get(list, json_array_size(list) - 1);
    const char *id = json_string_value(json_object_get(last, "id"));

    if (rd->query.after[0]) {
        memcpy(ret, rd->query.after, AUDIT_ID_MAX);
        if (id)
            memcpy(ret, id, AUDIT_ID_MAX);
    } else {
        /* What is on its way, and everything that is written later, comes behind. */
        (void)audit_id(ret, rd->audit->settled, 0xfff);
    }
}

static json_t *page(const struct reading *rd)
{
    const struct walk *w = rd->walks;
    char newest[AUDIT_ID_MAX];
    char stop[AUDIT_ID_MAX];
    json_t *list = merge(w, rd->query.limit, stop);

    find_newest(rd, list, newest);
    if (w[0].is_up)
        return json_pack("{s:o, s:s}", "entries", list, "next", stop[0] ? stop : newest);
    if (stop[0])
        return json_pack("{s:o, s:s, s:s}", "entries", list, "next", newest, "previous", stop);
    return json_pack("{s:o, s:s}", "entries", list, "next", newest);
}

/* The answer of one walk has come; the page when it was the last. */
static void end_walk(void *ctx, const struct store_answer *a)
{
    struct walk *w = ctx;
    struct reading *rd = w->rd;
    json_t *json = NULL;
    size_t i = 0;

    if (a->r != 0 && rd->r == 0) {
        rd->r = a->r;
        rd->e = *a->e;
    }
    while (i < a->n_items && look(w, &a->items[i]))
        i++;
    w->is_cut |= i == a->n_items && a->has_more;
    if (--rd->n_left > 0)
        return;
    if (rd->r == 0)
        json = page(rd);
    if (rd->r == 0 && !json)
        rd->r = err_set(&rd->e, -ENOMEM, "no memory for a page of the audit log");
    rd->done(rd->ctx, rd->r, json, &rd->e);
    reading_free(rd);
}

static int ask(struct reading *rd, enum audit_kind kind, struct err *e)
{
    struct walk *w = &rd->walks[kind];
    const char *from = rd->query.after[0] ? rd->query.after : rd->query.before;
    char key[RECORD_KEY_MAX];
    struct store_range range = {.prefix = audit_prefixes[kind],
        .from = from[0] ? audit_record_key(key, kind, from) : NULL,
        .is_down = rd->query.after[0] == '\0',
        .limit = LOOK_MAX};

    *w = (struct walk){.rd = rd, .kind = kind, .is_up = rd->query.after[0] != '\0'};
    w->found = calloc(rd->query.limit, sizeof(*w->found));
    if (!w->found)
        return err_set(e, -ENOMEM, "no memory for a page of the audit log");
    return store_list(rd->audit->store, &range, end_walk, w, e);
}

int audit_read(const struct audit *audit, const struct audit_query *query, audit_read_done_fn done,
    void *ctx, struct err *e)
{
    struct reading *rd = calloc(1, sizeof(*rd));
    int r;

    if (!rd)
        return err_set(e, -ENOMEM, "no memory for a page of the audit log");
    *rd = (struct reading){
        .audit = audit, .query = *query, .done = done, .ctx = ctx, .n_left = AUDIT_KIND_N};
    r = ask(rd, AUDIT_CHANGE, e);
    if (r != 0) {
        reading_free(rd);
        return r;
    }
    r = ask(rd, AUDIT_REFUSAL, &rd->e);
    if (r != 0) {
        /* The answer of the other walk comes later, and ends the reading. */
        rd->n_left--;
        rd->r = r;
    }
    return 0;
}
