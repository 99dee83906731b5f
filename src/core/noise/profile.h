/*
 * profile.h - which cipher data travels in, and the constants that bind a handshake to it.
 *
 * A profile's construction and identifier are hashed into every handshake before anything else, so
 * two sides with different profiles never agree on a key, and neither can be talked into the
 * other's.
 *
 * A choice is what one peer's data may travel in. We initiate with the wanted cipher's profile. To
 * an initiation of the peer's we answer if it was made under that profile, or under any other where
 * the choice leaves it open: so two sides can be told of a change one after the other without a
 * moment in which neither can reach the other.
 *
 * As text a choice is "aes256gcm" (that and nothing else), or "aes256gcm,chacha20poly1305" (the
 * first one wanted, and all of them taken).
 *
 * Spec: whitepaper 5.4 (CONSTRUCTION, IDENTIFIER); docs/wire/aes.md.
 */
#pragma once

#include <stdbool.h>

#include "crypto/aead.h"
#include "crypto/hash.h"

struct err;

struct noise_profile {
    const char *name;           /* for people: "wireguard" */
    const char *construction;   /* the Noise protocol's name; hashed into the chaining key */
    const char *identifier;     /* the prologue; hashed into the hash */
    enum aead_cipher transport; /* of type 4 messages; handshakes are always ChaCha20-Poly1305 */
};

/** What every WireGuard speaks. */
extern const struct noise_profile noise_profile_wireguard;

/** The same with data in AES-256-GCM, between two weft nodes: docs/wire/aes.md. */
extern const struct noise_profile noise_profile_aes;

#define NOISE_PROFILE_N AEAD_CIPHER_N

/** All of them, by transport cipher. */
extern const struct noise_profile *const noise_profiles[NOISE_PROFILE_N];

/** noise_profile_start() - the chaining key and hash that a handshake begins with. */
void noise_profile_start(const struct noise_profile *profile, struct blake2s_digest *ret_ck,
    struct blake2s_digest *ret_h);

/* ---- choices ---- */

struct noise_choice {
    enum aead_cipher wanted; /* what we initiate with */
    bool takes_any;          /* we answer to any cipher that this build knows */
};

/** WireGuard's own cipher and nothing else: what stock peers get. */
#define NOISE_CHOICE_NULL {0}

/** Longest text, with its zero. */
#define NOISE_CHOICE_TEXT_MAX 40

static inline bool noise_choice_equal(struct noise_choice a, struct noise_choice b)
{
    return a.wanted == b.wanted && a.takes_any == b.takes_any;
}

/** noise_choice_is_null() - is it what every WireGuard does? Then nobody need be told. */
static inline bool noise_choice_is_null(struct noise_choice c)
{
    return c.wanted == AEAD_CIPHER_CHACHA20POLY1305 && !c.takes_any;
}

/** noise_choice_parse() - 0, or -EINVAL with words. */
int noise_choice_parse(struct noise_choice *ret, const char *text, struct err *e);

/** noise_choice_format() - the text that parses to it. Returns @buf. */
const char *noise_choice_format(struct noise_choice c, char buf[static NOISE_CHOICE_TEXT_MAX]);

/*
 * What moves a peer's endpoint, beside its configuration.
 *
 * A peer's endpoint follows its authentic packets in any WireGuard. Where
 * somebody finds paths that would make endpoints flap while both ends change
 * from one to another; so it is he who says what they follow.
 */

enum pin {
    PIN_NONE,    /* every authentic packet, as in any WireGuard */
    PIN_FIXED,   /* nothing */
    PIN_SESSION, /* a new session: it goes the way that its handshake came */
    PIN_N,
};

/** pin_names - "false", "true", "session": the configuration protocol's words. */
extern const char *const pin_names[];

/** pin_parse() - false when @text is none of them; @ret is then untouched. */
bool pin_parse(enum pin *ret, const char *text);
