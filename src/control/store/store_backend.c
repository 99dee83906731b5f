/* store_backend.c - see store_backend.h. */
#include "store_backend.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "os/fd_cleanup.h"
#include "os/wakeup.h"

/* ---- life ----------------------------------------------------------------------------------- */

int store__init(struct store *s, const struct store_ops *ops, struct err *e)
{
    *s = (struct store){.ops = ops, .wake_fd = wakeup_open()};
    list_init(&s->watches);
    list_init(&s->finished);
    (void)pthread_mutex_init(&s->lock, NULL);
    if (s->wake_fd < 0)
        return err_set(e, s->wake_fd, "no descriptor for a store: %s", strerror(-s->wake_fd));
    return 0;
}

void store__deinit(struct store *s)
{
    struct store_job *job;
    struct store_job *tmp;

    assert(list_is_empty(&s->watches));
    list_foreach_safe(job, tmp, &s->finished, link)
        store_job_free(job);
    leases_deinit(&s->leases);
    (void)pthread_mutex_destroy(&s->lock);
    closep(&s->wake_fd);
}

/* ---- to the back end ------------------------------------------------------------------------ */

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("/._-", c);
}

int store__check_key(const char *key, size_t min, struct err *e)
{
    size_t len = strnlen(key, STORE_KEY_MAX + 1);
    bool good = len >= min && len <= STORE_KEY_MAX;

    for (size_t i = 0; good && i < len; i++)
        good = is_key_char(key[i]);
    if (good)
        return 0;
    return err_set(e, -EINVAL,
        "store key \"%.80s\" is not %zu to %d of letters, digits, '/', '.', '_' and '-'", key, min,
        STORE_KEY_MAX);
}

void store__add_pending(struct store *s, const struct store_job *job)
{
    s->n_pending++;
    s->bytes_pending += job->bytes;
}

int store__submit(struct store *s, struct store_job *job, struct err *e)
{
    if (s->n_pending >= STORE_PENDING_MAX ||
        (s->n_pending > 0 && s->bytes_pending + job->bytes > STORE_PENDING_BYTES_MAX)) {
        store_job_free(job);
        return err_set(e, -EAGAIN,
            "the store is behind: %zu requests wait for it, as many as may; try again",
            s->n_pending);
    }
    store__add_pending(s, job);
    s->ops->submit(s, job);
    return 0;
}

/* ---- and back ------------------------------------------------------------------------------- */

void store__wake(struct store *s)
{
    wakeup_signal(s->wake_fd);
}

void store__finish(struct store *s, struct store_job *job)
{
    bool is_first;

    (void)pthread_mutex_lock(&s->lock);
    is_first = list_is_empty(&s->finished);
    list_add_tail(&s->finished, &job->link);
    (void)pthread_mutex_unlock(&s->lock);
    if (is_first)
        store__wake(s);
}

struct store_job *store__next_finished(struct store *s)
{
    struct store_job *job;

    (void)pthread_mutex_lock(&s->lock);
    job = list_first(&s->finished, struct store_job, link);
    if (job)
        list_remove(&job->link);
    (void)pthread_mutex_unlock(&s->lock);
    return job;
}

void store__set_current(struct store *s, nsec_t now)
{
    atomic_store(&s->current_at, now);
}

void store__count_relist(struct store *s)
{
    atomic_fetch_add(&s->n_relists, 1);
}
