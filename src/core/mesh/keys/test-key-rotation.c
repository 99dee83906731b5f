/* test-key-rotation.c - a node's half of a rotation, a peer's half, and what they tell each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/keys/key_ack.h"
#include "mesh/keys/key_peer.h"
#include "mesh/keys/key_rotation.h"
#include "test/vectors/vectors.h"

static const struct x25519_public first = {{1, 1}};
static const struct x25519_public second = {{2, 2}};
static const struct x25519_public third = {{3, 3}};

/* Bits of a number as facts: six of the peer, then five of all. */
#define N_FACTS 11

static enum key_rotation_step decide(enum key_rotation_state state, unsigned bits)
{
    struct key_rotation r = {.state = state, .key = first, .next = second};
    struct key_rotation_peer peer = {.is_stock = bits & 1,
        .is_heard = bits >> 1 & 1,
        .is_reachable = bits >> 2 & 1,
        .knows_next = bits >> 3 & 1,
        .calls_next = bits >> 4 & 1,
        .is_seen_under_next = bits >> 5 & 1};
    struct key_rotation_facts facts = {.peers = &peer,
        .n_peers = 1,
        .hubs_keep_statement = bits >> 6 & 1,
        .hubs_have_moved = bits >> 7 & 1,
        .is_long_moved = bits >> 8 & 1,
        .has_two_keys = bits >> 9 & 1,
        .force = bits >> 10 & 1};

    return key_rotation_decide(&r, &facts);
}

/* How far a step goes. */
static int progress(enum key_rotation_step step)
{
    if (step == KEY_ROTATION_ANNOUNCE || step == KEY_ROTATION_FINISH)
        return 0;
    return step == KEY_ROTATION_WAIT ? 1 : 2;
}

/* That is what lets test-key-model.c look at the facts alone that go furthest. */
static void test_facts_are_monotone(void **state)
{
    static const enum key_rotation_state states[] = {KEY_ROTATION_PREPARED, KEY_ROTATION_MOVED};
    unsigned n_steps = 0;

    (void)state;
    for (size_t s = 0; s < 2; s++)
        for (unsigned bits = 0; bits < 1u << N_FACTS; bits++)
            for (unsigned bit = 0; bit < N_FACTS; bit++) {
                int before = progress(decide(states[s], bits & ~(1u << bit)));
                int after = progress(decide(states[s], bits | 1u << bit));
                bool is_hindrance = bit == 1 || bit == 2;

                if (bit == 0) /* a stock peer is another matter: its facts are others */
                    continue;
                assert_true(is_hindrance ? after <= before : after >= before);
                n_steps += after != before;
            }
    assert_true(n_steps > 100);
}

static void test_states(void **state)
{
    struct key_rotation r = {.state = KEY_ROTATION_IDLE, .key = first};
    struct key_rotation_peer peer = {.is_reachable = true};
    struct key_rotation_facts facts = {.peers = &peer, .n_peers = 1, .has_two_keys = true};

    (void)state;
    assert_int_equal(key_rotation_decide(&r, &facts), KEY_ROTATION_WAIT);
    assert_false(key_rotation_begin(&r, &first));
    assert_true(key_rotation_begin(&r, &second));
    assert_false(key_rotation_begin(&r, &third));
    assert_int_equal(key_rotation_decide(&r, &facts), KEY_ROTATION_ANNOUNCE);
    facts.hubs_keep_statement = true;
    assert_int_equal(key_rotation_decide(&r, &facts), KEY_ROTATION_WAIT);
    assert_true(key_rotation_waits_for(&r, &facts, &peer));
    assert_memory_equal(key_rotation_initiates_with(&r, &peer), &first, sizeof(first));
    peer.knows_next = true;
    assert_int_equal(key_rotation_decide(&r, &facts), KEY_ROTATION_MOVE);
    key_rotation_take(&r, KEY_ROTATION_MOVE);
    assert_memory_equal(key_rotation_initiates_with(&r, &peer), &second, sizeof(second));
    assert_int_equal(key_rotation_decide(&r, &facts), KEY_ROTATION_FINISH);
    facts.hubs_have_moved = true;
    facts.is_long_moved = true;
    assert_int_equal(key_rotation_decide(&r, &facts), KEY_ROTATION_WAIT);
    peer.calls_next = true;
    assert_int_equal(key_rotation_decide(&r, &facts), KEY_ROTATION_ERASE);
    key_rotation_take(&r, KEY_ROTATION_ERASE);
    assert_int_equal(r.state, KEY_ROTATION_IDLE);
    assert_memory_equal(&r.key, &second, sizeof(second));
    assert_true(x25519_public_is_none(&r.next));
}

