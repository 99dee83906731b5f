/* test-lock-chain.c - the chain of a lock: who signs what, what is refused, and two histories. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/lock/lock_chain.h"
#include "test/support/sample_lock.h"

#define BODY(k, ...) ((struct lock_body){.kind = (k), __VA_ARGS__})

/* ---- who signs ---- */

static void test_threshold(void **state)
{
    struct sample_lock s;

    (void)state;
    sample_lock_begin(&s);
    sample_lock_refuse(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4)), "",
        "0 of its 3 signers have signed it, and 2 have to");
    sample_lock_refuse(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4)), "carol",
        "entry 3 of the lock of \"lab\": 1 of its 3 signers have signed it, and 2 have to");
    sample_lock_refuse(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4)),
        "alice bob mallory", "which is no signer's");
    sample_lock_refuse(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4)), "code-1",
        "which is no signer's");
    sample_lock_put(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4)), "carol bob");
    sample_lock_put(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-4", 5)), "alice bob carol");
    sample_lock_deinit(&s);
}

static void test_a_bad_signature(void **state)
{
    struct sample_lock s;
    struct lock_body body = BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4));
    struct lock_entry entry;
    struct err e = ERR_NULL;

    (void)state;
    sample_lock_begin(&s);
    entry = sample_lock_make(&s, &body, "alice bob");
    entry.signatures[1].signature.b[5] ^= 1;
    assert_true(lock_chain_apply(&s.chain, &entry, &e) < 0);
    assert_non_null(strstr(e.text, "the signature of the key "));
    assert_non_null(strstr(e.text, " is not good"));
    entry.signatures[1].signature.b[5] ^= 1;
    assert_int_equal(lock_chain_apply(&s.chain, &entry, NULL), 0);
    lock_entry_deinit(&entry);
    sample_lock_deinit(&s);
}

static void test_rotation(void **state)
{
    struct sample_lock s;

    (void)state;
    sample_lock_begin(&s);
    sample_lock_refuse(&s, BODY(LOCK_SIGNERS, .signers = sample_lock_signers(1, "mallory", "")),
        "mallory", "which is no signer's");
    sample_lock_put(&s,
        BODY(LOCK_SIGNERS, .signers = sample_lock_signers(1, "dave erin", "code-3")), "alice bob");
    sample_lock_refuse(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4)), "alice bob",
        "which is no signer's");
    sample_lock_put(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4)), "erin");
    sample_lock_deinit(&s);
}

static void test_recovery(void **state)
{
    struct sample_lock s;
    struct lock_recover by_1 = {.key = sample_lock_signing("code-1"),
        .signers = sample_lock_signers(1, "dave", "code-2 code-3")};
    struct lock_recover by_2 = {
        .key = sample_lock_signing("code-2"), .signers = sample_lock_signers(1, "erin", "code-3")};

    (void)state;
    sample_lock_begin(&s);
    sample_lock_refuse(&s, BODY(LOCK_RECOVER, .recover = by_1), "code-2",
        "it has to be signed by the key of its code, and by no other");
    sample_lock_refuse(&s, BODY(LOCK_RECOVER, .recover = by_1), "code-1 alice",
        "it has to be signed by the key of its code, and by no other");
    sample_lock_refuse(&s, BODY(LOCK_RECOVER, .recover = by_1), "alice bob",
        "it has to be signed by the key of its code, and by no other");
    by_1.signers = sample_lock_signers(1, "dave", "code-1");
    sample_lock_refuse(&s, BODY(LOCK_RECOVER, .recover = by_1), "code-1", "is good once only");
    by_1.signers = sample_lock_signers(1, "dave code-1", "code-3");
    sample_lock_refuse(&s, BODY(LOCK_RECOVER, .recover = by_1), "code-1", "is good once only");
    by_1.signers = sample_lock_signers(1, "dave", "code-2 code-3");
    sample_lock_put(&s, BODY(LOCK_RECOVER, .recover = by_1), "code-1");
    sample_lock_refuse(&s, BODY(LOCK_RECOVER, .recover = by_1), "code-1",
        "the code is none of the 2 that recover this network");
    sample_lock_refuse(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4)), "alice bob",
        "which is no signer's");
    sample_lock_put(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4)), "dave");
    sample_lock_put(&s, BODY(LOCK_RECOVER, .recover = by_2), "code-2");
    sample_lock_put(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-4", 5)), "erin");
    sample_lock_deinit(&s);
}

