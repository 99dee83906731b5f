/* measure_proof.c - see measure_proof.h. */
#include "measure_proof.h"

#include <string.h>

#include "base/bytes.h"
#include "base/secret.h"
#include "crypto/hash.h"

static const char label[] = "weft measure 1";

#define BODY_LEN (MEASURE_PROOF_CHALLENGE + MEASURE_PROOF_ID + 4 + MEASURE_PROOF_PURPOSE)

bool measure_proof_key_make(struct measure_proof_key *ret, const struct x25519_secret *own,
    const struct x25519_public *other, const struct x25519_public *orderer,
    const struct x25519_public *measured)
{
    uint8_t ends[sizeof(orderer->b) + sizeof(measured->b)];
    struct blake2s_digest key;
    struct x25519_shared shared;

    if (!x25519_dh(own, other, &shared))
        return false;
    memcpy(ends, orderer->b, sizeof(orderer->b));
    memcpy(ends + sizeof(orderer->b), measured->b, sizeof(measured->b));
    blake2s_hash(label, sizeof(label) - 1, ends, sizeof(ends), &key);
    hkdf(&key, shared.b, sizeof(shared.b), &key, NULL, NULL);
    memcpy(ret->b, key.b, sizeof(ret->b));
    secret_wipe(&shared, sizeof(shared));
    secret_wipe(&key, sizeof(key));
    return true;
}

void measure_proof_make(uint8_t mac[static MEASURE_PROOF_MAC], const struct measure_proof_key *key,
    const struct measure_proof *p)
{
    struct be32 seconds = be32_make(p->seconds);
    uint8_t body[BODY_LEN];
    struct blake2s_mac out;
    struct writer w = writer_make(body, sizeof(body));

    writer_put(&w, p->challenge, sizeof(p->challenge));
    writer_put(&w, p->id, sizeof(p->id));
    writer_put(&w, &seconds, sizeof(seconds));
    writer_put(&w, p->purpose, sizeof(p->purpose));
    blake2s_mac16(key->b, sizeof(key->b), body, writer_len(&w), NULL, 0, &out);
    memcpy(mac, out.b, MEASURE_PROOF_MAC);
}

bool measure_proof_verify(const uint8_t mac[static MEASURE_PROOF_MAC],
    const struct measure_proof_key *key, const struct measure_proof *p)
{
    uint8_t expected[MEASURE_PROOF_MAC];
    bool ok;

    measure_proof_make(expected, key, p);
    ok = secret_equal(expected, mac, sizeof(expected));
    secret_wipe(expected, sizeof(expected));
    return ok;
}
