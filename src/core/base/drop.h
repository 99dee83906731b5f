/*
 * drop.h - every way in which a packet can end without being delivered.
 *
 * One X-macro: the enum, the counter's name and the table in docs/DROPS.md are
 * made from it. Packet code calls drop_count() and goes on.
 *
 * Threads: a `struct drops` belongs to one thread, which alone writes it;
 * others read it with drops_add() for a sum (relaxed: a count may lag).
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* clang-format off */
#define DROP_REASONS(X) \
    /* from the TUN side */ \
    X(NOT_IP, "not-ip", "the inner packet is neither IPv4 nor IPv6") \
    X(INNER_LENGTH, "inner-length", "the inner IP header's length does not fit the packet") \
    X(NO_ROUTE, "no-route", "no peer's allowed IPs hold the destination") \
    X(NO_ENDPOINT, "no-endpoint", "the peer has no endpoint yet") \
    X(NO_KEYPAIR, "no-keypair", "no session, and the peer's staging queue is full") \
    X(NONCE_EXHAUSTED, "nonce-exhausted", "the session's message limit is reached") \
    X(TOO_BIG, "too-big", "the packet does not fit the path") \
    X(OFFLOAD_INVALID, "offload-invalid", "the segmentation metadata contradicts the packet") \
    /* from the UDP side */ \
    X(TRUNCATED, "truncated", "the datagram does not have the length that its type has") \
    X(UNKNOWN_TYPE, "unknown-type", "the first bytes name no message that we take") \
    X(MAC1_INVALID, "mac1-invalid", "the handshake message was not made for our key") \
    X(SEARCH_LIMITED, "search-limited", \
        "too many handshake messages were for nobody here, and none of this sender for somebody") \
    X(RATE_LIMITED, "rate-limited", "too many handshakes from this source") \
    X(UNDER_LOAD, "under-load", "under load, and the sender did not prove its address") \
    X(QUEUE_FULL, "queue-full", "the handshake queue is full") \
    X(HANDSHAKE_INVALID, "handshake-invalid", "the handshake does not decrypt, or is a replay") \
    X(CIPHER_MISMATCH, "cipher-mismatch", \
        "the initiation is for a cipher that its sender may not use") \
    X(COOKIE_INVALID, "cookie-invalid", "the cookie reply does not decrypt, or was not asked for") \
    X(UNKNOWN_PEER, "unknown-peer", "the initiator's key is not configured") \
    X(UNKNOWN_INDEX, "unknown-index", "no session has this receiver index") \
    X(SESSION_EXPIRED, "session-expired", "the session is older than its keys may live") \
    X(TAG_INVALID, "tag-invalid", "the authentication tag is wrong") \
    X(REPLAYED, "replayed", "the counter was seen before or is too old") \
    X(SOURCE_NOT_ALLOWED, "source-not-allowed", \
        "the inner source is not in the peer's allowed IPs") \
    X(NOT_SERVED, "not-served", \
        "the inner packet is for an address or port that is not served here") \
    X(PATH_QUOTA, "path-quota", "more path frames than are handed on in a second") \
    X(PATH_QUEUE_FULL, "path-queue-full", "whoever finds paths does not take its frames") \
    /* either side */ \
    X(TUN_WRITE, "tun-write", "the kernel refused the inner packet") \
    X(UDP_SEND, "udp-send", "the kernel refused the datagram") \
    X(NO_BUFFER, "no-buffer", "no memory for the packet") \
    X(REFUSED, "refused", "no rule of the network lets the inner packet pass") \
    /* the relay */ \
    X(RELAY_UNKNOWN_SENDER, "relay-unknown-sender", "no enrolled node speaks from this address") \
    X(RELAY_NO_MATCH, "relay-no-match", \
        "the handshake message is for no peer that the sender may reach") \
    X(RELAY_NO_LEASE, "relay-no-lease", "no handshake of this sender led to this receiver index") \
    X(RELAY_NO_ADDRESS, "relay-no-address", "the receiving node's address is not known yet") \
    X(RELAY_RATE_LIMITED, "relay-rate-limited", "too many handshakes from this node") \
    X(RELAY_TABLE_FULL, "relay-table-full", "the sender already holds as many leases as it may") \
    X(RELAY_INDEX_CLASH, "relay-index-clash", "another session has this receiver index already") \
    /* STUN */ \
    X(STUN_INVALID, "stun-invalid", "the STUN request contradicts itself") \
    X(STUN_RATE_LIMITED, "stun-rate-limited", "too many requests shorter than their answers")

enum drop_reason {
#define X(id, name, help) DROP_##id,
    DROP_REASONS(X)
#undef X
    DROP_REASON_N,
};
/* clang-format on */

/** drop_reason_names - the counter's name, "no-route". */
extern const char *const drop_reason_names[];

/** Counters of one thread. */
struct drops {
    _Atomic uint64_t n[DROP_REASON_N]; /* written by the owner only, hence no read-modify-write */
};

/** drop_count() - @n_packets ended here, because of @reason. Owner thread only. */
static inline void drop_count(struct drops *d, enum drop_reason reason, uint64_t n_packets)
{
    uint64_t v = atomic_load_explicit(&d->n[reason], memory_order_relaxed);

    atomic_store_explicit(&d->n[reason], v + n_packets, memory_order_relaxed);
}

/** drops_add() - add the counters of @from, another thread's, to the plain array @sum. */
void drops_add(const struct drops *from, uint64_t sum[static DROP_REASON_N]);
