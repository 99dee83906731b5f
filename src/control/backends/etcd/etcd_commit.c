/* etcd_commit.c - requests that read, and commits of one transaction or of many; see
 * etcd_internal.h. */
#include "backends/etcd/etcd_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "os/clock.h"

/* ---- requests that read ---------------------------------------------------------------------- */

/*
 * What is read may be newer than the feed. Then the answer waits until the feed has come to the
 * same revision, because whoever asked must not see a revision that the watches were not told of.
 */

/* A name behind all that begin with what stands in front of it: no key has this character. */
#define BEHIND "~"
/* The first name behind the one that stands in front of it. */
#define NEXT "!"

static const char *name_of(char buf[static ETCD_NAME_MAX + 1], const char *key, const char *end)
{
    (void)snprintf(buf, ETCD_NAME_MAX + 1, "k/%s%s", key, end);
    return buf;
}

/* A GET or a LIST on its way. */
struct reading {
    struct etcd *q;        /* pins */
    struct store_job *job; /* pins */
    uint64_t newest;       /* etcd's highest revision among the items */
};

static int take_item(void *ctx, const struct etcd_kv *kv)
{
    struct reading *rd = ctx;
    struct store_item item;

    if (store__check_key(kv->name + 2, 1, NULL) != 0)
        return 0;
    item = etcd_updates_item(&rd->q->updates, kv);
    if (kv->mod > rd->newest)
        rd->newest = kv->mod;
    return store_job_add(rd->job, &item);
}

/* The names that a LIST is of, from where it goes on. */
static struct etcd_span span_of(const struct store_job *job, char from[static ETCD_NAME_MAX + 1],
    char end[static ETCD_NAME_MAX + 1])
{
    struct etcd_span span = {.is_down = job->is_down};
    char place[ETCD_NAME_MAX + 1];

    (void)name_of(from, job->key, "");
    (void)name_of(end, job->key, BEHIND);
    if (job->from) {
        (void)name_of(place, job->from, span.is_down ? "" : NEXT);
        if (span.is_down && strcmp(place, end) < 0)
            memcpy(end, place, sizeof(place));
        if (!span.is_down && strcmp(place, from) > 0)
            memcpy(from, place, sizeof(place));
    }
    span.from = from;
    span.end = end;
    return span;
}

void etcd__read(struct etcd *q, struct store_job *job)
{
    struct reading rd = {.q = q, .job = job};
    nsec_t until = clock_now() + ETCD_JOB_NS;
    char from[ETCD_NAME_MAX + 1];
    char end[ETCD_NAME_MAX + 1];
    struct etcd_span span;
    struct err e = ERR_NULL;
    uint64_t revision = 0;
    int r;

    if (job->kind == STORE_JOB_LIST)
        span = span_of(job, from, end);
    else
        span = (struct etcd_span){
            .from = name_of(from, job->key, ""), .end = name_of(end, job->key, NEXT)};
    /* An empty span is none to etcd: its end would be before its beginning. */
    r = strcmp(span.from, span.end) < 0
            ? etcd__read_pages(q, span, until, &revision, take_item, &rd, &e)
            : 0;
    /* 1: the page is full. */
    r = r == 1 && job->has_more ? 0 : r;
    if (r == 0)
        r = etcd__wait_for(q, rd.newest, until, &e);
    job->revision = q->updates.revision;
    if (r != 0) {
        store_job_undo(job);
        etcd__fail(q, job, r, &e);
        return;
    }
    job->r = job->kind == STORE_JOB_GET && job->items.n == 0 ? STORE_E_ABSENT : 0;
    store__finish(&q->base, job);
}

/* ---- commits that do not fit into one transaction of etcd's ---------------------------------- */

