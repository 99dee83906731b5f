/*
 * access_filter.h - do the network's rules let an inner packet pass? Of connections, not of
 * packets.
 *
 * Theory of operation. What belongs to a connection that is under way passes, and so does an ICMP
 * error about one (access_flows.h). All else is held against the rules (access_set.h): what begins
 * a TCP connection always is, also where another one between the same ports was before. Fragments
 * behind the first one of a datagram pass for some seconds after it; who sends them in another
 * order loses the datagram.
 *
 * For a while after the filter began, TCP in the midst of a connection passes as an answer where
 * rules let in what it would be the answer to: what was under way then was begun without it.
 *
 * What is refused is counted by its ends, protocol and port, for each worker by itself.
 *
 * Threads: access_filter_pass() is for workers, each with a part of its own. Who changes the rules
 * (access_filter_use()) keeps them out meanwhile. The rest is for one thread.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "access/access_flows.h"
#include "access/access_packet.h"
#include "access/access_set.h"
#include "base/clock.h"

/** Kinds of refused packets that a worker keeps apart. */
#define ACCESS_REFUSED_KINDS 512

/** A kind of which none came for so long gives way to another one. */
#define ACCESS_REFUSED_S 600

/** How long later fragments of a datagram pass (RFC 791 3.2, the least for reassembly). */
#define ACCESS_FRAGMENT_S 15

/** How long connections that were there before are taken up. */
#define ACCESS_TAKE_UP_S 120

/** Packets of one kind that were refused. */
struct access_refused {
    struct ip_addr from;
    struct ip_addr to;
    uint16_t port;    /* of TCP and UDP */
    uint8_t protocol; /* of IP */
    uint8_t zero[5];
    uint64_t packets; /* 0: none is here */
    uint32_t seen_s;  /* of the last */
};

/** What a worker has to itself, but for the counters. */
struct access_part {
    struct access_flow *hint; /* the connection of its last packet */
    pthread_mutex_t lock;     /* of what follows */
    uint64_t n_refused;       /* all of them */
    struct access_refused kinds[ACCESS_REFUSED_KINDS];
};

struct access_filter {
    struct access_set *set; /* owns */
    struct access_flows flows;
    _Atomic uint64_t *fragments; /* owns; datagrams whose first fragment passed */
    struct access_part *parts;   /* owns, with @n_parts */
    unsigned n_parts;
    uint32_t generation; /* of @set */
    nsec_t takes_up_until;
    uint64_t seed;
    uint64_t tag; /* of @set: what its maker calls it */
};

/**
 * access_filter_new() - without rules: all passes
 * @n_parts:	workers
 * @seed:	random, unknown to strangers
 *
 * Return: 0 or -ENOMEM.
 */
int access_filter_new(struct access_filter **ret, unsigned n_parts, uint64_t seed, nsec_t now);

/** access_filter_free() - release; safe on NULL. */
struct access_filter *access_filter_free(struct access_filter *f);

/**
 * access_filter_use() - go by @set from now on; taken
 *
 * Workers are outside meanwhile. What the set before has counted is added when they may be back:
 * access_filter_settle() does, with it.
 *
 * Return: the set before, for that call.
 */
struct access_set *access_filter_use(struct access_filter *f, struct access_set *set, uint64_t tag);

/** access_filter_settle() - count on from @before, which is freed; NULL: nothing was. */
void access_filter_settle(struct access_filter *f, struct access_set *before);

/**
 * access_filter_pass() - may it?
 * @part:	of the calling worker
 * @p:		the packet, of which @len bytes are there
 * @ip:		from ip_parse() of it
 *
 * Return: false: it was refused, and is counted.
 */
bool access_filter_pass(struct access_filter *f, unsigned part, enum access_way way,
    const uint8_t *p, size_t len, const struct ip_info *ip, nsec_t now);

/** access_filter_refused() - copy the kinds that worker @part has refused into @ret; returns how
 * many. @ret_all: gets all packets that it has refused. */
unsigned access_filter_refused(struct access_filter *f, unsigned part,
    struct access_refused ret[static ACCESS_REFUSED_KINDS], uint64_t *ret_all);
