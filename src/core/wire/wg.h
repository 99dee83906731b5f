/*
 * wg.h - WireGuard's four messages and its constants.
 *
 * The structs lie over the packet (every member has alignment 1) and their
 * sizes are the messages' sizes. What the fields mean cryptographically is in
 * noise/; byte diagrams are in docs/wire/wireguard.md.
 *
 * Spec: WireGuard whitepaper 5.4.2 to 5.4.7 and 6.1.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/clock.h"

/** The first byte; the three after it are zero, so it reads as a little-endian word. */
enum wg_type {
    WG_TYPE_INITIATION = 1,
    WG_TYPE_RESPONSE = 2,
    WG_TYPE_COOKIE_REPLY = 3,
    WG_TYPE_DATA = 4,
};

#define WG_TAG_SIZE       16 /* of every AEAD in the protocol */
#define WG_KEY_SIZE       32 /* a Curve25519 point */
#define WG_TIMESTAMP_SIZE 12 /* TAI64N */
#define WG_COOKIE_SIZE    16
#define WG_COOKIE_NONCE   24 /* XChaCha20 */
#define WG_PADDING        16 /* inner packets are padded with zeroes to a multiple, 5.4.6 */

/** The two MACs that end both handshake messages (5.4.4). */
struct wg_macs {
    uint8_t mac1[16]; /*  0: keyed by the responder's public key */
    uint8_t mac2[16]; /* 16: keyed by the cookie, zeroes without one */
};

/** Type 1, initiator to responder (5.4.2). */
struct wg_initiation {
    struct le32 type;                                             /*   0 */
    struct le32 sender;                                           /*   4: initiator's index */
    uint8_t ephemeral[WG_KEY_SIZE];                               /*   8: in the clear */
    uint8_t encrypted_static[WG_KEY_SIZE + WG_TAG_SIZE];          /*  40 */
    uint8_t encrypted_timestamp[WG_TIMESTAMP_SIZE + WG_TAG_SIZE]; /*  88 */
    struct wg_macs macs;                                          /* 116 */
};

/** Type 2, responder to initiator (5.4.3). */
struct wg_response {
    struct le32 type;                     /*  0 */
    struct le32 sender;                   /*  4: responder's index */
    struct le32 receiver;                 /*  8: initiator's index */
    uint8_t ephemeral[WG_KEY_SIZE];       /* 12: in the clear */
    uint8_t encrypted_empty[WG_TAG_SIZE]; /* 44 */
    struct wg_macs macs;                  /* 60 */
};

/** Type 3, to whoever sent a handshake message while the receiver is under load (5.4.7). */
struct wg_cookie_reply {
    struct le32 type;               /*  0 */
    struct le32 receiver;           /*  4: index of the sender of that message */
    uint8_t nonce[WG_COOKIE_NONCE]; /*  8: random */
    uint8_t encrypted_cookie[WG_COOKIE_SIZE + WG_TAG_SIZE]; /* 32 */
};

/** Type 4's header; the encrypted, padded packet and its tag follow (5.4.6). */
struct wg_data {
    struct le32 type;     /* 0 */
    struct le32 receiver; /* 4: receiver's index */
    struct le64 counter;  /* 8: the nonce */
};

static_assert(sizeof(struct wg_initiation) == 148, "whitepaper 5.4.2");
static_assert(offsetof(struct wg_initiation, encrypted_static) == 40, "whitepaper 5.4.2");
static_assert(offsetof(struct wg_initiation, encrypted_timestamp) == 88, "whitepaper 5.4.2");
static_assert(offsetof(struct wg_initiation, macs) == 116, "whitepaper 5.4.2");
static_assert(sizeof(struct wg_response) == 92, "whitepaper 5.4.3");
static_assert(offsetof(struct wg_response, encrypted_empty) == 44, "whitepaper 5.4.3");
static_assert(offsetof(struct wg_response, macs) == 60, "whitepaper 5.4.3");
static_assert(sizeof(struct wg_cookie_reply) == 64, "whitepaper 5.4.7");
static_assert(offsetof(struct wg_cookie_reply, encrypted_cookie) == 32, "whitepaper 5.4.7");
static_assert(sizeof(struct wg_data) == 16, "whitepaper 5.4.6");

#define WG_DATA_OVERHEAD                                                                           \
    (sizeof(struct wg_data) + WG_TAG_SIZE) /* 32 bytes around the padded packet */
#define WG_HANDSHAKE_TOS 0x88 /* outer DSCP of handshake messages, AF41, as the kernel sends */

/* Constants of whitepaper 6.1 and, where it is silent, of the Linux kernel. */
#define WG_REKEY_AFTER_MESSAGES  (UINT64_C(1) << 60)
#define WG_REJECT_AFTER_MESSAGES (UINT64_MAX - (UINT64_C(1) << 13)) /* less the replay window */
#define WG_REKEY_AFTER_TIME      (120 * NSEC_PER_SEC)
#define WG_REJECT_AFTER_TIME     (180 * NSEC_PER_SEC)
#define WG_REKEY_ATTEMPT_TIME    (90 * NSEC_PER_SEC)
#define WG_REKEY_TIMEOUT         (5 * NSEC_PER_SEC)
#define WG_REKEY_TIMEOUT_JITTER  (333 * NSEC_PER_MSEC) /* 6.1: at most a third of a second */
#define WG_KEEPALIVE_TIMEOUT     (10 * NSEC_PER_SEC)
#define WG_COOKIE_SECRET_MAX_AGE                                                                   \
    (120 * NSEC_PER_SEC) /* 5.4.7: the secret changes every two minutes */
#define WG_COOKIE_SECRET_LATENCY                                                                   \
    (5 * NSEC_PER_SEC)               /* the initiator stops using a cookie this much earlier */
#define WG_INITIATIONS_PER_SECOND 50 /* of one peer, at most */

/**
 * wg_type_of() - what kind of message is this, by type and length
 * @p:		@len bytes as received
 *
 * Checks that the length is right for the type: exact for handshake messages,
 * at least a header and a tag for data. A caller may then read the struct.
 *
 * Return: a WG_TYPE_, or 0 when the type is unknown, or the length is wrong.
 */
static inline unsigned wg_type_of(const uint8_t *p, size_t len)
{
    struct le32 type;

    if (len < sizeof(type))
        return 0;
    memcpy(&type, p, sizeof(type));
    switch (le32_get(type)) {
    case WG_TYPE_INITIATION:
        return len == sizeof(struct wg_initiation) ? WG_TYPE_INITIATION : 0;
    case WG_TYPE_RESPONSE:
        return len == sizeof(struct wg_response) ? WG_TYPE_RESPONSE : 0;
    case WG_TYPE_COOKIE_REPLY:
        return len == sizeof(struct wg_cookie_reply) ? WG_TYPE_COOKIE_REPLY : 0;
    case WG_TYPE_DATA:
        return len >= WG_DATA_OVERHEAD ? WG_TYPE_DATA : 0;
    }
    return 0;
}

/** wg_padded() - a packet of @len bytes with its padding: up to 16, but never above @mtu. */
static inline size_t wg_padded(size_t len, size_t mtu)
{
    size_t padded = (len + WG_PADDING - 1) & ~(size_t)(WG_PADDING - 1);

    return padded > mtu && mtu >= len ? mtu : padded;
}
