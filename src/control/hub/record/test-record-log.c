/* test-record-log.c - admin tokens, entries of the audit log, and what hubs tell each other, as the
 * store keeps them. */
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
#include "hub/record/record.h"
#include "test/support/sample_mesh.h"

static void expect_refusal(int r, struct err *e, const char *says)
{
    assert_int_equal(r, -EINVAL);
    assert_string_equal(err_text(e), says);
    *e = (struct err)ERR_NULL;
}

/* The same text without its sum, and without the field @name. It is taken. */
static char *without(char *text, const char *name)
{
    json_t *json = json_loads(text, 0, NULL);
    char *rest;

    assert_non_null(json);
    free(text);
    (void)json_object_del(json, "sum");
    (void)json_object_del(json, name);
    rest = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return rest;
}

/* ---- admin tokens --------------------------------------------------------------------------- */

static struct admin_record sample_admin(void)
{
    struct admin_record a = {.name = "ci",
        .role = ROLE_OPERATOR,
        .network = "default",
        .hub_key = sample_key(1),
        .created_at = 5,
        .expires_at = 11,
        .created_by = "admin x"};

    memset(a.hash.b, 7, sizeof(a.hash.b));
    return a;
}

static void test_admin_tokens(void **state)
{
    struct admin_record a = sample_admin();
    struct admin_record is;
    struct err e = ERR_NULL;
    char key[RECORD_KEY_MAX];
    char *text = admin_record_encode(&a);

    assert_string_equal(admin_record_key(key, "ci"), "admin/ci");
    assert_true(seal_is_there(text));
    memset(&is, 0, sizeof(is));
    assert_int_equal(admin_record_decode(&is, "admin/ci", text, &e), 0);
    assert_string_equal(is.name, "ci");
    assert_memory_equal(is.hash.b, a.hash.b, sizeof(a.hash.b));
    assert_int_equal(is.role, ROLE_OPERATOR);
    assert_string_equal(is.network, "default");
    assert_true(x25519_public_equal(&is.hub_key, &a.hub_key));
    assert_int_equal(is.created_at, 5);
    assert_int_equal(is.expires_at, 11);
    assert_string_equal(is.created_by, "admin x");
    /* It lies under another key. */
    assert_int_equal(admin_record_decode(&is, "admin/cd", text, &e), -EINVAL);
    expect_refusal(admin_record_decode(&is, "token/ci", text, &e), &e,
        "\"token/ci\" is not the key of an admin token");
    assert_int_equal(admin_record_decode(&is, "admin/C I", text, &e), -EINVAL);
    assert_string_equal(is.name, "ci");
    free(text);
    /* One for all networks. */
    a.network[0] = '\0';
    text = without(admin_record_encode(&a), "");
    assert_string_equal(text,
        "{\"hash\":\"0707070707070707070707070707070707070707070707070707070707070707\","
        "\"role\":\"operator\",\"created\":5,\"expires\":11,\"createdBy\":\"admin x\"}");
    assert_int_equal(admin_record_decode(&is, "admin/ci", text, &e), 0);
    assert_string_equal(is.network, "");
    free(text);
}

static void test_damaged_admin_tokens(void **state)
{
    static const char *const fields[] = {
        "hash", "role", "hubKey", "created", "expires", "createdBy"};
    struct admin_record a = sample_admin();
    struct admin_record is = {.name = "as it was"};
    struct err e = ERR_NULL;
    char says[80];

    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        char *text = without(admin_record_encode(&a), fields[i]);

        (void)snprintf(says, sizeof(says), "admin token: \"%s\" is missing", fields[i]);
        expect_refusal(admin_record_decode(&is, "admin/ci", text, &e), &e, says);
        free(text);
    }
    expect_refusal(admin_record_decode(&is, "admin/ci", "{\"hash\":\"07\"}", &e), &e,
        "admin token: \"hash\" is not the hex of 32 bytes");
    assert_string_equal(is.name, "as it was");
}

