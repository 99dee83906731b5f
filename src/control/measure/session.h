/*
 * session.h - for whom this member measures right now.
 *
 * Theory of operation. A member takes part in one session at a time. It begins
 * with a coordinator's order, ends with that connection or after its time, and
 * has an id that only its members are told. A data connection, or a ping, that
 * does not carry the id of the session that is on is refused; so no member is
 * made to send or to swallow anything unless a coordinator has asked this very
 * member, too.
 *
 * Threads: any; everything is guarded by @lock, which is held for moments only.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "measure/order.h"

/** session_begin(): another session is on. */
#define SESSION_E_BUSY 1

#define SESSION_HEARD_MAX 1024
#define SESSION_HOPS_MAX  8

/** How many pings have come from one member. */
struct session_heard {
    struct ip_addr from;
    uint32_t n;
};

struct session {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a hop has come, or the session has ended */
    /* guarded by lock: */
    bool is_on;
    struct session_id id;
    struct ip_addr owner; /* the coordinator */
    char purpose[16];
    nsec_t ends_at;  /* monotonic */
    uint64_t number; /* of this session, counted since the start */
    struct session_heard heard[SESSION_HEARD_MAX];
    size_t n_heard;
    struct {
        int fd; /* owns */
        uint32_t rank;
    } hops[SESSION_HOPS_MAX]; /* neighbours that are waiting to be taken */
    size_t n_hops;
};

/** session_init() - no session is on. */
void session_init(struct session *s);

/** session_deinit() - end the session that is on; no other thread may use @s any more. */
void session_deinit(struct session *s);

/**
 * session_begin() - begin a session for a coordinator
 * @o:		SESSION
 * @owner:	the coordinator's address
 * @now:	monotonic
 * @ret_number:	set on success; for session_end()
 * @ret_owner:	set when another session is on: its coordinator's address
 *
 * Return: 0 or SESSION_E_BUSY.
 */
int session_begin(struct session *s, const struct order *o, const struct ip_addr *owner, nsec_t now,
    uint64_t *ret_number, struct ip_addr *ret_owner);

/** session_end() - end the session of that number; nothing happens if it is over already. */
void session_end(struct session *s, uint64_t number);

/** session_has() - is the session with that id on? @now: monotonic */
bool session_has(struct session *s, const struct session_id *id, nsec_t now);

/** session_is_on() - is any session on? @now: monotonic */
bool session_is_on(struct session *s, nsec_t now);

/**
 * session_hear() - a ping has come
 * @id:		the session id in it
 * @from:	the member that sent it
 * @counts:	it is one of a train
 * @now:	monotonic
 * @ret_heard:	set when it is to be answered: how many counting pings have come from that member
 *
 * Return: true if it is to be answered; false when its session is not on, or the table is full.
 */
bool session_hear(struct session *s, const struct session_id *id, const struct ip_addr *from,
    bool counts, nsec_t now, uint32_t *ret_heard);

/**
 * session_copy_heard() - how many pings have come from each member
 * @ret_n:	set to the length
 *
 * Return: gives an array, to be released with free(); NULL for no memory, or when there are none.
 */
struct session_heard *session_copy_heard(struct session *s, size_t *ret_n);

/**
 * session_put_hop() - a neighbour of an all-reduce has connected
 * @rank:	the neighbour's
 * @fd:		taken on success only
 *
 * Return: false when there is no room, or the session with that id is not on.
 */
bool session_put_hop(struct session *s, const struct session_id *id, uint32_t rank, int fd);

/**
 * session_take_hop() - wait for the neighbour of that rank
 * @deadline:	monotonic
 *
 * Return: gives its connection; -1 when it did not come in time, or the session has ended.
 */
int session_take_hop(struct session *s, uint32_t rank, nsec_t deadline);
