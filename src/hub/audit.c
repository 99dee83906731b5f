/* audit.c - writes the audit log; see audit.h. What reads it is audit_read.c. */
#include "audit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "hub/admin_record.h"

/* Refusals wait so long for more of their like. */
#define GATHER_FOR (10 * NSEC_PER_SEC)

/* Between two looks for entries that are too old, and how many go in one commit. */
#define TRIM_EACH (10 * NSEC_PER_SEC)
#define TRIM_MAX  256

void audit_init(struct audit *a, struct store *store, int64_t (*wall)(void))
{
    *a = (struct audit){.store = store,
        .wall = wall,
        .age_s = AUDIT_AGE_DEFAULT,
        .max = {[AUDIT_CHANGE] = AUDIT_CHANGES_MAX, [AUDIT_REFUSAL] = AUDIT_REFUSALS_MAX}};
    audit_act_hub(a);
}

static int count(void *ctx, const struct store_item *item)
{
    *(size_t *)ctx += 1;
    return 0;
}

int audit_open(struct audit *a, struct err *e)
{
    int r = 0;

    for (int kind = 0; r == 0 && kind < AUDIT_KIND_N; kind++) {
        a->n[kind] = 0;
        r = store_list(a->store, audit_record_prefix(kind), count, &a->n[kind], NULL, e);
    }
    return r;
}

void audit_act(struct audit *a, const char *actor, const struct ip_addr *from)
{
    (void)snprintf(a->actor, sizeof(a->actor), "%s", actor);
    a->from = *from;
}

void audit_act_hub(struct audit *a)
{
    static const struct ip_addr nowhere;

    audit_act(a, "hub", &nowhere);
}

const char *audit_token_id(char buf[static AUDIT_TOKEN_ID_LEN + 1], const struct token_hash *hash)
{
    hex_encode(hash->b, AUDIT_TOKEN_ID_LEN / 2, buf);
    return buf;
}

/* ---- entries -------------------------------------------------------------------------------- */

/* The entries of one commit, as operations of it. */
struct audit_entries {
    struct audit_record records[AUDIT_PER_COMMIT];
    size_t n;
    char keys[AUDIT_PER_COMMIT][RECORD_KEY_MAX];
    char *values[AUDIT_PER_COMMIT]; /* owns */
};

static void entries_freep(struct audit_entries **p)
{
    for (size_t i = 0; *p && i < (*p)->n; i++)
        free((*p)->values[i]);
    free(*p);
}

/* A new one, by who acts now; NULL: there is no room, and the last one counts it. */
static struct audit_record *add_entry(struct audit *a, struct audit_entries *en)
{
    struct audit_record *record = &en->records[en->n];

    if (en->n == AUDIT_PER_COMMIT) {
        en->records[AUDIT_PER_COMMIT - 1].others++;
        return NULL;
    }
    en->n++;
    *record = (struct audit_record){.time = a->wall()};
    memcpy(record->actor, a->actor, sizeof(record->actor));
    if (!ip_addr_is_none(&a->from))
        (void)ip_addr_format(&a->from, record->from);
    return record;
}

/* Entries into @ops, which has room for them; the commit will be that of @revision. */
static int write_entries(struct audit_entries *en, uint64_t revision, struct store_op *ops)
{
    for (size_t i = 0; i < en->n; i++) {
        struct audit_record *record = &en->records[i];

        (void)audit_id(record->id, revision, (unsigned)i);
        en->values[i] = audit_record_encode(record);
        if (!en->values[i])
            return -ENOMEM;
        ops[i] = (struct store_op){.kind = STORE_OP_PUT,
            .key = audit_record_key(en->keys[i], record->kind, record->id),
            .value = en->values[i],
            .expect = STORE_EXPECT_ABSENT};
    }
    return 0;
}

/* @ops and the entries, as one commit that is not made yet. @en is taken, also on failure. */
static int put_together(struct audit *a, const struct store_op *ops, size_t n_ops,
    struct audit_entries *en, struct audit_commit *ret, struct err *e)
{
    struct store_op *all = calloc(n_ops + en->n + 1, sizeof(*all));

    if (all && n_ops > 0)
        memcpy(all, ops, n_ops * sizeof(*all));
    if (!all || write_entries(en, store_revision(a->store) + 1, all + n_ops) != 0) {
        free(all);
        entries_freep(&en);
        return err_set(e, -ENOMEM, "no memory for the audit log");
    }
    *ret = (struct audit_commit){.ops = all, .n_ops = n_ops + en->n, .entries = en};
    return 0;
}

