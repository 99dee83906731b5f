/*
 * etcd_large.c - commits that do not fit into one transaction of etcd's; see etcd_internal.h.
 *
 * Etcd takes 128 operations and 1.5 MiB at once; a commit of the store may have 4096 operations. A
 * large commit must be done whole or not at all, whatever dies on the way, and beside other hubs
 * that write. It is done in these steps, each of them one transaction (etcd_intent.c):
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
#include "backends/etcd/etcd_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "os/clock.h"

/* How long a large commit of this hub may take. */
#define LARGE_NS (30 * NSEC_PER_SEC)

/* Keys whose revisions are read at once: a value may be 64 KiB. */
#define CHECK_KEYS 64

/* An outcome of a step: a key is not as expected. */
#define LARGE_CONFLICT 201

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

/* Step 1, of one part, whose text is @text. */
static int write_part(struct large *l, const struct str *text)
{
    char name[ETCD_NAME_MAX + 1];
    struct str body = STR_NULL;

    if (text->failed)
        return err_set(&l->e, -ENOMEM, "no memory for a commit");
    str_add(&body, "{\"compare\":[");
    etcd_session_add_compare(&l->q->session, l->q->client.prefix, &body);
    str_add(&body, "],\"success\":[");
    etcd_add_put(&body, l->q->client.prefix,
        etcd__part_name(name, &l->head.writer, l->head.n_parts), str_text(text), text->len, 0);
    str_add(&body, "]}");
    l->head.n_parts++;
    return etcd__step(l->q, &body, l->until, NULL, &l->e);
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
        etcd_part_add(&text, op);
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

/* A number of its own for the session's key, which step 1 expects to be there. */
static int touch_session(struct large *l)
{
    struct etcd *q = l->q;
    struct str body = STR_NULL;
    int r = etcd__need_session(q, l->until, &l->e);

    if (r != 0 || q->session.mod != 0)
        return r;
    str_add(&body, "{\"success\":[");
    etcd_session_add_put(&q->session, q->client.prefix, ++q->last_seq, &body);
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
    str_add(&body, ",");
    etcd_session_add_compare(&q->session, q->client.prefix, &body);
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
    struct str body = STR_NULL;
    char name[ETCD_NAME_MAX + 1];
    json_t *answer = NULL;
    int r;

    str_add(&body, "{\"success\":[");
    for (size_t i = from; i < to; i++) {
        (void)snprintf(name, sizeof(name), "k/%s", l->job->ops[i].key);
        str_add(&body, i > from ? "," : "");
        etcd_add_range(&body, q->client.prefix, name);
    }
    str_add(&body, "]}");
    r = etcd__ask(q, "/v3/kv/txn", &body, l->until, &answer, &l->e);
    str_deinit(&body);
    for (size_t i = from; r == 0 && i < to; i++) {
        struct etcd_kvs kvs = ETCD_KVS_NULL;
        uint64_t expect = l->job->ops[i].expect;

        r = etcd_answer_nth(answer, i - from, q->client.prefix, &kvs, &l->e);
        if (r == 0 && expect != STORE_EXPECT_ANY &&
            expect != (kvs.n > 0 ? etcd_news_revision_of(&q->news, &kvs.items[0])
                                 : STORE_EXPECT_ABSENT)) {
            l->job->failed = i;
            r = LARGE_CONFLICT;
        }
        etcd_kvs_deinit(&kvs);
    }
    json_decref(answer);
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
    if (r == LARGE_CONFLICT) {
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
    if (r == LARGE_CONFLICT || r == ETCD_E_LOST_HEAD)
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
            q, q->news.position + 1, nsec_min(l.until, clock_now() + NSEC_PER_SEC), &l.e);
    q->current = NULL;
    if (q->is_current_seen)
        return;
    list_remove(&job->link);
    if (r == LARGE_CONFLICT) {
        job->r = err_set(&job->e, STORE_E_CONFLICT, "key \"%s\" is not at the expected revision",
            job->ops[job->failed].key);
        job->revision = q->news.revision;
        store__finish(&q->base, job);
        return;
    }
    etcd__fail(q, job, r == 0 ? ETCD_E_LOST : r == ETCD_E_LOST_HEAD ? ETCD_E_AWAY : r, &l.e);
}
