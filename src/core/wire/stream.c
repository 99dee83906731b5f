/* stream.c - see stream.h. */
#include "wire/stream.h"

#include <stdio.h>
#include <string.h>

#include "base/secret.h"
#include "base/text.h"
#include "crypto/hash.h"

/* ---- frames ---- */

int stream_frame_next(struct reader *in, const uint8_t **ret, size_t *ret_len)
{
    struct reader r = *in;
    size_t len = reader_be16(&r);
    const uint8_t *datagram;

    if (r.failed)
        return STREAM_FRAME_E_MORE;
    if (len > STREAM_FRAME_MAX)
        return STREAM_FRAME_E_INVALID;
    datagram = reader_take(&r, len);
    if (!datagram)
        return STREAM_FRAME_E_MORE;
    *ret = datagram;
    *ret_len = len;
    *in = r;
    return 0;
}

size_t stream_frame_size(size_t len, size_t seg)
{
    return len + (len + seg - 1) / seg * STREAM_FRAME_HEADER;
}

void stream_frame_put(struct writer *out, const uint8_t *datagrams, size_t len, size_t seg)
{
    for (size_t off = 0; off < len; off += seg) {
        size_t n = len - off < seg ? len - off : seg;

        writer_be16(out, (uint16_t)n);
        writer_put(out, datagrams + off, n);
    }
}

/* ---- who may open one ---- */

static const char label[] = "weft stream 1";
static const char scheme[] = "Weft-Stream ";

bool stream_proof_make(struct stream_proof *ret, const struct x25519_secret *own,
    const struct x25519_public *other, const struct x25519_public *node)
{
    struct blake2s_digest key;
    struct blake2s_digest mac;
    struct x25519_shared shared;
    bool ok = x25519_dh(own, other, &shared);

    if (!ok)
        return false;
    blake2s_hash(label, sizeof(label) - 1, NULL, 0, &key);
    hkdf(&key, shared.b, sizeof(shared.b), &key, NULL, NULL);
    blake2s_mac32(key.b, sizeof(key.b), label, sizeof(label) - 1, node->b, sizeof(node->b), &mac);
    memcpy(ret->b, mac.b, sizeof(ret->b));
    secret_wipe(&shared, sizeof(shared));
    secret_wipe(&key, sizeof(key));
    secret_wipe(&mac, sizeof(mac));
    return true;
}

const char *stream_claim_format(
    const struct stream_claim *claim, char buf[static STREAM_PROOF_TEXT_MAX])
{
    char node[X25519_BASE64_MAX];
    char proof[BASE64_SIZE(sizeof(claim->proof.b))];

    base64_encode(claim->proof.b, sizeof(claim->proof.b), proof);
    (void)snprintf(buf, STREAM_PROOF_TEXT_MAX, "%s%s %s", scheme,
        x25519_public_format(&claim->node, node), proof);
    secret_wipe(proof, sizeof(proof));
    return buf;
}

bool stream_claim_parse(struct stream_claim *ret, const char *text)
{
    struct stream_claim claim;
    char node[X25519_BASE64_MAX];
    bool ok;

    if (strncmp(text, scheme, sizeof(scheme) - 1) != 0)
        return false;
    text += sizeof(scheme) - 1;
    if (strlen(text) != 2 * (X25519_BASE64_MAX - 1) + 1 || text[X25519_BASE64_MAX - 1] != ' ')
        return false;
    memcpy(node, text, sizeof(node) - 1);
    node[sizeof(node) - 1] = '\0';
    ok = base64_decode(node, claim.node.b, sizeof(claim.node.b)) &&
         base64_decode(text + sizeof(node), claim.proof.b, sizeof(claim.proof.b));
    if (ok)
        *ret = claim;
    secret_wipe(&claim, sizeof(claim));
    return ok;
}
