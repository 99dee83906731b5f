/*
 * tls_link.h - one connection of tls_front.h: TLS on one side, plain bytes on the other.
 *
 * epoll watches its descriptors edge-triggered, so tls_link_work() goes on until
 * both directions would block, or returns TLS_LINK_E_MORE.
 *
 * Threads: the front's, once it is handed over.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"

struct ssl_ctx_st;
struct ssl_st;

/** The plaintext of one TLS record (RFC 8446 section 5.1). */
#define TLS_LINK_RECORD 16384

/** Bytes that were read from one side and are not written to the other yet. */
struct tls_link_room {
    size_t len; /* bytes */
    size_t off; /* how many of them are written */
    uint8_t buf[TLS_LINK_RECORD];
};

/** One connection. */
struct tls_link {
    struct list link;              /* in the front's */
    struct list busy;              /* in the front's */
    struct ssl_st *ssl;            /* owns */
    int net_fd;                    /* owns */
    int plain_fd;                  /* owns */
    bool has_handshake;            /* the TLS handshake is done */
    bool net_ended;                /* the other end has closed */
    bool plain_ended;              /* the plain end has closed */
    bool told_plain;               /* the plain end was told that the other end has closed */
    nsec_t ends_at;                /* when it ends even with bytes left; NSEC_NEVER at first */
    struct tls_link_room to_net;   /* from plain */
    struct tls_link_room to_plain; /* from the net */
};

/** tls_link_new() - takes both descriptors, also when it fails. NULL: no memory. */
struct tls_link *tls_link_new(struct ssl_ctx_st *ctx, int net_fd, int plain_fd);

/** tls_link_free() - out of its lists, and close both sides. NULL is fine. Always NULL. */
struct tls_link *tls_link_free(struct tls_link *l);

/* Outcomes. */
#define TLS_LINK_E_MORE  1 /* it has used up its share of this turn: call again */
#define TLS_LINK_E_ENDED 2 /* the connection is over, or has failed: free it */

/** tls_link_work() - move what can be moved. 0; TLS_LINK_E_MORE; TLS_LINK_E_ENDED. */
int tls_link_work(struct tls_link *l, nsec_t now);
