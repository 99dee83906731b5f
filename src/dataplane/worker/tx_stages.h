/*
 * tx_stages.h - a tx worker, and what happens to a frame that it reads, one stage after the other.
 *
 * tx.c and tx_shaped.c decide which queue is read, and when: without a rate and with one.
 *
 * Threads: whoever the worker belongs to (tx.c), for tx_send_batch() inside the device's gate or
 * the port's.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/drop.h"
#include "base/rate.h"
#include "packet/gso.h"
#include "packet/sched.h"
#include "peer/sender.h"
#include "shared/rx_waiter.h"
#include "wire/ip.h"

#define BATCH_PACKETS 128
#define BATCH_SIZE    (96 * 1024)

/* Enough for one send call; waiting for more would only add delay. */
#define BATCH_GOAL 57344

/* The batch again, with every packet cut in two; a packet in more pieces is one of less room. */
#define CUT_PACKETS (2 * BATCH_PACKETS)
#define CUT_SIZE    (BATCH_SIZE + BATCH_PACKETS * 128)

/** A frame's place in the batch. */
struct tx_frame {
    struct ip_addr dst; /* inner */
    uint16_t first;     /* its packets */
    uint16_t n;
    uint16_t longest;  /* bytes of the longest of them, whichever batch that is in */
    bool may_fragment; /* IPv4 with DF clear: never too big */
    bool is_v6;
    uint8_t tos;       /* for the datagrams */
    struct peer *peer; /* borrows, inside the gate; NULL: no route, or it is refused */
    bool is_refused;   /* by the network's rules */
};

/** What is collected before it is sent. */
struct tx_batch {
    uint8_t *buf; /* owns BATCH_SIZE bytes */
    uint32_t len; /* used */
    unsigned n;   /* packets */
    unsigned n_frames;
    struct packet pkts[BATCH_PACKETS];
    struct tx_frame frames[BATCH_PACKETS];
};

/** Pieces of IPv6 packets (icmp.h), until they are sent. */
struct tx_pieces {
    uint8_t *buf; /* owns CUT_SIZE bytes */
    uint32_t len; /* used */
    unsigned n;   /* pieces */
    uint32_t id;  /* of the packet that is cut next */
    struct packet pkts[CUT_PACKETS];
};

/**
 * A sending thread. All that changes, but @drops, belongs to that thread, or to the rx worker while
 * the queues are lent to it.
 */
struct tx_worker {
    struct device *device;    /* pins */
    struct rx_waiter *rx;     /* pins: of the rx worker that its queues are lent to */
    unsigned i;               /* its part of the device's gate */
    unsigned first;           /* of its queues, among the device's */
    struct queue_sched sched; /* of them, counted from the first */
    int queues_fd;            /* owns: epoll of them */
    int wake_fd;              /* owns: see os/thread.h */
    struct rx_event lent;     /* of queues_fd, while the queues are lent */
    pthread_t thread;
    bool is_started;
    _Atomic bool is_lent; /* set by the thread, cleared by the rx worker */
    nsec_t now;           /* of the latest batch */
    struct sender sender;
    struct tx_batch batch;
    struct tx_pieces pieces;
    struct rate icmp; /* of answers to the inner sender */
    struct drops drops;

    /* The frame being cut; it may take several batches. */
    uint8_t *own_frame; /* owns TUN_FRAME_MAX bytes */
    uint8_t *frame;     /* those, or others of the shaper's, who then has them */
    struct ip_info ip;
    struct gso_plan plan;
    uint32_t next; /* packet to be cut next; == plan.n: frame done */

    struct tx_shaper *shaper; /* owns: what it needs while there is a rate */
};

/** tx_poll_queues() - which queues have frames? False when the interface is gone. */
bool tx_poll_queues(const struct tx_worker *w, uint64_t *ready);

/** tx_read_frame() - the next frame of a queue that can be cut. False when it is empty, or gone
 * (tx_poll_queues()). */
bool tx_read_frame(struct tx_worker *w, unsigned queue);

/** tx_cut_frame() - as many packets of the frame as fit into the batch; false when that is full. */
bool tx_cut_frame(struct tx_worker *w);

/** tx_send_batch() - sends what was cut, and forgets it. */
void tx_send_batch(struct tx_worker *w);

/*
 * The way out of an interface that has a rate.
 *
 * The rate is below that of the link behind us, so that packets wait here, where there is a choice
 * (sched.h), and not in a queue of somebody else's. They wait in the interface's queues in
 * the kernel: nothing is read before it may be sent, but for a frame whose peer turns out to have a
 * rate of its own. That frame is kept until then, and what is behind it in its queue waits with it.
 *
 * While nothing waits for its time the queues may be lent, as without a rate (tx.c): then
 * tx_shaped_serve() sends on the rx worker's thread, and gives up as soon as something has to wait.
 *
 * Threads: the worker's own for tx_shaped_turn(), whoever it belongs to for tx_shaped_serve() and
 * tx_shaped_is_on(); the others under the port's lock.
 */

/** tx_shaper_new() - has nothing to send; 0 or -ENOMEM. */
int tx_shaper_new(struct tx_shaper **ret);

/** tx_shaper_free() - release; what it keeps is lost. */
struct tx_shaper *tx_shaper_free(struct tx_shaper *s);

/** tx_shaped_is_on() - is the interface's rate to be kept, or something left that waited for one?
 */
bool tx_shaped_is_on(const struct tx_worker *w);

/** What a turn has found. */
enum tx_shaped_result {
    TX_SHAPED_GONE, /* the interface is */
    TX_SHAPED_GO_ON,
    TX_SHAPED_IDLE, /* there is nothing to send, and of late nothing had to wait: lend the queues */
};

/** tx_shaped_turn() - send what may be sent now, or sleep until there is something, or it may be
 * sent, or the worker is woken; it does not sleep when the queues may be lent. */
enum tx_shaped_result tx_shaped_turn(struct tx_worker *w);

/**
 * tx_shaped_serve() - send what waits in queues that were lent
 *
 * Inside the port's gate. It ends after a few sends even if more waits, as the sockets wait
 * meanwhile; for what is left the queues are found to be ready again.
 *
 * Return: false when something has to wait for its time, or there is much, or the interface is
 * gone: the worker's own thread is to go on.
 */
bool tx_shaped_serve(struct tx_worker *w);
