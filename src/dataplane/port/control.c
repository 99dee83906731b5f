/* control.c - see control.h. */
#include "port/control.h"

#include "os/clock.h"
#include "peer/handshake_io.h"
#include "peer/peer_poll.h"
#include "peer/relay_device.h"
#include "peer/source_addr.h"
#include "port/device_link.h"
#include "shared/device_state.h"
#include "shared/port_state.h"
#include "shared/retire.h"

/* Handshake messages taken before timers and descriptors get their turn. */
#define HANDSHAKES_PER_TURN 32

/*
 * How much later than it is due a peer's timer may run. None is for less than Rekey-Timeout, five
 * seconds, and thousands of peers have theirs at as many times. The kernel's WireGuard has such
 * timers run up to an eighth later.
 */
#define TIMER_SLACK (50 * NSEC_PER_MSEC)

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

/* When the next timers of peers run: those that are due at about the same time share a turn. */
static nsec_t next_polls(const struct port *p, nsec_t now)
{
    nsec_t due = poll_list_due(&p->polls);

    return due <= now ? due : nsec_max(due, now + TIMER_SLACK);
}

/* Whatever is due at @now. Returns when something is due next. */
static nsec_t run_timers(struct port *p, nsec_t now)
{
    struct device *d;
    nsec_t due;

    peer_poll_due(p, now);
    due = retire_tick(p, now);
    due = nsec_min(due, source_addr_tick(p->source, now));
    due = nsec_min(due, device_link_bind_again(p, now));
    list_foreach(d, &p->devices, siblings)
        due = nsec_min(due, relay_device_expire(d, now));
    /* Last, since the others may have armed some. */
    return nsec_min(due, next_polls(p, now));
}

/* Interfaces whose tx workers could not read any more. */
static void find_vanished(struct port *p)
{
    struct device *d;

    list_foreach(d, &p->devices, siblings)
        if (atomic_load(&d->tx.has_vanished))
            device_link_read(d);
}

static void *control_main(void *arg)
{
    struct port *p = arg;
    nsec_t due = 0; /* at once: there may be deadlines from before */
    bool busy;

    thread_set_nice(CONTROL_NICE);
    (void)pthread_mutex_lock(&p->lock);
    while (!atomic_load(&p->is_stopping)) {
        if (loop_wait(&p->loop, &p->lock, due))
            find_vanished(p);
        busy = run_handshakes(p, clock_now());
        peer_poll_told(p);
        due = run_timers(p, clock_now());
        if (busy)
            due = 0;
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
