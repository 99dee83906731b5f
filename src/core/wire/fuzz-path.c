/*
 * fuzz-path.c - any datagram opens or not; what it says, sealed, opens to the same.
 *
 * No input authenticates, so the second half is there to reach the decoder: the
 * input's bytes are taken as the fields of a frame.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void derive(struct path_keys *a, struct path_keys *b)
{
    struct x25519_secret secrets[2] = {{{8}}, {{16}}};
    struct x25519_public public_addresses[2];

    assert(x25519_derive_public(&secrets[0], &public_addresses[0]));
    assert(x25519_derive_public(&secrets[1], &public_addresses[1]));
    assert(path_keys_derive(a, &secrets[0], &public_addresses[0], &public_addresses[1]));
    assert(path_keys_derive(b, &secrets[1], &public_addresses[1], &public_addresses[0]));
}

static struct path_frame read_fields(struct reader *r)
{
    struct path_frame f = {.kind = (enum path_frame_kind)(reader_u8(r) % (PATH_FRAME_N + 2)),
        .flags = reader_u8(r),
        .size = reader_be16(r),
        .held_us = reader_be32(r)};
    uint64_t *fields[] = {&f.transaction, &f.session, &f.echo, &f.sequence, &f.clock};

    for (unsigned i = 0; i < 5; i++)
        *fields[i] = (uint64_t)reader_be32(r) << 32 | reader_be32(r);
    reader_copy(r, f.observed.addr.b, sizeof(f.observed.addr.b));
    f.observed.port = reader_be16(r);
    return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct path_keys a;
    static struct path_keys b;
    static uint8_t msg[PATH_FRAME_MAX + 1];
    struct reader r = reader_make(data, len);
    struct xchacha_nonce nonce = {{3}};
    struct path_frame f;
    struct path_frame back;
    struct path_tag tag;
    size_t size;

    if (a.send_tag.b[0] == 0 && a.send_tag.b[1] == 0)
        derive(&a, &b);
    if (len <= sizeof(msg)) {
        memcpy(msg, data, len);
        if (path_frame_read_tag(msg, len, &tag))
            (void)path_frame_open(&b, msg, len, &back);
    }
    f = read_fields(&r);
    size = PATH_FRAME_MIN + reader_be16(&r) % (PATH_FRAME_MAX - PATH_FRAME_MIN + 1);
    assert(path_frame_seal(&a, &f, &nonce, size, msg));
    assert(path_frame_read_tag(msg, size, &tag));
    assert(memcmp(&tag, &b.receive_tag, sizeof(tag)) == 0);
    if (path_frame_open(&b, msg, size, &back)) {
        assert(f.kind != PATH_FRAME_NONE && f.kind < PATH_FRAME_N && f.session != 0);
        assert(back.kind == f.kind && back.transaction == f.transaction);
        assert(back.session == f.session && back.sequence == f.sequence);
        assert(endpoint_equal(&back.observed, &f.observed));
    } else {
        assert(f.kind == PATH_FRAME_NONE || f.kind >= PATH_FRAME_N || f.session == 0);
    }
    return 0;
}
