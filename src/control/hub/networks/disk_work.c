/* disk_work.c - see disk_work.h. */
#include "hub/networks/disk_work.h"

#include <errno.h>
#include <stdlib.h>

struct work {
    struct list link; /* in the works', until it has ended */
    struct disk_works *works;
    uv_work_t uv;
    void (*run)(void *arg);
    void (*done)(void *arg);
    void *arg;   /* pins */
    bool is_run; /* guarded by works->lock */
};

int disk_works_init(struct disk_works *works, uv_loop_t *loop)
{
    works->loop = loop;
    list_init(&works->list);
    if (uv_mutex_init(&works->lock) != 0)
        return -ENOMEM;
    if (uv_cond_init(&works->run) == 0)
        return 0;
    uv_mutex_destroy(&works->lock);
    return -ENOMEM;
}

void disk_works_deinit(struct disk_works *works)
{
    uv_cond_destroy(&works->run);
    uv_mutex_destroy(&works->lock);
}

static void on_run(uv_work_t *uv)
{
    struct work *w = uv->data;

    w->run(w->arg);
    uv_mutex_lock(&w->works->lock);
    w->is_run = true;
    uv_cond_broadcast(&w->works->run);
    uv_mutex_unlock(&w->works->lock);
}

/* Tell the end of a work, once, on the loop's thread. */
static void end(struct work *w)
{
    list_remove(&w->link);
    w->done(w->arg);
}

static void on_done(uv_work_t *uv, int status)
{
    struct work *w = uv->data;

    /* disk_works_wait() may have told its end before. */
    if (!list_is_empty(&w->link))
        end(w);
    free(w);
}

int disk_work(struct disk_works *works, void (*run)(void *arg), void (*done)(void *arg), void *arg)
{
    struct work *w = calloc(1, sizeof(*w));

    if (!w)
        return -ENOMEM;
    *w = (struct work){.works = works, .run = run, .done = done, .arg = arg};
    w->uv.data = w;
    list_init(&w->link);
    if (uv_queue_work(works->loop, &w->uv, on_run, on_done) != 0) {
        free(w);
        return -ENOMEM;
    }
    list_add_tail(&works->list, &w->link);
    return 0;
}

void disk_works_wait(struct disk_works *works)
{
    struct work *w;

    while ((w = list_first(&works->list, struct work, link))) {
        uv_mutex_lock(&works->lock);
        while (!w->is_run)
            uv_cond_wait(&works->run, &works->lock);
        uv_mutex_unlock(&works->lock);
        end(w);
    }
}
