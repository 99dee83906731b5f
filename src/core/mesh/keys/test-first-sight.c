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
#include "test/support/sample_keys.h"
#include "test/support/sample_mesh.h"

#define BEGIN 1700000000

/* A node n2 of a network of four, and what it knows. */
struct world {
    struct first_sight fs;
    struct first_sight_facts facts;
    int64_t heard_at;           /* the last frame of @heard; 0: none */
    struct x25519_public heard; /* whose key answers */
    unsigned n_taken;
};

static int64_t answered(void *ctx, const struct x25519_public *key)
{
    const struct world *w = ctx;

    return x25519_public_equal(key, &w->heard) ? w->heard_at : 0;
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
    w->facts = (struct first_sight_facts){.at = BEGIN, .answered = answered, .ctx = w};
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

/* n3 is known by its first key here, and its hub shows what it has signed. */
struct change {
    struct world *w;
    struct sample_keys keys;
    struct object said;
};

static struct change make_change(void)
{
    struct change c = {.w = make(), .said = sample_node(3)};

    sample_keys_make(&c.keys, "default", "n3");
    first_sight_deinit(&c.w->fs);
    sample_keys_say(&c.said.node, &c.keys, 0, -1, 0);
    assert_int_equal(say(c.w, &c.said), FIRST_SIGHT_BELIEVED);
    c.w->heard = c.keys.keys[0];
    return c;
}

/* The hub says that it has key @key and goes on with @next, by @n statements. Return: as
 * first_sight_chain(). */
static int say_keys(struct change *c, int key, int next, unsigned n)
{
    struct err e = ERR_NULL;
    int r;

    sample_keys_say(&c->said.node, &c->keys, key, next, n);
    r = first_sight_chain(&c->w->fs, &c->said.node, "default", &c->w->facts, &e);
    assert_int_equal(say(c->w, &c->said), FIRST_SIGHT_BELIEVED);
    return r;
}

static void end_change(struct change *c)
{
    object_deinit(&c->said);
    end(c->w);
}

static void expect_keys(const struct change *c, int calls, int other)
{
    static const struct x25519_public none = {{0}};

    assert_memory_equal(&c->said.node.key, &c->keys.keys[calls], sizeof(none));
    assert_memory_equal(
        &c->said.node.keys->other, other < 0 ? &none : &c->keys.keys[other], sizeof(none));
}

static void test_a_signed_key_is_believed_at_once(void **state)
{
    struct change c = make_change();
    const struct x25519_public *keys = c.keys.keys;
    struct first_sight *fs = &c.w->fs;

    c.w->heard_at = BEGIN;
    assert_int_equal(first_sight_level(fs, "n3", &keys[1]), KEY_ACK_NONE);
    assert_int_equal(say_keys(&c, 0, 1, 1), 1);
    expect_keys(&c, 0, 1);
    assert_int_equal(first_sight_level(fs, "n3", &keys[1]), KEY_ACK_KNOWN);
    assert_int_equal(say_keys(&c, 0, 1, 1), 0);
    /* It is there, and calls under neither yet: what the hub says of its key changes nothing. */
    assert_int_equal(say_keys(&c, 1, 1, 1), 0);
    expect_keys(&c, 0, 1);
    assert_int_equal(state_of(c.w, "n3"), FIRST_SIGHT_WELL);
    assert_false(first_sight_on_call(fs, "n3", &keys[0], &c.w->facts));
    assert_true(first_sight_on_call(fs, "n3", &keys[1], &c.w->facts));
    assert_false(first_sight_on_call(fs, "n3", &keys[1], &c.w->facts));
    assert_int_equal(say_keys(&c, 1, 1, 1), 0);
    expect_keys(&c, 1, -1);
    assert_int_equal(first_sight_level(fs, "n3", &keys[1]), KEY_ACK_BELIEVED);
    assert_int_equal(first_sight_find(fs, "n3")->how, FIRST_SIGHT_SIGNED);
    assert_int_equal(state_of(c.w, "n3"), FIRST_SIGHT_WELL);
    end_change(&c);
}

/* What is not signed is a change as ever, also beside a key that is. */
static void test_a_key_that_is_not_signed(void **state)
{
    struct change c = make_change();
    const struct x25519_public other = sample_key(9);
    struct sample_keys others;
    struct err e = ERR_NULL;

    c.w->heard_at = BEGIN;
    sample_keys_make(&others, "default", "n4");
    sample_keys_say(&c.said.node, &others, 0, 1, 1);
    assert_int_equal(
        first_sight_chain(&c.w->fs, &c.said.node, "default", &c.w->facts, &e), -EINVAL);
    assert_true(strlen(err_text(&e)) > 0);
    assert_int_equal(say(c.w, &c.said), FIRST_SIGHT_KEPT);
    expect_keys(&c, 0, -1);
    assert_int_equal(say_keys(&c, 0, 1, 1), 1);
    c.said.node.key = sample_key(9);
    assert_int_equal(say(c.w, &c.said), FIRST_SIGHT_KEPT);
    expect_keys(&c, 0, 1);
    /* A key that is believed by silence has signed nothing. */
    c.w->facts.at = BEGIN + FIRST_SIGHT_HELD_S;
    look(c.w);
    assert_int_equal(c.w->n_taken, 1);
    c.said.node.key = sample_key(9);
    assert_int_equal(say(c.w, &c.said), FIRST_SIGHT_BELIEVED);
    assert_true(x25519_public_equal(&c.said.node.key, &other));
    assert_true(x25519_public_is_none(&c.said.node.keys->other));
    end_change(&c);
}

/* Who was away while the key changed twice follows the statements, and calls by what the hub says
 * when nothing is heard under the key before. */
static void test_who_was_away_follows(void **state)
{
    struct change c = make_change();

    c.w->heard_at = BEGIN;
    c.w->facts.at = BEGIN + FIRST_SIGHT_SESSION_S - 1;
    assert_int_equal(say_keys(&c, 2, -1, 2), 1);
    expect_keys(&c, 1, 2);
    look(c.w);
    assert_int_equal(c.w->n_taken, 0);
    c.w->facts.at++;
    look(c.w);
    assert_int_equal(c.w->n_taken, 1);
    first_sight_set_keys(first_sight_find(&c.w->fs, "n3"), &c.said.node);
    expect_keys(&c, 2, 1);
    /* It was not away after all, and calls under the key before once more. */
    assert_true(first_sight_on_call(&c.w->fs, "n3", &c.keys.keys[1], &c.w->facts));
    first_sight_set_keys(first_sight_find(&c.w->fs, "n3"), &c.said.node);
    expect_keys(&c, 1, 2);
    end_change(&c);
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
    w->fs.peers[0].next = sample_key(20);
    w->fs.peers[0].calls_next = true;
    json = first_sight_encode(&w->fs);
    assert_non_null(json);
    if (first_sight_decode(&read, json, "peers.json", &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(read.n, w->fs.n);
    assert_int_equal(read.n_offered, 2);
    assert_true(read.has_members);
    assert_true(read.peers[0].calls_next);
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
        cmocka_unit_test(test_a_key_that_is_not_signed),
        cmocka_unit_test(test_who_was_away_follows),
        cmocka_unit_test(test_another_address),
        cmocka_unit_test(test_removal_and_return),
        cmocka_unit_test(test_members_that_are_not_named_are_removed),
        cmocka_unit_test(test_hubs),
        cmocka_unit_test(test_the_operator_is_asked),
        cmocka_unit_test(test_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
