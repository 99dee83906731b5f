/* test-snapshot-cache.c - how often the snapshot is written, and what the next start begins with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/state/snapshot_cache.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "mesh/snapshot/watch_event.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

/* A node n2 of four, in a state directory of its own. */
struct world {
    char dir[64];
    char path[96]; /* of snapshot.json */
    struct state state;
    struct snapshot snapshot;
    struct snapshot_cache cache;
};

/* What the next start has. */
static void load(struct world *w)
{
    snapshot_deinit(&w->snapshot);
    assert_int_equal(snapshot_cache_load(&w->cache, w->dir, &w->state, &w->snapshot, NULL), 0);
}

static int enter(void **state)
{
    static struct world w;

    w = (struct world){.dir = "/tmp/weft-test-cache-XXXXXX"};
    assert_non_null(mkdtemp(w.dir));
    (void)snprintf(w.path, sizeof(w.path), "%s/snapshot.json", w.dir);
    w.state.snapshot = sample_snapshot(2, 2);
    w.cache = (struct snapshot_cache){.saved_at = 7, .is_damaged = true};
    assert_int_equal(snapshot_cache_load(&w.cache, w.dir, &w.state, &w.snapshot, NULL), 0);
    assert_false(w.cache.is_damaged);
    assert_int_equal(w.cache.saved_at, 0);
    *state = &w;
    return 0;
}

static int leave(void **state)
{
    struct world *w = *state;

    snapshot_deinit(&w->snapshot);
    snapshot_deinit(&w->state.snapshot);
    (void)unlink(w->path);
    return rmdir(w->dir);
}

/* An event each 10 ms for @for_how_long, as the agent takes them; how many writes that makes. */
static unsigned count_writes(struct world *w, bool is_status, nsec_t for_how_long)
{
    unsigned n = 0;

    for (nsec_t now = SEC; now < SEC + for_how_long; now += SEC / 100) {
        if (now >= w->cache.due_at) {
            snapshot_cache_save(&w->cache, &w->snapshot, now);
            n++;
        }
        snapshot_cache_on_change(&w->cache, is_status, now);
    }
    return n;
}

static void test_the_first_is_written_soon(void **state)
{
    struct world *w = *state;

    assert_true(w->cache.due_at == NSEC_NEVER);
    snapshot_cache_on_change(&w->cache, true, 7);
    assert_int_equal(w->cache.due_at, 7 + SNAPSHOT_CACHE_DELAY);
    snapshot_cache_save(&w->cache, &w->snapshot, 8);
    assert_true(w->cache.due_at == NSEC_NEVER);
}

static void test_a_flood_of_status(void **state)
{
    assert_int_equal(count_writes(*state, true, 300 * SEC), 10);
}

static void test_a_flood_of_changes(void **state)
{
    assert_int_equal(count_writes(*state, false, 300 * SEC), 60);
}

/* A change of the network is written sooner, also while a write for status is planned. */
static void test_a_change_does_not_wait_for_status(void **state)
{
    struct world *w = *state;

    snapshot_cache_save(&w->cache, &w->snapshot, 100 * SEC);
    snapshot_cache_on_change(&w->cache, true, 101 * SEC);
    assert_int_equal(w->cache.due_at, 130 * SEC);
    snapshot_cache_on_change(&w->cache, false, 101 * SEC);
    assert_int_equal(w->cache.due_at, 105 * SEC);
    snapshot_cache_on_change(&w->cache, true, 102 * SEC);
    assert_int_equal(w->cache.due_at, 105 * SEC);
}

static void test_the_next_start_begins_with_it(void **state)
{
    struct world *w = *state;

    /* Nothing is cached yet: what was known at the join. */
    assert_null(snapshot_find_node(&w->snapshot, "n4"));
    sample_put(&w->snapshot, sample_node(4));
    snapshot_cache_save(&w->cache, &w->snapshot, 100 * SEC);
    load(w);
    assert_non_null(snapshot_find_node(&w->snapshot, "n4"));
}