static void test_stock_peers(void **state)
{
    struct key_rotation r = {.state = KEY_ROTATION_PREPARED, .key = first, .next = second};
    struct key_rotation_peer peer = {.is_stock = true};
    struct key_rotation_facts facts = {.peers = &peer,
        .n_peers = 1,
        .hubs_keep_statement = true,
        .hubs_have_moved = true,
        .is_long_moved = true};

    (void)state;
    /* The kernel's engine has one key: it waits, unless it is told not to. */
    assert_int_equal(key_rotation_decide(&r, &facts), KEY_ROTATION_WAIT);
    facts.force = true;
    assert_int_equal(key_rotation_decide(&r, &facts), KEY_ROTATION_MOVE);
    facts.force = false;
    facts.has_two_keys = true;
    assert_int_equal(key_rotation_decide(&r, &facts), KEY_ROTATION_MOVE);
    key_rotation_take(&r, KEY_ROTATION_MOVE);
    assert_memory_equal(key_rotation_initiates_with(&r, &peer), &first, sizeof(first));
    assert_int_equal(key_rotation_decide(&r, &facts), KEY_ROTATION_WAIT);
    peer.is_seen_under_next = true;
    assert_memory_equal(key_rotation_initiates_with(&r, &peer), &second, sizeof(second));
    assert_int_equal(key_rotation_decide(&r, &facts), KEY_ROTATION_ERASE);
}

static void test_due(void **state)
{
    static const struct x25519_public earliest = {{0xff, 0xff}};
    static const struct x25519_public latest = {{0}};

    (void)state;
    assert_true(key_rotation_due(&latest, 1000, 0) == UINT64_MAX);
    assert_true(key_rotation_due(&latest, UINT64_MAX, 1) == UINT64_MAX);
    assert_int_equal(key_rotation_due(&latest, 0, 100), 0);
    assert_int_equal(key_rotation_due(&latest, 1000, 100), 1100);
    assert_int_equal(key_rotation_due(&earliest, 1000, 100), 1090);
}

/* ---- a peer ---- */

/* Stands for key_chain_verify(): signatures are looked at in test-key-statement.c. */
static int believe(const struct x25519_public *trusted, const struct key_statement *chain, size_t n,
    const struct key_subject *subject, struct x25519_public *ret, struct err *e)
{
    (void)trusted, (void)subject, (void)e;
    *ret = chain[n - 1].new_key;
    return 0;
}

