/*
 * cookie.h - the MACs of handshake messages, and cookie replies under load.
 *
 * mac1 shows that a message was made for us; checking it costs one hash, so a
 * stranger's garbage ends there. Under load a message must also carry mac2,
 * keyed by a cookie that we sent to its source address: that proves the
 * address, which then can be rate-limited (rate.h). The cookie is a MAC of
 * the address under a secret that changes every two minutes, so the responder
 * keeps nothing per sender.
 *
 * The checker is one per identity, the maker one per peer.
 *
 * Spec: whitepaper 5.3, 5.4.4, 5.4.7.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "crypto/aead.h"
#include "crypto/hash.h"
#include "crypto/x25519.h"
#include "wire/wg.h"

/** The responder's side. Wiped after use. */
struct cookie_checker {
    /* Set by cookie_checker_set_key(), which the owner keeps apart from readers. */
    struct blake2s_digest mac1_key; /* HASH(label-mac1 || our public key) */
    struct aead_key cookie_key;     /* HASH(label-cookie || our public key) */

    /* Control thread writes; set by cookie_checker_refresh(), kept apart from readers likewise. */
    struct blake2s_digest secret; /* what cookies are made with */
    nsec_t secret_birth;          /* when it was drawn */
    bool has_secret;              /* false: the next use draws one */
};

/** The initiator's side. All zeroes: no cookie yet. Wiped after use. */
struct cookie_maker {
    uint8_t cookie[WG_COOKIE_SIZE]; /* the responder's last, secret; valid while has_cookie */
    uint8_t last_mac1[16];          /* of the message sent last: authenticates a cookie reply */
    nsec_t cookie_birth;            /* when it came */
    bool has_cookie;
    bool has_last_mac1; /* a message was sent, and no cookie came for it yet */
};

/** cookie_checker_set_key() - @checker, zeroes to begin with, is for the identity @public from now
 * on.
 */
void cookie_checker_set_key(struct cookie_checker *checker, const struct x25519_public *public);

/** cookie_checker_share() - cookies that @from has given are good for @checker, too: both are of
 * one device, which answers under two keys. After each cookie_checker_refresh() of @from. */
void cookie_checker_share(struct cookie_checker *checker, const struct cookie_checker *from);

/** cookie_checker_is_stale() - the secret is older than two minutes, or there is none yet. */
bool cookie_checker_is_stale(const struct cookie_checker *checker, nsec_t now);

/** cookie_checker_refresh() - draw a new secret; cookies under the old one are void. */
void cookie_checker_refresh(struct cookie_checker *checker, nsec_t now, const struct rng *rng);

/**
 * cookie_check_mac1() - was this handshake message made for us?
 * @msg:	@len bytes: an initiation or a response, as wg_type_of() says
 *
 * Threads: any that keeps cookie_checker_set_key() away.
 */
bool cookie_check_mac1(const struct cookie_checker *checker, const void *msg, size_t len);

/**
 * cookie_check_mac2() - does it carry the cookie that we would send to @src?
 * @msg:	@len bytes, mac1 verified
 *
 * False also when the secret has grown too old.
 *
 * Threads: any that keeps cookie_checker_refresh() away.
 */
bool cookie_check_mac2(const struct cookie_checker *checker, const void *msg, size_t len,
    const struct endpoint *src, nsec_t now);

/**
 * cookie_create_reply() - answer a handshake message with a cookie instead
 * @msg:	@len bytes, mac1 verified; its sender index becomes the receiver of the reply
 * @src:	where it came from, and where the reply goes
 * @ret:	64 bytes, less than either message: nothing is amplified
 *
 * Threads: control thread; draws a new secret when the old one is stale, so where other threads
 * check mac2, call cookie_checker_refresh() in time, with them kept out.
 *
 * Return: false only when there is no memory.
 */
bool cookie_create_reply(struct cookie_checker *checker, const void *msg, size_t len,
    const struct endpoint *src, nsec_t now, const struct rng *rng, struct wg_cookie_reply *ret);

/**
 * cookie_add_macs() - complete a handshake message
 * @to:		the receiver's public key
 * @msg:	@len bytes: an initiation or a response, all set but the macs
 *
 * mac2 is zeroes unless a cookie younger than two minutes less five seconds is
 * at hand. Remembers mac1 for the reply that may come.
 *
 * Threads: control thread.
 */
void cookie_add_macs(
    struct cookie_maker *maker, const struct x25519_public *to, void *msg, size_t len, nsec_t now);

/**
 * cookie_consume_reply() - take in a cookie reply
 * @from:	the public key of the peer whose handshake or keypair has the receiver index
 *
 * Sends nothing: the cookie is used when the initiation is repeated (6.6).
 *
 * Threads: control thread.
 *
 * Return: false when nothing was sent that it could answer, or it does not decrypt.
 */
bool cookie_consume_reply(struct cookie_maker *maker, const struct x25519_public *from,
    const struct wg_cookie_reply *msg, nsec_t now);
