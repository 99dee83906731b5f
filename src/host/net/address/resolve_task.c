/* resolve_task.c - see resolve_task.h. */
#include "net/address/resolve_task.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/address/resolve.h"
#include "os/thread.h"

struct resolve_task {
    unsigned n;         /* immutable after the start */
    uint16_t dflt_port; /* likewise */

    /* The thread's until it is done, and then the owner's. */
    struct resolve_answer answers[RESOLVE_TASK_TEXTS];

    pthread_mutex_t lock;
    /* guarded by lock: */
    unsigned users; /* the owner and the thread; the last one releases it */
    bool is_done;
};

static void unref(struct resolve_task *t)
{
    bool last;

    (void)pthread_mutex_lock(&t->lock);
    last = --t->users == 0;
    (void)pthread_mutex_unlock(&t->lock);
    if (!last)
        return;
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}

static void *run(void *arg)
{
    struct resolve_task *t = arg;

    for (unsigned i = 0; i < t->n; i++) {
        struct resolve_answer *a = &t->answers[i];

        if (resolve_host(a->text, t->dflt_port, a->endpoints, RESOLVE_TASK_EACH, &a->n, &a->why) <
            0)
            a->n = 0;
    }
    (void)pthread_mutex_lock(&t->lock);
    t->is_done = true;
    (void)pthread_mutex_unlock(&t->lock);
    unref(t);
    return NULL;
}

int resolve_task_start(struct resolve_task **ret, const char (*texts)[HOST_PORT_MAX + 1],
    unsigned n, uint16_t dflt_port, struct err *e)
{
    struct resolve_task *t = calloc(1, sizeof(*t));
    pthread_t thread;
    int r;

    assert(n >= 1 && n <= RESOLVE_TASK_TEXTS);
    if (!t)
        return err_set(e, -ENOMEM, "no memory for looking names up");
    for (t->n = 0; t->n < n; t->n++)
        (void)snprintf(t->answers[t->n].text, sizeof(t->answers[0].text), "%s", texts[t->n]);
    t->dflt_port = dflt_port;
    t->users = 2;
    (void)pthread_mutex_init(&t->lock, NULL);
    r = thread_start(&thread, "resolve", -1, run, t);
    if (r < 0) {
        unref(t);
        unref(t);
        return err_set(e, r, "no thread to look names up in: %s", strerror(-r));
    }
    (void)pthread_detach(thread);
    *ret = t;
    return 0;
}

unsigned resolve_task_take(struct resolve_task *t, struct resolve_answer *ret)
{
    bool is_done;

    (void)pthread_mutex_lock(&t->lock);
    is_done = t->is_done;
    (void)pthread_mutex_unlock(&t->lock);
    if (!is_done)
        return 0;
    memcpy(ret, t->answers, t->n * sizeof(*ret));
    return t->n;
}

struct resolve_task *resolve_task_free(struct resolve_task *t)
{
    if (t)
        unref(t);
    return NULL;
}
