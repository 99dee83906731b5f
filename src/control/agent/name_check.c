/* name_check.c - see name_check.h. */
#include "agent/name_check.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/parse.h"
#include "os/clock.h"
#include "os/thread.h"

#define PATIENCE     (2 * NSEC_PER_SEC) /* without an answer for this time it counts as silent */
#define PERIOD       (60 * NSEC_PER_SEC)
#define PERIOD_EACH  (NSEC_PER_SEC / 10) /* the period is at least this for each name */
#define SILENCE_TIME (30 * NSEC_PER_SEC)

struct entry {
    struct name_query query; /* its name is @name */
    char name[NAME_MAX_LEN + 1];
    enum name_verdict verdict;
    struct ip_addr where;
    nsec_t due_at; /* time of the next question; 0: at once */
};

struct name_check {
    name_lookup_fn lookup; /* immutable */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* there is something to do */
    /* guarded by lock: */
    unsigned users; /* the owner and the thread; the last one releases it */
    bool is_ending;
    struct entry *entries; /* owns; sorted by name */
    size_t n;
    nsec_t asking_since; /* a question is under way since then; 0: none is */
    bool is_silent;      /* the last question had no answer */
};

static void unref(struct name_check *c)
{
    bool last;

    (void)pthread_mutex_lock(&c->lock);
    last = --c->users == 0;
    (void)pthread_mutex_unlock(&c->lock);
    if (!last)
        return;
    (void)pthread_mutex_destroy(&c->lock);
    (void)pthread_cond_destroy(&c->changed);
    free(c->entries);
    free(c);
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, ((const struct entry *)entry)->name);
}

static struct entry *find(const struct name_check *c, const char *name)
{
    if (c->n == 0)
        return NULL;
    return bsearch(name, c->entries, c->n, sizeof(*c->entries), compare_name);
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Holds the lock. The name that has waited longest; NULL when there is none. */
static struct entry *next_due(struct name_check *c)
{
    struct entry *first = NULL;

    for (size_t i = 0; i < c->n; i++)
        if (!first || c->entries[i].due_at < first->due_at)
            first = &c->entries[i];
    return first;
}

/* Holds the lock, but not while it waits. false: nothing was due. */
static bool wait_for_work(struct name_check *c, const struct entry *next)
{
    struct timespec until;

    if (!next) {
        (void)pthread_cond_wait(&c->changed, &c->lock);
        return false;
    }
    if (next->due_at <= clock_now())
        return true;
    until = (struct timespec){
        .tv_sec = next->due_at / NSEC_PER_SEC, .tv_nsec = next->due_at % NSEC_PER_SEC};
    (void)pthread_cond_timedwait(&c->changed, &c->lock, &until);
    return false;
}

/* Holds the lock. Takes what was found out about @name, if it is still wanted. */
static void take(
    struct name_check *c, const char *name, enum name_found found, const struct ip_addr *where)
{
    struct entry *e = find(c, name);
    nsec_t period = nsec_max(PERIOD, (nsec_t)c->n * PERIOD_EACH);

    c->asking_since = 0;
    c->is_silent = found == NAME_FOUND_SILENT;
    if (!e)
        return;
    e->due_at = clock_now() + (c->is_silent ? SILENCE_TIME : period);
    /* A verdict stays while the resolver is silent. */
    if (c->is_silent && e->verdict != NAME_VERDICT_PENDING)
        return;
    e->verdict = found == NAME_FOUND_SOMEBODY ? NAME_VERDICT_ELSEWHERE : NAME_VERDICT_FREE;
    e->where = *where;
}

static void *run(void *arg)
{
    struct name_check *c = arg;

    (void)pthread_mutex_lock(&c->lock);
    while (!c->is_ending) {
        const struct entry *next = next_due(c);
        struct ip_addr where = {0};
        enum name_found found;
        struct entry copy;

        if (!wait_for_work(c, next))
            continue;
        copy = *next;
        copy.query.name = copy.name;
        c->asking_since = clock_now();
        (void)pthread_mutex_unlock(&c->lock);
        found = c->lookup(&copy.query, &where);
        (void)pthread_mutex_lock(&c->lock);
        take(c, copy.name, found, &where);
    }
    (void)pthread_mutex_unlock(&c->lock);
    unref(c);
    return NULL;
}

/* ---- the loop's ----------------------------------------------------------------------------- */

int name_check_new(struct name_check **ret, name_lookup_fn lookup, struct err *e)
{
    struct name_check *c = calloc(1, sizeof(*c));
    pthread_condattr_t attr;
    pthread_t thread;
    int r;

    if (!c)
        return err_set(e, -ENOMEM, "no memory for looking names up");
    c->lookup = lookup;
    c->users = 2;
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&c->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    r = thread_start(&thread, "name-check", -1, run, c);
    if (r < 0) {
        unref(c);
        unref(c);
        return err_set(e, r, "no thread to look names up in: %s", strerror(-r));
    }
    (void)pthread_detach(thread);
    *ret = c;
    return 0;
}

static bool is_same_query(const struct entry *a, const struct entry *b)
{
    return ip_addr_equal(&a->query.address4, &b->query.address4) &&
           ip_addr_equal(&a->query.address6, &b->query.address6);
}

bool name_check_want(struct name_check *c, const struct name_query *queries, size_t n)
{
    struct entry *entries = calloc(n + 1, sizeof(*entries));
    struct entry *old;

    if (!entries)
        return false;
    for (size_t i = 0; i < n; i++) {
        entries[i].query = queries[i];
        (void)snprintf(
            entries[i].name, sizeof(entries[i].name), "%.*s", NAME_MAX_LEN, queries[i].name);
    }
    qsort(entries, n, sizeof(*entries), compare_entries);
    (void)pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < n; i++) {
        const struct entry *known = find(c, entries[i].name);

        if (known && is_same_query(known, &entries[i])) {
            entries[i].verdict = known->verdict;
            entries[i].where = known->where;
            entries[i].due_at = known->due_at;
        }
    }
    old = c->entries;
    c->entries = entries;
    c->n = n;
    (void)pthread_cond_signal(&c->changed);
    (void)pthread_mutex_unlock(&c->lock);
    free(old);
    return true;
}

enum name_verdict name_check_ask(
    struct name_check *c, const char *name, nsec_t now, struct ip_addr *ret_where)
{
    enum name_verdict verdict = NAME_VERDICT_PENDING;
    const struct entry *e;

    (void)pthread_mutex_lock(&c->lock);
    e = find(c, name);
    if (e)
        verdict = e->verdict;
    if (verdict == NAME_VERDICT_ELSEWHERE)
        *ret_where = e->where;
    if (e && verdict == NAME_VERDICT_PENDING &&
        (c->is_silent || (c->asking_since != 0 && now - c->asking_since > PATIENCE)))
        verdict = NAME_VERDICT_FREE;
    (void)pthread_mutex_unlock(&c->lock);
    return verdict;
}

struct name_check *name_check_free(struct name_check *c)
{
    if (!c)
        return NULL;
    (void)pthread_mutex_lock(&c->lock);
    c->is_ending = true;
    (void)pthread_cond_signal(&c->changed);
    (void)pthread_mutex_unlock(&c->lock);
    unref(c);
    return NULL;
}
