/* test-stream.c - frames in a stream of bytes, and the proof that opens one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "wire/stream.h"

static void test_frames(void **state)
{
    static const uint8_t expected[] = {0, 3, 'a', 'b', 'c', 0, 2, 'd', 'e', 0, 0};
    uint8_t buf[32];
    struct writer out = writer_make(buf, sizeof(buf));
    struct reader in;
    const uint8_t *datagram;
    size_t len;

    assert_int_equal(stream_frame_size(5, 3), 9);
    assert_int_equal(stream_frame_size(6, 3), 10);
    assert_int_equal(stream_frame_size(7, 3), 13);
    assert_int_equal(stream_frame_size(1, 3), 3);
    stream_frame_put(&out, (const uint8_t *)"abcde", 5, 3);
    writer_be16(&out, 0);
    assert_int_equal(writer_len(&out), sizeof(expected));
    assert_memory_equal(buf, expected, sizeof(expected));
    in = reader_make(buf, sizeof(expected));
    assert_int_equal(stream_frame_next(&in, &datagram, &len), 0);
    assert_int_equal(len, 3);
    assert_memory_equal(datagram, "abc", 3);
    assert_int_equal(stream_frame_next(&in, &datagram, &len), 0);
    assert_int_equal(len, 2);
    assert_memory_equal(datagram, "de", 2);
    assert_int_equal(stream_frame_next(&in, &datagram, &len), 0);
    assert_int_equal(len, 0);
    assert_int_equal(stream_frame_next(&in, &datagram, &len), STREAM_FRAME_E_MORE);
    assert_int_equal(reader_left(&in), 0);
    /* The last one is as long as the others, and no empty one follows. */
    out = writer_make(buf, sizeof(buf));
    stream_frame_put(&out, (const uint8_t *)"abcdef", 6, 3);
    assert_int_equal(writer_len(&out), 10);
    assert_memory_equal(buf, "\0\3abc\0\3def", 10);
}

/* Cut anywhere, a frame is waited for and the reader stays before it. */
static void test_pieces(void **state)
{
    uint8_t buf[7] = {0, 5, 1, 2, 3, 4, 5};
    const uint8_t *datagram;
    size_t len;

    for (size_t n = 0; n < sizeof(buf); n++) {
        struct reader in = reader_make(buf, n);

        assert_int_equal(stream_frame_next(&in, &datagram, &len), STREAM_FRAME_E_MORE);
        assert_int_equal(reader_left(&in), n);
    }
}

static void test_lengths(void **state)
{
    static const struct {
        uint16_t len;
        int expected;
    } rows[] = {
        {STREAM_FRAME_MAX, 0},
        {STREAM_FRAME_MAX + 1, STREAM_FRAME_E_INVALID},
        {65535, STREAM_FRAME_E_INVALID},
    };
    uint8_t *buf = calloc(1, 2 + 65535);
    const uint8_t *datagram;
    size_t len;

    assert_non_null(buf);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct reader in = reader_make(buf, 2 + 65535);

        buf[0] = (uint8_t)(rows[i].len >> 8);
        buf[1] = (uint8_t)rows[i].len;
        assert_int_equal(stream_frame_next(&in, &datagram, &len), rows[i].expected);
        assert_int_equal(reader_left(&in), 2 + 65535 - (rows[i].expected ? 0 : 2 + rows[i].len));
        /* An invalid length is seen before its bytes have come. */
        in = reader_make(buf, 2);
        assert_int_equal(stream_frame_next(&in, &datagram, &len),
            rows[i].expected == 0 ? STREAM_FRAME_E_MORE : rows[i].expected);
    }
    free(buf);
}

/* Two parties with keys that are as good as any. */
struct party {
    struct x25519_secret secret;
    struct x25519_public public;
};

static struct party party_of(uint8_t seed)
{
    struct party p;

    memset(p.secret.b, seed, sizeof(p.secret.b));
    x25519_secret_clamp(&p.secret);
    assert_true(x25519_derive_public(&p.secret, &p.public));
    return p;
}

static void test_proof(void **state)
{
    struct party node = party_of(1);
    struct party hub = party_of(2);
    struct party other = party_of(3);
    struct stream_proof a;
    struct stream_proof b;

    assert_true(stream_proof_make(&a, &node.secret, &hub.public, &node.public));
    assert_true(stream_proof_make(&b, &hub.secret, &node.public, &node.public));
    assert_memory_equal(&a, &b, sizeof(a));
    /* Computed once by other means, from the description in docs/wire. */
    assert_true(hex_decode(
        "50eb5d1f6fae6ccc216cbaaf492bb7f8f416eaf13f9fae650cf08ef3a2d39db9", b.b, sizeof(b.b)));
    assert_memory_equal(&a, &b, sizeof(a));
    /* Another hub, another node, and the two the other way round. */
    assert_true(stream_proof_make(&b, &node.secret, &other.public, &node.public));
    assert_memory_not_equal(&a, &b, sizeof(a));
    assert_true(stream_proof_make(&b, &other.secret, &hub.public, &other.public));
    assert_memory_not_equal(&a, &b, sizeof(a));
    assert_true(stream_proof_make(&b, &node.secret, &hub.public, &hub.public));
    assert_memory_not_equal(&a, &b, sizeof(a));
    memset(other.public.b, 0, sizeof(other.public.b));
    assert_false(stream_proof_make(&b, &node.secret, &other.public, &node.public));
}

static void test_claim(void **state)
{
    struct party node = party_of(1);
    struct party hub = party_of(2);
    struct stream_claim claim = {.node = node.public};
    struct stream_claim got;
    char text[STREAM_PROOF_TEXT_MAX];
    char longer[STREAM_PROOF_TEXT_MAX + 1];
    size_t len;

    assert_true(stream_proof_make(&claim.proof, &node.secret, &hub.public, &node.public));
    assert_true(stream_claim_parse(&got, stream_claim_format(&claim, text)));
    assert_memory_equal(&got, &claim, sizeof(got));
    len = strlen(text);
    for (size_t n = 0; n < len; n++) {
        char cut[STREAM_PROOF_TEXT_MAX] = "";

        memcpy(cut, text, n);
        assert_false(stream_claim_parse(&got, cut));
    }
    /* A byte more, another blank, and what is no base64 in either part. */
    for (size_t i = 0; i < 5; i++) {
        static const size_t at[] = {12, 12 + X25519_BASE64_MAX - 1, 12 + X25519_BASE64_MAX, 0, 11};
        char bad[STREAM_PROOF_TEXT_MAX];

        memcpy(bad, text, len + 1);
        bad[at[i]] = '!';
        assert_false(stream_claim_parse(&got, bad));
    }
    (void)snprintf(longer, sizeof(longer), "%sA", text);
    assert_false(stream_claim_parse(&got, longer));
    assert_memory_equal(&got, &claim, sizeof(got));
    assert_false(stream_claim_parse(&got, "Bearer something"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_proof),
        cmocka_unit_test(test_claim),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
