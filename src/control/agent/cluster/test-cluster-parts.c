/* test-cluster-parts.c - which part of an edge is written next, how often, and what holds it back.
 */
#include "agent/cluster/cluster_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEC  NSEC_PER_SEC
#define WALL 1800000000
#define NOW  (1000 * SEC)

/* Half of what nsec_scatter() adds: it leaves a wait as it is. */
#define AS_IT_IS UINT32_C(0x80000000)

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    if (!json)
        fail_msg("no JSON: %s", text);
    return json;
}

static void set(struct cluster_parts *cp, const char *parts, const char *asked_for, int64_t wall_s)
{
    json_t *given = parse(parts);
    json_t *asked = asked_for ? parse(asked_for) : NULL;

    assert_int_equal(cluster_parts_set(cp, given, asked, 3, wall_s), 0);
    json_decref(given);
    json_decref(asked);
}

static struct cluster_parts make(const char *parts)
{
    struct cluster_parts cp;

    cluster_parts_init(&cp, "agent/a");
    set(&cp, parts, NULL, WALL);
    return cp;
}

/* What is written at @at, as "PEER: STATUS", with that result; "": nothing. */
static const char *write_at(struct cluster_parts *cp, nsec_t at, enum cluster_parts_result result)
{
    static char text[512];
    struct cluster_parts_write w;
    char *status;

    text[0] = '\0';
    if (!cluster_parts_next(cp, at, &w))
        return text;
    status = json_dumps(w.status, JSON_COMPACT);
    (void)snprintf(text, sizeof(text), "%s: %s", w.peer, status);
    free(status);
    json_decref(w.status);
    cluster_parts_on_result(cp, text[0] ? w.peer : "", result, AS_IT_IS, at);
    return text;
}

/* Whose it is, alone. */
static const char *peer_at(struct cluster_parts *cp, nsec_t at, enum cluster_parts_result result)
{
    static char peer[NAME_MAX_LEN + 1];
    const char *text = write_at(cp, at, result);

    (void)snprintf(peer, sizeof(peer), "%.*s", (int)strcspn(text, ":"), text);
    return peer;
}

static void test_what_is_new_is_written(void **state)
{
    struct cluster_parts cp = make("{\"b\":{\"path\":\"lan\",\"why\":\"\"}}");

    assert_string_equal(write_at(&cp, NOW, CLUSTER_PARTS_WRITTEN),
        "b: {\"agent/a\":{\"path\":\"lan\",\"observedAt\":\"2027-01-15T08:00:00Z\","
        "\"everySeconds\":300}}");
    /* The same again is no reason, and neither is a time. */
    set(&cp, "{\"b\":{\"path\":\"lan\",\"handshakeAgeSeconds\":4}}", NULL, WALL + 6);
    assert_string_equal(write_at(&cp, NOW + 6 * SEC, CLUSTER_PARTS_WRITTEN), "");
    set(&cp, "{\"b\":{\"path\":\"relay\"}}", NULL, WALL + 7);
    assert_string_equal(peer_at(&cp, NOW + 7 * SEC, CLUSTER_PARTS_WRITTEN), "b");
    /* One part is written each five seconds at most. */
    set(&cp, "{\"b\":{\"path\":\"lan\"}}", NULL, WALL + 8);
    assert_int_equal(cluster_parts_due(&cp), NOW + 12 * SEC);
    assert_string_equal(peer_at(&cp, NOW + 12 * SEC - 1, CLUSTER_PARTS_WRITTEN), "");
    assert_string_equal(peer_at(&cp, NOW + 12 * SEC, CLUSTER_PARTS_WRITTEN), "b");
    cluster_parts_deinit(&cp);
    cluster_parts_deinit(&cp);
}

static void test_what_is_the_same_is_repeated(void **state)
{
    struct cluster_parts cp = make("{\"b\":{\"path\":\"lan\"}}");

    assert_string_equal(peer_at(&cp, NOW, CLUSTER_PARTS_WRITTEN), "b");
    /* While nobody says how it is now, there is nothing to repeat. */
    assert_int_equal(cluster_parts_due(&cp), NSEC_NEVER);
    assert_string_equal(peer_at(&cp, NOW + 900 * SEC, CLUSTER_PARTS_WRITTEN), "");
    set(&cp, "{\"b\":{\"path\":\"lan\"}}", NULL, WALL + 299);
    assert_int_equal(cluster_parts_due(&cp), NOW + 300 * SEC);
    assert_string_equal(peer_at(&cp, NOW + 300 * SEC - 1, CLUSTER_PARTS_WRITTEN), "");
    assert_string_equal(write_at(&cp, NOW + 300 * SEC, CLUSTER_PARTS_WRITTEN),
        "b: {\"agent/a\":{\"path\":\"lan\",\"observedAt\":\"2027-01-15T08:04:59Z\","
        "\"everySeconds\":300}}");
    cluster_parts_deinit(&cp);
}