/*
 * Etcd takes 128 operations and 1.5 MiB at once; a commit of the store may have 4096 operations. A
 * large commit must be done whole or not at all, whatever dies on the way, and beside other hubs
 * that write. It is done in these steps, each of them one transaction (etcd_follow.c):
 *
 *   1. Its operations are written below "d/SESSION.SEQ/", in parts that each fit into a
 *      transaction. Nothing has happened by that.
 *   2. The key "i" is written, which was absent: "check SESSION SEQ PARTS". From then on nobody
 *      else changes anything, because every commit of every hub expects "i" to be absent.
 *   3. What the operations expect is read. If a key is not as expected, "i" is removed, and the
 *      commit is answered with a conflict.
 *   4. "i" becomes "apply SESSION SEQ PARTS". With that the commit is made: it will be done. The
 *      revision of this step is the revision of the commit, and of all keys that it writes; it
 *      stands in their values, because etcd gives each part a revision of its own.
 *   5. For each part: its operations are done, and the part is removed, in one transaction that
 *      expects "i" to be as step 4 left it and the part to be there. So a part is done once,
 *      whoever does it.
 *   6. "i" is removed.
 *
 * Whoever finds "i" (a commit that fails, or a read, which expects its absence too) looks at what
 * it is. "apply": it waits a moment for the hub whose it is, and then does steps 5 and 6 itself.
 * "check": it waits longer, and then removes "i": step 4 expects it, so the commit is not made, and
 * the hub whose it was begins again at step 2. So a hub may die, or stand still, after any step.
 *
 * Parts whose commit was never made stay when a hub dies. The next one that opens the store removes
 * parts of sessions that are gone.
 *
 * Rejected: a two-phase commit with a lock on each key lets small commits go on beside it, but
 * every reader would have to know of locks on keys, and a large commit (a network removed, a batch
 * of hundreds of nodes) is rare.
 */

/* How long a large commit of this hub may take. */
#define LARGE_NS (30 * NSEC_PER_SEC)

/* Keys whose revisions are read at once: a value may be 64 KiB. */
#define CHECK_KEYS 64

/* A large commit of this hub. */
struct large {
    struct etcd *q;              /* pins */
    struct store_job *job;       /* pins */
    struct etcd_large_head head; /* what "i" says, or is to say */
    uint64_t head_mod;           /* etcd's revision of "i" */
    nsec_t until;
    struct err e;
};

/* ---- steps ---------------------------------------------------------------------------------- */

/* Add the comparison that its key is as it was left. */
static void add_session_compare(const struct etcd_session *s, const char *prefix, struct str *to)
{
    char key[ETCD_SESSION_MAX + 3];

    etcd_add_compare(to, prefix, etcd_session_key(s->name, key), s->mod);
}

/* Step 1, of one part, whose text is @text. */
static int write_part(struct large *l, const struct str *text)
{
    char name[ETCD_NAME_MAX + 1];
    struct str body = STR_NULL;

    if (text->failed)
        return err_set(&l->e, -ENOMEM, "no memory for a commit");
    str_add(&body, "{\"compare\":[");
    add_session_compare(&l->q->session, l->q->client.prefix, &body);
    str_add(&body, "],\"success\":[");
    etcd_add_put(&body, l->q->client.prefix,
        etcd__part_name(name, &l->head.writer, l->head.n_parts), str_text(text), text->len, 0);
    str_add(&body, "]}");
    l->head.n_parts++;
    return etcd__step(l->q, &body, l->until, NULL, &l->e);
}

/* Add an operation: "p KEY TTL UNTOLD LENGTH\n" and the value, or "d KEY 0 0 0\n". */
static void add_part(struct str *s, const struct store_op *op)
{
    bool is_put = op->kind == STORE_OP_PUT;

    str_addf(s, "%c %s %" PRIu32 " %d %zu\n", is_put ? 'p' : 'd', op->key,
        is_put ? op->ttl_seconds : 0, is_put && op->is_unwatched, is_put ? strlen(op->value) : 0);
    if (is_put)
        str_add(s, op->value);
}