void audit_finish(struct audit *a, struct audit_commit *c, bool is_done)
{
    for (size_t i = 0; is_done && i < c->entries->n; i++) {
        a->n[c->entries->records[i].kind]++;
        a->n_written[c->entries->records[i].kind]++;
    }
    entries_freep(&c->entries);
    free(c->ops);
}

/* A commit of nothing but entries. @en is taken. */
static int commit_entries(struct audit *a, struct audit_entries *en, nsec_t now, struct err *e)
{
    struct audit_commit c;
    int r = put_together(a, NULL, 0, en, &c, e);

    if (r != 0)
        return r;
    r = store_commit(a->store, c.ops, c.n_ops, now, NULL, NULL, e);
    audit_finish(a, &c, r == 0);
    return r;
}

/* ---- changes -------------------------------------------------------------------------------- */

/* What an operation is about. */
struct subject {
    enum record_kind kind;          /* NONE: nothing that the log tells of, or an admin token */
    bool is_admin;                  /* an admin token */
    char network[NAME_MAX_LEN + 1]; /* "": none is known */
    char name[OBJECT_NAME_MAX + 1]; /* of the node, edge or admin token; a join token's hash */
    uint64_t revision;              /* of the record, before; 0: there was none */
};

static struct subject subject_of(const struct store_op *op)
{
    struct record_key k = record_key_parse(op->key);
    struct subject s = {.kind = k.kind};

    memcpy(s.network, k.network, sizeof(s.network));
    memcpy(s.name, k.name, sizeof(s.name));
    s.is_admin = strncmp(op->key, ADMIN_RECORD_PREFIX, strlen(ADMIN_RECORD_PREFIX)) == 0;
    if (s.is_admin)
        (void)snprintf(s.name, sizeof(s.name), "%.63s", op->key + strlen(ADMIN_RECORD_PREFIX));
    return s;
}

/* The network of a token, which only its value tells. */
static void learn_network(struct subject *s, const char *key, const char *value)
{
    struct admin_record admin;
    struct token_record token;

    if (s->is_admin && admin_record_decode(&admin, key, value, NULL) == 0)
        memcpy(s->network, admin.network, sizeof(s->network));
    if (s->kind == RECORD_TOKEN && record_token_decode(&token, value, NULL) == 0)
        memcpy(s->network, token.network, sizeof(s->network));
}

static int on_before(void *ctx, const struct store_item *item)
{
    struct subject *s = ctx;

    s->revision = item->revision;
    learn_network(s, item->key, item->value);
    return 0;
}

/* What the commit does besides, which makes some of its operations a part of something else. */
struct around {
    bool has_network;  /* a network is made or removed */
    bool adds_node;    /* a node is made */
    bool removes_node; /* a node is removed */
};

static struct around look_around(const struct store_op *ops, size_t n_ops)
{
    struct around all = {.has_network = false};

    for (size_t i = 0; i < n_ops; i++) {
        enum record_kind kind = record_key_parse(ops[i].key).kind;
        bool is_put = ops[i].kind == STORE_OP_PUT;

        if (ops[i].kind == STORE_OP_CHECK)
            continue;
        all.has_network |= kind == RECORD_NETWORK;
        all.adds_node |= kind == RECORD_NODE && is_put;
        all.removes_node |= kind == RECORD_NODE && !is_put;
    }
    return all;
}

static bool is_told(const struct subject *s, const struct around *all)
{
    switch (s->kind) {
    case RECORD_NETWORK:
        return true;
    case RECORD_NODE:
        return !all->has_network;
    case RECORD_EDGE:
        return !all->removes_node;
    case RECORD_TOKEN:
        return !all->adds_node;
    case RECORD_NONE:
        return s->is_admin;
    case RECORD_IPAM:
    case RECORD_REPORT:
    case RECORD_N:
        break;
    }
    return false;
}

