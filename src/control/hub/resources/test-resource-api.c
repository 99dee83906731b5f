/*
 * test-resource-api.c - what the hub asks an API server about its resources: methods, paths and
 * bodies; what it makes of the answers; and which of several hubs writes.
 *
 * The API server is a canned_server.h. That a real one takes these requests is tested in
 * test/kube/.
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
#include <time.h>

#include "base/err.h"
#include "hub/resources/resource.h"
#include "hub/resources/resource_api.h"
#include "mesh/object/object.h"
#include "os/clock.h"
#include "test/support/canned_kube.h"

#define EDGES "/apis/weft.dev/v1alpha1/namespaces/weft/meshedges"
#define LEASE "/apis/coordination.k8s.io/v1/namespaces/weft/leases"

#define DONE CANNED_OK "{\"metadata\":{\"resourceVersion\":\"7\"}}"

/* One server that gives one answer, and who asks it. */
struct setting {
    struct canned_server server;
    struct kube_client api;
    json_t *answer;
    struct err e;
};

static void begin(struct setting *s, const char *const *answers, size_t n)
{
    memset(s, 0, sizeof(*s));
    canned_kube_start(&s->server, &s->api, answers, n);
}

static const char *const done[] = {DONE};

/* @asked: method and path; @type: of the body; @body: as JSON, or NULL: none was sent. */
static void end(struct setting *s, const char *asked, const char *type, const char *body)
{
    const char *sent;

    canned_server_join(&s->server);
    assert_string_equal(s->server.asked, asked);
    sent = strstr(s->server.got, "\r\n\r\n");
    assert_non_null(sent);
    if (body) {
        json_t *expected = json_loads(body, 0, NULL);
        json_t *got = json_loads(sent + 4, 0, NULL);

        assert_non_null(expected);
        if (!json_equal(expected, got))
            fail_msg("sent %s, not %s", sent + 4, body);
        json_decref(expected);
        json_decref(got);
    } else {
        assert_string_equal(sent + 4, "");
    }
    if (type)
        assert_non_null(strstr(s->server.got, type));
    json_decref(s->answer);
    kube_client_deinit(&s->api);
}

/* ---- who leads ------------------------------------------------------------------------------- */

static json_t *lease_of(const char *holder, const char *version)
{
    return json_pack("{s:{s:s}, s:{s:s, s:i}}", "metadata", "resourceVersion", version, "spec",
        "holderIdentity", holder, "leaseTransitions", 3);
}

static void look(struct leader *l, const char *holder, const char *version, nsec_t now)
{
    json_t *json = holder ? lease_of(holder, version) : NULL;

    leader_saw(l, json, now);
    json_decref(json);
}

/* What the hub "me" writes then is that, beside what is the same in each Lease. */
static void expect_lease(const struct leader *l, bool is_end, const char *version,
    const char *holder, int n_changes, bool is_acquired)
{
    json_t *json = leader_lease(l, "now", is_end);
    json_t *expected = json_pack("{s:s, s:s, s:{s:s, s:s*}, s:{s:s, s:i, s:i, s:s, s:s*}}",
        "apiVersion", "coordination.k8s.io/v1", "kind", "Lease", "metadata", "name", "weft-hub",
        "resourceVersion", version, "spec", "holderIdentity", holder, "leaseDurationSeconds", 15,
        "leaseTransitions", n_changes, "renewTime", "now", "acquireTime",
        is_acquired ? "now" : NULL);
    char *text = json_dumps(json, 0);

    assert_non_null(expected);
    if (!json_equal(json, expected))
        fail_msg("%s", text);
    free(text);
    json_decref(expected);
    json_decref(json);
}

static void wrote(struct leader *l, const char *holder, const char *version, nsec_t began_at)
{
    json_t *json = lease_of(holder, version);

    leader_wrote(l, json, began_at);
    json_decref(json);
}

