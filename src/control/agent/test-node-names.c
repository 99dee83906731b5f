/*
 * test-node-names.c - the names in the hosts file: which are left out, why, and when it is looked
 * at again. The resolver is this test, the file one of its own, and the clock what it says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/node_names.h"
#include "base/err.h"
#include "mesh/snapshot/snapshot.h"
#include "os/clock.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

/* Something else on this machine answers to "n4". */
static enum name_found resolver(const struct name_query *q, struct ip_addr *ret_where)
{
    if (strcmp(q->name, "n4") != 0)
        return NAME_FOUND_NOBODY;
    *ret_where = (struct ip_addr){{[10] = 0xff, 0xff, 192, 0, 2, 7}};
    return NAME_FOUND_SOMEBODY;
}

struct world {
    char file[64];
    struct snapshot snapshot;
    struct node_names names;
    nsec_t now;
};

static void write_file(const struct world *w, const char *text)
{
    FILE *f = fopen(w->file, "w");

    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
}

/* The hosts file's text; until the next call. */
static const char *read_file(const struct world *w)
{
    static char text[4096];
    FILE *f = fopen(w->file, "r");

    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    (void)fclose(f);
    return text;
}

static void begin(struct world *w, bool is_on)
{
    struct node_names_options opt = {.is_on = is_on, .file = w->file, .lookup = resolver};

    w->names = (struct node_names){.opt = opt, .due_at = NSEC_NEVER};
}

static int enter(void **state)
{
    static struct world w;
    int fd;

    /* The resolver's thread dates what it finds by the machine's clock. */
    w = (struct world){.file = "/tmp/weft-test-hosts-XXXXXX",
        .snapshot = sample_snapshot(4, 2),
        .now = clock_now()};
    fd = mkstemp(w.file);
    assert_true(fd >= 0);
    (void)close(fd);
    write_file(&w, "127.0.0.1\tlocalhost\n");
    begin(&w, true);
    *state = &w;
    return 0;
}

static int leave(void **state)
{
    struct world *w = *state;
    char lock[80];

    node_names_deinit(&w->names);
    snapshot_deinit(&w->snapshot);
    (void)snprintf(lock, sizeof(lock), "%s.weft-lock", w->file);
    (void)unlink(lock);
    return unlink(w->file);
}

/* Updates until the resolver has been asked for all. */
static void settle(struct world *w)
{
    do
        node_names_update(&w->names, &w->snapshot, false, w->now);
    while (w->names.due_at < w->now + SEC);
}

static const char *why_of(const struct world *w, const char *name)
{
    const json_t *item;
    size_t i;

    json_array_foreach(w->names.left_out, i, item)
        if (strcmp(json_string_value(json_object_get(item, "name")), name) == 0)
            return json_string_value(json_object_get(item, "why"));
    return NULL;
}

static void test_qualified_names_come_at_once(void **state)
{
    struct world *w = *state;

    assert_true(node_names_is_pending(&w->names));
    node_names_update(&w->names, &w->snapshot, false, w->now);
    assert_non_null(strstr(read_file(w), "10.42.0.3\tn3.default.weft"));
    assert_non_null(strstr(read_file(w), "fd5a:1::3\tn3.default.weft"));
    assert_non_null(strstr(read_file(w), "127.0.0.1\tlocalhost\n"));
    /* The resolver has not answered for all bare ones at once: they are looked at soon again. */
    settle(w);
    assert_int_equal(w->names.due_at, w->now + 10 * SEC);
    assert_false(node_names_is_pending(&w->names));
}

static void test_a_name_that_means_something_else(void **state)
{
    struct world *w = *state;

    settle(w);
    assert_non_null(strstr(read_file(w), "n3.default.weft n3\n"));
    assert_non_null(strstr(read_file(w), "n4.default.weft\n"));
    assert_non_null(why_of(w, "n4"));
    assert_null(why_of(w, "n3"));
}

static void test_a_name_that_the_file_has(void **state)
{
    struct world *w = *state;

    write_file(w, "127.0.0.1\tlocalhost\n10.9.9.9\tn3\n");
    settle(w);
    assert_non_null(strstr(read_file(w), "10.9.9.9\tn3\n"));
    assert_non_null(strstr(read_file(w), "n3.default.weft\n"));
    assert_non_null(why_of(w, "n3"));
}

static void test_no_ipv6_here(void **state)
{
    struct world *w = *state;

    node_names_update(&w->names, &w->snapshot, true, w->now);
    assert_non_null(strstr(read_file(w), "10.42.0.3"));
    assert_null(strstr(read_file(w), "fd5a"));
}

static void test_somebody_has_removed_the_block(void **state)
{
    struct world *w = *state;

    settle(w);
    write_file(w, "127.0.0.1\tlocalhost\n");
    node_names_update(&w->names, &w->snapshot, false, w->names.due_at);
    assert_non_null(strstr(read_file(w), "n3.default.weft n3"));
    assert_int_equal(node_names_remove(&w->names, &w->snapshot, NULL), 0);
    assert_string_equal(read_file(w), "127.0.0.1\tlocalhost\n");
}

/* What is wrong with the file is known until it can be written. */
static void test_a_file_that_cannot_be_written(void **state)
{
    struct world *w = *state;
    char folder[128];

    settle(w);
    assert_int_equal(w->names.failure.code, 0);
    (void)snprintf(folder, sizeof(folder), "%s/x", w->file);
    w->names.opt.file = folder; /* below a file, where there is none */
    node_names_update(&w->names, &w->snapshot, false, w->now);
    assert_int_not_equal(w->names.failure.code, 0);
    assert_non_null(strstr(err_text(&w->names.failure), folder));
    w->names.opt.file = w->file;
    node_names_update(&w->names, &w->snapshot, false, w->now);
    assert_int_equal(w->names.failure.code, 0);
}

static void test_the_earliest_request_counts(void **state)
{
    struct world *w = *state;

    assert_true(w->names.due_at == NSEC_NEVER);
    node_names_request(&w->names, w->now + 3 * SEC);
    node_names_request(&w->names, w->now + 5 * SEC);
    assert_int_equal(w->names.due_at, w->now + 3 * SEC);
    node_names_request(&w->names, w->now + SEC);
    assert_int_equal(w->names.due_at, w->now + SEC);
}

/* --no-hosts at the join. */
static void test_names_that_are_not_kept(void **state)
{
    struct world *w = *state;

    node_names_deinit(&w->names);
    begin(w, false);
    node_names_update(&w->names, &w->snapshot, false, w->now);
    assert_string_equal(read_file(w), "127.0.0.1\tlocalhost\n");
    assert_true(w->names.due_at == NSEC_NEVER);
    assert_false(node_names_is_pending(&w->names));
    assert_int_equal(node_names_remove(&w->names, &w->snapshot, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_qualified_names_come_at_once, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_name_that_means_something_else, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_name_that_the_file_has, enter, leave),
        cmocka_unit_test_setup_teardown(test_no_ipv6_here, enter, leave),
        cmocka_unit_test_setup_teardown(test_somebody_has_removed_the_block, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_file_that_cannot_be_written, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_earliest_request_counts, enter, leave),
        cmocka_unit_test_setup_teardown(test_names_that_are_not_kept, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
