/* test-key-statement.c - statements of keys and their chains, against Python's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/secret.h"
#include "mesh/keys/key_statement.h"
#include "test/vectors/vectors.h"

#define N_KEYS 6

/* Hands out what the vectors have been made with, in turn. */
struct given {
    uint8_t bytes[2 * XEDDSA_SIZE];
    size_t off;
};

static void fill_given(void *ctx, void *buf, size_t len)
{
    struct given *g = ctx;

    assert_true(g->off + len <= sizeof(g->bytes));
    memcpy(buf, g->bytes + g->off, len);
    g->off += len;
}

static void read_text(const struct vectors *v, const char *name, char *buf, size_t cap)
{
    buf[vectors_bytes(v, name, buf, cap - 1)] = '\0';
}

/* Everything but the signatures. */
static void read_fields(const struct vectors *v, struct key_statement *s,
    struct x25519_secret *old_secret, struct x25519_secret *new_secret)
{
    *s = (struct key_statement){.kind = (enum key_kind)vectors_u64(v, "kind"),
        .serial = vectors_u64(v, "serial"),
        .made_at = vectors_u64(v, "made")};
    vectors_exact(v, "old_secret", old_secret->b, X25519_SIZE);
    vectors_exact(v, "new", new_secret->b, X25519_SIZE);
    read_text(v, "network", s->network, sizeof(s->network));
    read_text(v, "subject", s->subject, sizeof(s->subject));
    assert_true(x25519_derive_public(old_secret, &s->old_key));
    if (s->kind == KEY_KIND_TLS)
        memcpy(s->pin.b, new_secret->b, sizeof(s->pin.b));
    else
        assert_true(x25519_derive_public(new_secret, &s->new_key));
}

static void check_vector(const struct vectors *v)
{
    struct key_statement s, decoded;
    struct x25519_secret old_secret, new_secret;
    struct given given = {.off = 0};
    struct rng rng = {.fill = fill_given, .ctx = &given};
    uint8_t expected[KEY_STATEMENT_MAX], bytes[KEY_STATEMENT_MAX];
    size_t len = vectors_bytes(v, "bytes", expected, sizeof(expected));
    char text[KEY_STATEMENT_TEXT_MAX], read[KEY_STATEMENT_TEXT_MAX];

    read_fields(v, &s, &old_secret, &new_secret);
    read_text(v, "text", read, sizeof(read));
    vectors_exact(v, "random", given.bytes, sizeof(given.bytes));
    assert_int_equal(key_statement_sign(&s, &old_secret, &new_secret, &rng, NULL), 0);
    assert_int_equal(key_statement_encode(&s, bytes), len);
    assert_memory_equal(bytes, expected, len);
    assert_string_equal(key_statement_format(&s, text), read);
    assert_int_equal(key_statement_decode(&decoded, expected, len, NULL), 0);
    assert_true(key_statement_equal(&decoded, &s));
    assert_int_equal(key_statement_verify(&decoded, NULL), 0);
    for (size_t i = 0; i < len; i++)
        assert_true(key_statement_decode(&decoded, expected, i, NULL) < 0);
    for (size_t i = 0; i < len; i += 3) {
        bytes[i] ^= 1;
        assert_true(key_statement_decode(&decoded, bytes, len, NULL) < 0 ||
                    key_statement_verify(&decoded, NULL) < 0);
        bytes[i] ^= 1;
    }
}

static void test_vectors(void **state)
{
    unsigned n = 0;
    struct vectors v;

    (void)state;
    vectors_open(&v, "keys.txt");
    while (vectors_next(&v)) {
        if (strncmp(v.title, "statement ", strlen("statement ")) != 0)
            continue;
        check_vector(&v);
        n++;
    }
    vectors_close(&v);
    assert_int_equal(n, 6);
}

/* Keys 0 to N_KEYS - 1, and the statements from each to the next. */
struct keys {
    struct x25519_secret secrets[N_KEYS];
    struct x25519_public publics[N_KEYS];
    struct key_statement chain[N_KEYS - 1];
    struct key_subject subject;
    uint64_t seed;
};

static void sign_link(struct keys *k, struct key_statement *s, size_t from, size_t to)
{
    struct rng rng = rng_seeded(&k->seed);

    s->old_key = k->publics[from];
    s->new_key = k->publics[to];
    assert_int_equal(key_statement_sign(s, &k->secrets[from], &k->secrets[to], &rng, NULL), 0);
}

