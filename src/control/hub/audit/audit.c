/* audit.c - writes the audit log; see audit.h. */
#include "audit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"
#include "base/text.h"
#include "mesh/object/object_meta.h"

/* Most entries that are kept, by kind. */
#define AUDIT_CHANGES_MAX  100000
#define AUDIT_REFUSALS_MAX 4096

/* How old an entry gets, unless said otherwise. */
#define AUDIT_AGE_DEFAULT (400 * 86400)

/* ---- the rings of entries -------------------------------------------------------------------- */

#define CAP_FIRST 16

/* The entries of one network, oldest first. */
struct audit_ring {
    struct keyed keyed;        /* by its network */
    char (*ids)[AUDIT_ID_MAX]; /* owns; a ring of @cap places, a power of two */
    size_t cap;
    size_t first; /* place of the oldest */
    size_t n;
};

static struct audit_ring *ring_of(struct keyed *k)
{
    return container_of(k, struct audit_ring, keyed);
}

void audit_rings_deinit(struct keys *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(ring_of(r->items[i])->ids);
    keys_free_all(r);
}

/* A network without entries is not remembered. */
static void drop_if_empty(struct keys *r, struct audit_ring *ring)
{
    if (ring->n > 0)
        return;
    free(ring->ids);
    keys_free(r, &ring->keyed);
}

static bool grow(struct audit_ring *ring)
{
    size_t cap = ring->cap == 0 ? CAP_FIRST : 2 * ring->cap;
    char(*ids)[AUDIT_ID_MAX] = malloc(cap * sizeof(*ids));

    if (!ids)
        return false;
    for (size_t i = 0; i < ring->n; i++)
        memcpy(ids[i], ring->ids[(ring->first + i) & (ring->cap - 1)], sizeof(*ids));
    free(ring->ids);
    ring->ids = ids;
    ring->cap = cap;
    ring->first = 0;
    return true;
}

/* Lends its ID until the next one is added. */
static const char *take_oldest(struct audit_ring *ring)
{
    const char *id = ring->ids[ring->first];

    ring->first = (ring->first + 1) & (ring->cap - 1);
    ring->n--;
    return id;
}

void audit_rings_add(struct keys *r, const char *network, const char *id)
{
    struct audit_ring *ring = audit_id_check(id) ? keys_open(r, network, sizeof(*ring)) : NULL;

    if (!ring)
        return;
    if (ring->n < ring->cap || grow(ring))
        memcpy(ring->ids[(ring->first + ring->n++) & (ring->cap - 1)], id, AUDIT_ID_MAX);
    drop_if_empty(r, ring);
}

void audit_rings_remove(struct keys *r, const char *network, const char *id)
{
    struct audit_ring *ring = audit_id_check(id) ? keys_find(r, network) : NULL;

    if (!ring)
        return;
    /* IDs have all their digits, so as texts they are in their order. */
    while (ring->n > 0 && strcmp(ring->ids[ring->first], id) <= 0)
        (void)take_oldest(ring);
    drop_if_empty(r, ring);
}

bool audit_rings_take(struct keys *r, char ret_id[static AUDIT_ID_MAX])
{
    struct audit_ring *most = NULL;

    for (size_t i = 0; i < r->n; i++)
        if (!most || ring_of(r->items[i])->n > most->n)
            most = ring_of(r->items[i]);
    if (!most)
        return false;
    memcpy(ret_id, take_oldest(most), AUDIT_ID_MAX);
    drop_if_empty(r, most);
    return true;
}

/* ---- what an operation of a commit is about, and in which words the log tells of it ---------- */

/*
 * What goes with something else has no entry of its own; audit.h says what that is. Pure.
 */

/* What an operation is about. */
struct audit_subject {
    const char *prefix;             /* of its key */
    enum record_kind kind;          /* NONE: nothing that the log tells of, or an admin token */
    bool is_admin;                  /* an admin token */
    char network[NAME_MAX_LEN + 1]; /* "": none is known */
    char name[OBJECT_NAME_MAX + 1]; /* of the node, edge or admin token; a join token's hash */
    uint64_t revision;              /* of the record, before; 0: there was none */
};

