/* session.c - see session.h. */
#include "measure/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void session_init(struct session *s)
{
    pthread_condattr_t attr;

    *s = (struct session){0};
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
}

/* Ends the current session. Call with the lock held. */
static void clear_session(struct session *s)
{
    for (size_t i = 0; i < s->n_hops; i++)
        (void)close(s->hops[i].fd);
    s->n_hops = 0;
    s->n_heard = 0;
    s->is_on = false;
    (void)pthread_cond_broadcast(&s->changed);
}

void session_deinit(struct session *s)
{
    clear_session(s);
    (void)pthread_mutex_destroy(&s->lock);
    (void)pthread_cond_destroy(&s->changed);
}

/* ---- turns --------------------------------------------------------------------------------- */

/* A member's entry; in a full table that of whom was seen longest ago. Call with the lock held. */
static struct session_turn *turn_of(struct session *s, const struct ip_addr *who, nsec_t now)
{
    struct session_turn *oldest = &s->turns[0];

    for (size_t i = 0; i < s->n_turns; i++) {
        struct session_turn *t = &s->turns[i];

        if (ip_addr_equal(&t->who, who)) {
            t->seen_at = now;
            return t;
        }
        if (t->seen_at < oldest->seen_at)
            oldest = t;
    }
    if (s->n_turns < SESSION_TURNS_MAX)
        oldest = &s->turns[s->n_turns++];
    *oldest = (struct session_turn){.who = *who, .seen_at = now};
    return oldest;
}

static bool is_in_background(const char purpose[static sizeof((struct order){0}.purpose)])
{
    return strncmp(purpose, SESSION_IN_BACKGROUND, sizeof((struct order){0}.purpose)) == 0;
}

bool session_is_in_background(const struct order *o)
{
    return is_in_background(o->purpose);
}

const char *session_busy_format(const struct session_busy *b, const char *who, nsec_t now,
    char buf[static SESSION_BUSY_TEXT_MAX])
{
    long long left = (long long)(nsec_max(b->free_at - now, 0) / NSEC_PER_SEC + 1);

    if (b->is_waiting)
        (void)snprintf(buf, SESSION_BUSY_TEXT_MAX,
            "%s has asked before and is next; try again, in %lld s at the latest", who, left);
    else
        (void)snprintf(buf, SESSION_BUSY_TEXT_MAX,
            "it measures for %s right now, for %lld s more at most; try again", who, left);
    return buf;
}

/* May @mine have the service now, for @o? If not, @ret says who has it, or is to have it. */
static bool is_its_turn(const struct session *s, const struct session_turn *mine,
    const struct order *o, nsec_t now, struct session_busy *ret)
{
    bool is_last = is_in_background(o->purpose);
    const struct session_turn *waiting;
    const struct session_turn *first;

    if (s->is_on && now < s->ends_at && (is_last || !is_in_background(s->purpose))) {
        nsec_t over_at = nsec_min(s->turn_since + SESSION_TURN, s->ends_at);

        *ret = (struct session_busy){.owner = s->owner, .free_at = over_at};
        if (now < over_at || ip_addr_equal(&s->owner, &mine->who))
            return false;
    }
    /* Who waits, and was served before @mine or never? The one that was served longest ago. */
    first = mine;
    for (size_t i = 0; i < s->n_turns; i++) {
        const struct session_turn *t = &s->turns[i];

        if (t != mine && t->asked_at != 0 && now - t->asked_at < SESSION_WAIT &&
            (t->served_at < first->served_at || (is_last && first == mine)))
            first = t;
    }
    waiting = first == mine ? NULL : first;
    if (waiting)
        *ret = (struct session_busy){
            .owner = waiting->who, .free_at = waiting->asked_at + SESSION_WAIT, .is_waiting = true};
    return !waiting;
}

/* The current session, if there is one, ends now. Call with the lock held. */
static void leave_turn(struct session *s, nsec_t now)
{
    if (s->is_on && !is_in_background(s->purpose))
        turn_of(s, &s->owner, now)->served_at = now;
}

