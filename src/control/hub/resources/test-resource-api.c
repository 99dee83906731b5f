/*
 * test-resource-api.c - what the hub asks an API server about its resources: methods, paths and
 * bodies; and what it makes of the answers.
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

#include "base/err.h"
#include "hub/resources/resource.h"
#include "hub/resources/resource_api.h"
#include "mesh/object/object.h"
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
    struct resource_part part = {.manager = "agent/gpu-1", .status = json_object()};
    struct setting s;

    begin(&s, done, 1);
    assert_int_equal(
        resource_api_apply_status(&s.api, &mesh_edge_kind, "default.a--b", &part, &s.answer, &s.e),
        0);
    end(&s, PATCH "/status?force=true&fieldManager=agent%2Fgpu-1|",
        "Content-Type: application/apply-patch+yaml\r\n",
        "{\"apiVersion\":\"weft.dev/v1alpha1\",\"kind\":\"MeshEdge\","
        "\"metadata\":{\"name\":\"default.a--b\"},\"status\":{}}");
    resource_part_deinit(&part);
}

static void test_release_and_remove(void **state)
{
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
}

static void test_event(void **state)
{
    const struct resource_event event = {.kind = &mesh_edge_kind,
        .name = "default.a--b",
        .uid = "u-1",
        .reason = "Refused",
        .text = "no node is called \"b\""};
    struct setting s;
    json_t *sent;

    begin(&s, done, 1);
    assert_int_equal(resource_api_add_event(&s.api, &event, &s.e), 0);
    canned_server_join(&s.server);
    assert_string_equal(s.server.asked, "POST /api/v1/namespaces/weft/events|");
    sent = json_loads(strstr(s.server.got, "\r\n\r\n") + 4, 0, NULL);
    assert_non_null(sent);
    assert_string_equal(
        json_string_value(json_object_get(sent, "message")), "no node is called \"b\"");
    assert_string_equal(json_string_value(json_object_get(sent, "type")), "Warning");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(sent, "involvedObject"), "uid")), "u-1");
    json_decref(sent);
    kube_client_deinit(&s.api);
}

/* Every digit of @form is one in @text, and all else is the same. */
static void assert_form(const char *text, const char *form)
{
    assert_int_equal(strlen(text), strlen(form));
    for (size_t i = 0; form[i]; i++)
        if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            fail_msg("\"%s\" is not like \"%s\"", text, form);
}

/* RFC 3339 in UTC, of which Kubernetes has one form with microseconds and one without. */
static void test_time(void **state)
{
    char text[RESOURCE_API_TIME_MAX];

    assert_form(resource_api_time(text, true), "0000-00-00T00:00:00.000000Z");
    assert_form(resource_api_time(text, false), "0000-00-00T00:00:00Z");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
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
