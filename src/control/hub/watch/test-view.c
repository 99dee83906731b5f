/* test-view.c - what a node may see, and how much of that all nodes share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/watch/view.h"
#include "hub/watch/watch.h"
#include "test/support/audience.h"

static void test_who_sees_whom(void **state)
{
    char *text;

    assert_true(view_can_see(audience_node("a"), audience_node("a")));
    assert_true(view_can_see(audience_node("a"), audience_node("b")));
    audience_set_edge("off");
    assert_true(view_can_see(audience_node("a"), audience_node("a")));
    assert_false(view_can_see(audience_node("a"), audience_node("b")));
    assert_false(view_can_see(audience_node("b"), audience_node("a")));
    assert_true(view_can_see(audience_node("a"), audience_node("c")));
    text = view_snapshot_text(audience_node("a"));
    assert_non_null(text);
    /* By their keys: c's, and not b's. */
    assert_non_null(strstr(text, "\"AGMB"));
    assert_null(strstr(text, "\"AGIB"));
    free(text);
}

static void test_lent_snapshot(void **state)
{
    struct snapshot s = SNAPSHOT_NULL;

    audience_set_edge("off");
    assert_true(view_lend_snapshot(audience_node("a"), &s));
    assert_string_equal(s.self, "a");
    assert_non_null(snapshot_find_node(&s, "c"));
    assert_null(snapshot_find_node(&s, "b"));
    view_return_snapshot(&s);
    view_return_snapshot(&s);
}

/* More nodes than a block has. */
static void add_block(void)
{
    char name[8];

    for (unsigned i = 0; i < WATCHED_BLOCK_NODES; i++) {
        (void)snprintf(name, sizeof(name), "%c%c", (int)('d' + i % 20), (int)('a' + i / 20));
        audience_add(name);
    }
}

/* How many parts of the two are the same text in memory. */
static unsigned count_shared(const struct view_parts *x, const struct view_parts *y)
{
    unsigned n = 0;

    for (size_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < y->n; k++)
            n += x->items[i] == y->items[k] && x->items[i]->len > 1;
    return n;
}

static void take_view(struct view_parts *v, const char *name)
{
    view_parts_deinit(v);
    assert_true(view_snapshot(audience_node(name), v));
}

/* All nodes share the text of each block, but for one of which a node does not see all. */
static void test_shared_snapshot(void **state)
{
    struct view_parts a = {.n = 0};
    struct view_parts c = {.n = 0};
    json_t *all;
    char *text;

    add_block();
    take_view(&a, "a");
    take_view(&c, "c");
    assert_int_equal(count_shared(&a, &c), 2);
    text = view_snapshot_text(audience_node("a"));
    all = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(all, "nodes")), 4 + WATCHED_BLOCK_NODES);
    json_decref(all);
    free(text);
    watch_tell_status(&audience_hub.hub->watcher, audience_node("b"), audience_hub.now);
    take_view(&a, "a");
    assert_int_equal(count_shared(&a, &c), 1);
    take_view(&c, "c");
    assert_int_equal(count_shared(&a, &c), 2);
    audience_set_edge("off");
    take_view(&a, "a");
    assert_int_equal(count_shared(&a, &c), 1);
    text = view_snapshot_text(audience_node("a"));
    all = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(all, "nodes")), 3 + WATCHED_BLOCK_NODES);
    json_decref(all);
    free(text);
    view_parts_deinit(&a);
    view_parts_deinit(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_sees_whom, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_lent_snapshot, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_shared_snapshot, audience_enter, audience_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
