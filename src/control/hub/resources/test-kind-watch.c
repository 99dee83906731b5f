/*
 * test-kind-watch.c - a kind's resources are listed in pages and then watched; from where a watch
 * goes on, and when everything is listed again.
 *
 * The API server is a canned_server.h, which gives each watch its lines and then ends it. Time is
 * the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/resources/projection.h"
#include "hub/resources/resource_api.h"
#include "hub/resources/writer.h"
#include "mesh/object/object.h"
#include "test/support/canned_kube.h"

#define N(a) (sizeof(a) / sizeof(*(a)))

#define EDGES    "GET /apis/weft.dev/v1alpha1/namespaces/weft/meshedges"
#define LIST     EDGES "?limit=200|"
#define WATCH(v) EDGES "?watch=true&allowWatchBookmarks=true&resourceVersion=" v "|"

#define EDGE(name, version)                                                                        \
    "{\"metadata\":{\"name\":\"default." name "\",\"resourceVersion\":\"" version                  \
    "\",\"uid\":\"u\"},\"spec\":{}}"
#define PAGE(meta, items)     CANNED_OK "{\"metadata\":{" meta "},\"items\":[" items "]}"
#define EVENT(type, resource) "{\"type\":\"" type "\",\"object\":" resource "}\n"

struct setting {
    struct canned_server server;
    struct kube_client api;
    struct projection projection;
    struct kind_watch watch;
    struct err e;
};

static void begin(struct setting *s, const char *const *answers, size_t n)
{
    memset(s, 0, sizeof(*s));
    canned_kube_start(&s->server, &s->api, answers, n);
    projection_init(&s->projection);
    s->watch =
        (struct kind_watch){.api = &s->api, .projection = &s->projection, .kind = &mesh_edge_kind};
}

static void end(struct setting *s, const char *asked)
{
    kind_watch_forget(&s->watch);
    canned_server_join(&s->server);
    assert_string_equal(s->server.asked, asked);
    projection_reset(&s->projection);
    kube_client_deinit(&s->api);
}

static int tend(struct setting *s, nsec_t now)
{
    return kind_watch_tend(&s->watch, now, &s->e);
}

/* Take in what the open watch has, to its end. */
static void follow(struct setting *s)
{
    struct remote_http_end over;
    struct err e = ERR_NULL;

    assert_non_null(s->watch.stream);
    while (!remote_http_has_ended(s->watch.stream, &over, &e))
        remote_http_wait(s->api.http, -1, 1000);
}

static bool is_there(const struct setting *s, const char *name)
{
    const struct projection_item *item = projection_find(&s->projection, &mesh_edge_kind, name);

    return item && item->seen.is_there;
}

static const nsec_t start = 100 * NSEC_PER_SEC;

/* What is there, of two pages; what comes, changes and goes; and a bookmark, behind which the next
 * watch begins. Nothing is listed a second time. */
static void test_list_and_watch(void **state)
{
    static const char *const answers[] = {
        PAGE("\"resourceVersion\":\"9\",\"continue\":\"on\"", EDGE("a--b", "3")),
        PAGE("\"resourceVersion\":\"10\"", EDGE("a--c", "4")),
        CANNED_OK EVENT("ADDED", EDGE("b--c", "11")) EVENT("MODIFIED", EDGE("a--c", "12"))
            EVENT("DELETED", EDGE("a--b", "13"))
                EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"20\"}}"),
        CANNED_OK "",
    };
    struct setting s;

    begin(&s, answers, N(answers));
    assert_int_equal(tend(&s, start), 0);
    assert_true(is_there(&s, "default.a--b") && is_there(&s, "default.a--c"));
    /* It is open: nothing is asked. */
    assert_int_equal(tend(&s, start), 0);
    follow(&s);
    assert_true(is_there(&s, "default.b--c") && is_there(&s, "default.a--c"));
    assert_false(is_there(&s, "default.a--b"));
    /* A bookmark is no resource; what has gone is forgotten when the next step is decided. */
    assert_int_equal(s.projection.items.n, 3);
    /* A watch that the server has ended is opened again at once. */
    assert_int_equal(tend(&s, start), 0);
    follow(&s);
    end(&s, LIST EDGES "?limit=200&continue=on|" WATCH("10") WATCH("20"));
}

