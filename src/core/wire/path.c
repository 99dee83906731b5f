/* path.c - see path.h. */
#include "wire/path.h"

#include <string.h>

#include "base/bytes.h"
#include "base/secret.h"
#include "crypto/hash.h"

#define PATH_FRAME_VERSION 1 /* second byte */

#define TAG_OFF   4
#define NONCE_OFF 12

_Static_assert(NONCE_OFF + XCHACHA_NONCE_SIZE == PATH_FRAME_HEADER, "the nonce ends the header");

static const char label[] = "weft path 1";

bool path_keys_derive(struct path_keys *ret, const struct x25519_secret *secret,
    const struct x25519_public *own, const struct x25519_public *peer)
{
    int order = x25519_public_compare(own, peer);
    struct {
        struct x25519_shared shared;
        struct x25519_public low;
        struct x25519_public high;
    } input;
    struct blake2s_digest key;
    struct blake2s_digest out[3];
    bool is_low = order < 0;
    struct path_tag tags[2];

    if (order == 0 || !x25519_dh(secret, peer, &input.shared))
        return false;
    input.low = is_low ? *own : *peer;
    input.high = is_low ? *peer : *own;
    blake2s_hash(label, sizeof(label) - 1, NULL, 0, &key);
    hkdf(&key, &input, sizeof(input), &out[0], &out[1], &out[2]);
    /* The first key is for what the node with the smaller public key sends; so is the first tag. */
    memcpy(ret->send.b, out[is_low ? 0 : 1].b, sizeof(ret->send.b));
    memcpy(ret->receive.b, out[is_low ? 1 : 0].b, sizeof(ret->receive.b));
    memcpy(tags, out[2].b, sizeof(tags));
    ret->send_tag = tags[is_low ? 0 : 1];
    ret->receive_tag = tags[is_low ? 1 : 0];
    secret_wipe(&input, sizeof(input));
    secret_wipe(out, sizeof(out));
    return true;
}

/* ---- fields --------------------------------------------------------------------------------- */

static void encode_body(const struct path_frame *f, uint8_t out[static PATH_FRAME_BODY])
{
    struct writer w = writer_make(out, PATH_FRAME_BODY);

    writer_u8(&w, (uint8_t)f->kind);
    writer_u8(&w, f->flags);
    writer_be16(&w, f->size);
    writer_be32(&w, f->held_us);
    writer_be64(&w, f->transaction);
    writer_be64(&w, f->session);
    writer_be64(&w, f->echo);
    writer_be64(&w, f->sequence);
    writer_be64(&w, f->clock);
    writer_put(&w, f->observed.addr.b, sizeof(f->observed.addr.b));
    writer_be16(&w, f->observed.port);
    writer_be16(&w, 0);
}

static bool decode_body(const uint8_t *body, size_t len, struct path_frame *ret)
{
    struct reader r = reader_make(body, len);
    struct path_frame f = {0};
    uint8_t kind = reader_u8(&r);

    f.flags = reader_u8(&r);
    f.size = reader_be16(&r);
    f.held_us = reader_be32(&r);
    f.transaction = reader_be64(&r);
    f.session = reader_be64(&r);
    f.echo = reader_be64(&r);
    f.sequence = reader_be64(&r);
    f.clock = reader_be64(&r);
    reader_copy(&r, f.observed.addr.b, sizeof(f.observed.addr.b));
    f.observed.port = reader_be16(&r);
    (void)reader_be16(&r);
    if (r.failed || kind == PATH_FRAME_NONE || kind >= PATH_FRAME_N || f.session == 0)
        return false;
    f.kind = (enum path_frame_kind)kind;
    *ret = f;
    return true;
}

/* ---- frames --------------------------------------------------------------------------------- */

bool path_frame_seal(const struct path_keys *k, const struct path_frame *f,
    const struct xchacha_nonce *nonce, size_t size, uint8_t *out)
{
    size_t plain_len = size - PATH_FRAME_HEADER - AEAD_TAG_SIZE;

    memset(out, 0, size);
    out[0] = PATH_FRAME_TYPE;
    out[1] = PATH_FRAME_VERSION;
    memcpy(out + TAG_OFF, k->send_tag.b, sizeof(k->send_tag.b));
    memcpy(out + NONCE_OFF, nonce->b, sizeof(nonce->b));
    encode_body(f, out + PATH_FRAME_HEADER);
    return xchacha_seal(&k->send, nonce, out, NONCE_OFF, out + PATH_FRAME_HEADER, plain_len);
}

bool path_frame_read_tag(const uint8_t *msg, size_t len, struct path_tag *ret)
{
    if (len < PATH_FRAME_MIN || len > PATH_FRAME_MAX || msg[0] != PATH_FRAME_TYPE ||
        msg[1] != PATH_FRAME_VERSION || msg[2] != 0 || msg[3] != 0)
        return false;
    memcpy(ret->b, msg + TAG_OFF, sizeof(ret->b));
    return true;
}

bool path_frame_open(const struct path_keys *k, uint8_t *msg, size_t len, struct path_frame *ret)
{
    struct xchacha_nonce nonce;
    size_t sealed_len = len - PATH_FRAME_HEADER;

    memcpy(nonce.b, msg + NONCE_OFF, sizeof(nonce.b));
    if (!xchacha_open(&k->receive, &nonce, msg, NONCE_OFF, msg + PATH_FRAME_HEADER, sealed_len))
        return false;
    return decode_body(msg + PATH_FRAME_HEADER, sealed_len - AEAD_TAG_SIZE, ret);
}
