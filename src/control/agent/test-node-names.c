/*
 * test-node-names.c - the names in the hosts file: which are left out, why, and when it is looked
 * at again. The resolver is this test, the file one of its own, and the clock what it says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/node_names.h"
#include "agent/resolver.h"
#include "base/err.h"
#include "mesh/names/hosts.h"
#include "mesh/snapshot/snapshot.h"
#include "net/netlink/rtnl.h"
#include "os/clock.h"
#include "test/support/heard_log.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"

#define SEC    NSEC_PER_SEC
#define NOBODY 65534

/* Something else on this machine answers to "n4". */
static enum name_found resolver(const struct name_query *q, struct ip_addr *ret_where)
{
    if (strcmp(q->name, "n4") != 0)
        return NAME_FOUND_NOBODY;
    *ret_where = (struct ip_addr){{[10] = 0xff, 0xff, 192, 0, 2, 7}};
    return NAME_FOUND_SOMEBODY;
}

/* While a test holds it, the resolver does not answer. */
static pthread_mutex_t answering = PTHREAD_MUTEX_INITIALIZER;

static enum name_found slow_resolver(const struct name_query *q, struct ip_addr *ret_where)
{
    (void)pthread_mutex_lock(&answering);
    (void)pthread_mutex_unlock(&answering);
    return NAME_FOUND_NOBODY;
}

/* Each name means something else. */
static enum name_found other_resolver(const struct name_query *q, struct ip_addr *ret_where)
{
    *ret_where = (struct ip_addr){{[10] = 0xff, 0xff, 192, 0, 2, 7}};
    return NAME_FOUND_SOMEBODY;
}

struct world {
    char file[64];
    struct snapshot snapshot;
    struct node_names names;
    nsec_t now;
};

static void write_to(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
}

static void write_file(const struct world *w, const char *text)
{
    write_to(w->file, text);
}

/* The text of a file; until the next call. "": there is none. */
static const char *read_from(const char *path)
{
    static char text[16384];
    FILE *f = fopen(path, "r");

    text[f ? fread(text, 1, sizeof(text) - 1, f) : 0] = '\0';
    if (f)
        (void)fclose(f);
    return text;
}

