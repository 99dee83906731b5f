/*
 * ping_monitor.h - pings the members of a network through its interface, and remembers who answers.
 *
 * Theory of operation. The pings are plain ICMP from raw sockets of this process, and each member's
 * kernel answers them. So an answer proves that the tunnel carries packets, whatever the agents at
 * both ends report. A round pings each member once at each of its addresses, spread evenly
 * over the period. An answer carries the member's index and the cookie of this run, and counts only
 * when it comes from that member's address, which nobody else can have inside the tunnel.
 *
 * Threads: one thread only, the caller's.
 */
#pragma once

#include <jansson.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/parse.h"

struct metrics;
struct str;

/* ---- is it reached? -------------------------------------------------------------------------- */

/*
 * Decides from pings and answers whether a member is reached at one address.
 *
 * Theory of operation. One answer is proof, so it makes the address reached at once. Silence is
 * proof only when it has lasted: for REACHABILITY_SILENT_PINGS pings and for
 * REACHABILITY_SILENT_FOR, whichever takes longer. So even when pings are far apart, a single
 * lost packet does not make a member silent.
 *
 *     UNKNOWN ── answer ──► REACHED ◄── answer ── SILENT
 *        └────── silence ──────┴────── silence ─────►
 *
 * Pure: events and the monotonic time in, a state out.
 */

/** Pings without an answer, and the time since the first of them, that make a member silent. */
#define REACHABILITY_SILENT_PINGS 3
#define REACHABILITY_SILENT_FOR   (3 * NSEC_PER_SEC)

/** How many of the last pings are remembered. Answers to older ones are ignored, and the loss is
 * that of the remembered ones. */
#define REACHABILITY_WINDOW 32

/** A ping without an answer counts as lost after this time. */
#define REACHABILITY_LATE_FOR NSEC_PER_SEC

enum reachability_state {
    REACHABILITY_UNKNOWN, /* it has not answered yet, and was not pinged for long enough */
    REACHABILITY_REACHED, /* it answers */
    REACHABILITY_SILENT,  /* it has not answered for long enough */
    REACHABILITY_STATE_N,
};

/** A ping that was sent. */
struct reachability_ping {
    nsec_t sent_at; /* monotonic; 0: this place in the ring has not been used yet */
    bool answered;  /* an answer to it has come */
};

/** What is known of one address. All zero: it was never pinged. */
struct reachability {
    enum reachability_state state;
    nsec_t state_since;  /* monotonic; when the state began; 0: it has always been UNKNOWN */
    nsec_t silent_since; /* monotonic; when the first of @silent_pings was sent; 0: there is none */
    unsigned silent_pings; /* pings sent after the last answer */
    nsec_t rtt;            /* round-trip time of the last answer, ns; 0: there was none */
    uint16_t seq;          /* sequence number of the last ping */
    struct reachability_ping ring[REACHABILITY_WINDOW]; /* by sequence number modulo its size */
    uint64_t n_pings;                                   /* pings sent since the start */
    uint64_t n_answers;                                 /* pings answered since the start */
};

/**
 * reachability_on_ping() - to be called when a ping is sent
 * @now:	monotonic
 *
 * Return: the sequence number to send in it.
 */
uint16_t reachability_on_ping(struct reachability *r, nsec_t now);

/**
 * reachability_on_answer() - to be called when an answer has come
 * @seq:	sequence number of the ping that it answers
 * @now:	monotonic
 *
 * A second answer to a ping changes nothing, nor does an answer to a ping that is no longer
 * remembered.
 *
 * Return: true if the state has changed.
 */
bool reachability_on_answer(struct reachability *r, uint16_t seq, nsec_t now);

/**
 * reachability_check() - has the silence lasted long enough? To be called before each ping.
 * @now:	monotonic
 *
 * Return: true if the state has changed; it is then SILENT.
 */
bool reachability_check(struct reachability *r, nsec_t now);

/**
 * reachability_loss_permille() - how many of the remembered pings are lost
 * @now:	monotonic; a ping that may still be answered is not counted
 *
 * Return: lost pings per thousand, 0 to 1000; 0 when no ping counts.
 */
unsigned reachability_loss_permille(const struct reachability *r, nsec_t now);

/** reachability_state_names - "unknown", "reached" or "silent", as in the JSON of weft probe. */
extern const char *const reachability_state_names[];

/* ---- pings ----------------------------------------------------------------------------------- */

/** A pace that keeps a node with ten thousand members at a hundred of them a second. */
#define PING_MONITOR_PACE (10 * NSEC_PER_MSEC)

/** Index of a member's addresses, and of the sockets for them. */
enum ping_monitor_family { PING_MONITOR_V4, PING_MONITOR_V6, PING_MONITOR_FAMILY_N };

