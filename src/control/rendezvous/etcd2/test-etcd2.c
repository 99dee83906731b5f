/*
 * test-etcd2.c - an etcd tree on a clock of its own: times to live, history, limits, saving.
 *
 * What each request answers is compared with a real etcd in test/hub.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rendezvous/etcd2/etcd2_tree.h"

#define SECOND NSEC_PER_SEC

struct fixture {
    struct rdzv_quota quota;
    struct etcd2_tree tree;
    struct etcd2_when when;
    struct etcd2_refusal why;
    uint8_t saved[256]; /* the blob that was put last */
    size_t saved_len;
    size_t n_saved; /* blobs of nodes */
};

static void put(void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len,
    const void *p, size_t len, size_t before)
{
    struct fixture *f = ctx;

    if (name_len == 0 || len > sizeof(f->saved))
        return;
    memcpy(f->saved, p, len);
    f->saved_len = len;
    f->n_saved += before == 0;
}

static void drop(
    void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len, size_t before)
{
    struct fixture *f = ctx;

    f->n_saved -= name_len > 0;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct rdzv_saver saver = {.ctx = f, .put = put, .drop = drop};

    f->quota = (struct rdzv_quota){.bytes_max = 1u << 20, .entries_max = 8};
    f->when = (struct etcd2_when){.now = 100 * SECOND, .wall = 1790000000 * SECOND};
    assert_int_equal(etcd2_tree_init(&f->tree, &saver, &f->quota), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    etcd2_tree_deinit(&f->tree);
    assert_int_equal(f->quota.bytes, 0);
    assert_int_equal(f->quota.entries, 0);
    free(f);
    return 0;
}

static int set(struct fixture *f, const char *path, const char *value, uint32_t ttl)
{
    struct etcd2_change change = {
        .has_ttl = ttl > 0, .ttl_seconds = ttl, .value = etcd2_text_of(value), .when = f->when};
    struct etcd2_event *ev = NULL;
    int r = etcd2_tree_set(&f->tree, path, &change, &ev, &f->why);

    etcd2_event_unref(ev);
    return r;
}

static int look(struct fixture *f, const char *path)
{
    char *text = NULL;
    size_t len;
    int r = etcd2_tree_get(&f->tree, path, false, f->when, &text, &len, &f->why);

    free(text);
    return r;
}

static void pass(struct fixture *f, nsec_t time)
{
    f->when.now += time;
    f->when.wall += time;
    etcd2_tree_expire(&f->tree, f->when);
}

static void test_ttl(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(set(f, "/dir/soon", "1", 2), 0);
    assert_int_equal(set(f, "/dir/later", "1", 5), 0);
    assert_int_equal(heap_due(&f->tree.nodes.ttls), f->when.now + 2 * SECOND);
    pass(f, 2 * SECOND - 1);
    assert_int_equal(look(f, "/dir/soon"), 0);
    pass(f, 1);
    assert_int_equal(look(f, "/dir/soon"), ETCD2_E_NOT_FOUND);
    assert_int_equal(f->tree.index, 3);
    assert_int_equal(set(f, "/dir/later", "2", 0), 0);
    assert_int_equal(heap_due(&f->tree.nodes.ttls), NSEC_NEVER);
    pass(f, 1000 * SECOND);
    assert_int_equal(look(f, "/dir/later"), 0);
    assert_int_equal(f->n_saved, 2);
}

/* A clock that was set does not end anything, and what is left counts from a restart anew, and
 * from when the clients have noticed it. */
static void test_restart(void **state)
{
    struct fixture *f = *state;
    struct rdzv_saver saver = {.ctx = f, .put = put, .drop = drop};
    struct etcd2_when next = {.now = 5 * SECOND, .wall = 1800000000 * SECOND};
    struct rdzv_quota quota = {.bytes_max = 1u << 20, .entries_max = 8};
    struct rdzv_hash hash = rdzv_hash_of("/a/b", 4);
    struct rdzv_hash other = rdzv_hash_of("/a/c", 4);
    struct err e = ERR_NULL;
    struct etcd2_tree again;
    char *text = NULL;
    size_t text_len;

    assert_int_equal(set(f, "/a/b", "value", 7), 0);
    assert_int_equal(etcd2_tree_init(&again, &saver, &quota), 0);
    assert_int_equal(etcd2_tree_load(&again, f->saved, f->saved_len, &other, next, &e), -EINVAL);
    assert_string_equal(err_text(&e), "it is kept where another belongs");
    assert_int_equal(etcd2_tree_load(&again, f->saved, f->saved_len, &hash, next, &e), 0);
    assert_int_equal(heap_due(&again.nodes.ttls), next.now + ETCD2_RELOAD_GRACE + 7 * SECOND);
    assert_int_equal(etcd2_tree_get(&again, "/a/b", false, next, &text, &text_len, &f->why), 0);
    free(text);
    for (size_t len = 0; len < 20; len++)
        assert_int_equal(etcd2_tree_load(&again, f->saved, len, &hash, next, &e), -EINVAL);
    etcd2_tree_deinit(&again);
}

static struct etcd2_event *reported; /* by the last watcher that was */

static void on_fire(struct etcd2_watcher *w, struct etcd2_event *ev)
{
    assert_null(reported);
    reported = etcd2_event_ref(ev);
}

static void test_waiting(void **state)
{
    struct fixture *f = *state;
    struct etcd2_watcher w = {.path = (char *)"/a", .is_recursive = true, .fire = on_fire};
    struct etcd2_event *ev = NULL;

    assert_int_equal(etcd2_tree_watch(&f->tree, &w, 0, &ev, &f->why), 0);
    assert_null(ev);
    assert_int_equal(set(f, "/ab", "1", 0), 0);
    assert_int_equal(set(f, "/a/_hidden", "1", 0), 0);
    assert_null(reported);
    assert_int_equal(set(f, "/a/b", "1", 0), 0);
    assert_non_null(reported);
    assert_int_equal(reported->index, 3);
    reported = etcd2_event_unref(reported);
    /* Told once: it waits no more. */
    assert_int_equal(set(f, "/a/b", "2", 0), 0);
    assert_null(reported);
    assert_int_equal(etcd2_tree_watch(&f->tree, &w, 4, &ev, &f->why), 0);
    assert_int_equal(ev->index, 4);
    etcd2_event_unref(ev);
}

static void test_history(void **state)
{
    struct fixture *f = *state;
    struct etcd2_watcher w = {.path = (char *)"/a", .fire = on_fire};
    struct etcd2_event *ev = NULL;

    for (int i = 0; i < ETCD2_EVENTS_MAX + 5; i++)
        assert_int_equal(set(f, "/a", "1", 0), 0);
    assert_int_equal(etcd2_tree_watch(&f->tree, &w, 5, &ev, &f->why), ETCD2_E_CLEARED);
    assert_string_equal(f->why.cause, "the requested history has been cleared [6/5]");
    assert_int_equal(etcd2_tree_watch(&f->tree, &w, 6, &ev, &f->why), 0);
    assert_int_equal(ev->index, 6);
    etcd2_event_unref(ev);
}

static void test_limits(void **state)
{
    struct fixture *f = *state;
    char path[] = "/a";
    size_t n = 0;

    while (set(f, path, "1", 0) == 0) {
        path[1]++;
        n++;
    }
    /* The root counts as one. */
    assert_int_equal(n, 7);
    assert_int_equal(f->why.code, ETCD2_E_INTERNAL);
    assert_int_equal(set(f, "/a", "one that is there may change", 0), 0);
    f->quota.bytes_max = f->quota.bytes - f->tree.events.history_bytes;
    assert_int_equal(set(f, "/a", "but not grow when there is no room", 0), ETCD2_E_INTERNAL);
    etcd2_tree_clear(&f->tree);
    assert_int_equal(f->n_saved, 0);
    assert_int_equal(set(f, "/a", "1", 0), 0);
}

static void test_paths(void **state)
{
    static const struct {
        const char *path;
        const char *clean;
    } cases[] = {
        {"", "/"},
        {"/", "/"},
        {"/a/", "/a"},
        {"a//b/./c", "/a/b/c"},
        {"/a/../../b", "/b"},
        {"/..a/.b", "/..a/.b"},
    };
    char ret[ETCD2_PATH_MAX + 1];
    char deep[3 * ETCD2_DEPTH_MAX];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_true(etcd2_path_clean(cases[i].path, ret));
        assert_string_equal(ret, cases[i].clean);
    }
    for (size_t i = 0; i < sizeof(deep); i++)
        deep[i] = i % 2 ? 'x' : '/';
    deep[2 * ETCD2_DEPTH_MAX] = '\0';
    assert_true(etcd2_path_clean(deep, ret));
    deep[2 * ETCD2_DEPTH_MAX] = '/';
    deep[2 * ETCD2_DEPTH_MAX + 2] = '\0';
    assert_false(etcd2_path_clean(deep, ret));
}

