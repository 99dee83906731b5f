/* tx_shaped.c - see tx_stages.h. */
#include "worker/tx_stages.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "allowedips/allowedips.h"
#include "os/clock.h"
#include "os/thread.h"
#include "packet/sched.h"
#include "peer/peer.h"
#include "shared/device_state.h"
#include "shared/port_state.h"

/* What each datagram adds to the message in it: the headers of IPv4 and UDP. */
#define SHAPING_OVERHEAD 28

/* While all that waits has to wait longer, other queues are looked at so often. */
#define LOOK_AGAIN NSEC_PER_MSEC

/* Queues are not lent until nothing had to wait for so long. */
#define HELD_AFTER (20 * NSEC_PER_MSEC)

/* Sends for queues that were lent, before the rx worker looks at its sockets again. */
#define SENDS_PER_EVENT 8

/* At each multiple of this the rates of peers whose frames are kept are looked at again: they may
 * be others by then. All at once, so that the classes go on in their order. */
#define KEPT_LOOK (50 * NSEC_PER_MSEC)

/* What one send may carry: longer, and a message that comes meanwhile waits for it. */
#define TURN (250 * NSEC_PER_USEC)

/** A frame that was read, and may not be sent yet. */
struct kept {
    uint8_t *frame; /* TUN_FRAME_MAX bytes, of the shaper's or the worker's: they change places */
    struct ip_info ip;
    struct gso_plan plan;
};

struct tx_shaper {
    struct class_sched sched; /* of the worker's queues */
    uint64_t has_kept;        /* queues of which a frame is kept */
    nsec_t held_at;           /* time when something had to wait last; 0: nothing had */
    struct kept kept[CLASS_SCHED_MAX];
    uint8_t *space; /* owns a frame's place for each queue, which takes memory once one is kept */
};

int tx_shaper_new(struct tx_shaper **ret)
{
    struct tx_shaper *s = calloc(1, sizeof(*s));

    if (s)
        s->space = malloc((size_t)CLASS_SCHED_MAX * TUN_FRAME_MAX);
    if (!s || !s->space) {
        free(s);
        return -ENOMEM;
    }
    class_sched_init(&s->sched);
    for (size_t i = 0; i < CLASS_SCHED_MAX; i++)
        s->kept[i].frame = s->space + i * TUN_FRAME_MAX;
    *ret = s;
    return 0;
}

struct tx_shaper *tx_shaper_free(struct tx_shaper *s)
{
    if (s)
        free(s->space);
    free(s);
    return NULL;
}

bool tx_shaped_is_on(const struct tx_worker *w)
{
    return atomic_load_explicit(&w->device->shaping.is_on, memory_order_acquire) ||
           w->shaper->has_kept;
}

/* ---- frames that are kept ---- */

/* The worker's frame and the kept one of @queue change places. */
static void swap(struct tx_worker *w, unsigned queue)
{
    struct kept *k = &w->shaper->kept[queue];
    struct kept now = {.frame = w->frame, .ip = w->ip, .plan = w->plan};

    w->frame = k->frame;
    w->ip = k->ip;
    w->plan = k->plan;
    w->next = 0;
    *k = now;
}

/* The next frame of @queue becomes the worker's; false when there is none. */
static bool take_frame(struct tx_worker *w, unsigned queue)
{
    uint64_t bit = UINT64_C(1) << queue;

    if (w->shaper->has_kept & bit) {
        w->shaper->has_kept &= ~bit;
        swap(w, queue);
        return true;
    }
    if (tx_read_frame(w, queue))
        return true;
    sched_queues_on_empty(&w->shaper->sched.queues, queue);
    return false;
}

/* ---- sending ---- */

/* Cuts the whole frame, and sends whatever does not fit into one batch with it. Returns the bytes
 * of its datagrams, with their headers. */
static uint32_t cut_all(struct tx_worker *w)
{
    uint32_t n_bytes = 0;

    for (;;) {
        uint32_t len = w->batch.len;
        unsigned n = w->batch.n;
        bool is_cut = tx_cut_frame(w);

        n_bytes += w->batch.len - len + (w->batch.n - n) * SHAPING_OVERHEAD;
        if (is_cut)
            return n_bytes;
        tx_send_batch(w);
    }
}

/* A frame of @queue: into the batch, or kept. Inside the device's gate. */
static void take_one(struct tx_worker *w, unsigned queue, nsec_t now)
{
    struct device_shaping *shaping = &w->device->shaping;
    enum traffic_class class = class_sched_class(&w->shaper->sched, queue);
    struct allowedips_owner *owner;
    struct peer *peer;
    uint32_t n_bytes;
    nsec_t due;

    if (!take_frame(w, queue))
        return;
    owner = allowedips_find(&w->device->allowed, &w->ip.dst);
    peer = owner ? container_of(owner, struct peer, allowed) : NULL;
    due = peer ? pace_due(&peer->pace, now) : now;
    if (due > now) {
        swap(w, queue);
        w->next = w->plan.n; /* There is none to be cut. */
        w->shaper->has_kept |= UINT64_C(1) << queue;
        class_sched_set_aside(
            &w->shaper->sched, queue, peer, nsec_min(due, now - now % KEPT_LOOK + KEPT_LOOK));
        return;
    }
    n_bytes = cut_all(w);
    class_sched_on_sent(&w->shaper->sched, queue, n_bytes, peer);
    if (!peer)
        return; /* It is refused, and not sent. */
    pace_take(&shaping->all, n_bytes, now);
    pace_take(&shaping->classes[class], n_bytes, now);
    pace_take(&peer->pace, n_bytes, now);
}