int session_begin(struct session *s, const struct order *o, const struct ip_addr *owner, nsec_t now,
    uint64_t *ret_number, struct session_busy *ret_busy)
{
    bool is_last = is_in_background(o->purpose);
    struct session_turn *mine;
    bool goes_on;
    int r = 0;

    (void)pthread_mutex_lock(&s->lock);
    mine = turn_of(s, owner, now);
    if (!is_its_turn(s, mine, o, now, ret_busy)) {
        if (!is_last)
            mine->asked_at = now;
        r = SESSION_E_BUSY;
    } else {
        /* Sessions of one member that follow each other closely are one turn. */
        goes_on = ip_addr_equal(&s->owner, owner) && mine->served_at != 0 &&
                  now - mine->served_at < SESSION_WAIT;
        leave_turn(s, now);
        clear_session(s);
        if (!goes_on)
            s->turn_since = now;
        if (!is_last) {
            mine->served_at = now;
            mine->asked_at = 0;
        }
        s->is_on = true;
        s->id = o->id;
        s->owner = *owner;
        memcpy(s->purpose, o->purpose, sizeof(s->purpose));
        s->ends_at = now + (nsec_t)o->seconds * NSEC_PER_SEC;
        *ret_number = ++s->number;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return r;
}

bool session_is(struct session *s, uint64_t number, nsec_t now)
{
    bool yes;

    (void)pthread_mutex_lock(&s->lock);
    yes = s->is_on && s->number == number && now < s->ends_at;
    (void)pthread_mutex_unlock(&s->lock);
    return yes;
}

void session_end(struct session *s, uint64_t number, nsec_t now)
{
    (void)pthread_mutex_lock(&s->lock);
    if (s->is_on && s->number == number) {
        leave_turn(s, now);
        clear_session(s);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

/* Call with the lock held. */
static bool is_session(const struct session *s, const struct session_id *id, nsec_t now)
{
    return s->is_on && now < s->ends_at && (!id || session_id_equal(&s->id, id));
}

bool session_has(struct session *s, const struct session_id *id, nsec_t now)
{
    bool yes;

    (void)pthread_mutex_lock(&s->lock);
    yes = is_session(s, id, now);
    (void)pthread_mutex_unlock(&s->lock);
    return yes;
}

/* Finds or makes the entry of a member; NULL when the table is full. Call with the lock held. The
 * search is linear, which is fast enough: there are at most 1,024 members, and each pings rarely.
 */
static struct session_heard *find_heard(struct session *s, const struct ip_addr *from)
{
    for (size_t i = 0; i < s->n_heard; i++)
        if (ip_addr_equal(&s->heard[i].from, from))
            return &s->heard[i];
    if (s->n_heard == SESSION_HEARD_MAX)
        return NULL;
    s->heard[s->n_heard] = (struct session_heard){.from = *from};
    return &s->heard[s->n_heard++];
}

bool session_hear(struct session *s, const struct session_id *id, const struct ip_addr *from,
    bool counts, nsec_t now, uint32_t *ret_heard)
{
    struct session_heard *heard = NULL;

    (void)pthread_mutex_lock(&s->lock);
    if (is_session(s, id, now))
        heard = find_heard(s, from);
    if (heard) {
        heard->n += counts;
        *ret_heard = heard->n;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return heard != NULL;
}

struct session_heard *session_copy_heard(struct session *s, size_t *ret_n)
{
    struct session_heard *copy = NULL;

    (void)pthread_mutex_lock(&s->lock);
    *ret_n = 0;
    if (s->n_heard > 0)
        copy = malloc(s->n_heard * sizeof(*copy));
    if (copy) {
        memcpy(copy, s->heard, s->n_heard * sizeof(*copy));
        *ret_n = s->n_heard;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return copy;
}

bool session_put_hop(struct session *s, const struct session_id *id, uint32_t rank, int fd)
{
    bool taken = false;

    (void)pthread_mutex_lock(&s->lock);
    if (s->is_on && session_id_equal(&s->id, id) && s->n_hops < SESSION_HOPS_MAX) {
        s->hops[s->n_hops].fd = fd;
        s->hops[s->n_hops].rank = rank;
        s->n_hops++;
        taken = true;
        (void)pthread_cond_broadcast(&s->changed);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return taken;
}

/* Gives the neighbour's connection; -1: it has not connected. Call with the lock held. */
static int remove_hop(struct session *s, uint32_t rank)
{
    for (size_t i = 0; i < s->n_hops; i++) {
        int fd = s->hops[i].fd;

        if (s->hops[i].rank != rank)
            continue;
        s->hops[i] = s->hops[--s->n_hops];
        return fd;
    }
    return -1;
}

int session_take_hop(struct session *s, uint32_t rank, nsec_t deadline)
{
    struct timespec until = {.tv_sec = deadline / NSEC_PER_SEC, .tv_nsec = deadline % NSEC_PER_SEC};
    int fd;

    (void)pthread_mutex_lock(&s->lock);
    fd = remove_hop(s, rank);
    while (fd < 0 && s->is_on && pthread_cond_timedwait(&s->changed, &s->lock, &until) == 0)
        fd = remove_hop(s, rank);
    (void)pthread_mutex_unlock(&s->lock);
    return fd;
}
