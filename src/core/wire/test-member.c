/* test-member.c - the proof of a member's request, against an independent implementation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/containers.h"
#include "test/vectors/vectors.h"
#include "wire/member_proof.h"

#define BODY_CAP 1024

struct sample {
    struct x25519_secret node_secret;
    struct x25519_secret hub_secret;
    struct x25519_public node;
    struct x25519_public hub;
    struct member_proof_key key;
    struct member_proof proof;
    struct member_proof_request rq;
    char method[MEMBER_PROOF_METHOD_MAX + 1];
    char path[MEMBER_PROOF_PATH_MAX + 1];
    char header[MEMBER_PROOF_TEXT_MAX];
    uint8_t body[BODY_CAP];
};

static void read_text(const struct vectors *v, const char *name, char *buf, size_t cap)
{
    buf[vectors_bytes(v, name, buf, cap - 1)] = '\0';
}

static void read_sample(const struct vectors *v, struct sample *s)
{
    vectors_exact(v, "node_secret", s->node_secret.b, X25519_SIZE);
    vectors_exact(v, "hub_secret", s->hub_secret.b, X25519_SIZE);
    vectors_exact(v, "node_public", s->node.b, X25519_SIZE);
    vectors_exact(v, "hub_public", s->hub.b, X25519_SIZE);
    vectors_exact(v, "key", s->key.b, sizeof(s->key.b));
    vectors_exact(v, "mac", s->proof.mac, sizeof(s->proof.mac));
    s->proof.boot = vectors_u64(v, "boot");
    s->proof.sequence = vectors_u64(v, "sequence");
    read_text(v, "method", s->method, sizeof(s->method));
    read_text(v, "path", s->path, sizeof(s->path));
    read_text(v, "header", s->header, sizeof(s->header));
    s->rq = (struct member_proof_request){.method = s->method,
        .path = s->path,
        .body = s->body,
        .body_len = vectors_bytes(v, "body", s->body, sizeof(s->body))};
}

static struct sample *first_sample(void)
{
    struct sample *s = calloc(1, sizeof(*s));
    struct vectors v;

    assert_non_null(s);
    vectors_open(&v, "member.txt");
    assert_true(vectors_next(&v));
    read_sample(&v, s);
    vectors_close(&v);
    return s;
}

static void check_sample(const struct sample *s)
{
    struct member_proof proof = {.boot = s->proof.boot, .sequence = s->proof.sequence};
    struct member_proof_key key;
    char text[MEMBER_PROOF_TEXT_MAX];

    assert_true(member_proof_key_make(&key, &s->node_secret, &s->hub, &s->node));
    assert_memory_equal(key.b, s->key.b, sizeof(key.b));
    assert_true(member_proof_key_make(&key, &s->hub_secret, &s->node, &s->node));
    assert_memory_equal(key.b, s->key.b, sizeof(key.b));
    assert_true(member_proof_make(&proof, &key, &s->rq));
    assert_memory_equal(proof.mac, s->proof.mac, sizeof(proof.mac));
    assert_true(member_proof_verify(&s->proof, &key, &s->rq));
    assert_string_equal(member_proof_format(&proof, text), s->header);
    memset(&proof, 0, sizeof(proof));
    assert_true(member_proof_parse(&proof, s->header));
    assert_memory_equal(&proof, &s->proof, sizeof(proof));
}

static void test_vectors(void **state)
{
    struct sample *s = calloc(1, sizeof(*s));
    struct vectors v;
    unsigned n = 0;

    assert_non_null(s);
    vectors_open(&v, "member.txt");
    for (; vectors_next(&v); n++) {
        read_sample(&v, s);
        check_sample(s);
    }
    vectors_close(&v);
    free(s);
    assert_int_equal(n, 5);
}

/* Each part of the request, of the stamp and of the keys counts. */
static void test_what_it_covers(void **state)
{
    struct sample *s = first_sample();
    struct member_proof_request rq;
    struct member_proof proof;
    struct member_proof_key key;

    rq = s->rq;
    rq.method = "PUT";
    assert_false(member_proof_verify(&s->proof, &s->key, &rq));
    rq = s->rq;
    rq.path = "/v1/enro";
    assert_false(member_proof_verify(&s->proof, &s->key, &rq));
    rq = s->rq;
    rq.body_len--;
    assert_false(member_proof_verify(&s->proof, &s->key, &rq));
    /* Bytes do not move between method, path and body. */
    rq = s->rq;
    rq.method = "POST/v1";
    rq.path = "/enrol";
    assert_false(member_proof_verify(&s->proof, &s->key, &rq));
    proof = s->proof;
    proof.boot++;
    assert_false(member_proof_verify(&proof, &s->key, &s->rq));
    proof = s->proof;
    proof.sequence++;
    assert_false(member_proof_verify(&proof, &s->key, &s->rq));
    for (size_t i = 0; i < sizeof(proof.mac); i++) {
        proof = s->proof;
        proof.mac[i] ^= 0x10;
        assert_false(member_proof_verify(&proof, &s->key, &s->rq));
    }
    /* The same two keys, the other way round. */
    assert_true(member_proof_key_make(&key, &s->node_secret, &s->hub, &s->hub));
    assert_false(member_proof_verify(&s->proof, &key, &s->rq));
    memset(s->hub.b, 0, sizeof(s->hub.b));
    assert_false(member_proof_key_make(&key, &s->node_secret, &s->hub, &s->node));
    free(s);
}