static void test_requests_for_admin_tokens(void **state)
{
    static const char *const refused[][2] = {
        {"{}", "admin token: \"name\" is missing"},
        {"{\"name\":\"ci\"}", "admin token: \"role\" is missing"},
        {"{\"name\":\"ci\",\"role\":\"king\"}",
            "admin token: role \"king\" is not viewer, operator or admin"},
        {"{\"name\":\"ci\",\"role\":\"viewer\",\"ttlSeconds\":0}",
            "admin token: \"ttlSeconds\" is not a whole number from 1 to 315360000"},
        {"{\"name\":\"ci\",\"role\":\"viewer\",\"network\":7}",
            "admin token: \"network\" is not a string"},
        {"{\"name\":\"ci\",\"role\":\"viewer\",\"x\":7}",
            "admin token: \"x\" is not a field of it"},
    };
    struct admin_request rq = {.ttl_seconds = 7};
    struct err e = ERR_NULL;
    json_t *json;

    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        json = json_loads(refused[i][0], 0, NULL);
        expect_refusal(admin_request_decode(&rq, json, &e), &e, refused[i][1]);
        json_decref(json);
    }
    expect_refusal(admin_request_decode(&rq, NULL, &e), &e, "admin token: \"name\" is missing");
    assert_int_equal(rq.ttl_seconds, 7);
    json = json_loads("{\"name\":\"ci\",\"role\":\"viewer\"}", 0, NULL);
    assert_int_equal(admin_request_decode(&rq, json, &e), 0);
    json_decref(json);
    assert_string_equal(rq.name, "ci");
    assert_int_equal(rq.role, ROLE_VIEWER);
    assert_string_equal(rq.network, "");
    assert_int_equal(rq.ttl_seconds, ADMIN_TTL_DEFAULT);
    json = json_loads(
        "{\"name\":\"ci\",\"role\":\"admin\",\"network\":\"n\",\"ttlSeconds\":60}", 0, NULL);
    assert_int_equal(admin_request_decode(&rq, json, &e), 0);
    json_decref(json);
    assert_int_equal(rq.role, ROLE_ADMIN);
    assert_string_equal(rq.network, "n");
    assert_int_equal(rq.ttl_seconds, 60);
}

/* ---- entries of the audit log --------------------------------------------------------------- */

#define ID "00000000000000ff-00a"

static void test_ids(void **state)
{
    static const char *const none[] = {"", "00000000000000ff-00", "00000000000000ff-00aa",
        "00000000000000ff+00a", "00000000000000fg-00a", "00000000000000ff-00g",
        "00000000000000FF-00a", "000000000000000f-f-a"};
    char buf[RECORD_KEY_MAX];

    assert_string_equal(audit_id(buf, 255, 10), ID);
    assert_string_equal(audit_id(buf, UINT64_MAX, 0x1fff), "ffffffffffffffff-fff");
    assert_true(audit_id_check(ID));
    assert_int_equal(audit_id_number(ID), 255);
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        assert_false(audit_id_check(none[i]));
        assert_int_equal(audit_id_number(none[i]), 0);
    }
    assert_string_equal(audit_record_key(buf, AUDIT_CHANGE, ID), "audit/" ID);
    assert_string_equal(audit_record_key(buf, AUDIT_REFUSAL, ID), "refused/" ID);
}

static struct audit_record sample_entry(enum audit_kind kind)
{
    return (struct audit_record){.kind = kind,
        .id = ID,
        .time = 1000,
        .actor = "admin x",
        .from = "192.0.2.1",
        .operation = "change",
        .object = "node/default/a",
        .network = "default",
        .old_revision = 3,
        .new_revision = 4,
        .others = 2,
        .status = kind == AUDIT_REFUSAL ? 403 : 0,
        .why = "",
        .count = kind == AUDIT_REFUSAL ? 5 : 0,
        .first = kind == AUDIT_REFUSAL ? 900 : 0};
}

/* As the API tells it, an entry that was read is the one that was written. */
static void expect_entry(const struct audit_record *a, const char *expected)
{
    char key[RECORD_KEY_MAX];
    char *text = audit_record_encode(a);
    struct audit_record is;
    struct err e = ERR_NULL;
    json_t *json;

    assert_true(seal_is_there(text));
    assert_int_equal(audit_record_decode(&is, audit_record_key(key, a->kind, a->id), text, &e), 0);
    assert_int_equal(is.kind, a->kind);
    free(text);
    json = audit_record_json(&is);
    text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
}

#define COMMON                                                                                     \
    "{\"time\":1000,\"actor\":\"admin x\",\"operation\":\"change\",\"from\":\"192.0.2.1\","        \
    "\"object\":\"node/default/a\",\"network\":\"default\",\"oldRevision\":3,\"newRevision\":4,"   \
    "\"others\":2,"

static void test_entries(void **state)
{
    struct audit_record a = sample_entry(AUDIT_CHANGE);

    expect_entry(&a, COMMON "\"id\":\"" ID "\",\"answer\":\"done\"}");
    a = sample_entry(AUDIT_REFUSAL);
    (void)snprintf(a.why, sizeof(a.why), "it may not");
    expect_entry(&a, COMMON "\"status\":403,\"why\":\"it may not\",\"count\":5,\"firstTime\":900,"
                            "\"id\":\"" ID "\",\"answer\":\"refused\"}");
    /* What is empty is not there. */
    a = (struct audit_record){.id = ID, .time = 7, .actor = "a", .operation = "create"};
    expect_entry(&a, "{\"time\":7,\"actor\":\"a\",\"operation\":\"create\",\"id\":\"" ID
                     "\",\"answer\":\"done\"}");
}

