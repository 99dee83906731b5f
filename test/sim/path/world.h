/*
 * world.h - many nodes, their NATs, a hub and the net between them, on a virtual clock.
 *
 * The nodes run the shipped path/paths; all else is a model: sites on a plane
 * (a packet takes as long as it is far), each behind a NAT, all with the same
 * private addresses inside; a hub that passes on what nodes report, and relays;
 * data that flows on edges now and then. After every event check.c looks at what
 * must never happen. Everything follows from the seed.
 */
#pragma once

#include "base/secret.h"
#include "path/paths.h"
#include "test/sim/path/nat.h"

#define WORLD_HUBS 2 /* addresses of the hub that answer STUN */

/** Some nodes in one place, behind one NAT. */
struct site {
    double x; /* ms of one-way delay */
    double y;
    struct sim_nat nat;
    nsec_t cut_until; /* from all other sites; the hub is reached */
    nsec_t broken_at; /* the last time that it was cut, or its NAT was reset */
    unsigned *hosts;  /* owns; nodes that are or were here */
    unsigned n_hosts;
};

/** How one node sees an edge, for the checks. */
struct end {
    struct path_action use;
    nsec_t used_at;
    nsec_t switches[8]; /* times of the latest, a ring */
    unsigned n_switches;
    uint64_t rx;
    uint64_t tx;
    nsec_t heard_at; /* data of the peer arrived */
};

struct edge {
    unsigned nodes[2];
    struct end ends[2];
    nsec_t active_from; /* data flows since; 0: not */
    nsec_t active_until;
};

struct world_node {
    unsigned site;
    nsec_t moved_at; /* last */
    uint16_t host;   /* last part of its private address */
    struct paths *paths;
    struct x25519_public key;
    struct endpoint inner; /* private, or public where there is no NAT */
    struct endpoint inner6;
    bool has_v6;
    struct sim_nat firewall6;
    struct behavior_survey survey;
    struct path_side side; /* as reported last */
    uint32_t *sockets;     /* owns; open ones */
    unsigned n_sockets;
    unsigned cap_sockets;
    nsec_t tick_at;    /* of the queued event */
    nsec_t second;     /* the virtual second of the two counts */
    unsigned n_ticks;  /* in it */
    unsigned n_frames; /* sent in it */
    unsigned most_frames;
    unsigned most_ticks;
    unsigned *edges; /* owns; indices */
    unsigned n_edges;
};

struct world_options {
    uint64_t seed;
    unsigned loss_permille;
    unsigned dup_permille;
    nsec_t jitter;      /* at most */
    double plane;       /* ms from one side to the other */
    nsec_t keepalive;   /* that nodes report as measured; 0: none */
    nsec_t nat_timeout; /* of every NAT */
    bool no_sockets;    /* no node opens sockets so that its NAT's ports may be guessed */
};

struct event;

struct world {
    struct world_options opt;
    uint64_t seed; /* the state of the generator */
    struct rng rng;
    nsec_t now;
    struct site *sites;
    unsigned n_sites;
    struct world_node *nodes;
    unsigned n_nodes;
    struct edge *edges;
    unsigned n_edges;
    struct event **queue; /* owns; a binary heap */
    size_t n_queue;
    size_t cap_queue;
    uint64_t order;
    bool hub_is_up;
    nsec_t hub_changed_at;
    bool is_lossless;

    uint64_t n_events;
    uint64_t n_frames;    /* path frames on the wire */
    uint64_t n_data;      /* data packets sent */
    uint64_t n_delivered; /* of them */
    uint64_t n_foreign;   /* frames that came to another than was meant, and were refused */
    nsec_t worst_gap;     /* longest silence on an active edge that had a relay */
};

struct world *world_new(const struct world_options *opt);
void world_free(struct world *w);

uint32_t world_draw(struct world *w, uint32_t below);
bool world_chance(struct world *w, unsigned permille);

unsigned world_add_site(struct world *w, const struct sim_nat_kind *kind);
unsigned world_add_node(struct world *w, unsigned site, bool has_v6);
unsigned world_add_edge(struct world *w, unsigned a, unsigned b, enum path_policy policy);

/** world_join() - the node gathers its candidates and reports them. */
void world_join(struct world *w, unsigned node);

void world_run(struct world *w, nsec_t time);

/* Faults. */
void world_move_node(struct world *w, unsigned node, unsigned site);
void world_reset_nat(struct world *w, unsigned site);
void world_cut(struct world *w, unsigned site, nsec_t time);
void world_set_hub(struct world *w, bool is_up);

/** world_activate() - data flows on an edge for that time. */
void world_activate(struct world *w, unsigned edge, nsec_t time);

/** world_is_direct() - both ends use a direct path. */
bool world_is_direct(const struct world *w, const struct edge *e);

/* check.c: each fails the test with the seed. */
void check_fail(const struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void check_switch(struct world *w, unsigned node, struct edge *e, unsigned end);
void check_frame_accepted(const struct world *w, unsigned by, unsigned from, unsigned meant_for);
void check_tick(struct world *w, struct world_node *n);
void check_sent(struct world *w, struct world_node *n);
void check_gap(struct world *w, struct edge *e, unsigned end, nsec_t gap);

/** check_can_be_direct() - RFC 4787 lets these two meet without guessing. */
bool check_can_be_direct(const struct world *w, const struct edge *e);
