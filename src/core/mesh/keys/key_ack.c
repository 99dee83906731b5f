/* key_ack.c - see key_ack.h. */
#include "mesh/keys/key_ack.h"

#include <string.h>

#include "base/secret.h"
#include "crypto/hash.h"

static const char label[] = "weft key ack 1";

/* MAC by KDF1(BLAKE2s(label || acknowledged), DH), over the level and the member's key. */
static bool make(struct key_ack *ret, enum key_ack_level level, const struct x25519_secret *own,
    const struct x25519_public *other, const struct x25519_public *acknowledged,
    const struct x25519_public *member)
{
    uint8_t number = (uint8_t)level;
    struct x25519_shared shared;
    struct blake2s_digest key;

    if (!x25519_dh(own, other, &shared))
        return false;
    blake2s_hash(label, sizeof(label) - 1, acknowledged->b, sizeof(acknowledged->b), &key);
    hkdf(&key, shared.b, sizeof(shared.b), &key, NULL, NULL);
    blake2s_mac32(key.b, sizeof(key.b), &number, 1, member->b, sizeof(member->b), &key);
    memcpy(ret->mac, key.b, sizeof(ret->mac));
    secret_wipe(&shared, sizeof(shared));
    secret_wipe(&key, sizeof(key));
    return true;
}

bool key_ack_make(struct key_ack *ret, enum key_ack_level level, const struct x25519_secret *own,
    const struct x25519_public *acknowledged)
{
    struct x25519_public member;

    return x25519_derive_public(own, &member) &&
           make(ret, level, own, acknowledged, acknowledged, &member);
}

enum key_ack_level key_ack_verify(
    const struct key_ack *ack, const struct x25519_secret *next, const struct x25519_public *member)
{
    static const enum key_ack_level levels[] = {KEY_ACK_BELIEVED, KEY_ACK_KNOWN};
    enum key_ack_level found = KEY_ACK_NONE;
    struct x25519_public acknowledged;
    struct key_ack expected;

    if (!x25519_derive_public(next, &acknowledged))
        return found;
    for (size_t i = 0; i < sizeof(levels) / sizeof(*levels) && found == KEY_ACK_NONE; i++)
        if (make(&expected, levels[i], next, member, &acknowledged, member) &&
            secret_equal(expected.mac, ack->mac, sizeof(expected.mac)))
            found = levels[i];
    secret_wipe(&expected, sizeof(expected));
    return found;
}