static const char *read_file(const struct world *w)
{
    return read_from(w->file);
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

/* A file that has all names already need not be written. */
static void test_a_file_that_may_only_be_read(void **state)
{
    struct world *w = *state;

    settle(w);
    assert_int_equal(chmod(w->file, 0444), 0);
    /* Who is root may write it nevertheless. */
    (void)setfsuid(NOBODY);
    node_names_update(&w->names, &w->snapshot, false, w->now);
    assert_string_equal(w->names.failure.text, "");
    sample_put(&w->snapshot, sample_node(5));
    node_names_update(&w->names, &w->snapshot, false, w->now);
    (void)setfsuid(geteuid());
    assert_int_equal(w->names.failure.code, -EACCES);
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
    node_names_request(&w->names, w->now);
    node_names_update(&w->names, &w->snapshot, false, w->now);
    assert_string_equal(read_file(w), "127.0.0.1\tlocalhost\n");
    assert_true(w->names.due_at == NSEC_NEVER);
    assert_false(node_names_is_pending(&w->names));
    assert_int_equal(node_names_remove(&w->names, &w->snapshot, NULL), 0);
}

/* While the resolver is asked, bare names are not there, and it is soon looked again. */
static void test_a_resolver_that_is_slow(void **state)
{
    struct world *w = *state;
    char folder[128];

    w->names.opt.lookup = slow_resolver;
    (void)pthread_mutex_lock(&answering);
    node_names_update(&w->names, &w->snapshot, false, w->now);
    assert_true(node_names_is_pending(&w->names));
    assert_int_equal(w->names.due_at, w->now + SEC / 4);
    assert_non_null(strstr(read_file(w), "n3.default.weft\n"));
    assert_null(strstr(read_file(w), "n3.default.weft n3"));
    /* This machine's own name leads to it anyway. */
    assert_non_null(strstr(read_file(w), "n2.default.weft n2\n"));
    assert_int_equal(json_array_size(w->names.left_out), 0);
    /* Nobody waits for a file that cannot be written. */
    (void)snprintf(folder, sizeof(folder), "%s/x", w->file);
    w->names.opt.file = folder;
    node_names_update(&w->names, &w->snapshot, false, w->now);
    assert_false(node_names_is_pending(&w->names));
    w->names.opt.file = w->file;
    (void)pthread_mutex_unlock(&answering);
    settle(w);
    assert_non_null(strstr(read_file(w), "n3.default.weft n3\n"));
    assert_int_equal(w->names.due_at, w->now + 10 * SEC);
}

/* What is left out is said once, and as much of it is listed as a person reads. */
static void test_many_names_that_mean_something_else(void **state)
{
    struct world *w = *state;
    const json_t *item;
    const char *log;
    unsigned n = 0;
    size_t i;

    for (unsigned k = 5; k < 80; k++)
        sample_put(&w->snapshot, sample_node(k));
    w->names.opt.lookup = other_resolver;
    heard_log_begin();
    settle(w);
    log = heard_log_end();
    assert_int_equal(json_array_size(w->names.left_out), 64);
    json_array_foreach(w->names.left_out, i, item) {
        char line[256];

        (void)snprintf(line, sizeof(line), "the name \"%s\" of node %s is not in /etc/hosts: %s\n",
            json_string_value(json_object_get(item, "name")),
            json_string_value(json_object_get(item, "node")),
            json_string_value(json_object_get(item, "why")));
        n += strstr(log, line) != NULL;
        assert_string_not_equal(json_string_value(json_object_get(item, "node")), "n2");
    }
    assert_true(n > 0);
    heard_log_begin();
    node_names_update(&w->names, &w->snapshot, false, w->now);
    assert_string_equal(heard_log_end(), "");
    assert_int_equal(json_array_size(w->names.left_out), 64);
}

/* All that is said of a name, and in the log. */
static void test_what_is_said_of_a_name(void **state)
{
    static const char said[] = "info: weft: 4 names are in /etc/hosts\n";
    struct world *w = *state;
    char line[256];

    w->names.opt.lookup = slow_resolver;
    (void)pthread_mutex_lock(&answering);
    heard_log_begin();
    node_names_update(&w->names, &w->snapshot, false, w->now);
    assert_string_equal(heard_log_end(), said);
    heard_log_begin();
    node_names_update(&w->names, &w->snapshot, false, w->now);
    assert_string_equal(heard_log_end(), "");
    (void)pthread_mutex_unlock(&answering);
    node_names_deinit(&w->names);
    begin(w, true);
    heard_log_begin();
    settle(w);
    (void)snprintf(line, sizeof(line),
        "info: weft: the name \"n4\" of node n4 is not in /etc/hosts: %s\n", why_of(w, "n4"));
    assert_non_null(strstr(heard_log_end(), line));
    assert_int_equal(json_array_size(w->names.left_out), 1);
}

/* The lines are of the network as it was at the join: hubs come and go. */
static void test_whose_the_lines_are(void **state)
{
    struct world *w = *state;
    struct snapshot born = sample_snapshot(2, 2);
    struct object hub = sample_node(1);
    char owner[HOSTS_OWNER_MAX];
    char now[HOSTS_OWNER_MAX];

    hub.node.key = sample_key(99);
    sample_put(&born, hub);
    (void)hosts_owner(&born, owner);
    (void)hosts_owner(&w->snapshot, now);
    assert_string_not_equal(owner, now);
    settle(w);
    assert_non_null(strstr(read_file(w), now));
    assert_int_equal(node_names_remove(&w->names, &w->snapshot, NULL), 0);
    w->names.opt.born = &born;
    settle(w);
    assert_non_null(strstr(read_file(w), owner));
    assert_null(strstr(read_file(w), now));
    assert_int_equal(node_names_remove(&w->names, &w->snapshot, NULL), 0);
    assert_string_equal(read_file(w), "127.0.0.1\tlocalhost\n");
    snapshot_deinit(&born);
}

/* A resolver of this node answers by the same lines, also where the file is left alone. */
static void test_a_resolver_of_this_node(void **state)
{
    struct world *w = *state;
    struct resolver *r;
    json_t *json;
    char link_file[128];
    unsigned i;

    assert_int_equal(resolver_new(&r, "no-such-one", "/nonexistent", NULL), 0);
    begin(w, false);
    (void)snprintf(link_file, sizeof(link_file), "%s.link", w->file);
    w->names.opt.resolver = r;
    w->names.opt.link_file = link_file;
    w->names.opt.interface = "no-such-one";
    settle(w);
    assert_string_equal(read_file(w), "127.0.0.1\tlocalhost\n");
    assert_int_equal(w->names.due_at, w->now + 10 * SEC);
    for (i = 0; i < 1000; i++) {
        bool is_told;

        json = resolver_encode(r);
        is_told = strcmp(json_string_value(json_object_get(json, "why")),
                      "there is no interface no-such-one") == 0;
        json_decref(json);
        if (is_told)
            break;
        (void)poll(NULL, 0, 10);
    }
    assert_true(i < 1000);
    /* Where it does not listen systemd-resolved is not told of it. */
    assert_int_equal(access(link_file, F_OK), -1);
    write_to(link_file, "x");
    assert_int_equal(node_names_remove(&w->names, &w->snapshot, NULL), 0);
    assert_int_equal(access(link_file, F_OK), -1);
    assert_null(resolver_free(r));
}

/* Where it listens systemd-resolved is told of it: of all addresses that the machine takes. */
static void test_a_resolver_that_listens(void **state)
{
    static const char *const more[] = {"", ",\"address6\":\"fd5a:1::2\""};
    struct world *w = *state;
    struct resolver *r;
    char link_file[128];
    char expected[256];
    struct rtnl_link link;
    void *namespace;
    struct netlink *nl;

    assert_int_equal(netns_enter(&namespace), 0);
    nl = netns_need(&namespace);
    assert_int_equal(rtnl_add_link(nl, "weft0", "bridge"), 0);
    assert_int_equal(rtnl_find_link(nl, "weft0", &link), 0);
    assert_int_equal(rtnl_set_link(nl, link.ifindex, true, 0), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct ip_prefix own = netns_prefix(i == 0 ? "10.42.0.2/16" : "fd5a:1::2/64");

        assert_int_equal(rtnl_add_address(nl, link.ifindex, &own, false), 0);
    }
    (void)snprintf(link_file, sizeof(link_file), "%s.link", w->file);
    begin(w, false);
    w->names.opt.link_file = link_file;
    w->names.opt.interface = "weft0";
    for (unsigned i = 0; i < 2; i++) {
        unsigned n = 0;

        assert_int_equal(resolver_new(&r, "weft0", "/nonexistent", NULL), 0);
        w->names.opt.resolver = r;
        (void)snprintf(expected, sizeof(expected),
            "{\"interface\":\"weft0\",\"index\":%u,\"network\":\"default\","
            "\"address4\":\"10.42.0.2\"%s}",
            link.ifindex, more[i]);
        while (strcmp(read_from(link_file), expected) != 0) {
            assert_true(n++ < 4000);
            node_names_update(&w->names, &w->snapshot, i == 0, w->now);
            (void)poll(NULL, 0, 5);
        }
        r = resolver_free(r);
    }
    assert_int_equal(node_names_remove(&w->names, &w->snapshot, NULL), 0);
    assert_int_equal(access(link_file, F_OK), -1);
    (void)netns_leave(&namespace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_qualified_names_come_at_once, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_name_that_means_something_else, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_name_that_the_file_has, enter, leave),
        cmocka_unit_test_setup_teardown(test_no_ipv6_here, enter, leave),
        cmocka_unit_test_setup_teardown(test_somebody_has_removed_the_block, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_file_that_may_only_be_read, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_file_that_cannot_be_written, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_earliest_request_counts, enter, leave),
        cmocka_unit_test_setup_teardown(test_names_that_are_not_kept, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_resolver_that_is_slow, enter, leave),
        cmocka_unit_test_setup_teardown(test_many_names_that_mean_something_else, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_said_of_a_name, enter, leave),
        cmocka_unit_test_setup_teardown(test_whose_the_lines_are, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_resolver_of_this_node, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_resolver_that_listens, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
