/* test-peer-suspects.c - which peers may be at a wrong endpoint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "agent/reconcile/observe.h"
#include "os/log.h"
#include "path/path.h"
#include "test/support/captured_log.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

static struct endpoint endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

/* As n2 of four sees it: it finds n3's path, and n4 is a stock one. */
struct doubts {
    struct peer_suspects pd;
    struct snapshot snapshot;
    struct observation items[3]; /* of the hub, n3 and n4 */
    struct observe seen;
    struct endpoint relay;
    struct peer_suspects_facts facts;
};

static bool may_be_at(const void *ctx, const char *node, const struct endpoint *at)
{
    const struct doubts *d = ctx;

    return endpoint_equal(at, &d->relay);
}

static void put_path_finder(struct snapshot *s, unsigned n)
{
    struct object o = sample_node(n);

    o.node.side = calloc(1, sizeof(*o.node.side));
    assert_non_null(o.node.side);
    sample_put(s, o);
}

static struct doubts *make_doubts(void)
{
    static struct doubts d;
    const unsigned numbers[] = {1, 3, 4};

    d = (struct doubts){.snapshot = sample_snapshot(4, 2), .relay = endpoint("192.0.2.9:51820")};
    put_path_finder(&d.snapshot, 3);
    for (unsigned i = 0; i < 3; i++)
        d.items[i] = (struct observation){
            .key = sample_key(numbers[i]), .endpoint = endpoint("198.51.100.3:51820")};
    d.seen = (struct observe){.items = d.items, .n = 3};
    d.facts = (struct peer_suspects_facts){.snapshot = &d.snapshot,
        .seen = &d.seen,
        .may_be_at = may_be_at,
        .ctx = &d,
        .now = 1000 * SEC};
    return &d;
}

/* How many are in doubt; the first one in @ret. */
static unsigned walk(struct doubts *d, struct peer_suspect *ret)
{
    struct peer_suspect actions;
    unsigned n = 0;

    while (peer_suspects_next(&d->pd, &d->facts, &actions))
        if (n++ == 0)
            *ret = actions;
    return n;
}

static void test_a_found_path_is_left_only_for_a_relay(void **state)
{
    struct doubts *d = make_doubts();
    struct peer_suspect actions;

    assert_int_equal(walk(d, &actions), 1);
    assert_string_equal(actions.node, "n3");
    assert_ptr_equal(actions.peer, &d->items[1]);
    /* The next walk begins at the first peer again. */
    assert_int_equal(walk(d, &actions), 1);
    d->items[1].endpoint = d->relay;
    assert_int_equal(walk(d, &actions), 0);
    /* Nothing was ever sent there. */
    d->items[1].endpoint = (struct endpoint){.port = 0};
    assert_int_equal(walk(d, &actions), 0);
    snapshot_deinit(&d->snapshot);
}

/* The last packet of a stream that is left leads the engine back to its end on this machine. */
static void test_a_hub_is_not_on_this_machine(void **state)
{
    struct doubts *d = make_doubts();
    struct peer_suspect actions;

    d->items[1].endpoint = d->relay;
    assert_int_equal(walk(d, &actions), 0);
    d->items[0].endpoint = endpoint("127.0.0.1:37839");
    assert_int_equal(walk(d, &actions), 1);
    assert_ptr_equal(actions.peer, &d->items[0]);
    assert_string_equal(actions.node, "hub");
    snapshot_deinit(&d->snapshot);
}

/* One that the engine does not have, or that has no endpoint yet, is nowhere. */
static void test_peers_that_the_engine_does_not_have(void **state)
{
    struct doubts *d = make_doubts();
    struct peer_suspect actions;

    d->seen.n = 1;
    assert_int_equal(walk(d, &actions), 0);
    d->items[0].endpoint = (struct endpoint){.port = 0};
    assert_int_equal(walk(d, &actions), 0);
    snapshot_deinit(&d->snapshot);
}

/* The nodes come first, in the snapshot's order, and then those that are silent, in the engine's.
 */
static void test_each_suspect_comes_once(void **state)
{
    struct doubts *d = make_doubts();
    struct peer_suspect found;

    d->items[0].endpoint = endpoint("127.0.0.1:37839");
    for (unsigned i = 0; i < 3; i++)
        d->items[i].unanswered_since = 1;
    for (unsigned again = 0; again < 2; again++) {
        assert_true(peer_suspects_next(&d->pd, &d->facts, &found));
        assert_string_equal(found.node, "hub");
        assert_true(peer_suspects_next(&d->pd, &d->facts, &found));
        assert_string_equal(found.node, "n3");
        for (unsigned i = 0; i < 3; i++) {
            assert_true(peer_suspects_next(&d->pd, &d->facts, &found));
            assert_null(found.node);
            assert_ptr_equal(found.peer, &d->items[i]);
        }
        assert_false(peer_suspects_next(&d->pd, &d->facts, &found));
    }
    snapshot_deinit(&d->snapshot);
}

static void test_a_plain_peer_is_suspect_when_it_is_silent(void **state)
{
    struct doubts *d = make_doubts();
    struct peer_suspect actions;

    d->items[1].endpoint = d->relay;
    d->items[2].unanswered_since = d->facts.now - OBSERVE_SILENCE_MAX + 1;
    assert_int_equal(walk(d, &actions), 0);
    d->facts.now++;
    assert_int_equal(walk(d, &actions), 1);
    assert_null(actions.node);
    assert_ptr_equal(actions.peer, &d->items[2]);
    snapshot_deinit(&d->snapshot);
}

/* By the name of who finds paths, and by the key of who does not. */
static void test_what_is_said_of_a_suspect(void **state)
{
    struct doubts *d = make_doubts();
    struct peer_suspect found = {.peer = &d->items[1], .node = "n3"};
    char key[X25519_BASE64_MAX], line[256];
    struct captured_log said = captured_log_begin();

    peer_suspects_log(&d->pd, &found, d->facts.now);
    captured_log_end(&said, "info: test: the engine sends to n3 at 198.51.100.3:51820, which is "
                            "not its path: back to that\n");
    found = (struct peer_suspect){.peer = &d->items[2]};
    (void)snprintf(line, sizeof(line),
        "info: test: no answer from %s at 198.51.100.3:51820, where it seemed to have moved: back "
        "to where it was\n",
        x25519_public_format(&d->items[2].key, key));
    d->pd.limit = (struct log_limit){0};
    said = captured_log_begin();
    peer_suspects_log(&d->pd, &found, d->facts.now);
    captured_log_end(&said, line);
    snapshot_deinit(&d->snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_found_path_is_left_only_for_a_relay),
        cmocka_unit_test(test_a_hub_is_not_on_this_machine),
        cmocka_unit_test(test_peers_that_the_engine_does_not_have),
        cmocka_unit_test(test_each_suspect_comes_once),
        cmocka_unit_test(test_a_plain_peer_is_suspect_when_it_is_silent),
        cmocka_unit_test(test_what_is_said_of_a_suspect),
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