/* It is planned again when the disk took nothing. */
static void test_a_write_that_fails(void **state)
{
    struct world *w = *state;

    assert_int_equal(mkdir(w->path, 0700), 0);
    snapshot_cache_save(&w->cache, &w->snapshot, 100 * SEC);
    assert_int_equal(w->cache.due_at, 130 * SEC);
    assert_int_equal(rmdir(w->path), 0);
    snapshot_cache_save(&w->cache, &w->snapshot, 130 * SEC);
    assert_true(w->cache.due_at == NSEC_NEVER);
    assert_int_equal(w->cache.saved_at, 130 * SEC);
    assert_int_equal(access(w->path, F_OK), 0);
}

/* It was copied from another machine; it is neither believed nor overwritten. */
static void test_a_snapshot_of_another_node(void **state)
{
    struct world *w = *state;
    struct snapshot other = sample_snapshot(4, 3);

    snapshot_cache_save(&w->cache, &other, 100 * SEC);
    snapshot_deinit(&other);
    load(w);
    assert_string_equal(w->snapshot.self, "n2");
    assert_int_equal(w->snapshot.nodes.n, 2);
    assert_true(w->cache.is_damaged);
    snapshot_cache_on_change(&w->cache, false, 199 * SEC);
    snapshot_cache_save(&w->cache, &w->snapshot, 200 * SEC);
    assert_true(w->cache.due_at == NSEC_NEVER);
    assert_int_equal(w->cache.saved_at, 0);
    assert_int_equal(state_read_snapshot(&other, w->dir, NULL), 0);
    assert_string_equal(other.self, "n3");
    snapshot_deinit(&other);
}

static struct ip_prefix prefix(const char *text)
{
    struct ip_prefix p;

    assert_int_equal(ip_prefix_parse(&p, text, NULL), 0);
    return p;
}

/* A node n3 with another address of either family. */
static struct object n3_at(const char *address4, const char *address6)
{
    struct object o = sample_node(3);

    if (address4)
        assert_int_equal(ip_addr_parse(&o.node.address4, address4, NULL), 0);
    if (address6)
        assert_int_equal(ip_addr_parse(&o.node.address6, address6, NULL), 0);
    return o;
}

static void assert_refused(struct world *w, struct watch_event *ev, const char *why)
{
    struct err e = ERR_NULL;

    assert_int_equal(snapshot_cache_check_event(&w->state, ev, &e), why ? -EINVAL : 0);
    if (why && !strstr(e.text, why))
        fail_msg("\"%s\" does not say \"%s\"", e.text, why);
    watch_event_deinit(ev);
}

/* What is said of this node is about it, with its own key. */
static void test_this_node(void **state)
{
    struct world *w = *state;
    struct watch_event all = {.kind = WATCH_EVENT_SNAPSHOT, .snapshot = sample_snapshot(4, 3)};
    struct watch_event ev = {.kind = WATCH_EVENT_PUT, .object = sample_node(2)};

    assert_refused(
        w, &all, "they are about \"n3\" in \"default\", and this is \"n2\" in \"default\"");
    assert_refused(w, &ev, NULL);
    ev = (struct watch_event){.kind = WATCH_EVENT_PUT, .object = sample_node(2)};
    (void)snprintf(ev.object.node.meta.network, sizeof(ev.object.node.meta.network), "other");
    assert_refused(w, &ev, "they are about \"n2\" in \"other\", and this is \"n2\" in \"default\"");
    ev = (struct watch_event){.kind = WATCH_EVENT_PUT, .object = sample_node(2)};
    ev.object.node.key = sample_key(9);
    assert_refused(w, &ev, "they give \"n2\" another key than it has");
    ev = (struct watch_event){.kind = WATCH_EVENT_PUT, .object = sample_node(2)};
    assert_int_equal(ip_addr_parse(&ev.object.node.address4, "8.8.8.8", NULL), 0);
    assert_refused(w, &ev, "they give \"n2\" the addresses 8.8.8.8 and ");
    /* Another node may get another key, and an edge has no addresses. */
    ev = (struct watch_event){.kind = WATCH_EVENT_PUT, .object = sample_node(3)};
    ev.object.node.key = sample_key(9);
    assert_refused(w, &ev, NULL);
    ev = (struct watch_event){
        .kind = WATCH_EVENT_PUT, .object = sample_edge(2, 3, EDGE_PATH_DIRECT)};
    assert_refused(w, &ev, NULL);
    ev = (struct watch_event){.kind = WATCH_EVENT_DELETE, .deleted = {.kind = &node_kind}};
    assert_refused(w, &ev, NULL);
}

