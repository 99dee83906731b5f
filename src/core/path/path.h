/*
 * path.h - the best way between this node and one peer: found, kept, explained.
 *
 * Theory of operation. A *pair* is one of our sockets and one endpoint of the
 * peer. In a *round* all pairs are pinged, from both sides at the same time, so
 * that each side's packets open its own NAT for the other's. A pong that answers
 * our own ping makes a pair *valid*; nothing else does. Of the valid pairs the
 * side with the smaller public key chooses one and *nominates* it; the other
 * follows at once, so that both switch together. Until then, and whenever the
 * chosen pair dies, packets go through the relay, which never waits for us.
 *
 *     relay ── round: pings ──► valid pairs ── nominate / accept ──► direct
 *       ▲                                                             │
 *       └──────── dead: 2 s without pong, or the other has left ──────┘
 *
 * When do both sides begin a round together? When candidates of one reach the
 * other, who has just reported them; when data begins to flow; when a frame of
 * the other arrives; and at moments that both compute from a clock which they
 * roughly share (paths_set_clock()).
 *
 * The machine of one edge lives inside `struct paths` (paths.h), which has the
 * functions; this header has what goes in and what comes out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/parse.h"
#include "crypto/x25519.h"
#include "path/behavior.h"
#include "path/candidate.h"
#include "path/rtt.h"

#define PATH_RELAYS_MAX 8   /* that one node measures and reports */
#define PATH_TEXT_MAX   320 /* of an event or a reason, with the zero */
#define PATH_AWAY_MAX   32  /* pairs that one relay asks to go another way */

/** How a peer is reached. */
enum path_kind {
    PATH_KIND_NONE,   /* it is not reached */
    PATH_KIND_LAN,    /* in the same private network */
    PATH_KIND_DIRECT, /* at its public address */
    PATH_KIND_RELAY,  /* through a hub, unread */
    PATH_KIND_STREAM, /* through a hub, inside TLS */
    PATH_KIND_N,
};

/** What the operator wants of an edge: its own `path`, else the network's topology. */
enum path_policy {
    PATH_POLICY_AUTO,   /* the best there is */
    PATH_POLICY_DIRECT, /* the same, and an alarm while it is relayed (mesh) */
    PATH_POLICY_RELAY,  /* through the relay always (hub) */
    PATH_POLICY_OFF,    /* the two do not talk */
    PATH_POLICY_N,
};

/** A relay as one node measures it. */
struct path_relay {
    struct x25519_public key; /* the hub's */
    nsec_t rtt;               /* round trip to it; 0: not measured */
    bool is_stream;           /* reached inside TLS, since UDP to it fails */
    uint16_t mtu;             /* inner bytes that the way there and back carries; 0: not measured */
};

/** What a relay has its users know of its line (relay/line.h). */
struct path_relay_notice {
    bool is_closed;               /* it is full: who has another relay does not begin to use it */
    uint64_t away[PATH_AWAY_MAX]; /* the tags of @n_away pairs that are to go another way */
    unsigned n_away;
};

/** All that one end tells of itself: its candidates, its NAT and the relays that it reaches. */
struct path_side {
    uint64_t generation; /* greater with each change */
    struct candidates candidates;
    struct behavior nat;
    nsec_t keepalive; /* interval that keeps its NAT's mapping; 0: not measured */
    bool can_guess; /* it opens sockets so that its NAT's ports may be guessed (PATH_ACTION_OPEN) */
    uint64_t relay_run; /* 0: it does not relay for others. Another number than before: it has lost
                           its leases */
    struct path_relay relays[PATH_RELAYS_MAX]; /* those that it reaches; a hub first */
    unsigned n_relays;
};

/** Who is at the other end. */
struct path_peer {
    struct x25519_public key;
    char name[NAME_MAX_LEN + 1];
    enum path_policy policy;
    bool is_relay; /* a relay that we may use: its path is watched more closely */
};

/** The socket whose frames go through WireGuard's own port. Others were asked for. */
#define PATH_SOCKET_MAIN 0

/** A frame that has come in. */
struct path_arrival {
    struct endpoint from;
    struct ip_addr local; /* our address that it came to; none: not known */
    uint32_t socket;      /* PATH_SOCKET_MAIN, or one that was opened */
    nsec_t at;            /* when the data plane received it; not later than now */
};

enum path_action_kind {
    PATH_ACTION_NONE,
    PATH_ACTION_SEND,  /* @frame from @socket to @remote */
    PATH_ACTION_USE,   /* @peer's packets go by @path, @remote, @socket from now on */
    PATH_ACTION_OPEN,  /* open a UDP socket of its own on any port, to be known as @socket */
    PATH_ACTION_CLOSE, /* close the socket @socket */
    PATH_ACTION_FRESH, /* ask STUN servers again and report: a path has died, or is to be guessed */
    PATH_ACTION_LOOK,  /* read the engine's counters: paths_on_received(), paths_on_traffic() */
    PATH_ACTION_FITS,  /* @peer answered the probe @probe of @size bytes */
    PATH_ACTION_EVENT, /* @text is worth a line of the log */
    PATH_ACTION_KIND_N,
};