static int write_parts(struct large *l)
{
    struct str text = STR_NULL;
    size_t n = 0;
    int r = 0;

    l->head.n_parts = 0;
    for (size_t i = 0; r == 0 && i < l->job->n_ops; i++) {
        const struct store_op *op = &l->job->ops[i];

        if (op->kind == STORE_OP_CHECK)
            continue;
        add_part(&text, op);
        /* A part is removed by the transaction that does it, which is one operation more. */
        if (++n < ETCD_TXN_OPS_MAX && text.len < ETCD_TXN_BYTES_MAX)
            continue;
        r = write_part(l, &text);
        str_deinit(&text);
        n = 0;
    }
    if (r == 0 && n > 0)
        r = write_part(l, &text);
    str_deinit(&text);
    /* A commit that only compares has one part without operations. */
    if (r == 0 && l->head.n_parts == 0)
        r = write_part(l, &text);
    return r;
}

/* Add the operation that writes @seq. */
static void add_session_put(
    const struct etcd_session *s, const char *prefix, uint64_t seq, struct str *to)
{
    char key[ETCD_SESSION_MAX + 3];
    char text[24];
    int len = snprintf(text, sizeof(text), "%" PRIu64, seq);

    etcd_add_put(to, prefix, etcd_session_key(s->name, key), text, (size_t)len, s->lease);
}

/* A number of its own for the session's key, which step 1 expects to be there. */
static int touch_session(struct large *l)
{
    struct etcd *q = l->q;
    struct str body = STR_NULL;
    int r = etcd__need_session(q, l->until, &l->e);

    if (r != 0 || q->session.mod != 0)
        return r;
    str_add(&body, "{\"success\":[");
    add_session_put(&q->session, q->client.prefix, ++q->last_seq, &body);
    str_add(&body, "]}");
    r = etcd__step(q, &body, l->until, &q->session.mod, &l->e);
    return r == ETCD_E_LOST_HEAD ? -EIO : r;
}

static bool is_same(const struct etcd_large_head *a, const struct etcd_large_head *b)
{
    return a->is_applied == b->is_applied && a->writer.seq == b->writer.seq &&
           strcmp(a->writer.session, b->writer.session) == 0;
}

/* Steps 2 and 4: "i", which is at @from, becomes what l->head says. */
static int write_head(struct large *l, uint64_t from)
{
    struct etcd *q = l->q;
    char text[ETCD_LARGE_HEAD_MAX];
    struct etcd_large_head head = {0};
    struct str body = STR_NULL;
    uint64_t mod = 0;
    int r;

    (void)etcd_large_head_format(&l->head, text);
    str_add(&body, "{\"compare\":[");
    etcd_add_compare(&body, q->client.prefix, "i", from);
    add_session_compare(&q->session, q->client.prefix, &body);
    str_add(&body, "],\"success\":[");
    etcd_add_put(&body, q->client.prefix, "i", text, strlen(text), 0);
    str_add(&body, "]}");
    r = etcd__step(q, &body, l->until, &l->head_mod, &l->e);
    if (r != ETCD_E_LOST_HEAD)
        return r;
    /* Perhaps an earlier try, whose answer was lost, has taken effect. */
    r = etcd__read_head(q, l->until, &head, &mod, &l->e);
    if (r == 0 && mod != 0 && is_same(&head, &l->head))
        l->head_mod = mod;
    else if (r == 0)
        r = ETCD_E_LOST_HEAD;
    return r;
}

/* Step 3, of the operations from @from to @to. */
static int check_some(struct large *l, size_t from, size_t to)
{
    struct etcd *q = l->q;
    _cleanup_(str_deinit) struct str body = STR_NULL;
    char name[ETCD_NAME_MAX + 1];
    json_auto_t *answer = NULL;
    int r;

    str_add(&body, "{\"success\":[");
    for (size_t i = from; i < to; i++)
        etcd_add_range(&body, q->client.prefix, etcd__key_name(name, l->job->ops[i].key));
    str_add(&body, "]}");
    r = etcd__ask(q, "/v3/kv/txn", &body, l->until, &answer, &l->e);
    for (size_t i = from; r == 0 && i < to; i++) {
        struct etcd_kvs kvs = ETCD_KVS_NULL;
        uint64_t expect = l->job->ops[i].expect;

        r = etcd_answer_nth(answer, i - from, q->client.prefix, &kvs, &l->e);
        if (r == 0 && expect != STORE_EXPECT_ANY &&
            expect != (kvs.n > 0 ? etcd_updates_revision_of(&q->updates, &kvs.items[0])
                                 : STORE_EXPECT_ABSENT)) {
            l->job->failed = i;
            r = ETCD_E_CONFLICT;
        }
        etcd_kvs_deinit(&kvs);
    }
    return r;
}