static void fill_entry(struct audit_record *record, const struct subject *s,
    const struct store_op *op, uint64_t new_revision)
{
    const char *prefix = s->is_admin ? ADMIN_RECORD_PREFIX : record_prefix(s->kind);
    bool is_put = op->kind == STORE_OP_PUT;
    const char *word = s->revision == 0 ? "create" : "change";

    (void)snprintf(record->operation, sizeof(record->operation), "%s", is_put ? word : "remove");
    if (s->is_admin)
        (void)snprintf(record->object, sizeof(record->object), "%s%s", prefix, s->name);
    else if (s->kind == RECORD_TOKEN)
        (void)snprintf(
            record->object, sizeof(record->object), "%s%.*s", prefix, AUDIT_TOKEN_ID_LEN, s->name);
    else
        (void)snprintf(record->object, sizeof(record->object), "%s%s%s%s", prefix, s->network,
            s->name[0] ? "/" : "", s->name);
    memcpy(record->network, s->network, sizeof(record->network));
    record->old_revision = s->revision;
    record->new_revision = is_put ? new_revision : 0;
}

static int describe(struct audit *a, const struct store_op *ops, size_t n_ops,
    struct audit_entries *en, struct err *e)
{
    struct around all = look_around(ops, n_ops);

    for (size_t i = 0; i < n_ops; i++) {
        struct subject s = subject_of(&ops[i]);
        struct audit_record *record;
        int r;

        if (ops[i].kind == STORE_OP_CHECK || !is_told(&s, &all))
            continue;
        r = store_get(a->store, ops[i].key, on_before, &s, e);
        if (r < 0)
            return r;
        if (ops[i].kind == STORE_OP_DELETE && s.revision == 0)
            continue;
        if (ops[i].kind == STORE_OP_PUT)
            learn_network(&s, ops[i].key, ops[i].value);
        record = add_entry(a, en);
        if (record)
            fill_entry(record, &s, &ops[i], store_revision(a->store) + 1);
    }
    return 0;
}

int audit_prepare(struct audit *a, const struct store_op *ops, size_t n_ops,
    struct audit_commit *ret, struct err *e)
{
    _cleanup_(entries_freep) struct audit_entries *en = calloc(1, sizeof(*en));
    int r;

    if (!en)
        return err_set(e, -ENOMEM, "no memory for the audit log");
    r = describe(a, ops, n_ops, en, e);
    return r == 0 ? put_together(a, ops, n_ops, TAKE_PTR(en), ret, e) : r;
}

int audit_note(
    struct audit *a, const char *operation, const char *object, nsec_t now, struct err *e)
{
    struct audit_entries *en = calloc(1, sizeof(*en));
    struct audit_record *record;

    if (!en)
        return err_set(e, -ENOMEM, "no memory for the audit log");
    record = add_entry(a, en);
    (void)snprintf(record->operation, sizeof(record->operation), "%s", operation);
    (void)snprintf(record->object, sizeof(record->object), "%s", object);
    return commit_entries(a, en, now, e);
}

/* ---- refusals ------------------------------------------------------------------------------- */

/* One that waits and is like that; NULL: none. */
static struct audit_record *find_like(struct audit *a, const struct audit_record *that)
{
    for (unsigned i = 0; i < a->n_pending; i++) {
        struct audit_record *p = &a->pending[i];

        if (p->status == that->status && strcmp(p->from, that->from) == 0 &&
            strcmp(p->actor, that->actor) == 0 && strcmp(p->operation, that->operation) == 0 &&
            strcmp(p->network, that->network) == 0)
            return p;
    }
    return NULL;
}

/* Sentences may quote what came from outside: as much of it as any reader takes. */
static void copy_plain(char *ret, size_t cap, const char *text)
{
    size_t n = 0;

    for (; text[n] && n + 1 < cap; n++)
        ret[n] = (char)(text[n] >= ' ' && text[n] <= '~' ? text[n] : '?');
    ret[n] = '\0';
}

void audit_refused(struct audit *a, const char *operation, const char *network, unsigned status,
    const char *why, nsec_t now)
{
    struct audit_record record = {
        .kind = AUDIT_REFUSAL, .time = a->wall(), .status = status, .count = 1};
    struct audit_record *like;

    memcpy(record.actor, a->actor, sizeof(record.actor));
    if (!ip_addr_is_none(&a->from))
        (void)ip_addr_format(&a->from, record.from);
    copy_plain(record.operation, sizeof(record.operation), operation);
    copy_plain(record.network, sizeof(record.network), network);
    copy_plain(record.why, sizeof(record.why), why);
    record.first = record.time;
    if (a->n_pending == 0)
        a->write_at = now + GATHER_FOR;
    like = find_like(a, &record);
    if (like) {
        like->time = record.time;
        like->count++;
        memcpy(like->why, record.why, sizeof(like->why));
    } else if (a->n_pending < AUDIT_PENDING_MAX) {
        a->pending[a->n_pending++] = record;
    } else {
        a->n_lost++;
    }
}

