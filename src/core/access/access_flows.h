/*
 * access_flows.h - the connections that are under way, so that what belongs to one passes.
 *
 * Theory of operation. A table of fixed size, in buckets of a few entries; each entry is a cache
 * line. Whoever looks for a connection locks nothing: an entry has a number that is odd while it is
 * written, and who finds it changed meanwhile has found nothing. Who writes an entry, which happens
 * a few times in the life of a connection, holds one of some locks, chosen by the bucket.
 *
 * A connection is answered once packets have gone both ways. One that is not is asked of the rules
 * again after each change of them; one that is goes on, as it is with the kernel's own.
 *
 * An entry lives as long as RFC 5382 (TCP), 4787 (UDP) and 5508 (ICMP) have a NAT keep one. It is
 * then forgotten when somebody comes across it. Where a bucket is full the one gives way that is
 * missed least: what is over, then what is not answered or is ending, then what was silent for
 * longest. So a flood of beginnings pushes out beginnings.
 *
 * Threads: any, but for init and deinit.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "access/access_packet.h"

/** Connections that are remembered, at most: 4 MiB, of which as much is used as there are. */
#define ACCESS_FLOWS_MAX 65536

/* Silence, in seconds, after which a connection is over. */
#define ACCESS_TCP_S      7440 /* RFC 5382 REQ-5: established, 2 hours and 4 minutes */
#define ACCESS_TCP_HALF_S 240  /* RFC 5382 REQ-5: beginning or ending, 4 minutes */
#define ACCESS_UDP_S      300  /* RFC 4787 REQ-5 */
#define ACCESS_ICMP_S     60   /* RFC 5508 REQ-1 */
#define ACCESS_OTHER_S    600

#define ACCESS_FLOW_KEY_WORDS (sizeof(struct access_key) / sizeof(uint64_t))

/** One connection, or none. */
struct access_flow {
    _Alignas(64) _Atomic uint32_t version; /* odd: it is being written */
    _Atomic uint32_t seen;                 /* second of its last packet */
    _Atomic uint32_t state;                /* bits: see access_flows.c; 0: none is here */
    _Atomic uint32_t generation;           /* of the rules that have let it in */
    _Atomic uint64_t key[ACCESS_FLOW_KEY_WORDS];
};

struct access_flows {
    struct access_flow *items; /* ACCESS_FLOWS_MAX, in @memory */
    void *memory;              /* owns */
    pthread_mutex_t *locks;    /* owns */
    uint64_t seed;             /* secret */
    _Atomic uint64_t n_lost;   /* that gave way though they were under way */
};

#define ACCESS_FLOWS_NULL {0}

/** access_flows_init() - @seed: random, unknown to strangers. 0 or -ENOMEM. */
int access_flows_init(struct access_flows *f, uint64_t seed);

/** access_flows_deinit() - idempotent, safe on ACCESS_FLOWS_NULL. */
void access_flows_deinit(struct access_flows *f);

/**
 * access_flows_take() - does the packet belong to a connection that is under way?
 * @p:		is_connected, and does not begin one
 * @hint:	where the caller's last one was, for the next; *@hint NULL: not known. Of
 *		the caller's thread alone
 *
 * Return: false, too, when its rules have to be asked again: see above.
 */
bool access_flows_take(struct access_flows *f, const struct access_packet *p, uint32_t generation,
    uint32_t now_s, struct access_flow **hint);

/** access_flows_has() - is there such a connection? Nothing is learned of it. */
bool access_flows_has(struct access_flows *f, const struct access_key *key, uint32_t now_s);

/**
 * access_flows_begin() - the rules have let @p pass, which is_connected
 * @is_under_way:	it was before they were asked, so it counts as answered
 */
void access_flows_begin(struct access_flows *f, const struct access_packet *p, bool is_under_way,
    uint32_t generation, uint32_t now_s);
