/* test-edge-events.c - the events of a network, and that no other one pushes them out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hub/watch/edge_events.h"

static void add(struct edge_events *s, const char *network, unsigned i)
{
    char object[32];

    (void)snprintf(object, sizeof(object), "n%u", i);
    edge_events_add(s, &(struct edge_event){.kind = EDGE_EVENT_SILENT,
                           .at = 1,
                           .network = network,
                           .object = object,
                           .text = "silent"});
}

/* That many, from @first on, oldest first. */
static void assert_kept(const struct edge_events *s, const char *network, size_t n, unsigned first)
{
    json_t *list = edge_events_encode(s, network);
    char object[32];

    assert_int_equal(json_array_size(list), n);
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(object, sizeof(object), "n%u", first + i);
        assert_string_equal(
            json_string_value(json_object_get(json_array_get(list, i), "object")), object);
    }
    json_decref(list);
}

static void test_a_ring_each(void **state)
{
    struct edge_events s = {.n = 0};

    assert_kept(&s, "b", 0, 0);
    assert_int_equal(edge_events_last(&s, "b"), 0);
    add(&s, "b", 0);
    assert_int_equal(edge_events_last(&s, "b"), 1);
    for (unsigned i = 0; i < 3 * EDGE_EVENTS_MAX + 7; i++) {
        add(&s, "a", i);
        assert_int_equal(edge_events_last(&s, "a"), s.n);
    }
    assert_int_equal(edge_events_last(&s, "b"), 1);
    add(&s, "b", 1);
    add(&s, "c", 0);
    assert_kept(&s, "b", 2, 0);
    assert_kept(&s, "c", 1, 0);
    assert_kept(&s, "a", EDGE_EVENTS_MAX, 2 * EDGE_EVENTS_MAX + 7);
    assert_int_equal(s.n, 3 * EDGE_EVENTS_MAX + 10);
    assert_int_equal(s.counts[EDGE_EVENT_SILENT], s.n);

    edge_events_forget(&s, "a");
    edge_events_forget(&s, "nobody");
    assert_kept(&s, "a", 0, 0);
    assert_kept(&s, "b", 2, 0);
    edge_events_deinit(&s);
    edge_events_deinit(&s);
}

/* All that is kept of each, and under which number: that counts the events of all networks. */
static void test_what_is_kept_of_an_event(void **state)
{
    struct edge_events s = {.n = 0};
    char *text;
    json_t *list;

    edge_events_add(&s, &(struct edge_event){.kind = EDGE_EVENT_FELL,
                            .at = 1800000000,
                            .network = "a",
                            .object = "x--y",
                            .text = "x went from lan to relay"});
    add(&s, "b", 0);
    edge_events_add(&s, &(struct edge_event){.kind = EDGE_EVENT_COPIED_NO_MORE,
                            .at = 1800000007,
                            .network = "a",
                            .object = "x",
                            .text = "it is one machine again"});
    list = edge_events_encode(&s, "a");
    text = json_dumps(list, JSON_COMPACT);
    assert_string_equal(text,
        "[{\"number\":1,\"time\":1800000000,\"type\":\"FellBack\",\"object\":\"x--y\","
        "\"text\":\"x went from lan to relay\"},"
        "{\"number\":3,\"time\":1800000007,\"type\":\"NodeCopiedNoMore\",\"object\":\"x\","
        "\"text\":\"it is one machine again\"}]");
    free(text);
    json_decref(list);
    assert_int_equal(s.counts[EDGE_EVENT_FELL], 1);
    assert_int_equal(s.counts[EDGE_EVENT_COPIED_NO_MORE], 1);
    edge_events_deinit(&s);
    assert_int_equal(s.n, 0);
    assert_int_equal(s.counts[EDGE_EVENT_FELL], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ring_each),
        cmocka_unit_test(test_what_is_kept_of_an_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
