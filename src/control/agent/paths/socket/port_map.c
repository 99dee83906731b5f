/* port_map.c - see port_map.h. */
#include "agent/paths/socket/port_map.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "agent/paths/socket/port_map_internal.h"
#include "base/err.h"
#include "os/clock.h"

/* A router that grants nothing is asked again after so long: there may be another one by then, or
 * it may have been configured to. */
#define RETRY (600 * NSEC_PER_SEC)

/*
 * A router that was restarted has forgotten what it granted. By NAT-PMP it takes two small packets
 * to have it again (RFC 6886 section 3.6); UPnP's search is noisier, and left to RETRY.
 */
#define NAT_PMP_CHECK (30 * NSEC_PER_SEC)

/* Shortest pause between two requests, whatever lifetime the router grants. */
#define PAUSE_MIN (30 * NSEC_PER_SEC)

struct port_map {
    port_map_fn fn;
    void *ctx; /* pins */
    uv_async_t news;
    uv_thread_t thread;

    uv_mutex_t lock; /* guards what follows; no other lock is taken while it is held */
    uv_cond_t wake;
    uint16_t wanted_port; /* 0: none */
    bool is_asked;        /* the router is to be asked now */
    bool is_ending;
    bool gives_back;
    unsigned n_holders;          /* the thread, and the loop's handle: the last one frees */
    struct port_mapping granted; /* the last answer */
    struct port_mapping held;    /* the last that was granted; the router may still have it */
    struct port_mapping told;    /* what the listener was told last; the loop's alone */
};

static void drop(struct port_map *pm)
{
    bool last;

    uv_mutex_lock(&pm->lock);
    last = --pm->n_holders == 0;
    uv_mutex_unlock(&pm->lock);
    if (!last)
        return;
    uv_cond_destroy(&pm->wake);
    uv_mutex_destroy(&pm->lock);
    free(pm);
}

nsec_t port_map__pause_after(const struct port_mapping *pm)
{
    nsec_t most = pm->kind == PORT_MAPPING_NAT_PMP ? NAT_PMP_CHECK : RETRY;

    if (pm->kind == PORT_MAPPING_NONE)
        return RETRY;
    return nsec_min(most, nsec_max(pm->lifetime / 2, PAUSE_MIN));
}

/* Holds the lock, but not while the router is being asked. */
static nsec_t ask_router(struct port_map *pm)
{
    struct port_mapping before = pm->granted;
    struct port_mapping now = {.kind = PORT_MAPPING_NONE};
    uint16_t port = pm->wanted_port;

    pm->is_asked = false;
    uv_mutex_unlock(&pm->lock);
    /* What is not granted stays of no kind. */
    (void)port_mapping_ask(&now, port,
        before.kind != PORT_MAPPING_NONE && before.internal_port == port ? &before : NULL, NULL);
    uv_mutex_lock(&pm->lock);
    pm->granted = now;
    if (now.kind != PORT_MAPPING_NONE)
        pm->held = now;
    /* The handle may be closed by then. */
    if (!pm->is_ending)
        (void)uv_async_send(&pm->news);
    return port_map__pause_after(&now);
}

static void run(void *arg)
{
    struct port_map *pm = arg;
    nsec_t due = NSEC_NEVER;

    uv_mutex_lock(&pm->lock);
    while (!pm->is_ending) {
        nsec_t now = clock_now();

        if (pm->wanted_port != 0 && (pm->is_asked || now >= due))
            due = clock_now() + ask_router(pm);
        else if (due == NSEC_NEVER)
            uv_cond_wait(&pm->wake, &pm->lock);
        else
            (void)uv_cond_timedwait(&pm->wake, &pm->lock, (uint64_t)(due - now));
    }
    uv_mutex_unlock(&pm->lock);
    if (pm->gives_back)
        port_mapping_remove(&pm->held);
    drop(pm);
}

static void on_news(uv_async_t *async)
{
    struct port_map *pm = async->data;
    struct port_mapping granted;

    uv_mutex_lock(&pm->lock);
    granted = pm->granted;
    uv_mutex_unlock(&pm->lock);
    if (granted.kind == pm->told.kind && endpoint_equal(&granted.external, &pm->told.external))
        return;
    pm->told = granted;
    pm->fn(pm->ctx, &granted);
}

int port_map_new(
    struct port_map **ret, struct uv_loop_s *loop, port_map_fn fn, void *ctx, struct err *e)
{
    struct port_map *pm = calloc(1, sizeof(*pm));
    int r;

    if (!pm)
        return err_set(e, -ENOMEM, "no memory for port mappings");
    pm->fn = fn;
    pm->ctx = ctx;
    if (uv_mutex_init(&pm->lock) != 0 || uv_cond_init(&pm->wake) != 0) {
        free(pm);
        return err_set(e, -ENOMEM, "no memory for port mappings");
    }
    (void)uv_async_init(loop, &pm->news, on_news);
    pm->news.data = pm;
    /* This handle alone does not keep the loop running. */
    uv_unref((uv_handle_t *)&pm->news);
    pm->n_holders = 2;
    r = uv_thread_create(&pm->thread, run, pm);
    if (r < 0) {
        pm->thread = 0;
        pm->n_holders = 1;
        (void)port_map_free(pm, false);
        return err_set(e, r, "a thread for port mappings cannot be started: %s", uv_strerror(r));
    }
    *ret = pm;
    return 0;
}

void port_map_ask(struct port_map *pm, uint16_t internal_port)
{
    uv_mutex_lock(&pm->lock);
    pm->wanted_port = internal_port;
    pm->is_asked = true;
    uv_cond_signal(&pm->wake);
    uv_mutex_unlock(&pm->lock);
}

static void on_closed(uv_handle_t *handle)
{
    drop(handle->data);
}

struct port_map *port_map_free(struct port_map *pm, bool give_back)
{
    bool waits;

    if (!pm)
        return NULL;
    uv_mutex_lock(&pm->lock);
    waits = give_back && pm->held.kind != PORT_MAPPING_NONE;
    pm->is_ending = true;
    pm->gives_back = give_back;
    uv_cond_signal(&pm->wake);
    uv_mutex_unlock(&pm->lock);
    if (waits)
        (void)uv_thread_join(&pm->thread);
    else if (pm->thread)
        (void)pthread_detach(pm->thread);
    uv_close((uv_handle_t *)&pm->news, on_closed);
    return NULL;
}