static bool expects_something(const struct store_job *job, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (job->ops[i].expect != STORE_EXPECT_ANY)
            return true;
    return false;
}

static int check(struct large *l)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < l->job->n_ops; i += CHECK_KEYS) {
        size_t end = i + CHECK_KEYS < l->job->n_ops ? i + CHECK_KEYS : l->job->n_ops;

        if (expects_something(l->job, i, end))
            r = check_some(l, i, end);
    }
    return r;
}

/* Is the first part gone? Then somebody has done the commit, which was made. */
static int is_gone(struct large *l, bool *ret)
{
    char name[ETCD_NAME_MAX + 1];
    struct str body = STR_NULL;
    int r;

    str_add(&body, "{\"compare\":[");
    etcd_add_exists(&body, l->q->client.prefix, etcd__part_name(name, &l->head.writer, 0));
    str_add(&body, "]}");
    r = etcd__step(l->q, &body, l->until, NULL, &l->e);
    *ret = r == ETCD_E_LOST_HEAD;
    return r == ETCD_E_LOST_HEAD ? 0 : r;
}

/* Steps 2 to 6, once. ETCD_E_LOST_HEAD: to be begun again. */
static int try_large(struct large *l)
{
    struct etcd *q = l->q;
    uint64_t checked;
    bool is_done = false;
    int r;

    l->head.is_applied = false;
    r = write_head(l, 0);
    if (r == ETCD_E_LOST_HEAD) {
        r = etcd__large_help(q, l->until, &l->e);
        return r == 0 ? ETCD_E_LOST_HEAD : r;
    }
    if (r == 0)
        r = check(l);
    if (r == ETCD_E_CONFLICT) {
        (void)etcd__remove_head(q, l->head_mod, l->until, &l->e);
        return r;
    }
    if (r != 0)
        return r;
    checked = l->head_mod;
    l->head.is_applied = true;
    r = write_head(l, checked);
    if (r == ETCD_E_LOST_HEAD) {
        r = is_gone(l, &is_done);
        return r != 0 || is_done ? r : ETCD_E_LOST_HEAD;
    }
    /* From here on the commit will be done, if not by this hub then by the next one that finds it.
     */
    if (r == 0)
        r = etcd__apply(q, &l->head, l->head_mod, l->until, &l->e);
    return r == ETCD_E_AWAY ? ETCD_E_LOST : r;
}

static void remove_parts(struct large *l)
{
    char name[ETCD_NAME_MAX + 1];
    struct err e;

    for (uint64_t i = 0; i < l->head.n_parts; i++) {
        struct str body = STR_NULL;

        str_add(&body, "{\"success\":[");
        etcd_add_delete(&body, l->q->client.prefix, etcd__part_name(name, &l->head.writer, i));
        str_add(&body, "]}");
        if (etcd__step(l->q, &body, l->until, NULL, &e) != 0)
            return;
    }
}

static int do_large(struct large *l)
{
    struct etcd *q = l->q;
    int r = touch_session(l);

    if (r != 0)
        return r;
    l->head.writer.seq = q->current_seq = ++q->last_seq;
    (void)snprintf(l->head.writer.session, sizeof(l->head.writer.session), "%s", q->session.name);
    r = write_parts(l);
    /* The comparison that failed is that of the session: it has ended meanwhile. */
    if (r == ETCD_E_LOST_HEAD)
        return err_set(&l->e, -EAGAIN, "the hub was away from etcd for too long: try again");
    while (r == 0 || r == ETCD_E_LOST_HEAD) {
        r = try_large(l);
        if (r == 0 || (r == ETCD_E_LOST_HEAD && clock_now() >= l->until))
            break;
    }
    if (r == ETCD_E_CONFLICT || r == ETCD_E_LOST_HEAD)
        remove_parts(l);
    return r;
}

