/* test-path.c - path frames against an independent implementation, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "test/vectors/vectors.h"
#include "wire/path.h"

struct sample {
    struct path_keys own; /* of who seals */
    struct path_keys peer;
    struct path_frame frame;
    struct xchacha_nonce nonce;
    size_t len;
    uint8_t bytes[PATH_FRAME_MAX];
};

static void derive(const struct vectors *v, struct sample *s)
{
    struct x25519_secret secrets[2];
    struct x25519_public public_addresses[2];

    vectors_exact(v, "own_secret", secrets[0].b, X25519_SIZE);
    vectors_exact(v, "peer_secret", secrets[1].b, X25519_SIZE);
    vectors_exact(v, "own_public", public_addresses[0].b, X25519_SIZE);
    vectors_exact(v, "peer_public", public_addresses[1].b, X25519_SIZE);
    assert_true(path_keys_derive(&s->own, &secrets[0], &public_addresses[0], &public_addresses[1]));
    assert_true(
        path_keys_derive(&s->peer, &secrets[1], &public_addresses[1], &public_addresses[0]));
}

static void read_sample(const struct vectors *v, struct sample *s)
{
    struct path_frame *f = &s->frame;

    derive(v, s);
    f->kind = (enum path_frame_kind)vectors_u64(v, "kind");
    f->flags = (uint8_t)vectors_u64(v, "flags");
    f->size = (uint16_t)vectors_u64(v, "size");
    f->held_us = (uint32_t)vectors_u64(v, "held");
    f->transaction = vectors_u64(v, "transaction");
    f->session = vectors_u64(v, "session");
    f->echo = vectors_u64(v, "echo");
    f->sequence = vectors_u64(v, "sequence");
    f->clock = vectors_u64(v, "clock");
    f->observed.port = (uint16_t)vectors_u64(v, "port");
    vectors_exact(v, "observed", f->observed.addr.b, sizeof(f->observed.addr.b));
    vectors_exact(v, "nonce", s->nonce.b, sizeof(s->nonce.b));
    s->len = vectors_bytes(v, "frame", s->bytes, sizeof(s->bytes));
}

static void assert_frames_equal(const struct path_frame *a, const struct path_frame *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->held_us, b->held_us);
    assert_true(a->transaction == b->transaction && a->session == b->session);
    assert_true(a->echo == b->echo && a->sequence == b->sequence && a->clock == b->clock);
    assert_true(endpoint_equal(&a->observed, &b->observed));
}

static void test_vectors(void **state)
{
    static struct sample s;
    struct vectors v;
    unsigned n = 0;

    vectors_open(&v, "path.txt");
    while (vectors_next(&v)) {
        uint8_t out[PATH_FRAME_MAX];
        struct path_frame f;
        struct path_tag tag;

        memset(&s, 0, sizeof(s));
        read_sample(&v, &s);
        assert_true(path_frame_seal(&s.own, &s.frame, &s.nonce, s.len, out));
        assert_memory_equal(out, s.bytes, s.len);
        assert_true(path_frame_read_tag(s.bytes, s.len, &tag));
        assert_memory_equal(&tag, &s.peer.receive_tag, sizeof(tag));
        assert_true(path_frame_open(&s.peer, s.bytes, s.len, &f));
        assert_frames_equal(&f, &s.frame);
        n++;
    }
    vectors_close(&v);
    assert_int_equal(n, 6);
}

static void make_sample(struct sample *s)
{
    struct vectors v;

    memset(s, 0, sizeof(*s));
    vectors_open(&v, "path.txt");
    assert_true(vectors_next(&v));
    read_sample(&v, s);
    vectors_close(&v);
}

static void test_every_changed_bit_is_refused(void **state)
{
    static struct sample s;

    make_sample(&s);
    for (size_t bit = 0; bit < 8 * s.len; bit++) {
        uint8_t copy[PATH_FRAME_MIN];
        struct path_frame f;
        struct path_tag tag;

        memcpy(copy, s.bytes, s.len);
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (path_frame_read_tag(copy, s.len, &tag))
            assert_false(path_frame_open(&s.peer, copy, s.len, &f));
    }
}

static void test_other_keys_do_not_open(void **state)
{
    static struct sample s;
    struct path_frame f;
    uint8_t copy[PATH_FRAME_MIN];

    make_sample(&s);
    /* The sender's own: what it sends is not taken for what the peer sends. */
    memcpy(copy, s.bytes, s.len);
    assert_false(path_frame_open(&s.own, copy, s.len, &f));
    assert_memory_not_equal(&s.own.send_tag, &s.own.receive_tag, sizeof(s.own.send_tag));
}

static void test_what_is_no_frame(void **state)
{
    static struct sample s;
    struct path_tag tag;

    make_sample(&s);
    assert_false(path_frame_read_tag(s.bytes, 0, &tag));
    assert_false(path_frame_read_tag(s.bytes, PATH_FRAME_MIN - 1, &tag));
    assert_true(path_frame_read_tag(s.bytes, PATH_FRAME_MIN, &tag));
    assert_true(path_frame_read_tag(s.bytes, PATH_FRAME_MAX, &tag));
    assert_false(path_frame_read_tag(s.bytes, PATH_FRAME_MAX + 1, &tag));
    for (unsigned i = 0; i < 4; i++) {
        s.bytes[i] ^= 4;
        assert_false(path_frame_read_tag(s.bytes, s.len, &tag));
        s.bytes[i] ^= 4;
    }
    assert_true(path_frame_read_tag(s.bytes, s.len, &tag));
}

static void test_meaningless_fields_are_refused(void **state)
{
    static struct sample s;
    struct path_frame f;

    make_sample(&s);
    s.frame.kind = PATH_FRAME_N;
    assert_true(path_frame_seal(&s.own, &s.frame, &s.nonce, PATH_FRAME_MIN, s.bytes));
    assert_false(path_frame_open(&s.peer, s.bytes, PATH_FRAME_MIN, &f));
    s.frame.kind = PATH_FRAME_NONE;
    assert_true(path_frame_seal(&s.own, &s.frame, &s.nonce, PATH_FRAME_MIN, s.bytes));
    assert_false(path_frame_open(&s.peer, s.bytes, PATH_FRAME_MIN, &f));
    s.frame.kind = PATH_FRAME_PING;
    assert_true(path_frame_seal(&s.own, &s.frame, &s.nonce, PATH_FRAME_MIN, s.bytes));
    assert_true(path_frame_open(&s.peer, s.bytes, PATH_FRAME_MIN, &f));
    s.frame.session = 0;
    assert_true(path_frame_seal(&s.own, &s.frame, &s.nonce, PATH_FRAME_MIN, s.bytes));
    assert_false(path_frame_open(&s.peer, s.bytes, PATH_FRAME_MIN, &f));
}

static void test_no_keys_with_oneself_or_a_bad_point(void **state)
{
    struct x25519_secret secret = {{1}};
    struct x25519_public own;
    struct x25519_public zero = {{0}};
    struct path_keys k;

    assert_true(x25519_derive_public(&secret, &own));
    assert_false(path_keys_derive(&k, &secret, &own, &own));
    assert_false(path_keys_derive(&k, &secret, &own, &zero));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_every_changed_bit_is_refused),
        cmocka_unit_test(test_other_keys_do_not_open),
        cmocka_unit_test(test_what_is_no_frame),
        cmocka_unit_test(test_meaningless_fields_are_refused),
        cmocka_unit_test(test_no_keys_with_oneself_or_a_bad_point),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