/* An edge that is no more takes its part along; one that was never written is only forgotten. */
static void test_what_is_gone_is_taken_away(void **state)
{
    struct cluster_parts cp = make("{\"b\":{\"path\":\"lan\"}}");

    assert_string_equal(peer_at(&cp, NOW, CLUSTER_PARTS_WRITTEN), "b");
    set(&cp, "{\"c\":{\"path\":\"lan\"}}", NULL, WALL + 1);
    set(&cp, "{}", NULL, WALL + 2);
    assert_int_equal(cp.items.n, 1);
    assert_string_equal(write_at(&cp, NOW + 5 * SEC, CLUSTER_PARTS_WRITTEN), "b: {}");
    assert_int_equal(cp.items.n, 0);
    assert_int_equal(cluster_parts_due(&cp), NSEC_NEVER);
    /* The edge itself may be gone, too. */
    set(&cp, "{\"b\":{\"path\":\"lan\"}}", NULL, WALL + 10);
    assert_string_equal(peer_at(&cp, NOW + 10 * SEC, CLUSTER_PARTS_WRITTEN), "b");
    set(&cp, "{}", NULL, WALL + 15);
    assert_string_equal(write_at(&cp, NOW + 15 * SEC, CLUSTER_PARTS_ABSENT), "b: {}");
    assert_int_equal(cp.items.n, 0);
    cluster_parts_deinit(&cp);
}

/* First what a MeshEdge is about, for the cluster has that one; then what else is new; what is only
 * repeated comes last, the oldest first. */
static void test_the_order(void **state)
{
    static const char *const all = "{\"b\":{\"path\":\"lan\"},\"c\":{\"path\":\"lan\"},"
                                   "\"d\":{\"path\":\"lan\"}}";
    struct cluster_parts cp = make(all);
    nsec_t at = NOW;

    set(&cp, all, "{\"d\":true}", WALL);
    assert_string_equal(peer_at(&cp, at, CLUSTER_PARTS_WRITTEN), "d");
    assert_string_equal(peer_at(&cp, at, CLUSTER_PARTS_WRITTEN), "");
    at += CLUSTER_PARTS_PACE_MIN;
    assert_string_equal(peer_at(&cp, at, CLUSTER_PARTS_WRITTEN), "b");
    at += CLUSTER_PARTS_PACE_MIN;
    assert_string_equal(peer_at(&cp, at, CLUSTER_PARTS_WRITTEN), "c");
    at += 301 * SEC;
    set(&cp, "{\"b\":{\"path\":\"lan\"},\"c\":{\"path\":\"relay\"},\"d\":{\"path\":\"lan\"}}", NULL,
        WALL + 301);
    assert_string_equal(peer_at(&cp, at, CLUSTER_PARTS_WRITTEN), "c");
    at += CLUSTER_PARTS_PACE_MIN;
    assert_string_equal(peer_at(&cp, at, CLUSTER_PARTS_WRITTEN), "d");
    at += CLUSTER_PARTS_PACE_MIN;
    assert_string_equal(peer_at(&cp, at, CLUSTER_PARTS_WRITTEN), "b");
    cluster_parts_deinit(&cp);
}

/* 10,000 edges between 142 nodes: what all writers together ask of the API server. */
static void test_the_load_of_ten_thousand_edges(void **state)
{
    const size_t n_members = 142;
    struct cluster_parts cp;
    json_t *parts = json_object();
    nsec_t at = NOW;
    double per_s;
    unsigned n = 0;

    for (size_t i = 1; i < n_members; i++) {
        char peer[16];

        (void)snprintf(peer, sizeof(peer), "n%zu", i);
        (void)json_object_set_new(parts, peer, json_pack("{s:s}", "path", "lan"));
    }
    cluster_parts_init(&cp, "agent/n0");
    assert_int_equal(cluster_parts_set(&cp, parts, NULL, n_members, WALL), 0);
    /* All are new: the last one is written after seven minutes, and a hundred come a second. */
    while (cluster_parts_due(&cp) != NSEC_NEVER) {
        at = nsec_max(at, cluster_parts_due(&cp));
        assert_string_not_equal(peer_at(&cp, at, CLUSTER_PARTS_WRITTEN), "");
        n++;
    }
    assert_int_equal(n, n_members - 1);
    assert_in_range(at - NOW, 380 * SEC, 420 * SEC);
    per_s = 2.0 * (double)n_members * (double)SEC / (double)cluster_parts_pace(&cp);
    assert_in_range((unsigned)per_s, 99, 100);
    /* Nothing is new: fifty a second, of 40,000 parts. */
    assert_in_range(cluster_parts_every_s(&cp), 790, 810);
    per_s = 2.0 * (double)n_members * (double)(n_members - 1) / (double)cluster_parts_every_s(&cp);
    assert_in_range((unsigned)per_s, 49, 51);
    json_decref(parts);
    cluster_parts_deinit(&cp);
}

