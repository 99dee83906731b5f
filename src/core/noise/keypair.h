/*
 * keypair.h - a session's keys, and which messages under them were seen.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/containers.h"
#include "base/traffic.h"
#include "crypto/aead.h"

/*
 * The window that refuses repeated data messages, and what it tells of those that are missing.
 *
 * A ring of bit blocks: advancing clears whole blocks and never shifts. One
 * block is always being entered, so of REPLAY_BITS the last REPLAY_WINDOW
 * counters are remembered, as many as the Linux kernel's.
 *
 * A sender uses each counter once, from 0 on. So the counters below the greatest one that were not
 * seen are of messages that are lost, or still on their way. What is seen is counted where a block
 * leaves the ring, once for 64 counters; a message that comes in order costs nothing.
 *
 * Spec: whitepaper 5.4.6; algorithm of RFC 6479.
 */

#define REPLAY_BITS   8192               /* 1 KiB */
#define REPLAY_WINDOW (REPLAY_BITS - 64) /* counters that may arrive late */

/** All zeroes: nothing was seen. */
struct replay {
    uint64_t next;                     /* one more than the greatest counter seen; 0 at first */
    uint64_t n_left;                   /* seen, of those whose blocks have left the ring */
    uint64_t n_reordered;              /* seen behind a greater one */
    uint64_t n_repeated;               /* refused: seen before */
    uint64_t blocks[REPLAY_BITS / 64]; /* bit c % 64 of block (c / 64) % n: counter c was seen */
};

/**
 * replay_check() - has this counter been seen, and is it still in the window?
 * @w:		window; borrowed; one per receiving keypair
 * @counter:	from the data header, host order, already authenticated
 *
 * Marks @counter as seen. Call only after the tag verified, or a stranger
 * can move the window. No allocation, no clock.
 *
 * Threads: whoever holds the keypair's replay lock; see keypair_check_counters().
 *
 * Return: true if fresh; false if repeated, too old, or at the message limit
 * WG_REJECT_AFTER_MESSAGES.
 */
bool replay_check(struct replay *w, uint64_t counter);

/**
 * replay_arrivals() - what has come, and what of the counters below @below has not
 * @below:	at most @w->next: what is above may still come. Counters that have left the window
 *		count whatever @below says, since they will not
 *
 * Threads: as replay_check().
 */
struct arrivals replay_arrivals(const struct replay *w, uint64_t below);

/*
 * The two keys that a handshake gives, and a peer's three slots for them.
 *
 * Theory of operation. A keypair is born with one reference, which a slot
 * holds. The control thread puts it there (keypairs_add) and takes it away
 * (keypairs_add of a later one, keypairs_clear). Workers take a reference for
 * the length of a batch, so the control thread may rotate at any moment; the
 * last reference wipes and frees. References are counted per batch, not per
 * packet.
 *
 *   current   what we send with; received with too
 *   previous  the one before: only received with, for packets still under way
 *   next      a responder's new keypair: only received with, until the first
 *             packet under it proves that the initiator has it (5.4.5, 6.2)
 *
 * A next excludes a previous, so confirming the next one never evicts.
 *
 * Threads: each field says. "Any" is any worker with a reference.
 *
 * Spec: whitepaper 5.4.5, 5.4.6, 6.1, 6.2.
 */

/**
 * Messages under one key of AES-256-GCM, where ChaCha20-Poly1305 has WG_REKEY_AFTER_MESSAGES and
 * WG_REJECT_AFTER_MESSAGES. Its blocks are of 128 bits, so after 2^32 messages of 1,420 bytes
 * (2^38.5 blocks) they tell from random ones with an advantage of 2^-52, and after 2^60 surely.
 * docs/wire/aes.md.
 */
#define KEYPAIR_AES_REKEY_AFTER_MESSAGES  (UINT64_C(1) << 31)
#define KEYPAIR_AES_REJECT_AFTER_MESSAGES (UINT64_C(1) << 32)