static void test_damaged_entries(void **state)
{
    static const char *const fields[] = {"time", "actor", "operation", "status", "count"};
    struct audit_record a = sample_entry(AUDIT_REFUSAL);
    struct audit_record is = {.time = 7};
    struct err e = ERR_NULL;
    char says[80];
    char *text;

    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        text = without(audit_record_encode(&a), fields[i]);
        (void)snprintf(says, sizeof(says), "audit entry: \"%s\" is missing", fields[i]);
        expect_refusal(audit_record_decode(&is, "refused/" ID, text, &e), &e, says);
        free(text);
    }
    text = audit_record_encode(&a);
    assert_int_equal(audit_record_decode(&is, "refused/00000000000000ff-00b", text, &e), -EINVAL);
    expect_refusal(audit_record_decode(&is, "refused/x", text, &e), &e,
        "\"refused/x\" is not the key of an audit entry");
    expect_refusal(audit_record_decode(&is, "elsewhere/" ID, text, &e), &e,
        "\"elsewhere/" ID "\" is not the key of an audit entry");
    free(text);
    a.status = 399;
    text = audit_record_encode(&a);
    expect_refusal(audit_record_decode(&is, "refused/" ID, text, &e), &e,
        "audit entry: \"status\" is not a whole number from 400 to 599");
    free(text);
    assert_int_equal(is.time, 7);
}

/* ---- what hubs tell each other -------------------------------------------------------------- */

static void test_heartbeats(void **state)
{
    struct heartbeat_record b = {.boot = 9, .heartbeat = 3};
    struct heartbeat_record is = {.boot = 1};
    struct err e = ERR_NULL;
    char *text = heartbeat_record_encode(&b);
    char key[RECORD_KEY_MAX];

    assert_string_equal(owner_key(key, OWNER_HEARTBEAT_PREFIX, "h2"), "hub/h2");
    assert_string_equal(text, "{\"boot\":9,\"beat\":3}");
    expect_refusal(heartbeat_record_decode(&is, "{\"beat\":3}", &e), &e,
        "hub's heartbeat: \"boot\" is missing");
    expect_refusal(heartbeat_record_decode(&is, "{\"boot\":9}", &e), &e,
        "hub's heartbeat: \"beat\" is missing");
    assert_int_equal(heartbeat_record_decode(&is, "{\"boot\":0,\"beat\":3}", &e), -EINVAL);
    assert_int_equal(is.boot, 1);
    assert_int_equal(heartbeat_record_decode(&is, text, &e), 0);
    assert_int_equal(is.boot, 9);
    assert_int_equal(is.heartbeat, 3);
    free(text);
}

static void test_owners(void **state)
{
    struct owner_record o = {
        .hub = "h2", .epoch = 4, .has_network = true, .network = sample_key(1)};
    struct owner_record is = {.epoch = 1};
    struct err e = ERR_NULL;
    char *text = owner_record_encode(&o);

    expect_refusal(owner_record_decode(&is, "{\"hub\":\"h2\"}", &e), &e,
        "owner of a rendezvous: \"epoch\" is missing");
    assert_int_equal(owner_record_decode(&is, "{\"epoch\":0}", &e), -EINVAL);
    assert_int_equal(owner_record_decode(&is, "{\"epoch\":2,\"network\":7}", &e), -EINVAL);
    assert_int_equal(owner_record_decode(&is, "{\"epoch\":2,\"hub\":7}", &e), -EINVAL);
    assert_int_equal(is.epoch, 1);
    assert_int_equal(owner_record_decode(&is, text, &e), 0);
    free(text);
    assert_string_equal(is.hub, "h2");
    assert_int_equal(is.epoch, 4);
    assert_true(is.has_network);
    assert_true(x25519_public_equal(&is.network, &o.network));
    /* Nobody's, and of a hub that does not say of which network. */
    o = (struct owner_record){.epoch = 5};
    text = owner_record_encode(&o);
    assert_string_equal(text, "{\"epoch\":5}");
    assert_int_equal(owner_record_decode(&is, text, &e), 0);
    assert_string_equal(is.hub, "");
    assert_false(is.has_network);
    free(text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_admin_tokens),
        cmocka_unit_test(test_damaged_admin_tokens),
        cmocka_unit_test(test_requests_for_admin_tokens),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_damaged_entries),
        cmocka_unit_test(test_heartbeats),
        cmocka_unit_test(test_owners),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
