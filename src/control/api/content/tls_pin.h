/*
 * tls_pin.h - the digest of a server's TLS key, by which clients know it without a certificate
 * authority.
 *
 * The same digest as in HTTP's public key pins (RFC 7469, section 2.4) and curl's "sha256//".
 */
#pragma once

#include <stdint.h>

/** SHA-256 of a server's SubjectPublicKeyInfo. */
struct tls_pin {
    uint8_t b[32];
};
