/* profile.c - see profile.h. */
#include "profile.h"

#include <string.h>

/* Whitepaper 5.4. */
const struct noise_profile noise_profile_wireguard = {
    .name = "wireguard",
    .construction = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s",
    .identifier = "WireGuard v1 zx2c4 Jason@zx2c4.com",
    .transport = AEAD_CIPHER_CHACHA20POLY1305,
};

/*
 * docs/wire/aes.md. The handshake is computed as WireGuard's is, cipher and all.
 * The identifier alone would make a mismatch fail, but it is no part of the
 * chaining key, from which the data keys come; the construction is.
 */
const struct noise_profile noise_profile_aes = {
    .name = "weft-aes256gcm",
    .construction = "Noise_IKpsk2_25519_ChaChaPoly/AESGCM_BLAKE2s",
    .identifier = "Weft v1 WireGuard with AES-256-GCM transport",
    .transport = AEAD_CIPHER_AES256GCM,
};

const struct noise_profile *const noise_profiles[NOISE_PROFILE_N] = {
    [AEAD_CIPHER_CHACHA20POLY1305] = &noise_profile_wireguard,
    [AEAD_CIPHER_AES256GCM] = &noise_profile_aes,
};

void noise_profile_start(const struct noise_profile *profile, struct blake2s_digest *ret_ck,
    struct blake2s_digest *ret_h)
{
    blake2s_hash(profile->construction, strlen(profile->construction), NULL, 0, ret_ck);
    blake2s_hash(
        ret_ck->b, sizeof(ret_ck->b), profile->identifier, strlen(profile->identifier), ret_h);
}