/* How many entries about refusals the budget has. */
static unsigned budget(const struct audit *a, nsec_t now)
{
    nsec_t owed = nsec_max(a->full - now, 0);

    return AUDIT_REFUSALS_BURST -
           (unsigned)((owed + AUDIT_REFUSALS_EACH - 1) / AUDIT_REFUSALS_EACH);
}

/* Those that found no place, as one. */
static void add_lost(struct audit *a, struct audit_entries *en)
{
    struct audit_record *record = a->n_lost > 0 ? add_entry(a, en) : NULL;

    if (!record)
        return;
    *record = (struct audit_record){
        .kind = AUDIT_REFUSAL, .time = a->wall(), .status = 429, .count = a->n_lost};
    (void)snprintf(record->actor, sizeof(record->actor), "stranger");
    (void)snprintf(record->operation, sizeof(record->operation), "several");
    (void)snprintf(record->why, sizeof(record->why),
        "refused in other ways or from other addresses, more than are told apart");
}

static int write_refusals(struct audit *a, nsec_t now, bool flush, struct err *e)
{
    unsigned most = flush ? AUDIT_PER_COMMIT : budget(a, now);
    struct audit_entries *en;
    size_t n;
    int r;

    /* With the last of a budget goes what found no place; else all wait, and gather. */
    a->write_at = now + GATHER_FOR;
    if (most < a->n_pending + 1)
        return 0;
    en = calloc(1, sizeof(*en));
    if (!en)
        return err_set(e, -ENOMEM, "no memory for the audit log");
    for (unsigned i = 0; i < a->n_pending; i++)
        en->records[en->n++] = a->pending[i];
    add_lost(a, en);
    n = en->n;
    r = commit_entries(a, en, now, e);
    if (r != 0)
        return r;
    a->full = nsec_max(a->full, now) + (nsec_t)n * AUDIT_REFUSALS_EACH;
    a->n_pending = 0;
    a->n_lost = 0;
    return 0;
}

/* ---- what is too old, or too much ----------------------------------------------------------- */

/* Keys that shall go. */
struct trim {
    const struct audit *a; /* borrowed */
    enum audit_kind kind;
    int64_t oldest; /* what is before it goes */
    char keys[TRIM_MAX][RECORD_KEY_MAX];
    size_t n;
};

static int pick(void *ctx, const struct store_item *item)
{
    struct trim *t = ctx;
    struct audit_record record;
    bool is_damaged = audit_record_decode(&record, item->key, item->value, NULL) != 0;
    bool is_too_many = t->a->n[t->kind] > t->a->max[t->kind] + t->n;

    /* What cannot be read goes when it has become the oldest: it tells nobody anything. */
    if (t->n == TRIM_MAX || (!is_damaged && !is_too_many && record.time >= t->oldest))
        return 1;
    (void)snprintf(t->keys[t->n++], RECORD_KEY_MAX, "%s", item->key);
    return 0;
}

static int trim(struct audit *a, enum audit_kind kind, nsec_t now, struct err *e)
{
    _cleanup_(freep) struct trim *t = calloc(1, sizeof(*t));
    struct store_op ops[TRIM_MAX];
    int r;

    if (!t)
        return err_set(e, -ENOMEM, "no memory for the audit log");
    t->a = a;
    t->kind = kind;
    t->oldest = a->wall() - a->age_s;
    r = store_walk(a->store, audit_record_prefix(kind), NULL, STORE_ASCENDING, pick, t, e);
    if (r < 0 || t->n == 0)
        return r < 0 ? r : 0;
    for (size_t i = 0; i < t->n; i++)
        ops[i] = (struct store_op){
            .kind = STORE_OP_DELETE, .key = t->keys[i], .expect = STORE_EXPECT_ANY};
    r = store_commit(a->store, ops, t->n, now, NULL, NULL, e);
    if (r == 0)
        a->n[kind] -= t->n < a->n[kind] ? t->n : a->n[kind];
    return r;
}

int audit_tick(struct audit *a, nsec_t now, bool flush, struct err *e)
{
    int r = 0;

    if (a->n_pending > 0 && (flush || now >= a->write_at))
        r = write_refusals(a, now, flush, e);
    if (flush || now - a->trimmed < TRIM_EACH)
        return r;
    a->trimmed = now;
    for (int kind = 0; r == 0 && kind < AUDIT_KIND_N; kind++)
        r = trim(a, kind, now, e);
    return r;
}
