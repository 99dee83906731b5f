/* aead_internal.h - the back ends, for the table in aead.c and for xchacha.c only. */
#pragma once

#include "crypto/aead.h"

extern const struct aead_algorithm aead__openssl_chacha20poly1305;
extern const struct aead_algorithm aead__openssl_aes256gcm;
extern const struct aead_algorithm aead__boringssl_chacha20poly1305;
extern const struct aead_algorithm aead__boringssl_aes256gcm;
extern const struct aead_algorithm aead__ipsecmb_aes256gcm;

#if defined(__x86_64__)
extern const struct aead_algorithm aead__avx512_chacha20poly1305;
extern const struct aead_algorithm aead__avx2_chacha20poly1305;
#endif