static void test_leader(void **state)
{
    struct leader l;

    leader_init(&l, "me");
    look(&l, NULL, NULL, 1);
    assert_int_equal(l.looked_at, 1);
    assert_true(leader_may_write(&l, 1));
    /* There is none: it is made, and nobody had it before. */
    expect_lease(&l, false, NULL, "me", 0, true);
    assert_false(leader_is_leading(&l, 1));
    look(&l, "other", "1", 2);
    assert_false(leader_may_write(&l, 2));
    /* It goes on renewing it; then it does not. */
    look(&l, "other", "2", 14 * NSEC_PER_SEC);
    assert_false(leader_may_write(&l, 20 * NSEC_PER_SEC));
    look(&l, "other", "2", 28 * NSEC_PER_SEC);
    assert_int_equal(l.looked_at, 28 * NSEC_PER_SEC);
    assert_false(leader_may_write(&l, 29 * NSEC_PER_SEC - 1));
    assert_true(leader_may_write(&l, 29 * NSEC_PER_SEC));
    expect_lease(&l, false, "2", "me", 4, true);
    wrote(&l, "me", "3", 29 * NSEC_PER_SEC);
    assert_true(leader_is_leading(&l, 38 * NSEC_PER_SEC));
    /* It is renewed: nothing has changed its holder. */
    assert_true(leader_may_write(&l, 30 * NSEC_PER_SEC));
    expect_lease(&l, false, "3", "me", 3, false);
    expect_lease(&l, true, "3", "", 3, false);
    /* That this hub has it is no news to it. */
    look(&l, "me", "3", 34 * NSEC_PER_SEC);
    assert_true(leader_is_leading(&l, 39 * NSEC_PER_SEC - 1));
    /* It could not be renewed: this hub stops before another one may begin. */
    assert_false(leader_is_leading(&l, 39 * NSEC_PER_SEC));
    look(&l, "other", "4", 35 * NSEC_PER_SEC);
    assert_false(leader_is_leading(&l, 35 * NSEC_PER_SEC));
    assert_false(leader_may_write(&l, 50 * NSEC_PER_SEC - 1));
    /* Given back, it is anybody's. */
    look(&l, "", "5", 36 * NSEC_PER_SEC);
    assert_true(leader_may_write(&l, 36 * NSEC_PER_SEC));
    wrote(&l, "me", "6", 36 * NSEC_PER_SEC);
    assert_true(leader_is_leading(&l, 37 * NSEC_PER_SEC));
    wrote(&l, "", "7", 38 * NSEC_PER_SEC);
    assert_false(leader_is_leading(&l, 38 * NSEC_PER_SEC));
}

/* ---- the Lease ------------------------------------------------------------------------------- */

