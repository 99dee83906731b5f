/*
 * tls_pin.h - the digest of a server's TLS key, by which clients know it without a certificate
 * authority.
 *
 * The same digest as in HTTP's public key pins (RFC 7469, section 2.4) and curl's "sha256//".
 */
#pragma once

#include <stdint.h>

/** Longest text of a pin that is looked at; a true one has 44 characters. */
#define TLS_PIN_TEXT_MAX 64

/** SHA-256 of a server's SubjectPublicKeyInfo. */
struct tls_pin {
    uint8_t b[32];
};
