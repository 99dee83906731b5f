/* hkdf.c - see hkdf.h. */
#include "hkdf.h"

#include <string.h>

#include "base/secret.h"

#define BLOCK 64 /* of BLAKE2s, bytes */

void hmac_blake2s(
    const struct blake2s_digest *key, const void *data, size_t len, struct blake2s_digest *ret)
{
    struct {
        uint8_t ipad[BLOCK];
        uint8_t opad[BLOCK];
        struct blake2s_digest inner;
    } s;

    for (size_t i = 0; i < BLOCK; i++) {
        uint8_t k = i < sizeof(key->b) ? key->b[i] : 0;

        s.ipad[i] = k ^ 0x36;
        s.opad[i] = k ^ 0x5c;
    }
    blake2s_hash(s.ipad, sizeof(s.ipad), data, len, &s.inner);
    blake2s_hash(s.opad, sizeof(s.opad), &s.inner, sizeof(s.inner), ret);
    secret_wipe(&s, sizeof(s));
}

void hkdf(const struct blake2s_digest *key, const void *input, size_t len,
    struct blake2s_digest *ret1, struct blake2s_digest *ret2, struct blake2s_digest *ret3)
{
    struct blake2s_digest *const outputs[] = {ret1, ret2, ret3};
    struct {
        struct blake2s_digest prk;         /* extracted from the input */
        uint8_t message[BLAKE2S_SIZE + 1]; /* the output before, and this one's number */
    } s;
    size_t before = 0;

    hmac_blake2s(key, input, len, &s.prk);
    for (uint8_t i = 0; i < 3 && outputs[i]; i++) {
        s.message[before] = (uint8_t)(i + 1);
        hmac_blake2s(&s.prk, s.message, before + 1, outputs[i]);
        memcpy(s.message, outputs[i], BLAKE2S_SIZE);
        before = BLAKE2S_SIZE;
    }
    secret_wipe(&s, sizeof(s));
}