static void make_keys(struct keys *k)
{
    struct rng rng = rng_seeded(&k->seed);

    *k = (struct keys){
        .seed = 42, .subject = {.kind = KEY_KIND_NODE, .network = "lab", .name = "gpu-1"}};
    for (size_t i = 0; i < N_KEYS; i++) {
        x25519_secret_make(&k->secrets[i], &rng);
        assert_true(x25519_derive_public(&k->secrets[i], &k->publics[i]));
    }
    for (size_t i = 0; i + 1 < N_KEYS; i++) {
        k->chain[i] = (struct key_statement){.kind = KEY_KIND_NODE,
            .network = "lab",
            .subject = "gpu-1",
            .serial = i + 1,
            .made_at = 1000 + i};
        sign_link(k, &k->chain[i], i, i + 1);
    }
}

/* @words: what the refusal says; NULL: the chain leads from key @from to key @to. */
static void expect(const struct keys *k, size_t from, size_t n, size_t to, const char *words)
{
    struct x25519_public key = {{0x77}};
    struct err e = ERR_NULL;
    int r = key_chain_verify(&k->publics[from], k->chain, n, &k->subject, &key, &e);

    if (!words) {
        assert_string_equal(e.text, "");
        assert_int_equal(r, 0);
        assert_true(x25519_public_equal(&key, &k->publics[to]));
        return;
    }
    assert_true(r < 0);
    assert_int_equal(key.b[0], 0x77);
    assert_non_null(strstr(e.text, words));
}

static void test_chain(void **state)
{
    struct keys k = {.seed = 0};

    (void)state;
    make_keys(&k);
    for (size_t from = 0; from < N_KEYS; from++)
        for (size_t n = 1; n < N_KEYS; n++)
            expect(&k, from, n, n, from <= n ? NULL : "no statement leads from");
    expect(&k, 0, 0, 0, "no statement leads from");
    expect(&k, 0, KEY_CHAIN_MAX + 1, 0, "up to 64 are taken");
}

static void test_broken_chains(void **state)
{
    struct keys k = {.seed = 0};
    struct key_statement good;

    (void)state;
    make_keys(&k);
    good = k.chain[2];
    k.chain[2].by_old.b[3] ^= 1;
    expect(&k, 0, 5, 5, "statement 3 of \"gpu-1\" in \"lab\" is not signed by its old key");
    expect(&k, 3, 5, 5, NULL); /* who trusts what came after it does not look at it */
    k.chain[2] = good;
    k.chain[2].by_new.b[40] ^= 1;
    expect(&k, 0, 5, 5, "not signed by its new key");
    k.chain[2] = good;
    k.chain[2].serial = 9;
    sign_link(&k, &k.chain[2], 2, 3);
    expect(&k, 0, 5, 5, "statement 9 of \"gpu-1\" does not follow");
    k.chain[2] = good;
    sign_link(&k, &k.chain[2], 2, 5);
    expect(&k, 0, 5, 5, "does not follow");
    k.chain[2] = good;
    memcpy(k.chain[2].subject, "gpu-2", sizeof("gpu-2"));
    sign_link(&k, &k.chain[2], 2, 3);
    expect(&k, 0, 5, 5, "hold one of \"gpu-2\"");
    k.chain[2] = good;
    k.chain[2].kind = KEY_KIND_HUB;
    sign_link(&k, &k.chain[2], 2, 3);
    expect(&k, 0, 5, 5, "hold one of");
    k.chain[2] = good;
    k.subject.network = "other";
    expect(&k, 0, 5, 5, "of \"gpu-1\" in \"other\" hold one of \"gpu-1\" in \"lab\"");
}

static void test_signs_only_with_its_keys(void **state)
{
    struct keys k = {.seed = 0};
    struct rng rng = rng_seeded(&k.seed);
    struct key_statement s;
    struct err e = ERR_NULL;

    (void)state;
    make_keys(&k);
    s = k.chain[0];
    assert_true(key_statement_sign(&s, &k.secrets[2], &k.secrets[1], &rng, &e) < 0);
    assert_true(key_statement_sign(&s, &k.secrets[0], &k.secrets[2], &rng, &e) < 0);
    assert_true(key_statement_equal(&s, &k.chain[0]));
}

static void test_decoder_says_what_is_wrong(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {"", "4 to 476 characters"},
        {"AAAA", "does not begin with"},
        {"AAA", "4 to 476 characters"},
        {"!!!!", "no base64"},
        {"d2VmdCBrZXkgc3RhdGVtZW50IDEA", "kind 0"},
        {"d2VmdCBrZXkgc3RhdGVtZW50IDEBAA==", "name"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct key_statement s;
        struct err e = ERR_NULL;

        assert_true(key_statement_parse(&s, rows[i].text, &e) < 0);
        if (!strstr(e.text, rows[i].words))
            fail_msg("row %zu: \"%s\"", i, e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_broken_chains),
        cmocka_unit_test(test_signs_only_with_its_keys),
        cmocka_unit_test(test_decoder_says_what_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
