/*
 * self.h - what a node finds wrong with itself, its hubs and its pairs.
 *
 * All that an agent knows goes in as facts, and findings come out. Causes come before what follows
 * from them: while the interface is not as it should be, or the clock locks this node out, neither
 * a hub nor a peer is blamed that has no session; where neither the hub nor any peer answers it is
 * this machine's line; and who is reached through a hub that is away is not blamed either.
 *
 * Pure: no I/O, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "health/finding.h"
#include "health/gpu.h"
#include "health/machine.h"

/** A session is renewed after 120 s; so much older, with traffic, it is late. */
#define SELF_HANDSHAKE_LATE_S 135
/** So long after its handshake no session carries packets (whitepaper 6.1, REJECT_AFTER_TIME). */
#define SELF_HANDSHAKE_DEAD_S 180
/** Traffic that should have renewed a session has gone on for so long. */
#define SELF_RENEWAL_LATE_S 15
/** What is only just being tried is no fault yet. */
#define SELF_PATH_GRACE_S 30

/** What the engine shows of a session. */
struct self_session {
    int64_t handshake_age_s; /* -1: there was none */
    int64_t silent_s;        /* what was sent for so long has had no answer; 0: it has */
    int64_t renewal_due_s;   /* traffic that should have renewed it has gone on for so long; 0: none
                                has */
    int64_t heard_s;         /* something has come from it so long ago; -1: never */
};

/** The hub that serves this node. */
struct self_hub {
    const char *name;      /* NULL: the network has none */
    const char *at;        /* where it is, for people */
    bool is_heard;         /* its API answers, in the tunnel */
    int64_t silent_s;      /* since it was last heard; -1: never since the start */
    int64_t quiet_s;       /* the longest silence of one that is there */
    bool has_session;      /* WireGuard's */
    const char *by_tls;    /* why packets to it go in TLS; NULL: they do not */
    bool is_one_way;       /* and only one direction of UDP fails */
    const char *tls_fails; /* why they do not go in TLS though UDP fails; NULL: nothing is known */
    bool is_refused;       /* it has answered in TLS, and refused */
    int64_t
        store_behind_s;  /* it has not heard for so long what its store changes; 0: it hears it */
    const char *refused; /* why its events are not believed; NULL: they are */
};

/** Another hub. */
struct self_other_hub {
    const char *name;
    const char *why; /* what is wrong with it, a clause; "": nothing */
};

/** How a peer is reached. */
enum self_path {
    SELF_PATH_NONE,
    SELF_PATH_DIRECT,
    SELF_PATH_BY_HUB,   /* relayed by the hub that serves this node */
    SELF_PATH_BY_OTHER, /* relayed by another node */
};

/** A peer. */
struct self_peer {
    const char *name;
    enum self_path path;
    const char *kind;    /* the path, for people: "relay" */
    const char *relay;   /* the node that relays; "": none */
    const char *why;     /* why it is not direct, a clause; "": it is */
    bool is_off;         /* the two are not to talk */
    bool is_key_refused; /* another key than its own is pinned */
    bool awaits_hub;     /* it is not reached because the hub does not answer */
    bool is_alarm;       /* a direct path is wanted, and there was none for half a minute */
    int64_t fell_back_s; /* it has been relayed for so long, after a direct path that has died,
                            and would be better off there; 0: it is not */
    int64_t since_s;     /* the path has been this one for so long */
    uint16_t mtu;        /* bytes inside the tunnel; 0: not measured */
    int64_t longer_s; /* its round trips have taken much longer than usual for so long; 0: they do
                         not */
    double longer_ms; /* each of them so long or longer ... */
    double usual_ms;  /* ... and usually so long */
    struct self_session session;
};

/** A peer of which the hub says, or has said, something else than before (mesh/keys/). */
struct self_trust {
    const char *name;
    enum finding_code code; /* one of WEFT-TRUST */
    const char *change;     /* what: "key and address" */
    const char *key;        /* of the hub's word */
    int64_t for_s;          /* so long ago it was said, or believed */
    int64_t left_s;         /* and it will be believed in so long; 0: once the operator says so */
};

