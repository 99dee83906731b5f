/* x25519_internal.h - who multiplies; for x25519*.c and their test only. */
#pragma once

#include "crypto/x25519.h"

/** x25519__ladder() - x25519_derive_public() by OpenSSL's ladder: always there, and the judge. */
bool x25519__ladder(const struct x25519_secret *secret, struct x25519_public *ret);

/** x25519__has_table() - is libsodium installed? Any thread. */
bool x25519__has_table(void);

/** x25519__table() - x25519_derive_public() by libsodium's table of the base point's multiples. */
void x25519__table(const struct x25519_secret *secret, struct x25519_public *ret);
