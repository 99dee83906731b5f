/*
 * path_couple.h - two nodes and a wire between them, for the unit tests of paths.
 *
 * No NAT: each node has one address. The wire delays every frame by the same
 * time, and drops, copies or redirects what the test says. NATs and many nodes are
 * in test/sim/path.
 */
#pragma once

#include "path/paths.h"
#include "wire/path.h"

#define COUPLE_DELAY    (10 * NSEC_PER_MSEC)
#define COUPLE_INFLIGHT 4096

struct couple_frame {
    nsec_t at;
    unsigned to;
    struct endpoint from;
    size_t len;
    uint8_t bytes[PATH_FRAME_MAX];
};

struct couple_node {
    struct paths *paths;
    struct x25519_secret secret; /* as at the start, of @key */
    struct x25519_public key;
    struct endpoint ep;
    struct endpoint ep6;     /* told only where @has_v6 */
    struct ip_addr heard_at; /* its address that frames come to; none: that is not known */
    struct ip_addr spoke_at; /* the one that it wanted the last frame to leave from; or none */
    struct path_action use;  /* the last one */
    unsigned n_uses;
    unsigned n_events;
    unsigned n_fits;
    unsigned n_fresh;          /* times that it wanted to know its own address */
    struct path_action fits;   /* the last one */
    char event[PATH_TEXT_MAX]; /* the last one, and whether it is a warning */
    bool is_warned;
    nsec_t keepalive; /* that it tells it needs; 0: not known */
    bool is_deaf;     /* what is sent to it is lost */
};

struct couple {
    uint64_t seed;
    nsec_t now;
    struct couple_node nodes[2]; /* the first nominates */
    struct couple_frame *frames; /* owns; in order of arrival */
    size_t n_frames;
    struct couple_frame kept; /* copy of the last frame to node 1 */
    uint64_t n_sent;
    bool has_v6;       /* both have another address, with a delay of its own */
    nsec_t delay6;     /* one way */
    size_t hole6;      /* longer frames are lost on that way; 0: none is */
    nsec_t slow_until; /* what is sent before takes as much longer as @slow_by says */
    nsec_t slow_by;
    uint64_t n_bytes; /* that the engines have counted, each way */
};

/** couple_start() - two nodes that know each other; no candidates told yet. */
void couple_start(struct couple *c, enum path_policy policy);
void couple_stop(struct couple *c);

/** couple_tell() - both hear of each other's address. */
void couple_tell(struct couple *c);

/** couple_run() - let time pass. */
void couple_run(struct couple *c, nsec_t time);

/** couple_run_with_traffic() - the same, and each half second the counters show that data flows. */
void couple_run_with_traffic(struct couple *c, nsec_t time);

/** couple_traffic() - the counters show now that data has flowed. */
void couple_traffic(struct couple *c);

/** couple_view() - how node @i sees its edge. */
struct path_view couple_view(const struct couple *c, unsigned i);

/** couple_assert_direct() - both ends use the direct path, and say so. */
void couple_assert_direct(const struct couple *c);

/** couple_assert_relayed() - both ends use the relay, and say why. */
void couple_assert_relayed(const struct couple *c);

/** couple_inject() - @frame arrives at node @to now, from @from. */
void couple_inject(
    struct couple *c, unsigned to, const struct endpoint *from, const uint8_t *frame, size_t len);