/** A name that is left out of the hosts file. */
struct self_name {
    const char *name;
    const char *node;
    const char *why;
};

/** A subnet behind this node. */
struct self_subnet {
    const char *route;
    const char *why; /* what is missing, a clause; "": nothing */
};

/** All that is known. Texts are borrowed; NULL or "": there is nothing of that kind. */
struct self_facts {
    const char *name;      /* this node's */
    int64_t at;            /* s since 1970 */
    int64_t running_s;     /* the agent's age */
    const char *fault;     /* why the interface is not as it should be */
    unsigned n_failed;     /* passes that have failed, one after the other, because of it */
    const char *copied;    /* another machine has this node's key: a sentence */
    const char *clock_off; /* how the clock differs from the hub's, a sentence */
    const char *lockout;   /* why the clock has handshakes refused, a clause */
    const char *drained;   /* why this node is drained, a clause */
    const char *rates;     /* why rates are not kept */
    const char *rules;     /* why the network's rules are not enforced here */
    const char *offloads;  /* which are off, and why: "the offload udp-gso is off: it got lost" */
    const char *apart_at;  /* the device at which datagrams of one flow arrive one by one, and which
                              does not merge them though it could */
    uint64_t n_foreign;    /* peers that somebody else had added, and that were removed */
    int64_t foreign_age_s; /* the last of them; -1: none was */
    const char *foreign;   /* its public key */
    const char *cluster;   /* why the cluster's API does not answer */
    int64_t cluster_s;     /* for how long */
    const char *edges_unwritten;  /* why its parts of edges are not written to a cluster */
    int64_t edges_unwritten_s;    /* for how long */
    const char *names_unwritten;  /* why the hosts file cannot be written */
    const char *names_unanswered; /* why DNS does not answer for names */
    int64_t keepalive_s;          /* hello to the hub this often; 0: never */
    bool is_fixed;                /* because the network says so */
    bool is_natted;               /* a NAT is in between */
    int64_t nat_forgets_s; /* that forgets a silent mapping after this; 0: not known, or it does not
                            */

    struct self_hub hub;
    const struct self_other_hub *others; /* @n_others, beside @hub */
    size_t n_others;
    const struct self_peer *peers; /* @n_peers */
    size_t n_peers;
    const struct self_trust *trust; /* @n_trust that are to be shown */
    size_t n_trust;
    const struct self_name *names; /* @n_names that are left out */
    size_t n_names;
    const struct self_subnet *subnets; /* @n_subnets */
    size_t n_subnets;
    const struct machine_watch *machine; /* what its kernel counts; NULL: not read yet */
    const struct gpu_watch *gpus;        /* what their driver says; NULL: not asked yet */
};

/**
 * self_find() - look at all of it: @f is what is found now, and what is not found any more is gone
 * @changed:	is told of what has begun and of what is over; NULL: nobody
 */
void self_find(
    struct findings *f, const struct self_facts *facts, finding_changed_fn changed, void *arg);

/** Most findings that a node says to its hub, the gravest first. */
#define SELF_SAID_MAX 16

/**
 * self_encode() - what the hub does not find by itself
 * @name:	the node's
 *
 * [{"code", "peer"?, "forSeconds", "text", "fix"}]: of the node itself, and of its pair with @peer.
 *
 * Return: a new reference, NULL: no memory.
 */
json_t *self_encode(const struct findings *f, const char *name, int64_t at);

/**
 * self_decode() - what self_encode() has made, taken in by the clock @at
 * @ret:	untouched on failure; a subject is the peer of a pair, or "", the node itself
 *
 * What this version does not know is passed over.
 *
 * Return: 0; -EINVAL with words; -ENOMEM with words.
 */
int self_decode(struct findings *ret, const json_t *list, int64_t at, struct err *e);