void etcd__large_commit(struct etcd *q, struct store_job *job)
{
    struct large l = {.q = q, .job = job, .until = clock_now() + LARGE_NS};
    struct list jobs;
    int r;

    list_init(&jobs);
    list_add_tail(&jobs, &job->link);
    q->current = &jobs;
    q->is_current_seen = false;
    r = do_large(&l);
    /* The feed shows the commit when "i" is removed, and the revision of that is not known here. */
    while (r == 0 && !q->is_current_seen && clock_now() < l.until)
        (void)etcd__wait_for(
            q, q->updates.position + 1, nsec_min(l.until, clock_now() + NSEC_PER_SEC), &l.e);
    q->current = NULL;
    if (q->is_current_seen)
        return;
    list_remove(&job->link);
    etcd__fail(q, job, r == ETCD_E_LOST_HEAD ? ETCD_E_AWAY : r, &l.e);
}

/* ---- commits that are one transaction -------------------------------------------------------- */

/* An outcome of one try: what was expected of the session was out of date. */
#define TRY_AGAIN 100

/* A commit that is being made. */
struct making {
    struct etcd *q;    /* pins */
    struct list *jobs; /* borrowed: of struct store_job */
    bool is_alone;     /* it is one job */
    uint64_t *mods;    /* owns; is_alone: etcd's revision that each operation expects */
    nsec_t until;      /* give up then */
    struct err e;      /* the words of a failure */
};

static struct store_job *first_job(const struct making *m)
{
    return list_first(m->jobs, struct store_job, link);
}

/* ---- what is sent --------------------------------------------------------------------------- */

static uint64_t expected(const struct making *m, const struct store_job *job, size_t i)
{
    uint64_t expect = job->ops[i].expect;

    if (m->mods && m->mods[i])
        return m->mods[i];
    return expect == STORE_EXPECT_ABSENT ? 0 : expect + m->q->updates.base;
}

static void add_compares(const struct making *m, struct str *s)
{
    const char *prefix = m->q->client.prefix;
    const struct store_job *job;
    char name[ETCD_NAME_MAX + 1];

    add_session_compare(&m->q->session, prefix, s);
    etcd_add_compare(s, prefix, "i", 0);
    list_foreach(job, m->jobs, link)
        for (size_t i = 0; i < job->n_ops; i++)
            if (job->ops[i].expect != STORE_EXPECT_ANY)
                etcd_add_compare(
                    s, prefix, etcd__key_name(name, job->ops[i].key), expected(m, job, i));
}

static void add_changes(const struct making *m, struct str *s)
{
    const struct store_job *job;

    add_session_put(&m->q->session, m->q->client.prefix, m->q->current_seq, s);
    list_foreach(job, m->jobs, link)
        for (size_t i = 0; i < job->n_ops; i++)
            if (job->ops[i].kind != STORE_OP_CHECK)
                etcd__add_op(m->q, &job->ops[i], 0, s);
}

/* What the transaction reads when a comparison fails, to find the reason: the session's key, the
 * key of a large commit, and the keys of a job that is alone. */
static void add_reasons(const struct making *m, struct str *s)
{
    const struct store_job *job = first_job(m);
    const char *prefix = m->q->client.prefix;
    char name[ETCD_NAME_MAX + 1];

    etcd_add_range(s, prefix, etcd_session_key(m->q->session.name, name));
    etcd_add_range(s, prefix, "i");
    for (size_t i = 0; m->is_alone && i < job->n_ops; i++)
        if (job->ops[i].expect != STORE_EXPECT_ANY)
            etcd_add_range(s, prefix, etcd__key_name(name, job->ops[i].key));
}

/* ---- what is answered ----------------------------------------------------------------------- */

/* Check each key that was expected at a revision of the store. If it is at that revision, note
 * etcd's own revision of the key, which the next try expects. Else the job has a conflict. */
