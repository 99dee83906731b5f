/* disk_work.c - see disk_work.h. */
#include "hub/networks/disk_work.h"

#include <errno.h>
#include <stdlib.h>
#include <uv.h>

struct work {
    uv_work_t work;
    void (*run)(void *arg);
    void (*done)(void *arg);
    void *arg; /* pins */
};

static void on_run(uv_work_t *uv)
{
    struct work *w = uv->data;

    w->run(w->arg);
}

static void on_done(uv_work_t *uv, int status)
{
    struct work *w = uv->data;

    w->done(w->arg);
    free(w);
}

int disk_work(struct uv_loop_s *loop, void (*run)(void *arg), void (*done)(void *arg), void *arg)
{
    struct work *w = calloc(1, sizeof(*w));

    if (!w)
        return -ENOMEM;
    *w = (struct work){.run = run, .done = done, .arg = arg};
    w->work.data = w;
    if (uv_queue_work(loop, &w->work, on_run, on_done) == 0)
        return 0;
    free(w);
    return -ENOMEM;
}