struct keypair {
    /* Immutable once its creator has set it. */
    const struct aead_algorithm *alg; /* pins: a table entry */
    void *owner;                      /* pins: the peer that the creator named */
    struct aead_key seal_key;         /* wiped with the keypair */
    struct aead_key open_key;         /* wiped with the keypair */
    uint32_t local_index;             /* what the other side puts into its headers */
    uint32_t remote_index;            /* what we put into ours */
    nsec_t birth;                     /* monotonic: when the handshake gave it */
    bool is_initiator;                /* we began that handshake */

    /* Control thread. */
    struct htab_link link;  /* for the creator's table of local indices; free for its use */
    uint64_t awaited_below; /* counters below that are awaited no more; see keypairs_arrivals() */
    uint64_t marked;        /* replay.next, as it was at @marked_at */
    nsec_t marked_at;       /* monotonic */

    /* Any thread, atomically. */
    _Atomic uint32_t refs;         /* see the theory of operation */
    _Atomic uint64_t send_counter; /* the next nonce to send with */

    /* Guarded by replay_lock; taken once a batch, nothing is locked inside. */
    pthread_mutex_t replay_lock;
    struct replay replay;
};

/**
 * keypair_new() - gives it, with one reference; the creator sets what is immutable, and then hands
 * it on. 0 or -ENOMEM.
 */
int keypair_new(struct keypair **ret);

/**
 * keypair_unref() - one reference less; the last wipes and frees
 *
 * Call aead_lane_clear() on the thread's lane first. The creator's index table must not
 * hold the keypair any more when the last reference goes.
 *
 * Threads: any.
 */
struct keypair *keypair_unref(struct keypair *kp);

/**
 * keypair_can_send() - is it young enough, and are there nonces left?
 *
 * False calls for a new handshake; packets wait for it. (6.1: Reject-After-Time,
 * Reject-After-Messages.) Threads: any.
 */
bool keypair_can_send(const struct keypair *kp, nsec_t now);

/** keypair_can_receive() - is it younger than Reject-After-Time? Threads: any. */
bool keypair_can_receive(const struct keypair *kp, nsec_t now);

/**
 * keypair_wants_rekey_after_send() - after sending data: is it time for a new handshake?
 *
 * Past the cipher's Rekey-After-Messages, or, when we are the initiator, older than
 * Rekey-After-Time (6.2). Then call timers_on_rekey_wanted(). Threads: any.
 */
bool keypair_wants_rekey_after_send(const struct keypair *kp, nsec_t now);

/**
 * keypair_wants_rekey_after_receive() - after receiving: will we soon be unable to answer?
 *
 * The initiator only: older than Reject-After-Time - Keepalive-Timeout -
 * Rekey-Timeout (6.2). Then call timers_on_last_minute(). Threads: any.
 */
bool keypair_wants_rekey_after_receive(const struct keypair *kp, nsec_t now);

/**
 * keypair_take_counters() - reserve @n consecutive nonces for one batch
 *
 * All or none. Threads: any; order on the wire is the caller's.
 *
 * Return: false when that would reach the cipher's Reject-After-Messages.
 */
bool keypair_take_counters(struct keypair *kp, uint32_t n, uint64_t *ret_first);

/**
 * keypair_seal() - encrypt one data message in place
 * @lane:	the calling thread's; aead_lane_clear() before @kp is let go
 * @counter:	from keypair_take_counters(), used once
 * @msg:	sizeof(struct wg_data) bytes of room, @len bytes of padded inner packet, 16 bytes of
 * room
 *
 * Writes the header and the tag: the message is @len + WG_DATA_OVERHEAD bytes.
 *
 * Threads: any.
 *
 * Return: false only when there is no memory.
 */
bool keypair_seal(
    const struct keypair *kp, struct aead_lane *lane, uint64_t counter, uint8_t *msg, size_t len);