/** A member that is pinged. */
struct ping_monitor_member {
    char name[NAME_MAX_LEN + 1];
    struct ip_addr address[PING_MONITOR_FAMILY_N];    /* on the overlay */
    struct reachability reach[PING_MONITOR_FAMILY_N]; /* of these addresses */
};

/**
 * ping_monitor_fn - a member's state has changed, in one family
 * @ctx:	as given to ping_monitor_open()
 * @m:		the member with its new state; borrowed
 * @now:	monotonic
 *
 * It must not change the monitor.
 */
typedef void (*ping_monitor_fn)(
    void *ctx, const struct ping_monitor_member *m, enum ping_monitor_family family, nsec_t now);

struct ping_monitor {
    char interface[IFNAMSIZ];
    unsigned ifindex; /* index of @interface, which the sockets are bound to; 0: to none */
    int fd[PING_MONITOR_FAMILY_N]; /* owns; -1: this family is not pinged */
    uint16_t id;                   /* ICMP identifier of the pings */
    uint64_t cookie; /* in each ping, so that answers to another process are ignored */
    nsec_t period;   /* length of a round, ns, if there are not too many members for it */
    nsec_t pace;     /* shortest time between two members, ns; the caller may set it; 0: none */
    struct ping_monitor_member *members; /* owns; sorted by name */
    size_t n;
    size_t cursor;             /* index of the member to be pinged next; @n: the round is done */
    nsec_t round_since;        /* monotonic; when this round began; 0: there was no round yet */
    ping_monitor_fn on_change; /* called when a member's state has changed */
    void *ctx;                 /* pins; for on_change */
};

#define PING_MONITOR_NULL {.fd = {-1, -1}}

/**
 * ping_monitor_open() - open the sockets; nobody is pinged yet
 * @p:		PING_MONITOR_NULL
 * @interface:	copied; it need not exist yet, and may be deleted and created again
 * @period:	length of a round, in nanoseconds
 * @cookie:	random
 * @on_change:	called from ping_monitor_run() and ping_monitor_take()
 * @ctx:	pinned; for @on_change
 *
 * Return: 0; or negative errno with words, -EPERM if the process has no CAP_NET_RAW. It is no error
 * if the IPv6 socket cannot be opened: its fd is then -1, and only IPv4 is pinged.
 */
int ping_monitor_open(struct ping_monitor *p, const char *interface, nsec_t period, uint64_t cookie,
    ping_monitor_fn on_change, void *ctx, struct err *e);

/** ping_monitor_close() - close the sockets and forget the members; idempotent. */
void ping_monitor_close(struct ping_monitor *p);

/**
 * ping_monitor_set() - replace the members
 * @members:	@n of them, on the heap, sorted by name, @reach all zero; the monitor owns them then
 *
 * For a member that was there before, what is known of each unchanged address is kept.
 */
void ping_monitor_set(struct ping_monitor *p, struct ping_monitor_member *members, size_t n);

/**
 * ping_monitor_run() - ping every member whose turn has come
 * @now:	monotonic
 *
 * Return: true if this call has begun a new round.
 */
bool ping_monitor_run(struct ping_monitor *p, nsec_t now);

/**
 * ping_monitor_due() - when ping_monitor_run() is to be called next
 *
 * Return: monotonic; NSEC_NEVER when there are no members.
 */
nsec_t ping_monitor_due(const struct ping_monitor *p);

/**
 * ping_monitor_take() - read the answers that wait at one of the sockets; does not block
 * @family:	of the socket, which must be open
 * @now:	monotonic
 */
void ping_monitor_take(struct ping_monitor *p, enum ping_monitor_family family, nsec_t now);

/* ---- for people and programs ----------------------------------------------------------------- */

/*
 * The results of a ping monitor as text for people, as JSON, and as metrics.
 *
 * Programs rely on the JSON (docs/schema): fields may be added, but none is renamed. A value that
 * is not known is null.
 */

/** ping_monitor_family_names - "ipv4" or "ipv6". */
extern const char *const ping_monitor_family_names[];

/**
 * ping_monitor_format() - a table with a line for each member
 * @now:	monotonic
 * @out:	appended to; remembers a failure
 */
void ping_monitor_format(const struct ping_monitor *p, nsec_t now, struct str *out);

/**
 * ping_monitor_encode() - the results as JSON
 * @now:	monotonic
 *
 * Return: a new reference; NULL for no memory.
 */
json_t *ping_monitor_encode(const struct ping_monitor *p, nsec_t now);

/** ping_monitor_add_metrics() - add the METRIC_PROBE_... of each member to @m. */
void ping_monitor_add_metrics(const struct ping_monitor *p, struct metrics *m);
