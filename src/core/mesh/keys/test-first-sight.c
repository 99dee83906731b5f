/* test-first-sight.c - which changes of a peer a node believes, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/keys/first_sight.h"
#include "test/support/sample_mesh.h"

#define BEGIN 1700000000

/* A node n2 of a network of four, and what it knows. */
struct world {
    struct first_sight fs;
    struct first_sight_facts facts;
    int64_t heard_at;                 /* the last frame of @heard; 0: none */
    struct x25519_public heard;       /* whose key answers */
    struct x25519_public signed_from; /* this key has signed whatever the hub says */
    unsigned n_taken;
};

static int64_t answered(void *ctx, const struct x25519_public *key)
{
    const struct world *w = ctx;

    return x25519_public_equal(key, &w->heard) ? w->heard_at : 0;
}

static bool follows(void *ctx, const struct node *node, const struct x25519_public *held)
{
    const struct world *w = ctx;

    return x25519_public_equal(held, &w->signed_from);
}

static void taken(void *ctx, const struct first_sight_peer *peer)
{
    struct world *w = ctx;

    assert_int_equal(peer->offered_at, 0);
    w->n_taken++;
}

static enum first_sight_verdict say(struct world *w, struct object *o)
{
    return first_sight_node(&w->fs, &o->node, &w->facts);
}

/* Number @n, with the key of number @key and the address of number @address. */
static struct object node_with(unsigned n, unsigned key, unsigned address)
{
    struct object o = sample_node(n);
    struct object other = sample_node(address);

    o.node.key = sample_key(key);
    o.node.address4 = other.node.address4;
    o.node.address6 = other.node.address6;
    object_deinit(&other);
    return o;
}

static enum first_sight_verdict say_with(
    struct world *w, unsigned n, unsigned key, unsigned address)
{
    struct object o = node_with(n, key, address);
    enum first_sight_verdict verdict = say(w, &o);

    object_deinit(&o);
    return verdict;
}

static struct world *make(void)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->fs = (struct first_sight)FIRST_SIGHT_NULL;
    (void)snprintf(w->fs.self, sizeof(w->fs.self), "n2");
    w->facts =
        (struct first_sight_facts){.at = BEGIN, .answered = answered, .follows = follows, .ctx = w};
    for (unsigned n = 1; n <= 4; n++)
        assert_int_equal(say_with(w, n, n, n), FIRST_SIGHT_BELIEVED);
    w->fs.has_members = true;
    assert_int_equal(w->fs.n, 3); /* itself is no peer */
    return w;
}

static void end(struct world *w)
{
    first_sight_deinit(&w->fs);
    free(w);
}

static enum first_sight_state state_of(const struct world *w, const char *name)
{
    return first_sight_state(&w->fs, first_sight_find(&w->fs, name), w->facts.at);
}

static void look(struct world *w)
{
    first_sight_look(&w->fs, &w->facts, taken, w);
}

/* n3 answers under its key at that time. */
static void hear_n3(struct world *w, int64_t at)
{
    w->heard = sample_key(3);
    w->heard_at = at;
}

static void test_first_sight_is_believed(void **state)
{
    struct world *w = make();

    assert_int_equal(state_of(w, "n3"), FIRST_SIGHT_WELL);
    assert_int_equal(say_with(w, 3, 3, 3), FIRST_SIGHT_BELIEVED);
    assert_int_equal(say_with(w, 5, 5, 5), FIRST_SIGHT_BELIEVED);
    assert_int_equal(state_of(w, "n5"), FIRST_SIGHT_WELL);
    assert_int_equal(first_sight_find(&w->fs, "n5")->seen_at, BEGIN);
    end(w);
}