static void test_too_long(void **state)
{
    struct sample *s = first_sample();
    char path[MEMBER_PROOF_PATH_MAX + 2];

    memset(path, 'p', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    s->rq.path = path;
    assert_false(member_proof_make(&s->proof, &s->key, &s->rq));
    assert_false(member_proof_verify(&s->proof, &s->key, &s->rq));
    s->rq.path = path + 1;
    assert_true(member_proof_make(&s->proof, &s->key, &s->rq));
    s->rq.method = "SIXTEEN-LETTERS-";
    assert_false(member_proof_make(&s->proof, &s->key, &s->rq));
    s->rq.method = "FIFTEEN-LETTERS";
    assert_true(member_proof_make(&s->proof, &s->key, &s->rq));
    free(s);
}

static void test_texts_that_are_none(void **state)
{
    struct sample *s = first_sample();
    struct member_proof got;
    char text[MEMBER_PROOF_TEXT_MAX + 1];
    size_t len = strlen(s->header);

    for (size_t n = 0; n < len; n++) {
        memcpy(text, s->header, n);
        text[n] = '\0';
        assert_false(member_proof_parse(&got, text));
    }
    for (size_t i = 0; i < len; i++) {
        memcpy(text, s->header, len + 1);
        text[i] = '!';
        assert_false(member_proof_parse(&got, text));
    }
    (void)snprintf(text, sizeof(text), "%s ", s->header);
    assert_false(member_proof_parse(&got, text));
    /* Each digit is one of sixteen. */
    for (const char *c = "0/9:a`fgA"; *c; c++) {
        memcpy(text, s->header, len + 1);
        text[strlen("Weft-Member ") + 3] = *c;
        assert_int_equal(member_proof_parse(&got, text), strchr("09af", *c) != NULL);
    }
    /* The greatest sequence number that there is. */
    memcpy(text, s->header, len + 1);
    memcpy(text + strlen("Weft-Member 0123456789abcdef "), "7fffffffffffffff", 16);
    assert_true(member_proof_parse(&got, text));
    assert_true(got.sequence == MEMBER_PROOF_SEQUENCE_MAX);
    /* A sequence number of 2^63, which no JSON could tell. */
    memcpy(text, s->header, len + 1);
    text[strlen("Weft-Member 0123456789abcdef ")] = '8';
    assert_false(member_proof_parse(&got, text));
    assert_false(member_proof_parse(&got, "Bearer something"));
    free(s);
}

static void test_window(void **state)
{
    static const struct {
        uint64_t sequence;
        bool expected;
    } rows[] = {
        {0, false},                         /* 1: before the beginning */
        {100, false},                       /* 2: the beginning itself */
        {99, false},                        /* 3 */
        {102, true},                        /* 4 */
        {102, false},                       /* 5: again */
        {101, true},                        /* 6: late */
        {101, false},                       /* 7 */
        {165, true},                        /* 8 */
        {103, true},                        /* 9: 62 behind */
        {102, false},                       /* 10: 63 behind, and seen */
        {166, true},                        /* 11 */
        {102, false},                       /* 12: 64 behind */
        {104, true},                        /* 13 */
        {MEMBER_PROOF_SEQUENCE_MAX, true},  /* 14 */
        {167, false},                       /* 15 */
        {MEMBER_PROOF_SEQUENCE_MAX, false}, /* 16 */
    };
    struct seq_window w;

    w = (struct seq_window){.highest = 100, .seen = UINT64_MAX};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (seq_window_take(&w, rows[i].sequence) != rows[i].expected)
            fail_msg("row %zu: %llu", i + 1, (unsigned long long)rows[i].sequence);
}

/* A signer that knows nothing asks once in vain; then each of its proofs is taken. */
static void test_signer(void **state)
{
    struct sample *s = first_sample();
    struct member_proof_signer signer;
    struct seq_window w;
    struct member_proof proof;
    char text[MEMBER_PROOF_TEXT_MAX];

    assert_true(member_proof_signer_init(&signer, &s->node_secret, &s->hub));
    w = (struct seq_window){.highest = 5000, .seen = UINT64_MAX};
    assert_true(member_proof_sign(&signer, &s->rq, text));
    assert_string_equal(text, s->header);
    member_proof_signer_learn(&signer, 77, 5000);
    for (uint64_t i = 1; i < 200; i++) {
        assert_true(member_proof_sign(&signer, &s->rq, text));
        assert_true(member_proof_parse(&proof, text));
        assert_int_equal(proof.boot, 77);
        assert_int_equal(proof.sequence, 5000 + i);
        assert_true(member_proof_verify(&proof, &s->key, &s->rq));
        assert_true(seq_window_take(&w, proof.sequence));
        assert_false(seq_window_take(&w, proof.sequence));
        /* What the hub had said to an earlier request changes nothing. */
        member_proof_signer_learn(&signer, 77, 5000 + i - 1);
    }
    /* That the next one is known to the hub already moves it on. */
    member_proof_signer_learn(&signer, 77, signer.next);
    assert_int_equal(signer.next, 5201);
    s->rq.method = "SIXTEEN-LETTERS-";
    assert_false(member_proof_sign(&signer, &s->rq, text));
    assert_int_equal(signer.next, 5201);
    s->rq.method = s->method;
    member_proof_signer_learn(&signer, 78, 3);
    assert_true(member_proof_sign(&signer, &s->rq, text));
    assert_true(member_proof_parse(&proof, text));
    assert_int_equal(proof.boot, 78);
    assert_int_equal(proof.sequence, 4);
    free(s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_what_it_covers),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_texts_that_are_none),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_signer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
