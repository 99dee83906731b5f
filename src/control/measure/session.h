/*
 * session.h - the session in which this member takes part.
 *
 * Theory of operation. A member takes part in one session at a time. A session
 * begins with a coordinator's order, and ends with the coordinator's connection
 * or when its time is over. It has an id that only its members are told. A data
 * connection or a ping without the id of the current session is refused. So
 * nobody can make a member send or receive data unless a coordinator has begun
 * a session with that member, too.
 *
 * Threads: any; everything is guarded by @lock, which is held only briefly.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "measure/order.h"

/** session_begin(): another session has not ended yet. */
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
    uint64_t number; /* of this session; the first one since the start has 1 */
    struct session_heard heard[SESSION_HEARD_MAX];
    size_t n_heard;
    struct {
        int fd; /* owns */
        uint32_t rank;
    } hops[SESSION_HOPS_MAX]; /* neighbours' connections that wait for session_take_hop() */
    size_t n_hops;
};

/** session_init() - no session is on. */
void session_init(struct session *s);

/** session_deinit() - end the current session; no other thread may use @s any more. */
void session_deinit(struct session *s);

/**
 * session_begin() - begin a session for a coordinator
 * @o:		SESSION
 * @owner:	the coordinator's address
 * @now:	monotonic
 * @ret_number:	set on success; for session_end()
 * @ret_owner:	set on SESSION_E_BUSY: the address of the other session's coordinator
 *
 * Return: 0 or SESSION_E_BUSY.
 */
int session_begin(struct session *s, const struct order *o, const struct ip_addr *owner, nsec_t now,
    uint64_t *ret_number, struct ip_addr *ret_owner);

/** session_end() - end the session with that number; nothing happens if it has ended already. */
void session_end(struct session *s, uint64_t number);

/** session_has() - is the session with that id on? @now: monotonic */
bool session_has(struct session *s, const struct session_id *id, nsec_t now);

/** session_is_on() - is any session on? @now: monotonic */
bool session_is_on(struct session *s, nsec_t now);

/**
 * session_hear() - a ping has come
 * @id:		the session id in the ping
 * @from:	the member that sent it
 * @counts:	the ping belongs to a train and is counted
 * @now:	monotonic
 * @ret_heard:	set on true: how many counted pings have come from that member in this session
 *
 * Return: true if the ping is to be answered; false when its session is not the current one, or the
 * table is full.
 */
bool session_hear(struct session *s, const struct session_id *id, const struct ip_addr *from,
    bool counts, nsec_t now, uint32_t *ret_heard);

/**
 * session_copy_heard() - how many pings have come from each member
 * @ret_n:	set to the length of the array
 *
 * Return: gives an array, to be released with free(); NULL for no memory, or when there are none.
 */
struct session_heard *session_copy_heard(struct session *s, size_t *ret_n);

/**
 * session_put_hop() - a neighbour of an all-reduce has connected
 * @rank:	the neighbour's rank
 * @fd:		its connection; taken on success only
 *
 * Return: false when there is no room, or the session with that id is not the current one.
 */
bool session_put_hop(struct session *s, const struct session_id *id, uint32_t rank, int fd);

/**
 * session_take_hop() - wait until the neighbour of that rank has connected
 * @deadline:	monotonic
 *
 * Return: gives its connection; -1 when it did not come in time, or the session has ended.
 */
int session_take_hop(struct session *s, uint32_t rank, nsec_t deadline);