/* ---- places ---- */

static void test_first_entry(void **state)
{
    struct sample_lock s;
    struct lock_genesis over = sample_lock_genesis();

    (void)state;
    sample_lock_init(&s, NULL);
    sample_lock_refuse(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-1", 2)), "alice bob",
        "it is a node; the first entry is the genesis, and no other one is");
    sample_lock_refuse(&s, BODY(LOCK_GENESIS, .genesis = sample_lock_genesis()), "alice",
        "1 of its 3 signers have signed it");
    sample_lock_refuse(&s, BODY(LOCK_GENESIS, .genesis = sample_lock_genesis()), "alice mallory",
        "which is no signer's");
    over.valid_until = s.now;
    sample_lock_refuse(
        &s, BODY(LOCK_GENESIS, .genesis = over), "alice bob", "would have expired when it is made");
    sample_lock_put(&s, BODY(LOCK_GENESIS, .genesis = sample_lock_genesis()), "alice bob");
    sample_lock_refuse(&s, BODY(LOCK_GENESIS, .genesis = sample_lock_genesis()), "alice bob",
        "it is a genesis; the first entry is the genesis, and no other one is");
    sample_lock_deinit(&s);
}

static int read_all(const struct sample_lock *s, const char *network, struct err *e)
{
    struct lock_chain c;
    int r;

    lock_chain_init(&c, network, NULL);
    r = lock_chain_read(&c, s->bytes, s->len, NULL, e);
    lock_chain_deinit(&c);
    return r;
}

static void test_another_network(void **state)
{
    struct sample_lock s;
    struct err e = ERR_NULL;

    (void)state;
    sample_lock_begin(&s);
    assert_int_equal(read_all(&s, "lab", NULL), 0);
    assert_true(read_all(&s, "lab2", &e) < 0);
    assert_non_null(strstr(e.text, "it is of the network \"lab\""));
    sample_lock_deinit(&s);
}

/* Nothing that was signed can be shown again, nor in another order, nor without what is between. */
static void test_replay(void **state)
{
    struct sample_lock s;
    struct lock_chain c;
    struct err e = ERR_NULL;
    size_t taken = 0;
    uint8_t *p;

    (void)state;
    sample_lock_begin(&s);
    lock_chain_init(&c, "lab", NULL);
    assert_true(lock_chain_read(&c, s.bytes + s.ends[0], s.len - s.ends[0], NULL, &e) < 0);
    assert_non_null(strstr(e.text, "entry 1 of the lock of \"lab\": the next entry is number 0"));
    assert_int_equal(lock_chain_read(&c, s.bytes, s.ends[1], &taken, NULL), 0);
    assert_int_equal(taken, s.ends[1]);
    p = s.bytes + s.ends[0];
    assert_true(lock_chain_read(&c, p, s.ends[1] - s.ends[0], &taken, &e) < 0);
    assert_non_null(strstr(e.text, "the next entry is number 2"));
    assert_int_equal(taken, 0);
    assert_int_equal(c.n, 2);
    lock_chain_deinit(&c);
    sample_lock_deinit(&s);
}