static void test_peer(void **state)
{
    const struct key_subject subject = {.name = "gpu-1"};
    struct key_statement chain[] = {
        {.old_key = first, .new_key = second}, {.old_key = second, .new_key = third}};
    struct key_peer p = {.key = first};

    (void)state;
    assert_int_equal(key_peer_on_chain(&p, NULL, 0, &subject, believe, NULL), 0);
    assert_int_equal(key_peer_on_chain(&p, chain, 1, &subject, believe, NULL), 1);
    assert_int_equal(key_peer_on_chain(&p, chain, 1, &subject, believe, NULL), 0);
    assert_true(key_peer_takes(&p, &first) && key_peer_takes(&p, &second));
    assert_false(key_peer_takes(&p, &third));
    /* A hub's word: not about another key, and not about a peer that is heard. */
    assert_false(key_peer_on_hub_key(&p, &third, true));
    assert_false(key_peer_on_hub_key(&p, &second, false));
    assert_memory_equal(key_peer_calls(&p), &first, sizeof(first));
    assert_true(key_peer_on_hub_key(&p, &second, true));
    assert_memory_equal(key_peer_calls(&p), &second, sizeof(second));
    assert_false(key_peer_on_handshake(&p, &second, false));
    assert_true(key_peer_on_handshake(&p, &first, true));
    assert_memory_equal(key_peer_calls(&p), &first, sizeof(first));
    assert_false(key_peer_on_handshake(&p, &third, true));
    assert_true(key_peer_on_handshake(&p, &second, true));
    assert_false(key_peer_takes(&p, &first));
    assert_memory_equal(&p.key, &second, sizeof(second));
    /* Two rotations at once: only the last key and the one before it are still in use. */
    p = (struct key_peer){.key = first, .next = second};
    assert_int_equal(key_peer_on_chain(&p, chain, 2, &subject, believe, NULL), 1);
    assert_memory_equal(&p.key, &second, sizeof(second));
    assert_memory_equal(key_peer_newest(&p), &third, sizeof(third));
}

static void test_two_next_keys(void **state)
{
    const struct key_subject subject = {.name = "gpu-1"};
    struct key_statement other = {.old_key = first, .new_key = third};
    struct key_peer p = {.key = first, .next = second};
    struct err e = ERR_NULL;

    (void)state;
    assert_true(key_peer_on_chain(&p, &other, 1, &subject, believe, &e) < 0);
    assert_string_equal(e.text, "the key of \"gpu-1\" has signed two next ones");
    assert_memory_equal(&p.next, &second, sizeof(second));
}

/* ---- acknowledgements ---- */

static void check_ack(const struct vectors *v)
{
    struct x25519_secret member_secret, next_secret;
    struct x25519_public member, next;
    struct key_ack expected, made;
    enum key_ack_level level = (enum key_ack_level)vectors_u64(v, "level");

    vectors_exact(v, "member_secret", member_secret.b, X25519_SIZE);
    vectors_exact(v, "next_secret", next_secret.b, X25519_SIZE);
    vectors_exact(v, "mac", expected.mac, sizeof(expected.mac));
    assert_true(x25519_derive_public(&member_secret, &member));
    assert_true(x25519_derive_public(&next_secret, &next));
    assert_true(key_ack_make(&made, level, &member_secret, &next));
    assert_memory_equal(&made, &expected, sizeof(made));
    assert_int_equal(key_ack_verify(&made, &next_secret, &member), level);
    assert_int_equal(key_ack_verify(&made, &next_secret, &next), KEY_ACK_NONE);
    assert_int_equal(key_ack_verify(&made, &member_secret, &member), KEY_ACK_NONE);
    made.mac[31] ^= 1;
    assert_int_equal(key_ack_verify(&made, &next_secret, &member), KEY_ACK_NONE);
}

static void test_acks(void **state)
{
    static const struct x25519_public none = {{0}};
    struct x25519_secret secret = {{9}};
    struct key_ack ack;
    unsigned n = 0;
    struct vectors v;

    (void)state;
    vectors_open(&v, "keys.txt");
    while (vectors_next(&v))
        if (strncmp(v.title, "ack ", strlen("ack ")) == 0) {
            check_ack(&v);
            n++;
        }
    vectors_close(&v);
    assert_int_equal(n, 2);
    assert_false(key_ack_make(&ack, KEY_ACK_KNOWN, &secret, &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts_are_monotone),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_stock_peers),
        cmocka_unit_test(test_due),
        cmocka_unit_test(test_peer),
        cmocka_unit_test(test_two_next_keys),
        cmocka_unit_test(test_acks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