static void test_a_key_that_answers_is_not_replaced(void **state)
{
    struct world *w = make();
    struct object o = node_with(3, 9, 3);

    hear_n3(w, BEGIN - 60);
    assert_int_equal(say(w, &o), FIRST_SIGHT_KEPT);
    assert_true(x25519_public_equal(&o.node.key, &w->heard));
    assert_int_equal(state_of(w, "n3"), FIRST_SIGHT_SILENCE);
    hear_n3(w, BEGIN + 5);
    w->facts.at = BEGIN + 10;
    look(w);
    assert_int_equal(state_of(w, "n3"), FIRST_SIGHT_REFUSED);
    /* For as long as it answers. */
    for (int64_t t = 0; t < 2 * 24 * 3600; t += 300) {
        hear_n3(w, BEGIN + t);
        w->facts.at = BEGIN + t + 300;
        look(w);
    }
    assert_int_equal(w->n_taken, 0);
    assert_int_equal(say_with(w, 3, 9, 3), FIRST_SIGHT_KEPT);
    /* The hub takes it back. */
    assert_int_equal(say_with(w, 3, 3, 3), FIRST_SIGHT_BELIEVED);
    assert_int_equal(state_of(w, "n3"), FIRST_SIGHT_WELL);
    assert_int_equal(w->fs.n_offered, 0);
    object_deinit(&o);
    end(w);
}

static void test_a_silent_key_is_replaced_and_shown(void **state)
{
    struct world *w = make();
    struct object o = node_with(3, 9, 3);
    const struct first_sight_peer *n3;

    hear_n3(w, BEGIN);
    w->facts.at = BEGIN + 100;
    assert_int_equal(say(w, &o), FIRST_SIGHT_KEPT);
    n3 = first_sight_find(&w->fs, "n3");
    assert_int_equal(first_sight_silent_at(&w->fs, n3), BEGIN + FIRST_SIGHT_HELD_S);
    w->facts.at = BEGIN + FIRST_SIGHT_HELD_S - 1;
    look(w);
    assert_int_equal(w->n_taken, 0);
    w->facts.at++;
    look(w);
    assert_int_equal(w->n_taken, 1);
    first_sight_apply(n3, &o.node);
    assert_false(x25519_public_equal(&o.node.key, &w->heard));
    assert_int_equal(state_of(w, "n3"), FIRST_SIGHT_TAKEN);
    assert_int_equal(n3->changed, FIRST_SIGHT_KEY);
    w->facts.at += FIRST_SIGHT_SHOWN_S;
    assert_int_equal(state_of(w, "n3"), FIRST_SIGHT_WELL);
    object_deinit(&o);
    end(w);
}

/* Who was never heard is asked first. */
static void test_a_key_that_was_never_heard_is_asked(void **state)
{
    struct world *w = make();

    assert_int_equal(say_with(w, 4, 9, 4), FIRST_SIGHT_KEPT);
    w->facts.at = BEGIN + FIRST_SIGHT_ASKED_S - 1;
    look(w);
    assert_int_equal(w->n_taken, 0);
    w->facts.at++;
    look(w);
    assert_int_equal(w->n_taken, 1);
    end(w);
}

static void test_a_signed_key_is_believed_at_once(void **state)
{
    struct world *w = make();

    hear_n3(w, BEGIN);
    w->signed_from = sample_key(3);
    assert_int_equal(say_with(w, 3, 9, 3), FIRST_SIGHT_BELIEVED);
    assert_int_equal(first_sight_find(&w->fs, "n3")->how, FIRST_SIGHT_SIGNED);
    assert_int_equal(state_of(w, "n3"), FIRST_SIGHT_WELL);
    /* A signature is about the key alone. */
    w->signed_from = sample_key(9);
    w->heard = sample_key(9);
    w->heard_at = BEGIN;
    assert_int_equal(say_with(w, 3, 8, 7), FIRST_SIGHT_KEPT);
    end(w);
}

