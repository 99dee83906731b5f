/*
 * finder_internal.h - the finder's parts: finder.c, finder_self.c, finder_peers.c, finder_relays.c,
 * finder_mtu.c.
 */
#pragma once

#include <uv.h>

#include "agent/finder.h"
#include "agent/paths/frame_client.h"
#include "agent/paths/port_map.h"
#include "agent/paths/punch_sockets.h"
#include "agent/paths/stun_client.h"
#include "agent/paths/udp_probe.h"
#include "os/log.h"
#include "base/rng.h"
#include "path/paths.h"
#include "net/netlink.h"

/** The spare socket from which the newest port is asked for; paths never gets to that number. */
#define FINDER_FRESH_SOCKET UINT32_MAX

struct observation;

/** What is kept of one peer that finds paths, too. */
struct finder_peer {
    char node[NAME_MAX_LEN + 1];
    struct x25519_public key;
    enum path_policy policy;
    uint64_t generation; /* of what it reported last */
    bool is_present;     /* in the snapshot that is being taken */

    nsec_t handshake_due;   /* when to begin one; NSEC_NEVER: none is wanted */
    nsec_t handshake;       /* the last one that was seen, as observed */
    struct finder_mtu *mtu; /* owns; NULL: it never had a direct path */
    uint64_t rx_bytes;      /* as the engine counted them last */
    uint64_t tx_bytes;

    nsec_t wanted_at; /* when one was asked for: a later one is that */

    bool is_relay;            /* it relays for others, and may */
    uint64_t relay_run;       /* of it, as it reported last */
    bool is_leg;              /* it is one that we keep ready: finder_relays.c */
    bool has_session;         /* as observed */
    struct x25519_public via; /* the relay of this edge, a node; none: the hub, or a direct path */
    bool is_applied;          /* the engine knows where we want it */
};

/** Is the hub alive, while it relays? */
struct finder_hub_beat {
    nsec_t next;             /* question */
    nsec_t first_unanswered; /* of the questions since the last answer */
    unsigned n_unanswered;
    uint64_t bytes;  /* counted of what it relays */
    nsec_t moved_at; /* when that changed; 0: never */
    bool has_other;  /* there is another relay */
    bool is_dead;
};

/** The newest port of a NAT that counts, asked for from a socket that it has not seen before. */
struct finder_fresh {
    struct endpoint server; /* that is asked; none: none is */
    struct stun_transaction id;
    uint16_t port; /* as told last; 0: not known */
};

struct finder {
    struct uv_loop_s *loop;    /* pins */
    const struct state *state; /* pins */
    struct finder_listener listener;
    struct rng rng;
    struct paths *paths; /* owns */
    struct frame_client port;
    struct punch_sockets *punch; /* owns */
    struct log_limit punch_limit;
    struct uv_timer_s *timer; /* owns until it is closed; the earliest of all that is due */

    /* This machine. */
    struct path_side self;
    nsec_t keepalive; /* to be told to peers; 0: not known */
    struct netlink nl;
    struct stun_client stun;
    struct behavior_survey survey;
    struct finder_fresh fresh;
    struct port_map *port_map;   /* owns */
    struct port_mapping mapping; /* what the router has granted */
    struct uv_poll_s *net_poll;  /* owns until it is closed */
    int net_fd;                  /* owns; -1: changes are not heard of */
    uint64_t network;            /* a digest of addresses and default routes; 0: not looked */
    nsec_t gather_due;           /* look at the addresses again; NSEC_NEVER */
    struct endpoint own[CANDIDATES_MAX]; /* of the interfaces, with WireGuard's port */
    unsigned n_own;

    /* The others. */
    struct finder_peer *peers; /* owns; sorted by node */
    size_t n_peers;
    struct render_path *routes; /* owns; sorted by node; room for one of each peer */
    size_t n_routes;
    struct x25519_public hub; /* that relays; none: not known */
    char hub_name[NAME_MAX_LEN + 1];
    struct endpoint hub_at; /* where the engine has it; none: not known */
    struct finder_hub_beat hub_beat;
    struct udp_probe hub_probe;
    uint64_t run;     /* of this node as a relay; random */
    bool relays;      /* it is one */
    bool has_changed; /* a relay was found or lost: look at all of them */
    bool is_hub_heard;
    bool is_blocked;      /* no UDP gets out */
    uint16_t network_mtu; /* of inner packets, before anything is measured */
    uint16_t link_mtu;    /* the most that a link of this machine carries of them; 0: not known */
    bool pins;            /* the engine can */
};

