/*
 * uapi_internal.h - a request's lines, their values, and the answer; for uapi*.c and their tests.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/traffic.h"
#include "crypto/x25519.h"
#include "noise/identity.h"
#include "noise/profile.h"

struct access_builder;
struct device;
struct str;

/** uapi_get() - the answer to get=1: the device's configuration and state, without the closing
 * errno. Under the port's lock. */
void uapi_get(struct device *d, struct str *out);

/** uapi_stats() - the answer to stats=1: its port's counters, likewise. */
void uapi_stats(struct device *d, struct str *out);

/*
 * One line of the configuration protocol, as a value.
 *
 * Pure: what a line means for a device is in uapi_request.c.
 */

enum uapi_key {
    UAPI_KEY_NONE,
    /* commands */
    UAPI_KEY_GET,
    UAPI_KEY_SET,
    UAPI_KEY_STATS,
    UAPI_KEY_ACCESS_COUNTS,
    UAPI_KEY_HAND_OVER,
    /* of the device */
    UAPI_KEY_PRIVATE_KEY,
    UAPI_KEY_LISTEN_PORT,
    UAPI_KEY_FWMARK,
    UAPI_KEY_REPLACE_PEERS,
    UAPI_KEY_NEXT_PRIVATE_KEY, /* weft's own, like the next seven: docs/DATAPLANE.md */
    UAPI_KEY_INITIATE_WITH_NEXT,
    UAPI_KEY_RELAY,
    UAPI_KEY_RATE,
    UAPI_KEY_CLASS_RATE,
    UAPI_KEY_SHOW_DSCP,
    UAPI_KEY_ACCESS,
    UAPI_KEY_PUBLIC_KEY, /* from here on of that peer */
    /* of a peer */
    UAPI_KEY_REMOVE,
    UAPI_KEY_UPDATE_ONLY,
    UAPI_KEY_PRESHARED_KEY,
    UAPI_KEY_ENDPOINT,
    UAPI_KEY_KEEPALIVE,
    UAPI_KEY_REPLACE_ALLOWED_IPS,
    UAPI_KEY_ALLOWED_IP,
    UAPI_KEY_PROTOCOL_VERSION,
    UAPI_KEY_CIPHER, /* weft's own: docs/wire/aes.md */
    UAPI_KEY_MTU,    /* weft's own, like the next eight: docs/DATAPLANE.md */
    UAPI_KEY_NEXT_PUBLIC_KEY,
    UAPI_KEY_REPLACES,
    UAPI_KEY_INITIATE_WITH_CURRENT,
    UAPI_KEY_PINNED,
    UAPI_KEY_HANDSHAKE,
    UAPI_KEY_RELAYED,
    UAPI_KEY_PEER_RATE,
    UAPI_KEY_N,
};

/** A line's key and value. Holds secrets for three of the keys: wipe it. */
struct uapi_item {
    enum uapi_key key;
    union {
        struct x25519_secret private_key;
        struct x25519_public public_key;
        struct noise_psk preshared_key;
        struct endpoint endpoint;
        uint64_t number; /* within the bounds of its key; of a rate bit/s, 0: none */
        struct noise_choice cipher;
        enum pin pin;
        bool is_on;       /* of relaying, of showing the DSCP, or of which key initiates */
        const char *text; /* borrows, from the line: of the network's rules */
        struct {
            enum traffic_class class;
            uint64_t rate; /* bit/s; 0: none */
        } class_rate;
        struct {
            struct ip_prefix prefix;
            bool is_removal; /* "-10.0.0.0/8": take it away */
        } allowed_ip;
    };
};

/**
 * uapi_parse() - "key=value"
 * @line:	without its newline, with a terminating zero; at most UAPI_LINE_MAX bytes
 *
 * Return: 0; -EINVAL for an unknown key or a value that it cannot have; -EPROTO for a protocol
 * version that is not 1.
 */
int uapi_parse(struct uapi_item *ret, const char *line);

/*
 * A request in progress: lines in, an answer out.
 *
 * One per connection, and one per uapi_handle() call. Every line takes effect
 * as it comes. All calls are under the port's lock.
 */

struct uapi_request {
    struct device *device;         /* pins */
    enum uapi_key command;         /* UAPI_KEY_NONE between requests */
    int error;                     /* the first failure, negative errno; later lines are ignored */
    bool in_peer;                  /* past the first public_key */
    bool is_new_peer;              /* it was made by this request */
    struct x25519_public public;   /* of the present one, valid while in_peer */
    struct x25519_public named;    /* by which it was named: that, or its next key */
    struct access_builder *access; /* owns; the network's rules, as far as they are said; or NULL */
};

/**
 * uapi_request_line() - the next line of a request
 * @line:	without its newline; an empty one ends the request
 * @out:	where the answer is added, once the request has ended
 */
void uapi_request_line(struct uapi_request *req, const char *line, struct str *out);

/** uapi_request_break() - a line was too long: the request fails. */
void uapi_request_break(struct uapi_request *req);

/** uapi_request_deinit() - release what one that has not ended holds. Idempotent. */
void uapi_request_deinit(struct uapi_request *req);