static int find_conflict(struct making *m, const json_t *answer)
{
    struct store_job *job = first_job(m);
    size_t n = 2;
    int r = 0;

    if (!m->mods)
        m->mods = calloc(job->n_ops, sizeof(*m->mods));
    if (!m->mods)
        return err_set(&m->e, -ENOMEM, "no memory for a commit");
    for (size_t i = 0; r == 0 && i < job->n_ops; i++) {
        struct etcd_kvs kvs = ETCD_KVS_NULL;
        uint64_t at;

        if (job->ops[i].expect == STORE_EXPECT_ANY)
            continue;
        r = etcd_answer_nth(answer, n++, m->q->client.prefix, &kvs, &m->e);
        at = r == 0 && kvs.n > 0 ? etcd_updates_revision_of(&m->q->updates, &kvs.items[0]) : 0;
        if (r == 0 && at != job->ops[i].expect) {
            job->failed = i;
            r = ETCD_E_CONFLICT;
        } else if (r == 0 && kvs.n > 0) {
            m->mods[i] = kvs.items[0].mod;
        }
        etcd_kvs_deinit(&kvs);
    }
    return r == 0 ? TRY_AGAIN : r;
}

/* The key of the session is not as it was left. */
static int find_session(struct making *m, const struct etcd_kvs *kvs)
{
    struct etcd *q = m->q;
    uint64_t seq = 0;

    /* The session's lease has ended, so none of its requests can take effect any more. */
    if (kvs->n == 0) {
        q->session = (struct etcd_session)ETCD_SESSION_NULL;
        return TRY_AGAIN;
    }
    q->session.mod = kvs->items[0].mod;
    (void)parse_u64(&seq, kvs->items[0].value, 0, INT64_MAX, "", NULL);
    /* An earlier try has taken effect: of this commit, or of one that was given up. */
    return seq == q->current_seq ? 0 : TRY_AGAIN;
}

/* Why did the comparisons fail? 0: because the commit is done already. */
static int find_reason(struct making *m, const json_t *answer)
{
    _cleanup_(etcd_kvs_deinit) struct etcd_kvs session = ETCD_KVS_NULL;
    _cleanup_(etcd_kvs_deinit) struct etcd_kvs head = ETCD_KVS_NULL;
    const char *prefix = m->q->client.prefix;
    int r = etcd_answer_nth(answer, 0, prefix, &session, &m->e);

    if (r == 0)
        r = etcd_answer_nth(answer, 1, prefix, &head, &m->e);
    if (r == 0 && (session.n > 0 ? session.items[0].mod : 0) != m->q->session.mod) {
        r = find_session(m, &session);
    } else if (r == 0 && head.n > 0) {
        r = etcd__large_help(m->q, m->until, &m->e);
        r = r == 0 ? TRY_AGAIN : r;
    } else if (r == 0) {
        r = m->is_alone ? find_conflict(m, answer) : ETCD_E_CONFLICT;
    }
    return r;
}

/* Send it once. 0: it is done, at etcd's revision q->session.mod. */
static int try_txn(struct making *m)
{
    _cleanup_(str_deinit) struct str body = STR_NULL;
    json_auto_t *answer = NULL;
    int r = etcd__need_session(m->q, m->until, &m->e);

    if (r != 0)
        return r;
    str_add(&body, "{\"compare\":[");
    add_compares(m, &body);
    str_add(&body, "],\"success\":[");
    add_changes(m, &body);
    str_add(&body, "],\"failure\":[");
    add_reasons(m, &body);
    str_add(&body, "]}");
    r = etcd__ask(m->q, "/v3/kv/txn", &body, m->until, &answer, &m->e);
    if (r == ETCD_E_NO_LEASE) {
        m->q->session = (struct etcd_session)ETCD_SESSION_NULL;
        r = TRY_AGAIN;
    } else if (r == 0 && etcd_answer_succeeded(answer)) {
        r = etcd_answer_revision(answer, &m->q->session.mod, &m->e);
    } else if (r == 0) {
        r = find_reason(m, answer);
    }
    return r;
}

/* ---- what changes nothing -------------------------------------------------------------------- */