static void test_lease(void **state)
{
    static const char *const absent[] = {CANNED_STATUS(
        "404 Not Found") "{\"reason\":\"NotFound\",\"details\":{\"name\":\"weft-hub\"}}"};
    static const char *const taken[] = {CANNED_STATUS("409 Conflict") "{\"message\":\"taken\"}"};
    json_t *lease = json_pack("{s:s}", "kind", "Lease");
    struct setting s;

    begin(&s, done, 1);
    assert_int_equal(resource_api_read_lease(&s.api, &s.answer, &s.e), 0);
    assert_non_null(json_object_get(s.answer, "metadata"));
    end(&s, "GET " LEASE "/weft-hub|", NULL, NULL);
    begin(&s, absent, 1);
    assert_int_equal(resource_api_read_lease(&s.api, &s.answer, &s.e), KUBE_E_ABSENT);
    assert_null(s.answer);
    end(&s, "GET " LEASE "/weft-hub|", NULL, NULL);
    /* A new one is made below the collection, an old one is replaced by its name. */
    begin(&s, done, 1);
    assert_int_equal(resource_api_write_lease(&s.api, lease, true, &s.answer, &s.e), 0);
    end(&s, "POST " LEASE "|", "Content-Type: application/json\r\n", "{\"kind\":\"Lease\"}");
    begin(&s, taken, 1);
    assert_int_equal(
        resource_api_write_lease(&s.api, lease, false, &s.answer, &s.e), KUBE_E_EXISTS);
    assert_non_null(strstr(err_text(&s.e), "taken"));
    end(&s, "PUT " LEASE "/weft-hub|", NULL, "{\"kind\":\"Lease\"}");
    json_decref(lease);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void test_list(void **state)
{
    static const char *const page[] = {
        CANNED_OK "{\"metadata\":{\"continue\":\"there\"},\"items\":[]}"};
    char more[RESOURCE_API_MORE_MAX] = "?";
    struct setting s;

    begin(&s, page, 1);
    assert_int_equal(resource_api_list(&s.api, &mesh_edge_kind, "", &s.answer, &s.e), 0);
    assert_true(resource_api_more(s.answer, more));
    assert_string_equal(more, "there");
    end(&s, "GET " EDGES "?limit=200|", NULL, NULL);
    begin(&s, done, 1);
    assert_int_equal(resource_api_list(&s.api, &mesh_edge_kind, more, &s.answer, &s.e), 0);
    assert_false(resource_api_more(s.answer, more));
    assert_string_equal(more, "");
    end(&s, "GET " EDGES "?limit=200&continue=there|", NULL, NULL);
}

static void count_line(void *ctx, const char *line, size_t len)
{
    assert_int_equal(strlen(line), len);
    *(unsigned *)ctx += 1;
}

static void test_watch(void **state)
{
    static const char *const lines[] = {CANNED_OK "{}\n{}\n"};
    struct remote_http_stream *stream = NULL;
    struct remote_http_end over;
    struct setting s;
    unsigned n = 0;

    begin(&s, lines, 1);
    assert_int_equal(
        resource_api_watch(&s.api, &mesh_edge_kind, "12", count_line, &n, &stream, &s.e), 0);
    while (!remote_http_has_ended(stream, &over, &s.e))
        remote_http_wait(s.api.http, -1, 1000);
    assert_int_equal(over.r, 0);
    assert_int_equal(n, 2);
    remote_http_close(stream);
    end(&s, "GET " EDGES "?watch=true&allowWatchBookmarks=true&resourceVersion=12|", NULL, NULL);
}

/* ---- writing --------------------------------------------------------------------------------- */

#define PATCH "PATCH " EDGES "/default.a--b"

static void test_apply(void **state)
{
    json_t *body = json_pack("{s:s}", "kind", "MeshEdge");
    struct setting s;

    for (int by_force = 0; by_force < 2; by_force++) {
        begin(&s, done, 1);
        assert_int_equal(resource_api_apply(&s.api, &mesh_edge_kind, "default.a--b", body,
                             by_force == 1, &s.answer, &s.e),
            0);
        assert_non_null(s.answer);
        end(&s,
            by_force ? PATCH "?fieldManager=weft-hub&force=true|" : PATCH "?fieldManager=weft-hub|",
            "Content-Type: application/apply-patch+yaml\r\n", "{\"kind\":\"MeshEdge\"}");
    }
    json_decref(body);
}

/* 409 is a conflict of two who own a field, or of two versions; only the words tell. */
static void test_clash(void **state)
{
    static const char *const fields[] = {
        CANNED_STATUS("409 Conflict") "{\"message\":\"Apply failed with 1 conflict: conflict with "
                                      "\\\"kubectl\\\"\"}"};
    static const char *const versions[] = {
        CANNED_STATUS("409 Conflict") "{\"message\":\"the object has been modified\"}"};
    json_t *body = json_object();
    struct setting s;
    int r;

    begin(&s, fields, 1);
    r = resource_api_apply(&s.api, &mesh_edge_kind, "default.a--b", body, false, &s.answer, &s.e);
    assert_int_equal(r, KUBE_E_EXISTS);
    assert_string_equal(
        resource_api_clash(r, &s.e), "Apply failed with 1 conflict: conflict with \"kubectl\"");
    assert_null(resource_api_clash(-EIO, &s.e));
    end(&s, PATCH "?fieldManager=weft-hub|", NULL, "{}");
    begin(&s, versions, 1);
    r = resource_api_apply(&s.api, &mesh_edge_kind, "default.a--b", body, false, &s.answer, &s.e);
    assert_int_equal(r, KUBE_E_EXISTS);
    assert_null(resource_api_clash(r, &s.e));
    end(&s, PATCH "?fieldManager=weft-hub|", NULL, "{}");
    json_decref(body);
}

static void test_apply_status(void **state)
{
    struct resource_part part = {.manager = "a/gpu-1/x", .status = json_object()};
    struct setting s;

    begin(&s, done, 1);
    assert_int_equal(
        resource_api_apply_status(&s.api, &mesh_edge_kind, "default.a--b", &part, &s.answer, &s.e),
        0);
    end(&s, PATCH "/status?force=true&fieldManager=a%2Fgpu-1%2Fx|",
        "Content-Type: application/apply-patch+yaml\r\n",
        "{\"apiVersion\":\"weft.dev/v1alpha1\",\"kind\":\"MeshEdge\","
        "\"metadata\":{\"name\":\"default.a--b\"},\"status\":{}}");
    resource_part_deinit(&part);
}

static void test_release_and_remove(void **state)
{
    static const char *const absent[] = {CANNED_STATUS(
        "404 Not Found") "{\"reason\":\"NotFound\",\"details\":{\"name\":\"default.a--b\"}}"};
    json_t *body = json_pack("{s:n}", "metadata");
    struct setting s;

    begin(&s, done, 1);
    assert_int_equal(
        resource_api_release(&s.api, &mesh_edge_kind, "default.a--b", body, &s.answer, &s.e), 0);
    end(&s, PATCH "?fieldManager=weft-hub|", "Content-Type: application/merge-patch+json\r\n",
        "{\"metadata\":null}");
    json_decref(body);
    /* Nothing is removed that has changed since it was read. */
    begin(&s, done, 1);
    assert_int_equal(
        resource_api_remove(&s.api, &mesh_edge_kind, "default.a--b", "41", &s.answer, &s.e), 0);
    end(&s, "DELETE " EDGES "/default.a--b|", NULL,
        "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
        "\"preconditions\":{\"resourceVersion\":\"41\"}}");
    begin(&s, absent, 1);
    assert_int_equal(
        resource_api_remove(&s.api, &mesh_edge_kind, "default.a--b", "41", &s.answer, &s.e),
        KUBE_E_ABSENT);
    end(&s, "DELETE " EDGES "/default.a--b|", NULL,
        "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
        "\"preconditions\":{\"resourceVersion\":\"41\"}}");
}

/* Every digit of @form is one in @text, and all else is the same. */
static void assert_form(const char *text, const char *form)
{
    assert_int_equal(strlen(text), strlen(form));
    for (size_t i = 0; form[i]; i++)
        if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            fail_msg("\"%s\" is not like \"%s\"", text, form);
}

static void test_event(void **state)
{
    static const char *const refused[] = {
        CANNED_STATUS("403 Forbidden") "{\"message\":\"no events\"}"};
    const struct resource_event event = {.kind = &mesh_edge_kind,
        .name = "default.a--b",
        .uid = "u-1",
        .reason = "Refused",
        .text = "no node is called \"b\""};
    struct setting s;
    json_t *expected;
    const char *at;
    json_t *sent;

    begin(&s, done, 1);
    assert_int_equal(resource_api_add_event(&s.api, &event, &s.e), 0);
    canned_server_join(&s.server);
    assert_string_equal(s.server.asked, "POST /api/v1/namespaces/weft/events|");
    sent = json_loads(strstr(s.server.got, "\r\n\r\n") + 4, 0, NULL);
    assert_non_null(sent);
    at = json_string_value(json_object_get(sent, "firstTimestamp"));
    assert_non_null(at);
    assert_form(at, "0000-00-00T00:00:00Z");
    expected = json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s, s:s, s:s}, s:s, s:s, s:s, "
                         "s:{s:s}, s:s, s:s, s:i}",
        "apiVersion", "v1", "kind", "Event", "metadata", "generateName", "weft-hub-", "namespace",
        "weft", "involvedObject", "apiVersion", "weft.dev/v1alpha1", "kind", "MeshEdge", "name",
        "default.a--b", "namespace", "weft", "uid", "u-1", "type", "Warning", "reason", "Refused",
        "message", "no node is called \"b\"", "source", "component", "weft-hub", "firstTimestamp",
        at, "lastTimestamp", at, "count", 1);
    assert_true(json_equal(sent, expected));
    json_decref(expected);
    json_decref(sent);
    kube_client_deinit(&s.api);
    canned_kube_start(&s.server, &s.api, refused, 1);
    assert_int_equal(resource_api_add_event(&s.api, &event, &s.e), -EACCES);
    assert_non_null(strstr(err_text(&s.e), "no events"));
    canned_server_join(&s.server);
    kube_client_deinit(&s.api);
}

/* RFC 3339 in UTC, of which Kubernetes has one form with microseconds and one without. */
static void test_time(void **state)
{
    nsec_t before = clock_wall() / NSEC_PER_SEC;
    char text[RESOURCE_API_TIME_MAX];
    struct tm tm;

    assert_form(resource_api_time(text, true), "0000-00-00T00:00:00.000000Z");
    assert_form(resource_api_time(text, false), "0000-00-00T00:00:00Z");
    memset(&tm, 0, sizeof(tm));
    assert_non_null(strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm));
    assert_in_range(timegm(&tm), before, clock_wall() / NSEC_PER_SEC);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leader),
        cmocka_unit_test(test_lease),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_watch),
        cmocka_unit_test(test_apply),
        cmocka_unit_test(test_clash),
        cmocka_unit_test(test_apply_status),
        cmocka_unit_test(test_release_and_remove),
        cmocka_unit_test(test_event),
        cmocka_unit_test(test_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
