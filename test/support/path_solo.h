/*
 * path_solo.h - one node whose peer is played by the test, for the unit tests of paths.
 *
 * All that the node sends is read with the peer's keys and noted; nothing reaches a peer, and
 * nothing comes back but what the test delivers. Two nodes and a wire are in path_couple.h.
 */
#pragma once

#include "path/paths.h"
#include "wire/path.h"

#define SOLO_T0       (100 * NSEC_PER_SEC) /* when it begins */
#define SOLO_SENT_MAX 4096

/** A frame that the node has sent, as its peer reads it. */
struct solo_sent {
    nsec_t at;
    struct path_frame f;
    struct endpoint to;
    struct ip_addr local;
    uint32_t socket;
    size_t len;
    uint8_t hops;
    bool dont_fragment;
};

struct solo {
    uint64_t seed;
    nsec_t now;
    struct paths *paths;
    struct x25519_public key; /* the peer's */
    struct path_keys keys;    /* the peer's */
    struct endpoint host;     /* the peer's */
    struct ip_addr local;     /* the node's address that frames come to */
    uint64_t session;         /* the peer's run */
    uint64_t sequence;        /* of the peer's last frame */
    uint64_t echo;            /* the node's run, known from its first frame */

    struct solo_sent sent[SOLO_SENT_MAX];
    unsigned n_sent;
    uint32_t opened[SOLO_SENT_MAX]; /* sockets that it asked for, and when */
    nsec_t opened_at[SOLO_SENT_MAX];
    unsigned n_opened;
    unsigned n_closed[SOLO_SENT_MAX]; /* by the socket's number */
    unsigned n_all_closed;
    unsigned n_fresh; /* times that it wanted to know its own address */
    unsigned n_uses;
    struct path_action use; /* the last one */
};

/** solo_start() - a node that knows its peer by the key alone; @nominates: it chooses the path. */
struct solo *solo_start(bool nominates);
void solo_stop(struct solo *w);

/** solo_start_proven() - the same; the peer's address is told, and the first ping answered. */
struct solo *solo_start_proven(bool nominates);

/** solo_run() - let time pass. */
void solo_run(struct solo *w, nsec_t time);

/** solo_take_actions() - note what the node wants done. */
void solo_take_actions(struct solo *w);

/** solo_tell_side() - the peer reports its address as one of @kind, and its NAT (NULL: nothing). */
void solo_tell_side(struct solo *w, enum candidate_kind kind, const struct behavior *nat);

/** solo_tell_self() - what the node reports of itself. */
void solo_tell_self(struct solo *w, const struct behavior *nat);

/** solo_view() - how the node sees the edge. */
struct path_view solo_view(const struct solo *w);

/** solo_next_frame() - a frame of the peer, numbered as its next. */
struct path_frame solo_next_frame(struct solo *w, enum path_frame_kind kind);

/** solo_deliver() - it comes in now, from the peer's address. */
void solo_deliver(struct solo *w, const struct path_frame *f);

/** solo_deliver_held() - from @from, padded to @len, received on @socket @held before now. */
void solo_deliver_held(struct solo *w, const struct path_frame *f, const struct endpoint *from,
    uint32_t socket, size_t len, nsec_t held);

/** solo_answer() - the peer answers a ping from where that was sent to. */
void solo_answer(struct solo *w, const struct solo_sent *ping, uint8_t flags);

/** solo_answer_after() - the peer answers the last ping @rtt after that was sent. */
void solo_answer_after(struct solo *w, nsec_t rtt);

/** solo_last_of() - the last frame of a kind that was sent; it fails when there is none. */
const struct solo_sent *solo_last_of(const struct solo *w, enum path_frame_kind kind);

/** solo_count_of() - frames of a kind that were sent. */
unsigned solo_count_of(const struct solo *w, enum path_frame_kind kind);

/** solo_endpoint() - of its text. */
struct endpoint solo_endpoint(const char *text);
