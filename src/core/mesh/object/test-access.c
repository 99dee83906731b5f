/* test-access.c - what a node reports of its network's rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/object/access.h"

static void test_it_survives_being_written(void **state)
{
    static const struct access_report said = {
        .rules = {{.rule = "ssh", .passed = 5, .refused = 2}, {.rule = "", .refused = 7}},
        .refused = {{.from = "n1", .to = "fd00::9", .service = "udp/53", .packets = 3}},
        .n_rules = 2,
        .n_refused = 1};
    struct access_report heard;
    struct err e = ERR_NULL;
    json_t *json = access_report_encode(&said);

    if (access_report_decode(&heard, json, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(heard.n_rules, 2);
    assert_string_equal(heard.rules[0].rule, "ssh");
    assert_int_equal(heard.rules[0].passed, 5);
    assert_int_equal(heard.rules[1].refused, 7);
    assert_int_equal(heard.n_refused, 1);
    assert_string_equal(heard.refused[0].to, "fd00::9");
    assert_string_equal(heard.refused[0].service, "udp/53");
    assert_int_equal(heard.refused[0].packets, 3);
    json_decref(json);
}

static void refuses(const char *text, const char *words)
{
    struct access_report heard = {.n_rules = 3};
    struct err e = ERR_NULL;
    json_t *json = json_loads(text, 0, NULL);

    assert_int_equal(access_report_decode(&heard, json, &e), -22);
    if (!strstr(err_text(&e), words))
        fail_msg("%s", err_text(&e));
    assert_int_equal(heard.n_rules, 3);
    json_decref(json);
}

static void test_what_is_refused(void **state)
{
    refuses("[]", "access");
    refuses("{\"rules\":{}}", "refused");
    refuses("{\"rules\":{\"a b\":[1,2]},\"refused\":[]}", "rule name");
    refuses("{\"rules\":{\"a\":[1]},\"refused\":[]}", "two numbers");
    refuses("{\"rules\":{\"a\":[1,-2]},\"refused\":[]}", "from 0 to");
    refuses("{\"rules\":{\"a\":[1,2.5]},\"refused\":[]}", "from 0 to");
    refuses("{\"rules\":{},\"refused\":[{\"from\":\"a b\",\"to\":\"n1\",\"service\":\"icmp\","
            "\"packets\":1}]}",
        "from");
    refuses("{\"rules\":{},\"refused\":[{\"from\":\"n2\",\"to\":\"n1\",\"service\":\"ssh\","
            "\"packets\":1}]}",
        "service");
    refuses("{\"rules\":{},\"refused\":[{\"from\":\"n2\",\"to\":\"n1\",\"service\":\"icmp\","
            "\"packets\":0}]}",
        "packets");
}

static void test_how_much_fits(void **state)
{
    struct access_report heard;
    struct err e = ERR_NULL;
    json_t *rules = json_object();
    json_t *json = json_pack("{s:o, s:[]}", "rules", rules, "refused");
    char name[16];

    for (int i = 0; i < ACCESS_RULES_MAX; i++) {
        (void)snprintf(name, sizeof(name), "r%d", i);
        (void)json_object_set_new(rules, name, json_pack("[i, i]", i, 0));
    }
    assert_int_equal(access_report_decode(&heard, json, &e), 0);
    assert_int_equal(heard.n_rules, ACCESS_RULES_MAX);
    (void)json_object_set_new(rules, "more", json_pack("[i, i]", 1, 0));
    assert_int_equal(access_report_decode(&heard, json, &e), -22);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_survives_being_written),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_how_much_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
