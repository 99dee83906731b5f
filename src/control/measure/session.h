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
 * Members take turns. Whoever has the session keeps it while nobody else wants it. Once it has had
 * it for SESSION_TURN, however many sessions that were, it ends for the next who asks. And who was
 * refused and has asked within SESSION_WAIT comes before all that were served later than it. So no
 * member, nor several together, holds a service for longer than a turn each.
 *
 * What an agent measures by itself (SESSION_IN_BACKGROUND) keeps nobody waiting: it ends for
 * anybody else who asks, comes after all who wait, and is no turn of its member. In it nobody but a
 * program of this machine gives orders: others send here, and have nothing sent. So a hub may begin
 * one as well.
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

/** session_begin(): another session has not ended yet, or it is another one's turn. */
#define SESSION_E_BUSY 1

/** For how long one member has the service when others want it. */
#define SESSION_TURN (120 * NSEC_PER_SEC)

/** The purpose of sessions that give way to all others at once. */
#define SESSION_IN_BACKGROUND "uplink"

/** Room for session_busy_format(). */
#define SESSION_BUSY_TEXT_MAX 192

/** Who was refused counts as waiting for so long. */
#define SESSION_WAIT (15 * NSEC_PER_SEC)

/** So many members are remembered; then those that were seen longest ago are forgotten. */
#define SESSION_TURNS_MAX 64

#define SESSION_HEARD_MAX 1024
#define SESSION_HOPS_MAX  8

/** How many pings have come from one member. */
struct session_heard {
    struct ip_addr from;
    uint32_t n;
};

/** When a member had its last turn, and when it was refused. All monotonic. */
struct session_turn {
    struct ip_addr who;
    nsec_t served_at; /* its last turn ended, or goes on; 0: never */
    nsec_t asked_at;  /* it was refused, and has not been served since; 0: it was not */
    nsec_t seen_at;
};

/** Who has the service, for the words of a refusal. */
struct session_busy {
    struct ip_addr owner;
    nsec_t free_at;  /* its turn is over then at the latest, monotonic */
    bool is_waiting; /* it has none yet, but comes first */
};

struct session {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a hop has come, or the session has ended */
    /* guarded by lock: */
    bool is_on;
    struct session_id id;
    struct ip_addr owner; /* the coordinator */
    nsec_t turn_since;    /* since when it has had the service, with the sessions before */
    struct session_turn turns[SESSION_TURNS_MAX];
    size_t n_turns;
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

/** session_busy_format() - who has the service, and for how long, for whom is refused. @who: the
 * owner's name. Returns @buf. */
const char *session_busy_format(const struct session_busy *b, const char *who, nsec_t now,
    char buf[static SESSION_BUSY_TEXT_MAX]);

/** session_is_in_background() - is @o, SESSION, of the purpose SESSION_IN_BACKGROUND? */
bool session_is_in_background(const struct order *o);

/** session_init() - no session is on. */
void session_init(struct session *s);

/** session_deinit() - end the current session; no other thread may use @s any more. Once. */
void session_deinit(struct session *s);

/**
 * session_begin() - begin a session for a coordinator
 * @o:		SESSION
 * @owner:	the coordinator's address
 * @now:	monotonic
 * @ret_number:	set on success; for session_end()
 * @ret_busy:	set on SESSION_E_BUSY
 *
 * Return: 0 or SESSION_E_BUSY.
 */
int session_begin(struct session *s, const struct order *o, const struct ip_addr *owner, nsec_t now,
    uint64_t *ret_number, struct session_busy *ret_busy);

/** session_is() - is the session with that number still on? @now: monotonic */
bool session_is(struct session *s, uint64_t number, nsec_t now);

/** session_end() - end the session with that number; nothing happens if it has ended already. */
void session_end(struct session *s, uint64_t number, nsec_t now);

/** session_has() - is the session with that id on? @id: NULL: any; @now: monotonic */
bool session_has(struct session *s, const struct session_id *id, nsec_t now);

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