/* May it be that the commit changes nothing: no put, and what it deletes is not there? */
static bool may_be_idle(const struct making *m)
{
    const struct store_job *job = first_job(m);

    for (size_t i = 0; i < job->n_ops; i++) {
        const struct store_op *op = &job->ops[i];

        if (op->kind == STORE_OP_PUT ||
            (op->kind == STORE_OP_DELETE &&
                (op->expect != STORE_EXPECT_ANY || keys_find(&m->q->updates.known, op->key))))
            return false;
    }
    return m->is_alone;
}

/* A commit that changes nothing writes nothing: send the comparisons only. 0: they hold. */
static int try_idle(struct making *m)
{
    struct store_job *job = first_job(m);
    _cleanup_(str_deinit) struct str body = STR_NULL;
    char name[ETCD_NAME_MAX + 1];
    json_auto_t *answer = NULL;
    int r;

    str_add(&body, "{\"compare\":[");
    etcd_add_compare(&body, m->q->client.prefix, "i", 0);
    for (size_t i = 0; i < job->n_ops; i++) {
        const struct store_op *op = &job->ops[i];

        if (op->kind == STORE_OP_CHECK && op->expect == STORE_EXPECT_ANY)
            continue;
        etcd_add_compare(&body, m->q->client.prefix, etcd__key_name(name, op->key),
            op->kind == STORE_OP_DELETE ? 0 : expected(m, job, i));
    }
    str_add(&body, "]}");
    r = etcd__ask(m->q, "/v3/kv/txn", &body, m->until, &answer, &m->e);
    if (r == 0 && !etcd_answer_succeeded(answer))
        r = TRY_AGAIN;
    /* Nothing was sent that could have changed something. */
    return r == ETCD_E_LOST ? ETCD_E_AWAY : r;
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* 0: the jobs were handed back. Else what they are to be told. */
static int make(struct making *m)
{
    struct etcd *q = m->q;
    int r = may_be_idle(m) ? try_idle(m) : TRY_AGAIN;

    if (r == 0) {
        struct store_job *job = first_job(m);

        job->revision = q->updates.revision;
        list_remove(&job->link);
        store__finish(&q->base, job);
    }
    if (r != TRY_AGAIN)
        return r;
    q->current = m->jobs;
    q->current_seq = ++q->last_seq;
    q->is_current_seen = false;
    while (!q->is_current_seen && r == TRY_AGAIN) {
        r = try_txn(m);
        etcd__drain(q);
    }
    if (r == 0 && !q->is_current_seen)
        r = etcd__wait_for(q, q->session.mod, m->until, &m->e);
    /* It is done, but the watches cannot be told in time. The answer must not come before that, so
     * it is STORE_E_UNKNOWN. */
    if (r == ETCD_E_AWAY && q->session.mod > q->updates.position)
        r = ETCD_E_LOST;
    q->current = NULL;
    return q->is_current_seen ? 0 : r;
}

static void commit_alone(struct etcd *q, struct store_job *job)
{
    struct list jobs;
    struct making m = {.q = q, .jobs = &jobs, .is_alone = true, .until = clock_now() + ETCD_JOB_NS};
    int r;

    list_init(&jobs);
    list_add_tail(&jobs, &job->link);
    r = make(&m);
    free(m.mods);
    if (list_is_empty(&jobs))
        return;
    list_remove(&job->link);
    etcd__fail(q, job, r, &m.e);
}

void etcd__commit(struct etcd *q, struct list *jobs)
{
    struct making m = {.q = q, .jobs = jobs, .until = clock_now() + ETCD_JOB_NS};
    struct store_job *job = first_job(&m);
    bool is_alone = job->link.next == jobs;
    int r = is_alone ? ETCD_E_CONFLICT : make(&m);

    while ((job = first_job(&m))) {
        list_remove(&job->link);
        /* At least one of the commits conflicts, so each is done alone. */
        if (r == ETCD_E_CONFLICT)
            commit_alone(q, job);
        else
            etcd__fail(q, job, r, &m.e);
    }
}