static void test_another_address(void **state)
{
    struct world *w = make();

    hear_n3(w, BEGIN);
    assert_int_equal(say_with(w, 3, 3, 7), FIRST_SIGHT_KEPT);
    assert_int_equal(first_sight_changes(&first_sight_find(&w->fs, "n3")->held,
                         &first_sight_find(&w->fs, "n3")->offered),
        FIRST_SIGHT_ADDRESS);
    /* Somebody new with an address of another peer is nobody, for as long as that one is there. */
    assert_int_equal(say_with(w, 6, 6, 4), FIRST_SIGHT_LEFT_OUT);
    assert_int_equal(state_of(w, "n6"), FIRST_SIGHT_REFUSED);
    w->facts.at = BEGIN + 10 * FIRST_SIGHT_HELD_S;
    look(w);
    assert_int_equal(first_sight_find(&w->fs, "n6")->seen_at, 0);
    first_sight_gone(&w->fs, "n4", &w->facts);
    look(w);
    assert_true(first_sight_find(&w->fs, "n6")->seen_at != 0);
    end(w);
}

static void test_removal_and_return(void **state)
{
    struct world *w = make();

    hear_n3(w, BEGIN - 10);
    first_sight_gone(&w->fs, "n3", &w->facts);
    assert_int_equal(first_sight_find(&w->fs, "n3")->removed_at, BEGIN);
    assert_int_equal(first_sight_find(&w->fs, "n3")->answered_at, BEGIN - 10);
    /* Its old key does not come back by that. */
    assert_int_equal(say_with(w, 3, 9, 3), FIRST_SIGHT_LEFT_OUT);
    w->facts.at = BEGIN + FIRST_SIGHT_HELD_S - 10;
    look(w);
    assert_int_equal(w->n_taken, 1);
    assert_int_equal(state_of(w, "n3"), FIRST_SIGHT_TAKEN);
    /* With the same key it is no change. */
    first_sight_gone(&w->fs, "n4", &w->facts);
    assert_int_equal(say_with(w, 4, 4, 4), FIRST_SIGHT_BELIEVED);
    assert_int_equal(first_sight_find(&w->fs, "n4")->removed_at, 0);
    first_sight_gone(&w->fs, "n4", &w->facts);
    w->facts.at += FIRST_SIGHT_KEPT_S - 1;
    look(w);
    assert_non_null(first_sight_find(&w->fs, "n4"));
    w->facts.at++;
    look(w);
    assert_null(first_sight_find(&w->fs, "n4"));
    end(w);
}

static void test_members_that_are_not_named_are_removed(void **state)
{
    struct world *w = make();
    struct snapshot s = sample_snapshot(3, 2);

    first_sight_members(&w->fs, &s, &w->facts);
    assert_int_equal(first_sight_find(&w->fs, "n3")->removed_at, 0);
    assert_int_equal(first_sight_find(&w->fs, "n4")->removed_at, BEGIN);
    snapshot_deinit(&s);
    end(w);
}

static void test_hubs(void **state)
{
    struct world *w = make();
    struct object hub = sample_node(1);
    struct object second = node_with(1, 7, 7);

    assert_true(hub.node.hub != NULL);
    assert_int_equal(state_of(w, "hub"), FIRST_SIGHT_WELL);
    (void)snprintf(second.node.meta.name, sizeof(second.node.meta.name), "hub-b");
    assert_int_equal(say(w, &second), FIRST_SIGHT_BELIEVED);
    assert_int_equal(state_of(w, "hub-b"), FIRST_SIGHT_NEW_HUB);
    /* Where it was asked for, the operator decides. */
    w->fs.asks = true;
    (void)snprintf(second.node.meta.name, sizeof(second.node.meta.name), "hub-c");
    second.node.key = sample_key(8);
    second.node.address4.b[15] = second.node.address6.b[15] = 8;
    assert_int_equal(say(w, &second), FIRST_SIGHT_LEFT_OUT);
    assert_int_equal(state_of(w, "hub-c"), FIRST_SIGHT_ASKS);
    assert_int_equal(first_sight_trust(&w->fs, "hub-c", &w->facts, taken, w, NULL), 0);
    assert_int_equal(say(w, &second), FIRST_SIGHT_BELIEVED);
    /* Another TLS key, while the hub's own key answers. */
    w->fs.asks = false;
    hub.node.hub->has_tls_pin = true;
    assert_int_equal(say(w, &hub), FIRST_SIGHT_BELIEVED);
    w->heard = sample_key(1);
    w->heard_at = BEGIN;
    hub.node.hub->tls_pin.b[0] ^= 1;
    assert_int_equal(say(w, &hub), FIRST_SIGHT_KEPT);
    assert_int_equal(hub.node.hub->tls_pin.b[0], 0);
    object_deinit(&hub);
    object_deinit(&second);
    end(w);
}