/** Something for the caller to do; borrowed until the next call on the paths. */
struct path_action {
    enum path_action_kind kind;
    struct x25519_public peer; /* of which edge; zeroes for FRESH and LOOK */
    const char *name;          /* of the peer */

    uint32_t socket;        /* SEND, USE, OPEN, CLOSE */
    struct endpoint remote; /* SEND; USE: none for the relay */
    struct ip_addr local;   /* SEND: source address; none: the kernel chooses */

    const uint8_t *frame; /* SEND: @len bytes */
    size_t len;
    bool dont_fragment; /* SEND: an MTU probe */
    uint8_t hops;       /* SEND: IP time to live (hop limit) to send with; 0: as usual */

    enum path_kind path; /* USE: LAN, DIRECT, RELAY (the caller knows whether inside TLS) or NONE */
    nsec_t keepalive; /* USE: the interval of keepalives that WireGuard is to send; 0: none, since
                         our pings hold the path */
    struct path_relay via; /* USE of the relay: which; zero key: any */
    bool is_followed;      /* USE of the relay: the other end has begun the session there */

    uint64_t probe; /* FITS: as paths_probe() gave it */
    uint16_t size;  /* FITS: bytes of UDP payload */
    bool is_whole;  /* FITS: the answer was as long, so the way back carries as much */

    bool is_warning;  /* EVENT: a warning */
    const char *text; /* EVENT: one sentence that begins with the peer's name */
};

/** What became of one pair. */
enum path_verdict {
    PATH_VERDICT_UNTRIED,
    PATH_VERDICT_TRYING,
    PATH_VERDICT_CHOSEN, /* packets go this way */
    PATH_VERDICT_WORKS,  /* it answers, but another is better */
    PATH_VERDICT_SILENT, /* no answer in the last round */
    PATH_VERDICT_DIED,   /* it was chosen and stopped answering */
    PATH_VERDICT_N,
};

/** One pair, for people. */
struct path_pair_view {
    struct candidate remote;
    uint32_t socket;
    enum path_verdict verdict;
    nsec_t rtt;             /* 0: not measured */
    unsigned loss_permille; /* of its last pings */
    nsec_t tried_at;        /* 0: never */
    uint64_t n_pings;       /* sent */
    uint64_t n_pongs;       /* that answered them */
};

/** One relay for an edge, for people. */
struct path_relay_view {
    struct x25519_public key;
    nsec_t here;               /* RTT from this node; 0: not measured */
    nsec_t there;              /* from the peer; 0: it does not reach it, or has not measured */
    enum path_verdict verdict; /* CHOSEN, WORKS, or SILENT: the peer does not reach it */
};

/** One edge, for people. */
struct path_view {
    struct path_peer peer;
    enum path_kind kind;
    struct endpoint remote; /* none for the relay */
    uint32_t socket;        /* of a direct path */
    nsec_t rtt;             /* 0: not known; of the relay: both ends' together */
    nsec_t least_rtt; /* of a direct path: the least of the last 10 to 20 minutes; else @rtt */
    struct rtt_spread spread;      /* of a direct path: round trips of the last minutes */
    struct rtt_longer longer;      /* of a direct path: they take longer than usual */
    struct x25519_public via;      /* of the relay: which; none: any */
    unsigned loss_permille;        /* of the chosen pair's last pings */
    unsigned lost_lately_permille; /* of its last 16 pings, which while packets flow are 8 s */
    nsec_t answered_at;   /* of a direct path: when a ping was answered last; monotonic; 0: never */
    nsec_t since;         /* since when the path is used; monotonic */
    nsec_t died_at;       /* when a direct path died last; monotonic; 0: never */
    bool is_better;       /* of the relay: it is faster than the direct path, or loses less */
    bool is_alarm;        /* the policy is DIRECT, and it has been relayed for too long */
    bool is_relay_better; /* it is relayed, and the direct path that there was is worse */
    char why[PATH_TEXT_MAX]; /* why not direct, and what would change that; "" when it is */
    uint64_t n_frames;       /* sent for this edge */
    uint64_t n_guesses;      /* of them, guesses at ports */
};

/** path_relay_notice_equal() - do both say the same, in the same order? */
bool path_relay_notice_equal(const struct path_relay_notice *a, const struct path_relay_notice *b);

/** path_relay_notice_is_away() - does it ask the pair with that tag to go another way? */
bool path_relay_notice_is_away(const struct path_relay_notice *notice, uint64_t tag);

/** path_pair_tag() - a number that stands for two nodes, in either order, for who knows both keys.
 */
uint64_t path_pair_tag(const struct x25519_public *a, const struct x25519_public *b);

/** path_side_equal() - do both tell the same? Their generations do not count. */
bool path_side_equal(const struct path_side *a, const struct path_side *b);

/** path_kind_names - "none", "lan", "direct", "relay", "stream". */
extern const char *const path_kind_names[];

/** path_verdict_names - "untried", "trying", "chosen", "works", "silent", "died". */
extern const char *const path_verdict_names[];
