/*
 * profile.h - the constants that a handshake is bound to.
 *
 * A profile's construction and identifier are hashed into every handshake
 * before anything else, so two sides with different profiles never agree on a
 * key, and neither can be talked into the other's.
 *
 * Spec: whitepaper 5.4 (CONSTRUCTION, IDENTIFIER); docs/wire/aes.md.
 */
#pragma once

#include "crypto/aead.h"
#include "crypto/blake2s.h"

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
