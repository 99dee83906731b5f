/* control.c - see control.h. */
#include "dataplane/control.h"

#include "dataplane/device_internal.h"
#include "dataplane/handshake_io.h"
#include "dataplane/peer_poll.h"
#include "dataplane/port_internal.h"
#include "dataplane/relay_device.h"
#include "dataplane/retire.h"
#include "dataplane/source_addr.h"
#include "os/clock.h"

/* Handshake messages taken before timers and descriptors get their turn. */
#define HANDSHAKES_PER_TURN 32

/*
 * Where it shares a core with a data thread that never rests, six parts of seven are control's, as
 * long as it has work: a stream whose keys are due stops until its handshake is done, and a hub
 * that was restarted has handshakes with all at once. No stranger gets that share for his messages,
 * for he is asked for a cookie, and then limited.
 */
#define CONTROL_NICE (-8)

/* True when more wait. */
static bool run_handshakes(struct port *p, nsec_t now)
{
    for (unsigned i = 0; i < HANDSHAKES_PER_TURN; i++) {
        struct peer *peer;

        if (!handshake_io_take_next(p, now, &peer))
            return false;
        if (peer)
            peer_poll(peer, now);
    }
    return true;
}

static void run_timers(struct port *p, nsec_t now)
{
    struct device *d;

    peer_poll_due(p, now);
    retire_tick(p, now);
    source_addr_tick(p, now);
    device__bind_again(p, now);
    p->expire_due = NSEC_NEVER;
    list_foreach(d, &p->devices, siblings)
        p->expire_due = nsec_min(p->expire_due, relay_device_expire(d, now));
}

/* Interfaces whose tx workers could not read any more. */
static void find_vanished(struct port *p)
{
    struct device *d;

    list_foreach(d, &p->devices, siblings)
        if (atomic_load(&d->has_vanished))
            device__on_link(d);
}

static int wait_ms(const struct port *p, bool busy, nsec_t now)
{
    nsec_t due = nsec_min(heap_due(&p->timers), nsec_min(p->retired.due, p->expire_due));
    nsec_t ms;

    due = nsec_min(due, nsec_min(p->source.due, p->bind_due));
    if (busy || due <= now)
        return 0;
    if (due == NSEC_NEVER)
        return -1;
    ms = (due - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
    return ms > 3600 * 1000 ? 3600 * 1000 : (int)ms;
}

static void *control_main(void *arg)
{
    struct port *p = arg;
    bool busy = false;

    thread_set_nice(CONTROL_NICE);
    (void)pthread_mutex_lock(&p->lock);
    while (!atomic_load(&p->is_stopping)) {
        if (loop_wait(&p->loop, &p->lock, wait_ms(p, busy, clock_now())))
            find_vanished(p);
        busy = run_handshakes(p, clock_now());
        peer_poll_told(p);
        run_timers(p, clock_now());
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

int control_start(struct port *p)
{
    const struct cpulist *cpus = &p->opt.cpus;

    return thread_start(
        &p->control_thread, "control", cpus->n ? cpus->cpu[cpus->n - 1] : -1, control_main, p);
}

void control_stop(struct port *p)
{
    loop_wake(&p->loop);
    (void)pthread_join(p->control_thread, NULL);
}