/* Too old, as the first line of the stream says, or the status: list again. What is not listed any
 * more has gone meanwhile. */
static void test_too_old(void **state)
{
    static const char *const answers[] = {
        PAGE("\"resourceVersion\":\"10\"", EDGE("a--b", "3")),
        CANNED_OK EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410}"),
        PAGE("\"resourceVersion\":\"50\"", EDGE("a--c", "40")),
        CANNED_STATUS("410 Gone") "{}",
        PAGE("\"resourceVersion\":\"60\"", EDGE("a--c", "40")),
        CANNED_OK "",
    };
    struct setting s;

    begin(&s, answers, N(answers));
    assert_int_equal(tend(&s, start), 0);
    follow(&s);
    assert_int_equal(tend(&s, start), 0);
    assert_false(is_there(&s, "default.a--b"));
    assert_true(is_there(&s, "default.a--c"));
    follow(&s);
    /* A refused watch waits for a moment. */
    assert_int_equal(tend(&s, start), 0);
    assert_null(s.watch.stream);
    assert_int_equal(tend(&s, start + KIND_WATCH_PAUSE - 1), 0);
    assert_null(s.watch.stream);
    assert_int_equal(tend(&s, start + KIND_WATCH_PAUSE), 0);
    assert_true(is_there(&s, "default.a--c"));
    follow(&s);
    end(&s, LIST WATCH("10") LIST WATCH("50") LIST WATCH("60"));
}

/* The second page is refused: nothing that was not read counts as gone, and all is listed again. */
static void test_list_breaks_off(void **state)
{
    static const char *const answers[] = {
        PAGE("\"resourceVersion\":\"9\"", EDGE("a--b", "3") "," EDGE("a--c", "3")),
        CANNED_OK EVENT("ERROR", "{}"),
        PAGE("\"resourceVersion\":\"30\",\"continue\":\"on\"", EDGE("a--b", "3")),
        CANNED_STATUS("403 Forbidden") "{\"message\":\"no more\"}",
        PAGE("\"resourceVersion\":\"40\"", EDGE("a--c", "3")),
        CANNED_OK "",
    };
    struct setting s;

    begin(&s, answers, N(answers));
    assert_int_equal(tend(&s, start), 0);
    follow(&s);
    assert_int_equal(tend(&s, start), -EACCES);
    assert_non_null(strstr(err_text(&s.e), "no more"));
    assert_true(is_there(&s, "default.a--b") && is_there(&s, "default.a--c"));
    /* Not before the pause is over. */
    assert_int_equal(tend(&s, start + 1), 0);
    assert_null(s.watch.stream);
    assert_int_equal(tend(&s, start + KIND_WATCH_PAUSE), 0);
    assert_false(is_there(&s, "default.a--b"));
    assert_true(is_there(&s, "default.a--c"));
    follow(&s);
    end(&s, LIST WATCH("9") LIST EDGES "?limit=200&continue=on|" LIST WATCH("40"));
}

/* Lines that no API server writes do no harm: what is not JSON ends the watch, and all is listed.
 */
static void test_nonsense(void **state)
{
    static const char *const answers[] = {
        PAGE("\"resourceVersion\":\"9\"", "7, " EDGE("a--b", "3")),
        CANNED_OK EVENT("DELETED", "{}") EVENT("ADDED", "[]")
            EVENT("MODIFIED", "{\"metadata\":7}") "not JSON\n",
        PAGE("\"resourceVersion\":\"11\"", EDGE("a--b", "3")),
        CANNED_OK "",
    };
    struct setting s;

    begin(&s, answers, N(answers));
    assert_int_equal(tend(&s, start), 0);
    follow(&s);
    assert_true(is_there(&s, "default.a--b"));
    assert_int_equal(s.projection.items.n, 1);
    assert_int_equal(tend(&s, start), 0);
    follow(&s);
    end(&s, LIST WATCH("9") LIST WATCH("11"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_and_watch),
        cmocka_unit_test(test_too_old),
        cmocka_unit_test(test_list_breaks_off),
        cmocka_unit_test(test_nonsense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