/**
 * keypair_open() - verify and decrypt one data message in place
 * @msg:	@len bytes, wg_type_of() says WG_TYPE_DATA and the receiver index is this keypair's;
 *		the inner packet, @len - WG_DATA_OVERHEAD bytes, is left behind the header
 * @ret_counter: from the header, for keypair_check_counters(); set on success only
 *
 * Does not look at the replay window. Threads: any.
 *
 * Return: false when the counter is past the limit or the tag is wrong; @msg is then garbage.
 */
bool keypair_open(const struct keypair *kp, struct aead_lane *lane, uint8_t *msg, size_t len,
    uint64_t *ret_counter);

/**
 * keypair_check_counters() - run a batch of authenticated counters through the replay window
 * @counters:	@n of them, all from successful keypair_open(), in the order of arrival
 * @ret_fresh:	@n verdicts: false means a replay, which must be dropped
 *
 * Threads: any; takes replay_lock once.
 */
void keypair_check_counters(
    struct keypair *kp, const uint64_t *counters, size_t n, bool *ret_fresh);

/**
 * A peer's slots.
 *
 * Lock order: a leaf; nothing is locked while it is held.
 */
struct keypairs {
    pthread_mutex_t lock;     /* guards the three pointers; held for a few instructions */
    struct keypair *current;  /* owns a reference; NULL: none */
    struct keypair *previous; /* owns a reference; NULL: none */
    struct keypair *next;     /* owns a reference; NULL: none */
};

/** The keypairs that left their slots, each with the slot's reference: NULL-filled up to the end.
 */
struct keypairs_evicted {
    struct keypair *kp[3];
};

/**
 * A message that has not come this long after one with a greater counter counts as lost. Should it
 * come after all, it counts as received, and as lost no more.
 */
#define KEYPAIR_AWAITED_FOR NSEC_PER_SEC

/**
 * keypairs_arrivals() - what has arrived under all keypairs of @ks
 * @now:	monotonic
 *
 * What was lost before the call before the last one is in it, if these are KEYPAIR_AWAITED_FOR
 * apart. Without such calls it is what has left the replay window. What was lost behind the last
 * message that came is never known.
 *
 * Threads: the control thread, which alone takes keypairs out of their slots.
 */
struct arrivals keypairs_arrivals(struct keypairs *ks, nsec_t now);

/** keypairs_evicted_arrivals() - what has arrived under keypairs that have left their slots;
 * nothing of it is awaited any more. Threads: the control thread. */
struct arrivals keypairs_evicted_arrivals(const struct keypairs_evicted *evicted);

/** keypairs_init() - all slots empty. */
void keypairs_init(struct keypairs *ks);

/** keypairs_deinit() - all slots must be empty: keypairs_clear() first. Once. */
void keypairs_deinit(struct keypairs *ks);

/** keypairs_acquire_current() - a reference to what to send with, NULL if none. Threads: any. */
struct keypair *keypairs_acquire_current(struct keypairs *ks);

/**
 * keypairs_add() - put a new keypair into its slot
 * @kp:		takes its reference; ours as initiator becomes current, as responder next
 * @ret:	gives what it displaced: take each out of the index table, then keypair_unref()
 *
 * Threads: control thread.
 */
void keypairs_add(struct keypairs *ks, struct keypair *kp, struct keypairs_evicted *ret);

/**
 * keypairs_confirm() - an authenticated, fresh packet arrived under @kp
 *
 * @ret_renews:	gives, with true, whether there was a session before
 *
 * If @kp is next it becomes current. Cheap when it is not: call once per batch
 * and keypair.
 *
 * Threads: any.
 *
 * Return: true if that happened: then timers_on_session_confirmed(), and staged packets can go.
 */
bool keypairs_confirm(struct keypairs *ks, const struct keypair *kp, bool *ret_renews);

/** keypairs_clear() - empty all slots; gives what was there, as keypairs_add(). Control thread. */
void keypairs_clear(struct keypairs *ks, struct keypairs_evicted *ret);