/* Another chain of the same signers: an entry of the one is none of the other. */
static void test_entries_of_another_chain(void **state)
{
    struct sample_lock a, b;
    struct err e = ERR_NULL;

    (void)state;
    sample_lock_begin(&a);
    sample_lock_init(&b, NULL);
    b.now++;
    sample_lock_put(&b, BODY(LOCK_GENESIS, .genesis = sample_lock_genesis()), "alice bob");
    assert_true(
        lock_chain_read(&b.chain, a.bytes + a.ends[0], a.ends[1] - a.ends[0], NULL, &e) < 0);
    assert_non_null(strstr(e.text, "it does not follow the entry before it"));
    sample_lock_deinit(&a);
    sample_lock_deinit(&b);
}

/* The clock of operators goes forward, as far as a chain is concerned. */
static void test_time_goes_forward(void **state)
{
    struct sample_lock s;
    struct lock_body body = BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4));
    struct lock_entry entry;
    struct ed25519_secret alice = sample_lock_secret("alice"), bob = sample_lock_secret("bob");
    struct err e = ERR_NULL;

    (void)state;
    sample_lock_begin(&s);
    entry = sample_lock_make(&s, &body, "");
    entry.made_at = s.chain.made_at - 3;
    assert_int_equal(lock_entry_sign(&entry, &alice, NULL), 0);
    assert_int_equal(lock_entry_sign(&entry, &bob, NULL), 0);
    assert_true(lock_chain_apply(&s.chain, &entry, &e) < 0);
    assert_non_null(strstr(e.text, "it was made 3 s before an entry that stands before it"));
    lock_entry_deinit(&entry);
    /* Who makes entries with a clock that is behind takes the time of the last one. */
    s.now = 5;
    sample_lock_put(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4)), "alice bob");
    sample_lock_deinit(&s);
}

/* Every bit of a chain counts: whichever is another one, its entry is refused. */
static void test_every_bit(void **state)
{
    struct sample_lock s;
    struct lock_chain c;
    size_t start = 0;

    (void)state;
    sample_lock_begin(&s);
    sample_lock_put(
        &s, BODY(LOCK_TOKEN, .token = sample_lock_token(&s, "token-1", 1)), "alice bob");
    sample_lock_put(&s,
        BODY(LOCK_JOIN, .join = {.token = sample_lock_signing("token-1"),
                            .node = sample_lock_node("gpu-3", 4)}),
        "token-1");
    lock_chain_init(&c, "lab", NULL);
    for (size_t i = 0; i < s.chain.n; i++) {
        for (size_t bit = 8 * start; bit < 8 * s.ends[i]; bit++) {
            s.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            if (lock_chain_read(&c, s.bytes + start, s.ends[i] - start, NULL, NULL) == 0)
                fail_msg("bit %zu does not count", bit);
            s.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        assert_int_equal(lock_chain_read(&c, s.bytes + start, s.ends[i] - start, NULL, NULL), 0);
        start = s.ends[i];
    }
    lock_chain_deinit(&c);
    sample_lock_deinit(&s);
}

/* ---- heads ---- */

static void test_heads(void **state)
{
    struct sample_lock a, b;
    struct lock_head head, before;

    (void)state;
    sample_lock_begin(&a);
    sample_lock_begin(&b);
    before = lock_chain_head(&a.chain);
    assert_int_equal(before.seq, 2);
    assert_int_equal(lock_chain_compare(&b.chain, &before), LOCK_ORDER_SAME);
    /* The hub tells the one that gpu-3 is there, and not the other. */
    sample_lock_put_node(&a, sample_lock_node("gpu-3", 4));
    head = lock_chain_head(&a.chain);
    assert_int_equal(lock_chain_compare(&b.chain, &head), LOCK_ORDER_BEHIND);
    assert_int_equal(lock_chain_compare(&a.chain, &before), LOCK_ORDER_AHEAD);
    /* The other one is told another history. */
    sample_lock_put_node(&b, sample_lock_node("gpu-4", 5));
    assert_int_equal(lock_chain_compare(&b.chain, &head), LOCK_ORDER_FORKED);
    sample_lock_put_node(&b, sample_lock_node("gpu-5", 6));
    assert_int_equal(lock_chain_compare(&b.chain, &head), LOCK_ORDER_FORKED);
    head = lock_chain_head(&b.chain);
    assert_int_equal(lock_chain_compare(&a.chain, &head), LOCK_ORDER_BEHIND);
    sample_lock_deinit(&a);
    sample_lock_deinit(&b);
}

/* Signatures are not in the hash: one more of them is the same history. */
static void test_more_signatures_are_the_same_history(void **state)
{
    struct sample_lock a, b;
    struct lock_head head;

    (void)state;
    sample_lock_begin(&a);
    sample_lock_begin(&b);
    sample_lock_put(&a, BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4)), "alice bob");
    sample_lock_put(&b, BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4)), "carol bob alice");
    head = lock_chain_head(&a.chain);
    assert_int_equal(lock_chain_compare(&b.chain, &head), LOCK_ORDER_SAME);
    sample_lock_deinit(&a);
    sample_lock_deinit(&b);
}

