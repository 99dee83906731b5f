/* etcd_commit.c - commits that are one transaction; see etcd_internal.h. */
#include "backends/etcd/etcd_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "os/clock.h"

/* Outcomes of one try, beside those of etcd_client_ask(). */
#define TRY_AGAIN    100 /* what was expected of the session was out of date */
#define TRY_CONFLICT 101 /* a key was not as expected */

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
    return expect == STORE_EXPECT_ABSENT ? 0 : expect + m->q->news.base;
}

static void add_compares(const struct making *m, struct str *s)
{
    const char *prefix = m->q->client.prefix;
    const struct store_job *job;
    char name[ETCD_NAME_MAX + 1];

    etcd_session_add_compare(&m->q->session, prefix, s);
    str_add(s, ",");
    etcd_add_compare(s, prefix, "i", 0);
    list_foreach(job, m->jobs, link) {
        for (size_t i = 0; i < job->n_ops; i++) {
            if (job->ops[i].expect == STORE_EXPECT_ANY)
                continue;
            (void)snprintf(name, sizeof(name), "k/%s", job->ops[i].key);
            str_add(s, ",");
            etcd_add_compare(s, prefix, name, expected(m, job, i));
        }
    }
}

static void add_changes(const struct making *m, struct str *s)
{
    const struct store_job *job;
    char name[ETCD_NAME_MAX + 1];

    etcd_session_add_put(&m->q->session, m->q->client.prefix, m->q->current_seq, s);
    list_foreach(job, m->jobs, link) {
        for (size_t i = 0; i < job->n_ops; i++) {
            const struct store_op *op = &job->ops[i];

            if (op->kind == STORE_OP_CHECK)
                continue;
            str_add(s, ",");
            (void)snprintf(name, sizeof(name), "k/%s", op->key);
            if (op->kind == STORE_OP_PUT)
                etcd__add_put(m->q, op, 0, s);
            else
                etcd_add_delete(s, m->q->client.prefix, name);
        }
    }
}

/* What the transaction reads when a comparison fails, to find the reason: the session's key, the
 * key of a large commit, and the keys of a job that is alone. */
static void add_reasons(const struct making *m, struct str *s)
{
    const struct store_job *job = first_job(m);
    const char *prefix = m->q->client.prefix;
    char name[ETCD_NAME_MAX + 1];

    etcd_add_range(s, prefix, etcd_session_key(m->q->session.name, name));
    str_add(s, ",");
    etcd_add_range(s, prefix, "i");
    for (size_t i = 0; m->is_alone && i < job->n_ops; i++) {
        if (job->ops[i].expect == STORE_EXPECT_ANY)
            continue;
        (void)snprintf(name, sizeof(name), "k/%s", job->ops[i].key);
        str_add(s, ",");
        etcd_add_range(s, prefix, name);
    }
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
        at = r == 0 && kvs.n > 0 ? etcd_news_revision_of(&m->q->news, &kvs.items[0]) : 0;
        if (r == 0 && at != job->ops[i].expect) {
            job->failed = i;
            r = TRY_CONFLICT;
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
    struct etcd_kvs session = ETCD_KVS_NULL;
    struct etcd_kvs head = ETCD_KVS_NULL;
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
        r = m->is_alone ? find_conflict(m, answer) : TRY_CONFLICT;
    }
    etcd_kvs_deinit(&session);
    etcd_kvs_deinit(&head);
    return r;
}

/* Send it once. 0: it is done, at etcd's revision q->session.mod. */
static int try_txn(struct making *m)
{
    struct str body = STR_NULL;
    json_t *answer = NULL;
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
    str_deinit(&body);
    if (r == ETCD_E_NO_LEASE) {
        m->q->session = (struct etcd_session)ETCD_SESSION_NULL;
        r = TRY_AGAIN;
    } else if (r == 0 && etcd_answer_succeeded(answer)) {
        r = etcd_answer_revision(answer, &m->q->session.mod, &m->e);
    } else if (r == 0) {
        r = find_reason(m, answer);
    }
    json_decref(answer);
    return r;
}

/* ---- what changes nothing ---------------------------------------------------------------------
 */

/* May it be that the commit changes nothing: no put, and what it deletes is not there? */
static bool may_be_idle(const struct making *m)
{
    const struct store_job *job = first_job(m);

    for (size_t i = 0; i < job->n_ops; i++) {
        const struct store_op *op = &job->ops[i];

        if (op->kind == STORE_OP_PUT ||
            (op->kind == STORE_OP_DELETE &&
                (op->expect != STORE_EXPECT_ANY || etcd_news_has(&m->q->news, op->key))))
            return false;
    }
    return m->is_alone;
}

/* A commit that changes nothing writes nothing: send the comparisons only. 0: they hold. */
static int try_idle(struct making *m)
{
    struct store_job *job = first_job(m);
    struct str body = STR_NULL;
    char name[ETCD_NAME_MAX + 1];
    json_t *answer = NULL;
    int r;

    str_add(&body, "{\"compare\":[");
    etcd_add_compare(&body, m->q->client.prefix, "i", 0);
    for (size_t i = 0; i < job->n_ops; i++) {
        const struct store_op *op = &job->ops[i];

        if (op->kind == STORE_OP_CHECK && op->expect == STORE_EXPECT_ANY)
            continue;
        (void)snprintf(name, sizeof(name), "k/%s", op->key);
        str_add(&body, ",");
        etcd_add_compare(&body, m->q->client.prefix, name,
            op->kind == STORE_OP_DELETE ? 0 : expected(m, job, i));
    }
    str_add(&body, "]}");
    r = etcd__ask(m->q, "/v3/kv/txn", &body, m->until, &answer, &m->e);
    str_deinit(&body);
    if (r == 0 && !etcd_answer_succeeded(answer))
        r = TRY_AGAIN;
    json_decref(answer);
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

        job->revision = q->news.revision;
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
    if (r == ETCD_E_AWAY && q->session.mod > q->news.position)
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
    if (r == TRY_CONFLICT) {
        job->r = err_set(&job->e, STORE_E_CONFLICT, "key \"%s\" is not at the expected revision",
            job->ops[job->failed].key);
        job->revision = q->news.revision;
        store__finish(&q->base, job);
    } else {
        etcd__fail(q, job, r == 0 ? ETCD_E_LOST : r, &m.e);
    }
}

void etcd__commit(struct etcd *q, struct list *jobs)
{
    struct making m = {.q = q, .jobs = jobs, .until = clock_now() + ETCD_JOB_NS};
    struct store_job *job = first_job(&m);
    bool is_alone = job->link.next == jobs;
    int r = is_alone ? TRY_CONFLICT : make(&m);

    while ((job = first_job(&m))) {
        list_remove(&job->link);
        /* At least one of the commits conflicts, so each is done alone. */
        if (r == TRY_CONFLICT)
            commit_alone(q, job);
        else
            etcd__fail(q, job, r == 0 ? ETCD_E_LOST : r, &m.e);
    }
}
