/* test-keys-request.c - what a member may say of keys, and the sentence with which the rest is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "hub/record/keys_request.h"
#include "test/support/sample_keys.h"

#define ACK "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

static void expect(const char *text, const char *says, struct keys_request *ret, json_t **ret_json)
{
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    struct err e = ERR_NULL;
    int r;

    assert_non_null(json);
    r = keys_request_decode(ret, json, &e);
    assert_int_equal(r, says ? -EINVAL : 0);
    if (says)
        assert_string_equal(err_text(&e), says);
    *ret_json = json;
}

static void test_what_is_taken(void **state)
{
    struct sample_keys keys;
    struct keys_request rq;
    char text[2000];
    json_t *json;

    sample_keys_make(&keys, "default", "n2");
    expect("{}", NULL, &rq, &json);
    assert_int_equal(rq.stage, KEYS_STAGE_NONE);
    assert_null(rq.acks);
    json_decref(json);
    (void)snprintf(text, sizeof(text),
        "{\"stage\":\"moved\",\"statement\":\"%s\",\"acks\":{\"n3\":\"" ACK "\"},\"waits\":9,"
        "\"waitsFor\":[\"n3\",\"n4\"],\"why\":\"it is late\"}",
        keys.statements[3]);
    expect(text, NULL, &rq, &json);
    assert_int_equal(rq.stage, KEYS_STAGE_MOVED);
    assert_int_equal(rq.statement.serial, 4);
    assert_string_equal(rq.text, keys.statements[3]);
    assert_string_equal(json_string_value(json_object_get(rq.acks, "n3")), ACK);
    assert_int_equal(rq.n_waits, 9);
    assert_string_equal(rq.waits[1], "n4");
    assert_string_equal(rq.waits[2], "");
    assert_string_equal(rq.why, "it is late");
    json_decref(json);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"{\"stage\":\"moved\"}", "keys: \"statement\" is missing"},
        {"{\"stage\":\"x\"}",
            "keys: \"stage\" is \"x\", and one of none, prepared, moved, ended is allowed"},
        {"{\"statement\":\"AAAA\"}",
            "keys: the statement of a key does not begin with \"weft key statement 1\""},
        {"{\"acks\":{\"n3\":\"AAAA\"}}",
            "keys: an acknowledgement of \"acks\" is not a node's name "
            "and 32 bytes in base64"},
        {"{\"acks\":{\"-\":\"" ACK "\"}}", "keys: an acknowledgement of \"acks\" is not a node's "
                                           "name and 32 bytes in base64"},
        {"{\"waitsFor\":[\"-\"]}", "keys: \"waitsFor\" has what is no node's name"},
        {"{\"waitsFor\":[3]}", "keys: \"waitsFor\" has what is no node's name"},
        {"{\"waits\":-1}", "keys: \"waits\" is not a whole number from 0 to 2147483647"},
        {"{\"x\":1}", "keys: \"x\" is not a field of it"},
    };
    struct keys_request rq;
    json_t *acks = json_object();
    struct err e = ERR_NULL;
    json_t *json;
    char name[8];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        expect(cases[i].text, cases[i].says, &rq, &json);
        json_decref(json);
    }
    for (int i = 0; i <= KEYS_REQUEST_ACKS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        json_object_set_new(acks, name, json_string(ACK));
    }
    json = json_pack("{s:o}", "acks", acks);
    assert_int_equal(keys_request_decode(&rq, json, &e), -EINVAL);
    assert_string_equal(err_text(&e), "keys: has 257 acknowledgements, and 256 are allowed");
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_taken),
        cmocka_unit_test(test_what_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
