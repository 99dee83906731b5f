/* profile.c - see profile.h. */
#include "noise/profile.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"

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

/* ---- choices ---- */

/* With two ciphers "any other" is the other one, so a list has at most two names. */
static_assert(AEAD_CIPHER_N == 2, "the text form names the one other cipher");

static enum aead_cipher other(enum aead_cipher cipher)
{
    return cipher == AEAD_CIPHER_CHACHA20POLY1305 ? AEAD_CIPHER_AES256GCM
                                                  : AEAD_CIPHER_CHACHA20POLY1305;
}

int noise_choice_parse(struct noise_choice *ret, const char *text, struct err *e)
{
    size_t len = strcspn(text, ",");
    enum aead_cipher wanted = aead_cipher_parse(text, len);
    bool takes_any = text[len] == ',';

    if (wanted == AEAD_CIPHER_N ||
        (takes_any && strcmp(text + len + 1, aead_cipher_names[other(wanted)]) != 0))
        return err_set(e, -EINVAL,
            "cipher \"%.60s\" is not %s or %s, nor both, the wanted one first, with a comma", text,
            aead_cipher_names[AEAD_CIPHER_CHACHA20POLY1305],
            aead_cipher_names[AEAD_CIPHER_AES256GCM]);
    *ret = (struct noise_choice){wanted, takes_any};
    return 0;
}

const char *noise_choice_format(struct noise_choice c, char buf[static NOISE_CHOICE_TEXT_MAX])
{
    (void)snprintf(buf, NOISE_CHOICE_TEXT_MAX, "%s%s%s", aead_cipher_names[c.wanted],
        c.takes_any ? "," : "", c.takes_any ? aead_cipher_names[other(c.wanted)] : "");
    return buf;
}

const char *const pin_names[] = {"false", "true", "session"};
_Static_assert(sizeof(pin_names) / sizeof(*pin_names) == PIN_N, "a name each");

/* ---- pins ---- */

bool pin_parse(enum pin *ret, const char *text)
{
    size_t i = parse_word(text, pin_names, PIN_N);

    if (i < PIN_N)
        *ret = (enum pin)i;
    return i < PIN_N;
}