/* Whoever says who is in the network cannot draw traffic for addresses that it did not have. */
static void test_blocks_are_those_of_the_join(void **state)
{
    static const struct {
        const char *cidr4, *cidr6, *why;
    } blocks[] = {
        {NULL, NULL, NULL},
        {"8.0.0.0/8", NULL, "they give the network the blocks 8.0.0.0/8 and "},
        {NULL, "2001:db8::/32", " and 2001:db8::/32, and at the join it had "},
        {"10.0.0.0/8", NULL, "they give the network the blocks 10.0.0.0/8 and "},
    };
    static const struct {
        const char *address4, *address6, *why;
    } nodes[] = {
        {NULL, NULL, NULL},
        {"8.8.8.8", NULL, "they give \"n3\" the addresses 8.8.8.8 and "},
        {NULL, "2001:db8::1", " and 2001:db8::1, and not both are in the network's blocks"},
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
        struct watch_event all = {.kind = WATCH_EVENT_SNAPSHOT, .snapshot = sample_snapshot(4, 2)};
        struct watch_event one = {.kind = WATCH_EVENT_PUT, .object = {.kind = &network_kind}};
        struct network *n = &all.snapshot.network;

        n->cidr4 = blocks[i].cidr4 ? prefix(blocks[i].cidr4) : n->cidr4;
        n->cidr6 = blocks[i].cidr6 ? prefix(blocks[i].cidr6) : n->cidr6;
        one.object.network = (struct network){.cidr4 = n->cidr4, .cidr6 = n->cidr6};
        assert_refused(w, &all, blocks[i].why);
        assert_refused(w, &one, blocks[i].why);
    }
    for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
        struct watch_event all = {.kind = WATCH_EVENT_SNAPSHOT, .snapshot = sample_snapshot(4, 2)};
        struct watch_event one = {
            .kind = WATCH_EVENT_PUT, .object = n3_at(nodes[i].address4, nodes[i].address6)};

        sample_put(&all.snapshot, n3_at(nodes[i].address4, nodes[i].address6));
        assert_refused(w, &all, nodes[i].why);
        assert_refused(w, &one, nodes[i].why);
    }
}

/* An earlier version has kept it; it is not used, and is overwritten by the next one. */
static void test_kept_blocks_of_an_earlier_version(void **state)
{
    struct world *w = *state;
    struct snapshot other = sample_snapshot(4, 2);
    struct ip_prefix block = other.network.cidr4;

    other.network.cidr4 = prefix("8.0.0.0/8");
    snapshot_cache_save(&w->cache, &other, 100 * SEC);
    snapshot_deinit(&other);
    load(w);
    assert_true(ip_prefix_equal(&w->snapshot.network.cidr4, &block));
    assert_false(w->cache.is_damaged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_first_is_written_soon, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_flood_of_status, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_flood_of_changes, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_change_does_not_wait_for_status, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_next_start_begins_with_it, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_write_that_fails, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_snapshot_of_another_node, enter, leave),
        cmocka_unit_test_setup_teardown(test_this_node, enter, leave),
        cmocka_unit_test_setup_teardown(test_blocks_are_those_of_the_join, enter, leave),
        cmocka_unit_test_setup_teardown(test_kept_blocks_of_an_earlier_version, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