static void test_the_operator_is_asked(void **state)
{
    struct world *w = make();
    struct err e = ERR_NULL;

    w->fs.asks = true;
    assert_int_equal(say_with(w, 3, 9, 3), FIRST_SIGHT_KEPT);
    w->facts.at = BEGIN + 100 * FIRST_SIGHT_HELD_S;
    look(w);
    assert_int_equal(w->n_taken, 0);
    assert_int_equal(state_of(w, "n3"), FIRST_SIGHT_ASKS);
    assert_int_equal(first_sight_trust(&w->fs, "n3", &w->facts, taken, w, &e), 0);
    assert_int_equal(w->n_taken, 1);
    assert_int_equal(state_of(w, "n3"), FIRST_SIGHT_WELL);
    assert_int_equal(first_sight_trust(&w->fs, "nobody", &w->facts, taken, w, &e), -ENOENT);
    assert_string_equal(err_text(&e), "nobody called \"nobody\" is known here");
    assert_int_equal(say_with(w, 6, 6, 4), FIRST_SIGHT_LEFT_OUT);
    assert_int_equal(first_sight_trust(&w->fs, "n6", &w->facts, taken, w, &e), -EBUSY);
    end(w);
}

static void test_the_file(void **state)
{
    struct world *w = make();
    struct first_sight read;
    struct err e = ERR_NULL;
    json_t *json;
    json_t *again;

    hear_n3(w, BEGIN);
    assert_int_equal(say_with(w, 3, 9, 3), FIRST_SIGHT_KEPT);
    assert_int_equal(say_with(w, 6, 6, 4), FIRST_SIGHT_LEFT_OUT);
    first_sight_gone(&w->fs, "n4", &w->facts);
    json = first_sight_encode(&w->fs);
    assert_non_null(json);
    if (first_sight_decode(&read, json, "peers.json", &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(read.n, w->fs.n);
    assert_int_equal(read.n_offered, 2);
    assert_true(read.has_members);
    again = first_sight_encode(&read);
    assert_true(json_equal(json, again));
    json_decref(again);
    first_sight_deinit(&read);
    (void)json_object_set_new(
        json_array_get(json_object_get(json, "peers"), 0), "name", json_string("zz"));
    assert_int_equal(first_sight_decode(&read, json, "peers.json", &e), -EINVAL);
    assert_non_null(strstr(err_text(&e), "comes behind \"zz\""));
    json_decref(json);
    end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_sight_is_believed),
        cmocka_unit_test(test_a_key_that_answers_is_not_replaced),
        cmocka_unit_test(test_a_silent_key_is_replaced_and_shown),
        cmocka_unit_test(test_a_key_that_was_never_heard_is_asked),
        cmocka_unit_test(test_a_signed_key_is_believed_at_once),
        cmocka_unit_test(test_another_address),
        cmocka_unit_test(test_removal_and_return),
        cmocka_unit_test(test_members_that_are_not_named_are_removed),
        cmocka_unit_test(test_hubs),
        cmocka_unit_test(test_the_operator_is_asked),
        cmocka_unit_test(test_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
