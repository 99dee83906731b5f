/* x25519_internal.h - who computes X25519; for x25519*.c and their test only. */
#pragma once

#include "crypto/x25519.h"

/** The curve's two operations from one library. */
struct x25519_backend {
    const char *name;           /* "openssl", "boringssl" */
    bool (*is_available)(void); /* is the library there? Any thread. */
    /* As x25519_derive_public() and x25519_dh(). Any thread. */
    bool (*derive_public)(const struct x25519_secret *secret, struct x25519_public *ret);
    bool (*dh)(const struct x25519_secret *secret, const struct x25519_public *public,
        struct x25519_shared *ret);
};

extern const struct x25519_backend x25519__boringssl;
extern const struct x25519_backend x25519__openssl;

/** x25519_each() - back end number @i, whether available or not; NULL at the end. */
const struct x25519_backend *x25519_each(size_t i);