/* ---- pins ---- */

static struct lock_pins pins_of(const char *names, unsigned threshold)
{
    struct lock_signers signers = sample_lock_signers(1, names, "");
    struct lock_pins pins = {.n = signers.n, .threshold = threshold};

    for (unsigned i = 0; i < signers.n; i++)
        pins.keys[i] = signers.items[i].key;
    return pins;
}

static void test_pins(void **state)
{
    struct lock_pins pins = pins_of("dave erin", 2);
    struct sample_lock s;
    struct err e = ERR_NULL;

    (void)state;
    sample_lock_init(&s, &pins);
    assert_true(lock_chain_check_usable(&s.chain, &e) < 0);
    assert_non_null(strstr(e.text, "has no entry yet"));
    sample_lock_put(&s, BODY(LOCK_GENESIS, .genesis = sample_lock_genesis()), "alice bob");
    assert_true(lock_chain_check_usable(&s.chain, &e) < 0);
    assert_non_null(strstr(e.text,
        "no entry of the lock of \"lab\" is signed by 2 of the 2 signers that the join token "
        "names"));
    /* That others say they are the signers shows nothing. */
    sample_lock_put(
        &s, BODY(LOCK_SIGNERS, .signers = sample_lock_signers(1, "dave erin", "")), "alice bob");
    assert_true(lock_chain_check_usable(&s.chain, NULL) < 0);
    sample_lock_put(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-1", 2)), "erin");
    assert_true(lock_chain_check_usable(&s.chain, NULL) < 0);
    sample_lock_put(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-2", 3)), "dave erin");
    assert_int_equal(lock_chain_check_usable(&s.chain, NULL), 0);
    /* What follows is held to the rules alone. */
    sample_lock_put(&s, BODY(LOCK_SIGNERS, .signers = sample_lock_signers(1, "frank", "")), "dave");
    sample_lock_put(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4)), "frank");
    assert_int_equal(lock_chain_check_usable(&s.chain, NULL), 0);
    sample_lock_deinit(&s);
}

/* One signer of two, with a hub, makes a chain of which it alone is the signer. */
static void test_one_signer_makes_no_other_chain(void **state)
{
    struct lock_pins pins = pins_of("alice bob", 2);
    struct lock_genesis own = sample_lock_genesis();
    struct sample_lock s;

    (void)state;
    own.signers = sample_lock_signers(1, "alice", "");
    sample_lock_init(&s, &pins);
    sample_lock_put(&s, BODY(LOCK_GENESIS, .genesis = own), "alice");
    assert_true(lock_chain_check_usable(&s.chain, NULL) < 0);
    sample_lock_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threshold),
        cmocka_unit_test(test_a_bad_signature),
        cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_recovery),
        cmocka_unit_test(test_first_entry),
        cmocka_unit_test(test_another_network),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_entries_of_another_chain),
        cmocka_unit_test(test_time_goes_forward),
        cmocka_unit_test(test_every_bit),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_more_signatures_are_the_same_history),
        cmocka_unit_test(test_pins),
        cmocka_unit_test(test_one_signer_makes_no_other_chain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