/* What the commit does besides, which makes some of its operations a part of something else. */
struct audit_subject_around {
    bool has_network;  /* a network is made or removed */
    bool adds_node;    /* a node is made */
    bool removes_node; /* a node is removed */
};

/* By the operation's key; its revision is not known yet. */
static struct audit_subject audit_subject_of(const struct store_op *op)
{
    struct record_key k = record_key_parse(op->key);
    struct audit_subject s = {.kind = k.kind};

    s.prefix = k.object ? k.object->prefix : record_prefix(k.kind);
    memcpy(s.network, k.network, sizeof(s.network));
    memcpy(s.name, k.name, sizeof(s.name));
    s.is_admin = strncmp(op->key, ADMIN_RECORD_PREFIX, strlen(ADMIN_RECORD_PREFIX)) == 0;
    if (s.is_admin) {
        s.prefix = ADMIN_RECORD_PREFIX;
        (void)snprintf(s.name, sizeof(s.name), "%.63s", op->key + strlen(ADMIN_RECORD_PREFIX));
    }
    return s;
}

/* All operations of one commit. */
static struct audit_subject_around audit_subject_around_of(const struct store_op *ops, size_t n_ops)
{
    struct audit_subject_around all = {.has_network = false};

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

/* Does it get an entry, with what the commit does besides? */
static bool audit_subject_has_entry(
    const struct audit_subject *s, const struct audit_subject_around *all)
{
    switch (s->kind) {
    case RECORD_NETWORK:
        return true;
    case RECORD_NODE:
    case RECORD_OBJECT:
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

/* What the entry says of it. @new_revision: what the commit becomes. @change: as struct audit. */
static void audit_subject_fill(const struct audit_subject *s, const struct store_op *op,
    uint64_t new_revision, const char *change, struct audit_record *record)
{
    const char *prefix = s->prefix;
    bool is_put = op->kind == STORE_OP_PUT;
    const char *word = s->revision == 0 ? "create" : change ? change : "change";

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

/* ---- the oldest entries of the audit log go when they are too old, or too many --------------- */

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
        item->key + strlen(audit_prefixes[t->kind]));
    (void)snprintf(t->keys[t->n++], RECORD_KEY_MAX, "%s", item->key);
    return true;
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
    struct audit *a = t->a;
    char id[AUDIT_ID_MAX];
    struct store_op ops[TRIM_MAX];
    struct err e = ERR_NULL;

    for (size_t i = 0; answer->r == 0 && i < answer->n_items && pick_old(t, &answer->items[i]); i++)
        continue;
    /* Of entries that are too many, the oldest of whoever has the most. Should the commit fail they
     * are not looked for again before they are too old, or the hub starts anew. */
    while (answer->r == 0 && t->n < TRIM_MAX && a->n[t->kind] > a->max[t->kind] + t->n &&
           audit_rings_take(&a->rings[t->kind], id))
        (void)audit_record_key(t->keys[t->n++], t->kind, id);
    if (answer->r != 0 || t->n == 0) {
        end_trim(t, answer->r == 0 ? NULL : answer->e);
        return;
    }
    for (size_t i = 0; i < t->n; i++)
        ops[i] = (struct store_op){
            .kind = STORE_OP_DELETE, .key = t->keys[i], .expect = STORE_EXPECT_ANY};
    if (store_commit(a->store, ops, t->n, t->now, on_trimmed, t, &e) != 0)
        end_trim(t, &e);
}

/*
 * Look for some, and have them removed; n_trims counts those on their way
 *
 * Return: 0 or negative errno with words; what fails later is left in @a's failure.
 */
static int audit_trim(struct audit *a, enum audit_kind kind, nsec_t now, struct err *e)
{
    struct store_range range = {.prefix = audit_prefixes[kind], .limit = TRIM_MAX};
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

/* ---- the log: how it begins, and who acts ---------------------------------------------------- */

/* How long a refusal waits, to be counted together with others of its kind. */
#define GATHER_FOR (10 * NSEC_PER_SEC)

/* How often entries that are too old are searched for. */
#define TRIM_EACH (10 * NSEC_PER_SEC)

void audit_init(struct audit *a, struct store *store, int64_t (*wall)(void),
    void (*before)(void *ctx, const char *key, struct audit_before *ret), void *before_ctx)
{
    *a = (struct audit){.store = store,
        .wall = wall,
        .before = before,
        .before_ctx = before_ctx,
        .age_s = AUDIT_AGE_DEFAULT,
        .max = {[AUDIT_CHANGE] = AUDIT_CHANGES_MAX, [AUDIT_REFUSAL] = AUDIT_REFUSALS_MAX}};
    audit_act_hub(a);
}

void audit_deinit(struct audit *a)
{
    for (int kind = 0; kind < AUDIT_KIND_N; kind++)
        audit_rings_deinit(&a->rings[kind]);
}

void audit_share(struct audit *a, const char *hub, uint64_t salt)
{
    a->hub = hub;
    a->salt = salt;
    audit_act_hub(a);
}

/* The walk that counts the entries of one kind. */
struct counting {
    struct audit *audit; /* borrowed */
    enum audit_kind kind;
};

static int count(void *ctx, const struct store_item *item)
{
    const struct counting *c = ctx;
    const char *id = item->key + strlen(audit_prefixes[c->kind]);
    uint64_t number = audit_id_number(id);
    struct audit_record record;

    c->audit->n[c->kind]++;
    /* Of one that cannot be read it is not known whose it is. */
    if (audit_record_decode(&record, item->key, item->value, NULL) != 0)
        record.network[0] = '\0';
    audit_rings_add(&c->audit->rings[c->kind], record.network, id);
    if (number > c->audit->last)
        c->audit->last = number;
    return 0;
}

int audit_open(struct audit *a, struct err *e)
{
    int r = 0;

    a->last = store_revision(a->store);
    for (int kind = 0; r == 0 && kind < AUDIT_KIND_N; kind++) {
        struct counting c = {.audit = a, .kind = kind};

        a->n[kind] = 0;
        audit_rings_deinit(&a->rings[kind]);
        r = store_now_list(a->store, audit_prefixes[kind], count, &c, NULL, e);
    }
    a->settled = a->last;
    return r;
}

void audit_act(struct audit *a, const char *actor, const struct ip_addr *from)
{
    (void)snprintf(a->by.actor, sizeof(a->by.actor), "%s", actor);
    a->by.from = *from;
}

void audit_act_hub(struct audit *a)
{
    static const struct ip_addr nowhere;
    char actor[AUDIT_ACTOR_MAX + 1] = "hub";

    if (a->hub)
        (void)snprintf(actor, sizeof(actor), "hub:%.*s", NAME_MAX_LEN, a->hub);
    audit_act(a, actor, &nowhere);
}

const char *audit_token_id(char buf[static AUDIT_TOKEN_ID_LEN + 1], const struct token_hash *hash)
{
    hex_encode(hash->b, AUDIT_TOKEN_ID_LEN / 2, buf);
    return buf;
}

/* ---- entries -------------------------------------------------------------------------------- */

/* The entries of one commit. */
struct audit_entries {
    struct audit_record *records; /* owns; room for AUDIT_PER_COMMIT until they are sent */
    size_t n;
};

/* The same as operations, while they are handed to the store. */
struct entry_texts {
    char keys[AUDIT_PER_COMMIT][RECORD_KEY_MAX];
    char *values[AUDIT_PER_COMMIT]; /* owns */
};

/* A new entry; NULL: the commit has all that it may have, and its last entry counts this one. */
static struct audit_record *add_entry(
    struct audit *a, const struct audit_by *by, struct audit_entries *en)
{
    struct audit_record *record = &en->records[en->n];

    if (en->n == AUDIT_PER_COMMIT) {
        en->records[AUDIT_PER_COMMIT - 1].others++;
        return NULL;
    }
    en->n++;
    *record = (struct audit_record){.time = a->wall()};
    memcpy(record->actor, by->actor, sizeof(record->actor));
    if (!ip_addr_is_none(&by->from))
        (void)ip_addr_format(&by->from, record->from);
    return record;
}

/* Put the entries into @ops, which has room for them and borrows of @texts. 0 or -ENOMEM. */
static int write_entries(const struct audit *a, const struct audit_entries *en, uint64_t number,
    struct entry_texts *texts, struct store_op *ops)
{
    /* The second part of the IDs, which has three digits, begins where each hub has its own. */
    unsigned n_slots = 0x1000 / AUDIT_PER_COMMIT;
    unsigned first =
        a->salt ? (unsigned)(hash_u64(a->salt, number) % n_slots) * AUDIT_PER_COMMIT : 0;

    for (size_t i = 0; i < en->n; i++) {
        struct audit_record *record = &en->records[i];

        (void)audit_id(record->id, number, first + (unsigned)i);
        texts->values[i] = audit_record_encode(record);
        if (!texts->values[i])
            return -ENOMEM;
        ops[i] = (struct store_op){.kind = STORE_OP_PUT,
            .key = audit_record_key(texts->keys[i], record->kind, record->id),
            .value = texts->values[i],
            .expect = STORE_EXPECT_ABSENT};
    }
    return 0;
}

/* The number of the next commit's entries. It is above all that were given so far; if no other
 * commit is on its way, it is the revision that the commit becomes. */
static uint64_t next_number(const struct audit *a)
{
    uint64_t revision = store_revision(a->store);

    return (a->last > revision ? a->last : revision) + 1;
}

/* A commit on its way. */
struct sending {
    struct audit *audit; /* pins */
    uint64_t number;     /* of its entries; 0: there are none */
    size_t n_refusals;   /* its first entries, to be put back; 0: it is of another kind */
    uint64_t n_lost;     /* with them */
    store_done_fn done;  /* NULL: nobody */
    void *ctx;           /* pins */
    struct audit_entries entries;
};

/* Without entries yet. NULL with words: no memory. */
static struct sending *sending_new(struct audit *a, store_done_fn done, void *ctx, struct err *e)
{
    struct sending *s = calloc(1, sizeof(*s));

    if (s)
        s->entries.records = calloc(AUDIT_PER_COMMIT, sizeof(*s->entries.records));
    if (!s || !s->entries.records) {
        free(s);
        (void)err_set(e, -ENOMEM, "no memory for the audit log");
        return NULL;
    }
    s->audit = a;
    s->done = done;
    s->ctx = ctx;
    return s;
}

static void sending_free(struct sending *s)
{
    free(s->entries.records);
    free(s);
}

static void put_back(struct audit *a, const struct sending *s);

static void on_sent(void *ctx, const struct store_answer *answer)
{
    struct sending *s = ctx;
    struct audit *a = s->audit;

    if (s->n_refusals > 0) {
        a->is_writing = false;
        /* If it is not known whether they were written: better an entry twice than not at all. */
        if (answer->r != 0) {
            put_back(a, s);
            a->failure = *answer->e;
        }
    }
    for (size_t i = 0; answer->r == 0 && i < s->entries.n; i++) {
        const struct audit_record *record = &s->entries.records[i];

        audit_rings_add(&a->rings[record->kind], record->network, record->id);
        a->n[record->kind]++;
        a->n_written[record->kind]++;
    }
    a->settled = s->number > a->settled ? s->number : a->settled;
    if (s->done)
        s->done(s->ctx, answer);
    sending_free(s);
}

/* Commit @ops with the entries that @s has, which is taken, also on failure. */
static int send_entries(
    struct sending *s, const struct store_op *ops, size_t n_ops, nsec_t now, struct err *e)
{
    struct audit *a = s->audit;
    size_t n = s->entries.n;
    _cleanup_(freep) struct store_op *all = calloc(n_ops + n + 1, sizeof(*all));
    struct entry_texts texts = {.values = {NULL}};
    struct audit_record *only;
    uint64_t number = next_number(a);
    int r = -ENOMEM;

    if (all && n_ops > 0)
        memcpy(all, ops, n_ops * sizeof(*ops));
    if (all && write_entries(a, &s->entries, number, &texts, all + n_ops) == 0) {
        if (n > 0)
            a->last = s->number = number;
        /* A store that is away may keep many commits waiting. */
        only = realloc(s->entries.records, (n + 1) * sizeof(*only));
        s->entries.records = only ? only : s->entries.records;
        r = store_commit(a->store, all, n_ops + n, now, on_sent, s, e);
    } else {
        (void)err_set(e, r, "no memory for the audit log");
    }
    for (size_t i = 0; i < n; i++)
        free(texts.values[i]);
    if (r != 0)
        sending_free(s);
    return r;
}

/* ---- changes -------------------------------------------------------------------------------- */

static void describe(
    struct audit *a, const struct store_op *ops, size_t n_ops, struct audit_entries *en)
{
    struct audit_subject_around all = audit_subject_around_of(ops, n_ops);

    for (size_t i = 0; i < n_ops; i++) {
        struct audit_subject s = audit_subject_of(&ops[i]);
        struct audit_before before = {.revision = 0};
        struct audit_record *record;
        struct admin_record admin;
        struct token_record token;

        if (ops[i].kind == STORE_OP_CHECK || !audit_subject_has_entry(&s, &all))
            continue;
        a->before(a->before_ctx, ops[i].key, &before);
        s.revision = before.revision;
        if (before.network[0])
            memcpy(s.network, before.network, sizeof(s.network));
        if (ops[i].kind == STORE_OP_DELETE && s.revision == 0)
            continue;
        /* The network of a new token only its value tells. */
        if (ops[i].kind == STORE_OP_PUT && s.is_admin &&
            admin_record_decode(&admin, ops[i].key, ops[i].value, NULL) == 0)
            memcpy(s.network, admin.network, sizeof(s.network));
        if (ops[i].kind == STORE_OP_PUT && s.kind == RECORD_TOKEN &&
            record_token_decode(&token, ops[i].value, NULL) == 0)
            memcpy(s.network, token.network, sizeof(s.network));
        record = add_entry(a, a->each ? &a->each[i] : &a->by, en);
        if (record)
            audit_subject_fill(&s, &ops[i], next_number(a), a->change, record);
    }
}

int audit_commit(struct audit *a, const struct store_op *ops, size_t n_ops, nsec_t now,
    store_done_fn done, void *ctx, struct err *e)
{
    struct sending *s = sending_new(a, done, ctx, e);

    if (!s)
        return -ENOMEM;
    describe(a, ops, n_ops, &s->entries);
    return send_entries(s, ops, n_ops, now, e);
}

int audit_note(struct audit *a, const char *operation, const char *network, const char *object,
    nsec_t now, store_done_fn done, void *ctx, struct err *e)
{
    struct sending *s = sending_new(a, done, ctx, e);
    struct audit_record *record;

    if (!s)
        return -ENOMEM;
    record = add_entry(a, &a->by, &s->entries);
    (void)snprintf(record->operation, sizeof(record->operation), "%s", operation);
    (void)snprintf(record->network, sizeof(record->network), "%s", network);
    (void)snprintf(record->object, sizeof(record->object), "%s", object);
    return send_entries(s, NULL, 0, now, e);
}

/* ---- refusals ------------------------------------------------------------------------------- */

/* A refusal that waits and is of the same kind as @that; NULL: there is none. */
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

/* Copy a sentence, which may quote what came from outside: only characters that every reader
 * takes. */
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

    memcpy(record.actor, a->by.actor, sizeof(record.actor));
    if (!ip_addr_is_none(&a->by.from))
        (void)ip_addr_format(&a->by.from, record.from);
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
    } else if (a->n_lost++ == 0) {
        a->lost_since = record.time;
    }
}

/* Add one entry for the refusals that found no place among those that wait. */
static void add_lost(struct audit *a, struct audit_entries *en)
{
    struct audit_record *record = a->n_lost > 0 ? add_entry(a, &a->by, en) : NULL;

    if (!record)
        return;
    *record = (struct audit_record){.kind = AUDIT_REFUSAL,
        .time = a->wall(),
        .status = 429,
        .count = a->n_lost,
        .first = a->lost_since};
    (void)snprintf(record->actor, sizeof(record->actor), "stranger");
    (void)snprintf(record->operation, sizeof(record->operation), "several");
    (void)snprintf(record->why, sizeof(record->why),
        "refused in other ways or from other addresses, more than are told apart");
}

/* The refusals were not written: they wait again, with those that have come meanwhile. */
static void put_back(struct audit *a, const struct sending *s)
{
    if (a->n_lost == 0)
        a->lost_since = a->wall();
    a->n_lost += s->n_lost;
    for (size_t i = 0; i < s->n_refusals; i++) {
        const struct audit_record *record = &s->entries.records[i];
        struct audit_record *like = find_like(a, record);

        if (like) {
            like->count += record->count;
            like->first = record->first;
        } else if (a->n_pending < AUDIT_PENDING_MAX) {
            a->pending[a->n_pending++] = *record;
        } else {
            a->n_lost += record->count;
        }
    }
}

static int write_refusals(struct audit *a, nsec_t now, bool flush, struct err *e)
{
    nsec_t owed = rate_free_at(&a->rate, now, 0) - now;
    unsigned budget =
        AUDIT_REFUSALS_BURST - (unsigned)((owed + AUDIT_REFUSALS_EACH - 1) / AUDIT_REFUSALS_EACH);
    struct sending *s;
    size_t n;
    int r;

    /* With the last of a budget goes what found no place; else all wait, and gather. */
    a->write_at = now + GATHER_FOR;
    if (!flush && budget < a->n_pending + 1)
        return 0;
    s = sending_new(a, NULL, NULL, e);
    if (!s)
        return -ENOMEM;
    s->n_refusals = s->entries.n = a->n_pending;
    memcpy(s->entries.records, a->pending, a->n_pending * sizeof(*a->pending));
    s->n_lost = a->n_lost;
    add_lost(a, &s->entries);
    n = s->entries.n;
    r = send_entries(s, NULL, 0, now, e);
    if (r != 0)
        return r;
    a->is_writing = true;
    rate_pay(&a->rate, now, (nsec_t)n * AUDIT_REFUSALS_EACH);
    a->n_pending = 0;
    a->n_lost = 0;
    return 0;
}

/* ---- by the clock ---------------------------------------------------------------------------- */

int audit_tick(struct audit *a, nsec_t now, bool flush, struct err *e)
{
    struct err failure = a->failure;
    int r = 0;

    /* What an earlier call has begun. */
    a->failure = (struct err)ERR_NULL;
    if (failure.code != 0)
        r = err_set(e, -EIO, "%s", err_text(&failure));
    if (r == 0 && !a->is_writing && a->n_pending > 0 && (flush || now >= a->write_at))
        r = write_refusals(a, now, flush, e);
    if (flush || a->n_trims > 0 || now - a->trimmed_at < TRIM_EACH)
        return r;
    a->trimmed_at = now;
    for (int kind = 0; r == 0 && kind < AUDIT_KIND_N; kind++)
        r = audit_trim(a, kind, now, e);
    return r;
}
