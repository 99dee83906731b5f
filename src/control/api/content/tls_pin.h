/*
 * tls_pin.h - by what a server's TLS key is recognised, where no certificate authority is trusted.
 *
 * The same digest as in HTTP's public key pins (RFC 7469, section 2.4) and curl's "sha256//".
 */
#pragma once

#include <stdint.h>

/** SHA-256 of a server's SubjectPublicKeyInfo. */
struct tls_pin {
    uint8_t b[32];
};