/** finder__run() - carry out what paths wants, and be woken for what is due next. */
void finder__run(struct finder *f, nsec_t now);

/** finder__start_self() - hear of changes, ask the router. finder__stop_self() ends it. */
int finder__start_self(struct finder *f, struct err *e);
void finder__stop_self(struct finder *f, bool leaving);

/** finder__gather() - look at the addresses now; @force: the port is new, too. */
void finder__gather(struct finder *f, bool force, nsec_t now);

/** finder__ask_stun() - send the requests that are due. */
void finder__ask_stun(struct finder *f, nsec_t now);

/** finder__take_stun() - an answer, perhaps. */
void finder__take_stun(struct finder *f, const struct engine_frame *frame, nsec_t now);

/** finder__take_fresh() - the same, to FINDER_FRESH_SOCKET. */
void finder__take_fresh(struct finder *f, const struct engine_frame *frame, nsec_t now);

/** finder__refresh_stun() - our address may have changed, or a NAT's newest port is wanted. */
void finder__refresh_stun(struct finder *f, nsec_t now);

/** finder__set_servers() - the STUN servers of that snapshot's hubs. */
void finder__set_servers(struct finder *f, const struct snapshot *s, nsec_t now);

/** finder__use() - a peer's packets go another way. */
void finder__use(struct finder *f, const struct path_action *action, nsec_t now);

struct finder_peer *finder__find_by_key(const struct finder *f, const struct x25519_public *key);
struct render_path *finder__find_route(const struct finder *f, const char *node);

struct finder_peer *finder__find_peer(const struct finder *f, const char *node);

/** The end with the greater key begins a handshake so much later, if there was none by then. */
#define FINDER_TURN       NSEC_PER_SEC
#define FINDER_RELAY_TURN (300 * NSEC_PER_MSEC) /* to leave a relay */

/** finder__want_handshake() - of an edge that goes another way: the smaller key's turn is now. */
void finder__want_handshake(struct finder *f, struct finder_peer *peer, nsec_t turn, nsec_t now);

/** finder__update_self() - tell what is new of this node. */
void finder__update_self(struct finder *f, nsec_t now);

/* ---- finder_relays.c ---- */

/** finder__choose_legs() - which relays are kept ready; true: routes have changed. */
bool finder__choose_legs(struct finder *f, nsec_t now);

/** finder__tell_relays() - what this node reports of relays, itself included. */
void finder__tell_relays(const struct finder *f, struct path_side *side, nsec_t now);

/** finder__relay_at() - whose direct path leads there; NULL: no relay's. */
const struct finder_peer *finder__relay_at(const struct finder *f, const struct endpoint *at);

/** finder__follow() - a peer's session may have come about through another relay. */
void finder__follow(
    struct finder *f, struct finder_peer *peer, const struct observation *ob, nsec_t now);

/** finder__relay_moved() - the path to a relay is another one. */
void finder__relay_moved(struct finder *f, struct finder_peer *relay, nsec_t now);

/** finder__relay_forgot() - it has to see a handshake of all that goes through it. */
void finder__relay_forgot(struct finder *f, struct finder_peer *relay, nsec_t now);

/** finder__count_relayed() - after an observation: which relays carry data. */
void finder__count_relayed(struct finder *f, nsec_t now);

nsec_t finder__hub_beat_due(const struct finder *f, nsec_t now);
void finder__hub_beat_tick(struct finder *f, nsec_t now);
void finder__on_hub_answer(struct finder *f, const struct endpoint *from, nsec_t now);

/** finder__mtu_use() - a peer's direct path is the one to @remote; none: it has none. */
void finder__mtu_use(
    struct finder *f, struct finder_peer *peer, const struct endpoint *remote, nsec_t now);

/** finder__mtu_fits() - an answer to a probe. */
void finder__mtu_fits(struct finder *f, const struct path_action *action, nsec_t now);

/** finder__mtu_data() - data was sent to a peer, or heard from it, since the last look. */
void finder__mtu_data(
    struct finder *f, struct finder_peer *peer, bool sent, bool heard, nsec_t now);

/** finder__mtu_tick() - send the probes that are due. finder__mtu_due(): when they are. */
void finder__mtu_tick(struct finder *f, nsec_t now);
nsec_t finder__mtu_due(const struct finder *f);

/** finder__mtu_free() - NULL is fine. Always NULL. */
struct finder_mtu *finder__mtu_free(struct finder_mtu *m);

/** finder__handshake_due() - the earliest; NSEC_NEVER. */
nsec_t finder__handshake_due(const struct finder *f);
