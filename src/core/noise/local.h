/*
 * local.h - our own static identity.
 *
 * Threads: the control thread sets it; it alone runs handshakes.
 */
#pragma once

#include <stdbool.h>

#include "crypto/x25519.h"

struct noise_local {
    struct x25519_secret secret; /* clamped; all zeroes without a key */
    struct x25519_public public; /* derived; all zeroes without a key */
    bool has_key;                /* without one no handshake is made or answered */
};

#define NOISE_LOCAL_NULL                                                                           \
    {                                                                                              \
        0                                                                                          \
    }

/**
 * noise_local_set() - take on an identity
 * @secret:	copied and clamped; all zeroes means none
 *
 * Every noise_remote must then be told, with noise_remote_set_local(), and
 * every cookie_checker, with cookie_checker_set_key().
 */
void noise_local_set(struct noise_local *local, const struct x25519_secret *secret);

/** noise_local_deinit() - wipe. Idempotent. */
void noise_local_deinit(struct noise_local *local);
