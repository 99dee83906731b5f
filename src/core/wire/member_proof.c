/* member_proof.c - see member_proof.h. */
#include "member_proof.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/secret.h"
#include "base/text.h"
#include "crypto/hash.h"

static const char label[] = "weft member 1";
static const char scheme[] = "Weft-Member ";

/* Before the hash of the body: boot, sequence, and method and path, each after its length. */
#define HEAD_MAX (8 + 8 + 1 + MEMBER_PROOF_METHOD_MAX + 2 + MEMBER_PROOF_PATH_MAX)

/* "Weft-Member " and two numbers of 16 hex digits, each followed by a space. */
#define STAMP_TEXT_LEN 16
#define MAC_TEXT_LEN   (BASE64_SIZE(32) - 1)
#define TEXT_LEN       (sizeof(scheme) - 1 + 2 * (STAMP_TEXT_LEN + 1) + MAC_TEXT_LEN)

_Static_assert(TEXT_LEN < MEMBER_PROOF_TEXT_MAX, "room for the header's value");

bool member_proof_key_make(struct member_proof_key *ret, const struct x25519_secret *own,
    const struct x25519_public *other, const struct x25519_public *node)
{
    struct blake2s_digest key;
    struct x25519_shared shared;
    bool ok = x25519_dh(own, other, &shared);

    if (!ok)
        return false;
    blake2s_hash(label, sizeof(label) - 1, node->b, sizeof(node->b), &key);
    hkdf(&key, shared.b, sizeof(shared.b), &key, NULL, NULL);
    memcpy(ret->b, key.b, sizeof(ret->b));
    secret_wipe(&shared, sizeof(shared));
    secret_wipe(&key, sizeof(key));
    return true;
}

bool member_proof_make(struct member_proof *proof, const struct member_proof_key *key,
    const struct member_proof_request *rq)
{
    size_t n_method = strnlen(rq->method, MEMBER_PROOF_METHOD_MAX + 1);
    size_t n_path = strnlen(rq->path, MEMBER_PROOF_PATH_MAX + 1);
    struct blake2s_digest body;
    struct blake2s_digest mac;
    uint8_t head[HEAD_MAX];
    struct writer w = writer_make(head, sizeof(head));

    if (n_method > MEMBER_PROOF_METHOD_MAX || n_path > MEMBER_PROOF_PATH_MAX)
        return false;
    writer_be64(&w, proof->boot);
    writer_be64(&w, proof->sequence);
    writer_u8(&w, (uint8_t)n_method);
    writer_put(&w, rq->method, n_method);
    writer_be16(&w, (uint16_t)n_path);
    writer_put(&w, rq->path, n_path);
    blake2s_hash(rq->body_len > 0 ? rq->body : "", rq->body_len, NULL, 0, &body);
    blake2s_mac32(key->b, sizeof(key->b), head, writer_len(&w), body.b, sizeof(body.b), &mac);
    memcpy(proof->mac, mac.b, sizeof(proof->mac));
    return true;
}

bool member_proof_verify(const struct member_proof *proof, const struct member_proof_key *key,
    const struct member_proof_request *rq)
{
    struct member_proof expected = {.boot = proof->boot, .sequence = proof->sequence};
    bool ok = member_proof_make(&expected, key, rq) &&
              secret_equal(expected.mac, proof->mac, sizeof(proof->mac));

    secret_wipe(&expected, sizeof(expected));
    return ok;
}

const char *member_proof_format(
    const struct member_proof *proof, char buf[static MEMBER_PROOF_TEXT_MAX])
{
    char mac[BASE64_SIZE(sizeof(proof->mac))];

    base64_encode(proof->mac, sizeof(proof->mac), mac);
    (void)snprintf(buf, MEMBER_PROOF_TEXT_MAX, "%s%016llx %016llx %s", scheme,
        (unsigned long long)proof->boot, (unsigned long long)proof->sequence, mac);
    return buf;
}

/* 16 lower-case hex digits and a space. */
static bool parse_stamp(const char *text, uint64_t *ret)
{
    uint64_t value = 0;

    for (int i = 0; i < STAMP_TEXT_LEN; i++) {
        char c = text[i];

        if (c >= '0' && c <= '9')
            value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *ret = value;
    return text[STAMP_TEXT_LEN] == ' ';
}

bool member_proof_parse(struct member_proof *ret, const char *text)
{
    struct member_proof proof;

    if (strnlen(text, TEXT_LEN + 1) != TEXT_LEN || strncmp(text, scheme, sizeof(scheme) - 1) != 0)
        return false;
    text += sizeof(scheme) - 1;
    if (!parse_stamp(text, &proof.boot) ||
        !parse_stamp(text + STAMP_TEXT_LEN + 1, &proof.sequence) ||
        proof.sequence > MEMBER_PROOF_SEQUENCE_MAX)
        return false;
    text += 2 * ((size_t)STAMP_TEXT_LEN + 1);
    if (!base64_decode(text, proof.mac, sizeof(proof.mac)))
        return false;
    *ret = proof;
    return true;
}

/* ---- the node's end ------------------------------------------------------------------------- */

bool member_proof_signer_init(
    struct member_proof_signer *s, const struct x25519_secret *own, const struct x25519_public *hub)
{
    struct member_proof_signer made = {.boot = 0, .next = 0};
    struct x25519_public node;

    if (!x25519_derive_public(own, &node) || !member_proof_key_make(&made.key, own, hub, &node))
        return false;
    *s = made;
    secret_wipe(&made, sizeof(made));
    return true;
}

bool member_proof_sign(struct member_proof_signer *s, const struct member_proof_request *rq,
    char buf[static MEMBER_PROOF_TEXT_MAX])
{
    struct member_proof proof = {.boot = s->boot, .sequence = s->next};

    if (!member_proof_make(&proof, &s->key, rq))
        return false;
    s->next++;
    (void)member_proof_format(&proof, buf);
    return true;
}

void member_proof_signer_learn(struct member_proof_signer *s, uint64_t boot, uint64_t after)
{
    if (s->boot != boot || s->next <= after)
        s->next = after + 1;
    s->boot = boot;
}
