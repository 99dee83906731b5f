/*
 * key_hubs.h - what this node says to hubs of keys, and what they answer: POST /v1/keys.
 *
 * Of its own key: how far it is in changing it, again and again while it does, since what a hub
 * answers says how far the others are. Of others' keys: what it acknowledges, once to each run of a
 * hub, and again each minute. Every hub is asked, since all of them have to keep a statement.
 *
 * Threads: the loop's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/hub_set.h"
#include "base/clock.h"
#include "crypto/x25519.h"

struct node;

/** What one hub is known to have. */
struct key_hub {
    struct key_hubs *all; /* pins */
    char name[NAME_MAX_LEN + 1];
    struct hub_link *link;     /* borrows: it was asked by that */
    struct hub_ask *ask;       /* in flight; NULL: none */
    nsec_t asked_at;           /* 0: never */
    nsec_t answered_at;        /* 0: never */
    nsec_t given_at;           /* when all acknowledgements were given anew; 0: never */
    uint64_t run;              /* of the hub; 0: not known */
    struct x25519_public key;  /* that it says is this node's; none: it has not said */
    struct x25519_public next; /* likewise, that this node goes on with */
    json_t *acks;              /* owns; {"NODE": "base64"}; NULL: none */
    json_t *heard;             /* owns; {"NODE": true}; NULL: it does not know who is there */
    json_t *given;             /* owns; what it has been given: {"NODE": "base64"} */
    json_t *giving;            /* owns; what @ask gives it */
    bool is_refused;           /* its last answer was that it does not take what was said */
};

struct key_hubs {
    struct key_hub items[HUB_CHOICE_MAX];
    unsigned n;
    void (*on_answer)(void *ctx); /* a hub has answered; NULL: nobody is told */
    void *ctx;                    /* of it, pinned */
    struct log_limit limit;       /* of what hubs refuse */
};

/** What is to be said. Borrowed for the call. */
struct key_hubs_say {
    const char *stage;     /* NULL: nothing of its own key */
    const char *statement; /* with @stage */
    nsec_t each;           /* it is said again after so long */
    unsigned n_waits;
    const char *waits[8]; /* NULL: no more */
    const char *why;      /* NULL: there is no other reason to wait */
    const json_t *acks;   /* {"NODE": "base64"}; all that is to be acknowledged */
};

/** key_hubs_deinit() - cancel and release. Idempotent. */
void key_hubs_deinit(struct key_hubs *kh);

/** key_hubs_on_gone() - nobody is asked by that link any more. */
void key_hubs_on_gone(struct key_hubs *kh, const struct hub_link *link);

/** key_hubs_poll() - ask those of @hubs that are to be asked now. */
void key_hubs_poll(
    struct key_hubs *kh, const struct hub_set *hubs, const struct key_hubs_say *say, nsec_t now);

/** key_hubs_all_keep() - has every hub of @hubs the statement of @next on its disk? */
bool key_hubs_all_keep(
    const struct key_hubs *kh, const struct hub_set *hubs, const struct x25519_public *next);

/** key_hubs_all_moved() - does every one say that @next is this node's key? */
bool key_hubs_all_moved(
    const struct key_hubs *kh, const struct hub_set *hubs, const struct x25519_public *next);

/** key_hubs_all_refuse() - does every one refuse the statement of @next, so that nobody has it? */
bool key_hubs_all_refuse(
    const struct key_hubs *kh, const struct hub_set *hubs, const struct x25519_public *next);

/** key_hubs_may_reach() - is that node there, as far as any hub knows, or is there a hub that has
 * not said who is for @silent? */
bool key_hubs_may_reach(const struct key_hubs *kh, const struct hub_set *hubs, const char *node,
    nsec_t silent, nsec_t now);

/** key_hubs_ack() - what hub number @i has from that node; NULL: nothing. */
const char *key_hubs_ack(const struct key_hubs *kh, unsigned i, const char *node);
