/* sqlite.c - see sqlite.h. */
#include "sqlite.h"

#include <errno.h>
#include <stdlib.h>

#include "backends/sqlite/sqlite_db.h"
#include "os/thread.h"
#include "store/store_backend.h"

struct sqlite {
    struct store base;
    struct sqlite_db db;  /* the thread's, once it runs */
    pthread_t thread;     /* joined by sqlite_free() */
    bool has_thread;      /* it was started */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t more;  /* a job has come, or @is_ending is set */
    struct list jobs;     /* of struct store_job; the oldest first */
    bool is_ending;       /* no more jobs will come */
};

static struct sqlite *sqlite_of(struct store *s)
{
    return container_of(s, struct sqlite, base);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static bool is_commit(const struct store_job *job)
{
    return job->kind == STORE_JOB_COMMIT;
}

/* Wait for jobs, and take those that are done next: one that reads, or commits as far as they fit
 * into one transaction. False: there are none, and no more will come. */
static bool take_jobs(struct sqlite *q, struct list *ret)
{
    struct store_job *job;
    size_t n_ops = 0;

    (void)pthread_mutex_lock(&q->lock);
    while (list_is_empty(&q->jobs) && !q->is_ending)
        (void)pthread_cond_wait(&q->more, &q->lock);
    while ((job = list_first(&q->jobs, struct store_job, link))) {
        bool is_first = list_is_empty(ret);

        if (!is_first && (!is_commit(job) || n_ops + job->n_ops > STORE_OPS_MAX))
            break;
        n_ops += job->n_ops;
        list_remove(&job->link);
        list_add_tail(ret, &job->link);
        if (!is_commit(job))
            break;
    }
    (void)pthread_mutex_unlock(&q->lock);
    return !list_is_empty(ret);
}

static void *run(void *arg)
{
    struct sqlite *q = arg;
    struct list jobs;

    list_init(&jobs);
    while (take_jobs(q, &jobs)) {
        struct store_job *job = list_first(&jobs, struct store_job, link);

        if (is_commit(job))
            sqlite_db_commit(&q->db, &jobs);
        else
            sqlite_db_read(&q->db, job);
        while ((job = list_first(&jobs, struct store_job, link))) {
            list_remove(&job->link);
            store__finish(&q->base, job);
        }
    }
    return NULL;
}

/* ---- the owner's side ----------------------------------------------------------------------- */

static void sqlite_submit(struct store *s, struct store_job *job)
{
    struct sqlite *q = sqlite_of(s);

    (void)pthread_mutex_lock(&q->lock);
    list_add_tail(&q->jobs, &job->link);
    (void)pthread_cond_signal(&q->more);
    (void)pthread_mutex_unlock(&q->lock);
}

static void sqlite_free(struct store *s)
{
    struct sqlite *q = sqlite_of(s);

    (void)pthread_mutex_lock(&q->lock);
    q->is_ending = true;
    (void)pthread_cond_signal(&q->more);
    (void)pthread_mutex_unlock(&q->lock);
    if (q->has_thread)
        (void)pthread_join(q->thread, NULL);
    sqlite_db_close(&q->db);
    (void)pthread_cond_destroy(&q->more);
    (void)pthread_mutex_destroy(&q->lock);
    store__deinit(s);
    free(q);
}

static const struct store_ops sqlite_ops = {
    .free = sqlite_free,
    .submit = sqlite_submit,
};

static int start(struct sqlite *q, struct err *e)
{
    int r = thread_start(&q->thread, "store", -1, run, q);

    q->has_thread = r == 0;
    return r == 0 ? 0 : err_set(e, r, "no thread for the store");
}

int sqlite_open(struct store **ret, const char *where, nsec_t now, struct err *e)
{
    struct sqlite *q;
    int r;

    if (where[0] == '\0')
        return err_set(e, -EINVAL, "store \"sqlite:\": a path must follow the colon");
    q = calloc(1, sizeof(*q));
    if (!q)
        return err_set(e, -ENOMEM, "no memory for a store");
    (void)pthread_mutex_init(&q->lock, NULL);
    (void)pthread_cond_init(&q->more, NULL);
    list_init(&q->jobs);
    r = store__init(&q->base, &sqlite_ops, e);
    if (r == 0)
        r = sqlite_db_open(&q->db, where, e);
    if (r == 0)
        r = sqlite_db_leases(&q->db, &q->base.leases, now, e);
    q->base.revision = q->db.revision;
    if (r == 0)
        r = start(q, e);
    if (r != 0) {
        sqlite_free(&q->base);
        return r;
    }
    *ret = &q->base;
    return 0;
}
