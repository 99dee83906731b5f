/* test-members.c - who takes part in what needs an agent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/text.h"
#include "train/names/members.h"

#define SELF                                                                                       \
    "{\"self\": {\"name\": \"a\", \"address4\": \"10.77.0.2\", \"network\": \"net\","              \
    " \"interface\": \"weft0\"}, \"peers\": ["
#define PEER(name, n, stock)                                                                       \
    "{\"name\": \"" name "\", \"address4\": \"10.77.0." n "\", \"stock\": " stock "}"
#define THREE                                                                                      \
    SELF PEER("b", "3", "false") ", " PEER("c", "4", "false") ", " PEER("phone", "5", "true") "]}"
#define ALONE SELF PEER("phone", "5", "true") "]}"

/* The names of the members, "a b c"; on failure the words. */
static char *names(const char *status, const char *only, char ret[static 256])
{
    struct members m = MEMBERS_NULL;
    json_t *json = json_loads(status, 0, NULL);
    struct err e = ERR_NULL;

    ret[0] = '\0';
    assert_non_null(json);
    if (members_decode(&m, json, only, 10, &e) != 0)
        (void)snprintf(ret, 256, "%s", err_text(&e));
    for (size_t i = 0; i < m.n; i++)
        (void)snprintf(
            ret + strlen(ret), 256 - strlen(ret), "%s%s", i > 0 ? " " : "", m.items[i].name);
    members_deinit(&m);
    json_decref(json);
    return ret;
}

static void test_who_is_measured(void **state)
{
    char text[256];

    assert_string_equal(names(THREE, NULL, text), "a b c");
    assert_string_equal(names(THREE, "b", text), "a b");
    assert_string_equal(names(THREE, "b,phone", text), "a b phone");
    assert_string_equal(
        names(THREE, "d", text), "\"d\" is no member of the network net; weft status lists them");
    assert_string_equal(names(THREE, "a", text),
        "\"a\" is this node itself; name another, which weft status lists");
    assert_string_equal(names(SELF "]}", NULL, text), "the network net has no other member yet");
    assert_string_equal(names(ALONE, NULL, text),
        "the network net has no other member with an agent: stock WireGuards take part only where "
        "--nodes names them");
    assert_string_equal(names(ALONE, "phone", text), "a phone");
}

/* mpirun starts nothing on a phone. */
static void test_hostfile(void **state)
{
    struct members m = MEMBERS_NULL;
    json_t *json = json_loads(THREE, 0, NULL);
    struct str out = STR_NULL;

    assert_int_equal(members_decode(&m, json, NULL, 10, NULL), 0);
    assert_int_equal(members_hostfile(&m, &out), 3);
    assert_string_equal(
        str_text(&out), "10.77.0.2 slots=1\n10.77.0.3 slots=1\n10.77.0.4 slots=1\n");
    str_deinit(&out);
    members_deinit(&m);
    json_decref(json);
}

static void test_who_is_waited_for(void **state)
{
    json_t *agent = json_loads(PEER("b", "3", "false"), 0, NULL);
    json_t *phone = json_loads(PEER("phone", "5", "true"), 0, NULL);
    json_t *before = json_loads("{\"name\": \"b\"}", 0, NULL); /* an earlier version's agent */

    assert_true(members_peer_takes_part(agent));
    assert_false(members_peer_takes_part(phone));
    assert_true(members_peer_takes_part(before));
    assert_false(members_peer_takes_part(NULL));
    json_decref(agent);
    json_decref(phone);
    json_decref(before);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_measured),
        cmocka_unit_test(test_hostfile),
        cmocka_unit_test(test_who_is_waited_for),
    };

    return cmocka_run_group_tests_name("train-members", tests, NULL, NULL);
}