/* An answer is measured first, and made once: what has no room is refused, and never made. */
static void test_answers(void **state)
{
    static const char bytes[] = "a\0\"\x01\xff\xe2\x82\xac\xc3";
    struct etcd2_text value = {.p = bytes, .len = sizeof(bytes) - 1};
    struct fixture *f = *state;
    struct etcd2_change change = {
        .value = value, .has_prev_value = true, .prev_value = value, .when = f->when};
    struct etcd2_event *ev = NULL;
    char *text = NULL;
    size_t len;
    char *ones = malloc(100001);

    assert_int_equal(etcd2_tree_set(&f->tree, "/a", &change, &ev, &f->why), 0);
    etcd2_event_unref(ev);
    assert_int_equal(etcd2_tree_get(&f->tree, "/", true, f->when, &text, &len, &f->why), 0);
    text[len - 1] = '\0';
    assert_string_equal(text, "{\"action\":\"get\",\"node\":{\"dir\":true,\"nodes\":[{\"key\":"
                              "\"/a\",\"value\":\"a\\u0000\\\"\\u0001\\ufffd\xe2\x82\xac\\ufffd\","
                              "\"modifiedIndex\":1,\"createdIndex\":1}]}}");
    free(text);
    change.value = etcd2_text_of("b");
    assert_int_equal(etcd2_tree_swap(&f->tree, "/a", &change, &ev, &f->why), 0);
    etcd2_event_unref(ev);
    memset(ones, 1, 100000);
    ones[100000] = '\0';
    f->quota.bytes_max = 2u << 20;
    assert_int_equal(set(f, "/one", ones, 0), 0);
    assert_int_equal(look(f, "/one"), 0);
    f->quota.bytes_max = f->quota.bytes + 500000;
    assert_int_equal(look(f, "/one"), ETCD2_E_INTERNAL);
    assert_int_equal(look(f, "/a"), 0);
    /* Room is made for a change by forgetting what has been; and a full job can be emptied. */
    assert_int_equal(f->tree.events.n_history, 3);
    f->quota.bytes_max = f->quota.bytes + 500000;
    assert_int_equal(set(f, "/two", ones, 0), 0);
    assert_int_equal(f->tree.events.n_history, 1);
    f->quota.bytes_max = f->quota.bytes;
    assert_int_equal(etcd2_tree_delete(&f->tree, "/one", &change, &ev, &f->why), 0);
    etcd2_event_unref(ev);
    free(ones);
}

/* A name made by the tree is a part of the path like any other: one part too many is refused, and
 * all that was taken is loaded again. */
static void test_depth(void **state)
{
    struct fixture *f = *state;
    struct etcd2_change change = {.value = etcd2_text_of(""), .when = f->when};
    char deep[2 * ETCD2_DEPTH_MAX + 1];
    struct etcd2_event *ev = NULL;

    for (size_t i = 0; i + 1 < sizeof(deep); i++)
        deep[i] = i % 2 ? 'd' : '/';
    deep[sizeof(deep) - 1] = '\0';
    f->quota.entries_max = 2 * ETCD2_DEPTH_MAX;
    assert_int_equal(
        etcd2_tree_create_in_order(&f->tree, deep, &change, &ev, &f->why), ETCD2_E_FORM);
    assert_string_equal(f->why.cause, "the key has more than 64 parts");
    assert_int_equal(f->n_saved, 0);
    deep[sizeof(deep) - 3] = '\0';
    assert_int_equal(etcd2_tree_create_in_order(&f->tree, deep, &change, &ev, &f->why), 0);
    etcd2_event_unref(ev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ttl, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_restart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_waiting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_history, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_answers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_depth, set_up, tear_down),
        cmocka_unit_test(test_paths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