/* Of an edge that the API server does not have it is asked later and later, until somebody asks for
 * the edge. */
static void test_an_edge_that_is_not_there(void **state)
{
    struct cluster_parts cp = make("{\"b\":{\"path\":\"lan\"}}");
    nsec_t at = NOW;

    for (unsigned i = 0; i < 9; i++) {
        nsec_t pause = nsec_min((60 * SEC) << (i < 6 ? i : 6), 3600 * SEC);

        assert_string_equal(peer_at(&cp, at, CLUSTER_PARTS_ABSENT), "b");
        assert_string_equal(peer_at(&cp, at + pause - SEC, CLUSTER_PARTS_ABSENT), "");
        at = cluster_parts_due(&cp);
        assert_in_range(at, 1, NOW + 100000 * SEC);
    }
    set(&cp, "{\"b\":{\"path\":\"lan\"}}", "{\"b\":true}", WALL);
    assert_string_equal(peer_at(&cp, at - 1000 * SEC, CLUSTER_PARTS_WRITTEN), "b");
    cluster_parts_deinit(&cp);
}

/* Fields of somebody else are left alone, and the other edges are written. */
static void test_a_part_of_somebody_else(void **state)
{
    struct cluster_parts cp = make("{\"b\":{\"path\":\"lan\"},\"c\":{\"path\":\"lan\"}}");

    assert_string_equal(peer_at(&cp, NOW, CLUSTER_PARTS_CONTESTED), "b");
    assert_true(cluster_parts_is_contested(&cp));
    assert_string_equal(peer_at(&cp, NOW + SEC, CLUSTER_PARTS_WRITTEN), "c");
    assert_string_equal(peer_at(&cp, NOW + 2 * SEC, CLUSTER_PARTS_WRITTEN), "");
    assert_string_equal(peer_at(&cp, NOW + 301 * SEC, CLUSTER_PARTS_WRITTEN), "b");
    assert_false(cluster_parts_is_contested(&cp));
    cluster_parts_deinit(&cp);
}

/* A server that does not answer, or forbids it, is asked later and later, whatever is due. */
static void test_a_server_that_takes_nothing(void **state)
{
    struct cluster_parts cp = make("{\"b\":{\"path\":\"lan\"},\"c\":{\"path\":\"lan\"}}");
    nsec_t at = NOW;

    for (unsigned i = 0; i < 9; i++) {
        nsec_t pause = nsec_min((5 * SEC) << (i < 6 ? i : 6), 300 * SEC);

        assert_string_equal(peer_at(&cp, at, CLUSTER_PARTS_FAILED), "b");
        assert_in_range(cluster_parts_due(&cp), at + pause - SEC, at + pause);
        at = cluster_parts_due(&cp);
        assert_string_equal(peer_at(&cp, at - 1, CLUSTER_PARTS_FAILED), "");
    }
    assert_string_equal(peer_at(&cp, at, CLUSTER_PARTS_WRITTEN), "b");
    assert_string_equal(peer_at(&cp, at + CLUSTER_PARTS_PACE_MIN, CLUSTER_PARTS_WRITTEN), "c");
    cluster_parts_deinit(&cp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_new_is_written),
        cmocka_unit_test(test_what_is_the_same_is_repeated),
        cmocka_unit_test(test_what_is_gone_is_taken_away),
        cmocka_unit_test(test_the_order),
        cmocka_unit_test(test_the_load_of_ten_thousand_edges),
        cmocka_unit_test(test_an_edge_that_is_not_there),
        cmocka_unit_test(test_a_part_of_somebody_else),
        cmocka_unit_test(test_a_server_that_takes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
