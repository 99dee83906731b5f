/*
 * test-cluster-writer.c - a node's parts of edges on their way to an API server, which answers what
 * the test has written down.
 */
#include "agent/cluster/cluster_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "os/clock.h"
#include "test/support/canned_server.h"

#define LIMIT  (10 * NSEC_PER_SEC)
#define STATUS "PATCH /apis/weft.dev/v1alpha1/namespaces/weft/meshedges/default."

static struct world {
    struct canned_server server;
    char path[64];
    char where[96];
    struct cluster_writer *cw;
} w;

/* A writer of n2's parts, to a server with these answers. */
static void begin(enum edge_owner owner, const char *const *answers, size_t n)
{
    const struct cluster_writer_self self = {.network = "default", .node = "n2", .owner = owner};
    struct err e = ERR_NULL;
    FILE *f;

    memset(&w, 0, sizeof(w));
    canned_server_start(&w.server, answers, n);
    (void)snprintf(w.path, sizeof(w.path), "/tmp/weft-test-writer.%d", (int)getpid());
    (void)snprintf(w.where, sizeof(w.where), "?kubeconfig=%s", w.path);
    f = fopen(w.path, "w");
    assert_non_null(f);
    (void)fprintf(f,
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
        "clusters: [{name: c, cluster: {server: \"%s\"}}]\n"
        "users: [{name: u, user: {token: t}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u, namespace: weft}}]\n",
        w.server.url);
    (void)fclose(f);
    assert_int_equal(cluster_writer_new(&w.cw, w.where, &self, &e), 0);
}

static void end(void)
{
    w.cw = cluster_writer_free(w.cw);
    (void)unlink(w.path);
}

static void tell(const char *parts)
{
    json_t *json = json_loads(parts, 0, NULL);

    assert_non_null(json);
    cluster_writer_tell(w.cw, json, json_object(), 3, clock_now());
}

/* The words of the fault as soon as there is one. */
static const char *await_fault(void)
{
    nsec_t until = clock_now() + LIMIT;
    const char *fault = NULL;
    nsec_t since = 0;

    while (!fault && clock_now() < until) {
        fault = cluster_writer_fault(w.cw, &since);
        (void)sched_yield();
    }
    assert_non_null(fault);
    assert_in_range(since, 1, clock_now());
    return fault;
}

static void test_parts_are_written(void **state)
{
    static const char *const answers[] = {CANNED_OK "{}", CANNED_OK "{}"};
    nsec_t since;

    begin(EDGE_OWNER_PROBE, answers, 2);
    assert_true(cluster_writer_is_due(w.cw, 2, clock_now()));
    tell("{\"n1\":{\"tunnel\":\"reached\"},\"n3\":{\"tunnel\":\"silent\"}}");
    assert_false(cluster_writer_is_due(w.cw, 2, clock_now()));
    canned_server_join(&w.server);
    assert_string_equal(w.server.asked, STATUS "n1--n2/status?fieldManager=probe%2Fn2|" STATUS
                                               "n2--n3/status?fieldManager=probe%2Fn2|");
    assert_non_null(strstr(w.server.got, "\"status\":{\"probe/n2\":{\"tunnel\":\"silent\","
                                         "\"observedAt\":\"20"));
    assert_non_null(strstr(w.server.got, "\"everySeconds\":300}}}"));
    assert_non_null(strstr(w.server.got, "Authorization: Bearer t\r\n"));
    assert_null(cluster_writer_fault(w.cw, &since));
    end();
}

/* With the server's own words; and what is not taken is no reason to ask again at once. */
static void test_what_is_forbidden_is_said(void **state)
{
    static const char *const answers[] = {
        CANNED_STATUS("403 Forbidden") "{\"message\":\"a pod on n1 may write agent/n1 alone\"}"};

    begin(EDGE_OWNER_AGENT, answers, 1);
    tell("{\"n1\":{\"path\":\"lan\"},\"n3\":{\"path\":\"lan\"}}");
    assert_string_equal(
        await_fault(), "the API server answers 403: a pod on n1 may write agent/n1 alone");
    canned_server_join(&w.server);
    end();
}

static void test_what_somebody_else_owns_is_said(void **state)
{
    static const char *const answers[] = {
        CANNED_STATUS("409 Conflict") "{\"message\":\"conflict with \\\"kubectl\\\"\"}",
        CANNED_OK "{}"};

    begin(EDGE_OWNER_AGENT, answers, 2);
    tell("{\"n1\":{\"path\":\"lan\"},\"n3\":{\"path\":\"lan\"}}");
    assert_string_equal(await_fault(),
        "somebody else owns that of the edge default.n1--n2: the API "
        "server answers 409: conflict with \"kubectl\"");
    /* The other edge is written all the same, which does not make this one well. */
    canned_server_join(&w.server);
    assert_string_equal(w.server.asked, STATUS "n1--n2/status?fieldManager=agent%2Fn2|" STATUS
                                               "n2--n3/status?fieldManager=agent%2Fn2|");
    (void)await_fault();
    end();
}

/* Those that the cluster does not have are no fault. */
static void test_an_edge_that_is_not_shown(void **state)
{
    static const char *const answers[] = {
        CANNED_STATUS("404 Not Found") "{\"reason\":\"NotFound\",\"details\":{\"name\":\"x\"}}",
        CANNED_OK "{}"};
    nsec_t since;

    begin(EDGE_OWNER_AGENT, answers, 2);
    tell("{\"n1\":{\"path\":\"lan\"},\"n3\":{\"path\":\"lan\"}}");
    canned_server_join(&w.server);
    assert_null(cluster_writer_fault(w.cw, &since));
    end();
}

static void test_how_often_it_is_told(void **state)
{
    static const char *const none[] = {NULL};
    nsec_t now = clock_now();

    begin(EDGE_OWNER_AGENT, none, 0);
    cluster_writer_tell(w.cw, json_object(), NULL, 3, now);
    assert_false(cluster_writer_is_due(w.cw, 10, now + 5 * NSEC_PER_SEC - 1));
    assert_true(cluster_writer_is_due(w.cw, 10, now + 5 * NSEC_PER_SEC));
    assert_false(cluster_writer_is_due(w.cw, 10000, now + 50 * NSEC_PER_SEC - 1));
    assert_true(cluster_writer_is_due(w.cw, 10000, now + 50 * NSEC_PER_SEC));
    canned_server_join(&w.server);
    end();
    assert_null(cluster_writer_free(NULL));
}

static void test_where_nothing_can_be(void **state)
{
    const struct cluster_writer_self self = {.network = "default", .node = "n2"};
    struct cluster_writer *cw = NULL;
    struct err e = ERR_NULL;

    assert_true(cluster_writer_new(&cw, "?kubeconfig=/nonexistent/file", &self, &e) < 0);
    assert_null(cw);
    assert_non_null(strstr(err_text(&e), "/nonexistent/file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_are_written),
        cmocka_unit_test(test_what_is_forbidden_is_said),
        cmocka_unit_test(test_what_somebody_else_owns_is_said),
        cmocka_unit_test(test_an_edge_that_is_not_shown),
        cmocka_unit_test(test_how_often_it_is_told),
        cmocka_unit_test(test_where_nothing_can_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