/* The classes that may not be sent now, a bit each; and until when the first of them may not. */
static unsigned closed_classes(const struct device_shaping *shaping, nsec_t now, nsec_t *until)
{
    unsigned closed = 0;

    for (unsigned i = 0; i < TRAFFIC_CLASS_N; i++) {
        nsec_t due = pace_due(&shaping->classes[i], now);

        if (due <= now)
            continue;
        closed |= 1u << i;
        *until = nsec_min(*until, due);
    }
    return closed;
}

/* As many frames as one send should carry. False when there is none that may be sent. Inside a gate
 * that is closed whenever the device's is. */
static bool send_some(struct tx_worker *w, nsec_t now, nsec_t *until)
{
    struct device_shaping *shaping = &w->device->shaping;
    uint64_t rate = pace_rate(&shaping->all);
    /* Where only classes or peers have rates, the others are sent as without. */
    uint64_t share = rate ? rate / 8 * TURN / NSEC_PER_SEC : BATCH_GOAL;
    bool is_any = false;

    do {
        unsigned closed = closed_classes(shaping, now, until);
        int queue = class_sched_next(&w->shaper->sched, closed, now);

        if (queue < 0)
            break;
        is_any = true;
        take_one(w, (unsigned)queue, now);
    } while (w->batch.len < share && w->batch.len < BATCH_GOAL);
    if (w->batch.n > 0)
        tx_send_batch(w);
    *until = nsec_min(*until, w->shaper->sched.until);
    return is_any;
}

/* Learns which queues have frames. False when the interface is gone. */
static bool look(struct tx_worker *w)
{
    uint64_t ready;

    if (!tx_poll_queues(w, &ready))
        return false;
    w->shaper->sched.has_classes = atomic_load(&w->device->shaping.has_classes);
    sched_queues_on_ready(&w->shaper->sched.queues, ready | w->shaper->has_kept);
    return true;
}

bool tx_shaped_serve(struct tx_worker *w)
{
    nsec_t until = NSEC_NEVER;

    for (unsigned i = 0; i < SENDS_PER_EVENT && until == NSEC_NEVER; i++) {
        nsec_t now = clock_now();

        if (pace_due(&w->device->shaping.all, now) > now ||
            !load_is_quiet(&w->device->port->load, now) || !look(w))
            return false;
        if (!send_some(w, now, &until))
            break;
    }
    return until == NSEC_NEVER;
}

/* ---- waiting ---- */

/* Sleeps until @until, until the worker is woken, and with @for_frames until a queue has some. */
static void sleep_until(const struct tx_worker *w, nsec_t until, bool for_frames)
{
    struct pollfd pfds[] = {
        {.fd = w->wake_fd, .events = POLLIN}, {.fd = w->queues_fd, .events = POLLIN}};
    nsec_t left = until == NSEC_NEVER ? 0 : nsec_max(until - clock_now(), 0);
    struct timespec ts = {.tv_sec = left / NSEC_PER_SEC, .tv_nsec = left % NSEC_PER_SEC};

    if (ppoll(pfds, for_frames ? 2 : 1, until == NSEC_NEVER ? NULL : &ts, NULL) > 0 &&
        pfds[0].revents)
        (void)wakeup_clear(w->wake_fd);
}

enum tx_shaped_result tx_shaped_turn(struct tx_worker *w)
{
    nsec_t now = clock_now();
    nsec_t due = pace_due(&w->device->shaping.all, now);
    nsec_t until = NSEC_NEVER;
    bool is_any;

    if (due > now) {
        w->shaper->held_at = now;
        sleep_until(w, due, false);
        return TX_SHAPED_GO_ON;
    }
    if (!look(w))
        return TX_SHAPED_GONE;
    gate_enter(&w->device->gate, w->i);
    is_any = send_some(w, now, &until);
    gate_leave(&w->device->gate, w->i);
    if (until != NSEC_NEVER)
        w->shaper->held_at = now;
    if (is_any)
        return TX_SHAPED_GO_ON;
    if (until != NSEC_NEVER) /* The queues that wait would wake us at once: look by the clock. */
        sleep_until(w, nsec_min(until, now + LOOK_AGAIN), false);
    else if (now - w->shaper->held_at > HELD_AFTER && load_is_quiet(&w->device->port->load, now))
        return TX_SHAPED_IDLE;
    else
        sleep_until(w, until, true);
    return TX_SHAPED_GO_ON;
}
