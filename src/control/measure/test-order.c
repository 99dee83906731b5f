/* test-order.c - what may be asked of a member: every bound, from both sides of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "measure/order.h"
#include "measure/result.h"

#define ID "\"id\": \"000102030405060708090a0b0c0d0e0f\""

/* @ret_why: why it is refused; "" when it is taken. */
static int decode(const char *text, struct order *ret, struct err *ret_why)
{
    json_t *json = json_loads(text, 0, NULL);
    int r;

    if (!json)
        fail_msg("no JSON: %s", text);
    *ret_why = (struct err)ERR_NULL;
    r = order_decode(ret, json, ret_why);
    json_decref(json);
    return r;
}

static void test_bounds(void **state)
{
    static const struct {
        const char *text;
        const char *refused; /* a part of the sentence; NULL: it is taken */
    } cases[] = {
        {"{\"op\": \"facts\"}", NULL},
        {"{\"op\": \"none\"}", "no order"},
        {"{\"op\": \"dance\"}", "\"op\""},
        {"{}", "\"op\""},
        /* How long a member may be kept from measuring for others. */
        {"{\"op\": \"session\", \"purpose\": \"bench\", " ID ", \"seconds\": 600}", NULL},
        {"{\"op\": \"session\", \"purpose\": \"bench\", " ID ", \"seconds\": 601}", "\"seconds\""},
        {"{\"op\": \"session\", \"purpose\": \"bench\", " ID ", \"seconds\": 0}", "\"seconds\""},
        {"{\"op\": \"session\", \"purpose\": \"\", " ID ", \"seconds\": 1}", "\"purpose\""},
        {"{\"op\": \"session\", \"purpose\": \"sixteen-letters-\", " ID ", \"seconds\": 1}",
            "\"purpose\""},
        {"{\"op\": \"session\", \"purpose\": \"bench\", \"id\": \"0001\", \"seconds\": 1}",
            "\"id\""},
        {"{\"op\": \"session\", \"purpose\": \"bench\", "
         "\"id\": \"000102030405060708090a0b0c0d0e0g\", \"seconds\": 1}",
            "hex digits"},
        /* How much it may be made to send. */
        {"{\"op\": \"light\", \"peer\": \"10.42.0.3\", \"pings\": 1000}", NULL},
        {"{\"op\": \"light\", \"peer\": \"10.42.0.3\", \"pings\": 1001}", "\"pings\""},
        {"{\"op\": \"light\", \"peer\": \"gpu-1\", \"pings\": 1}", "peer: "},
        {"{\"op\": \"bulk\", \"peer\": \"10.42.0.3\", \"streams\": 16, \"ms\": 30000, "
         "\"bytes\": 17179869184, \"way\": \"both\"}",
            NULL},
        {"{\"op\": \"bulk\", \"peer\": \"10.42.0.3\", \"streams\": 17, \"ms\": 1, "
         "\"bytes\": 1, \"way\": \"out\"}",
            "\"streams\""},
        {"{\"op\": \"bulk\", \"peer\": \"10.42.0.3\", \"streams\": 1, \"ms\": 30001, "
         "\"bytes\": 1, \"way\": \"out\"}",
            "\"ms\""},
        {"{\"op\": \"bulk\", \"peer\": \"10.42.0.3\", \"streams\": 1, \"ms\": 1, "
         "\"bytes\": 17179869185, \"way\": \"out\"}",
            "\"bytes\""},
        {"{\"op\": \"bulk\", \"peer\": \"10.42.0.3\", \"streams\": 1, \"ms\": 1, "
         "\"bytes\": 1, \"way\": \"sideways\"}",
            "\"way\""},
        {"{\"op\": \"source\", " ID ", \"ms\": 30000, \"bytes\": 17179869184}", NULL},
        {"{\"op\": \"source\", " ID ", \"ms\": 0, \"bytes\": 1}", "\"ms\""},
        {"{\"op\": \"source\", " ID ", \"ms\": 1, \"bytes\": 0}", "\"bytes\""},
        {"{\"op\": \"sink\", " ID ", \"ms\": 30001}", "\"ms\""},
        {"{\"op\": \"hop\", " ID ", \"rank\": 1023}", NULL},
        {"{\"op\": \"hop\", " ID ", \"rank\": 1024}", "\"rank\""},
        {"{\"op\": \"port\"}", "\"id\""},
        /* A rank is one of the addresses. */
        {"{\"op\": \"allreduce\", \"addresses\": [\"10.42.0.2\", \"10.42.0.3\"], \"rank\": 1, "
         "\"bytes\": 1073741824, \"repeats\": 1000, \"ms\": 1, \"algorithm\": \"tree\"}",
            NULL},
        {"{\"op\": \"allreduce\", \"addresses\": [\"10.42.0.2\", \"10.42.0.3\"], \"rank\": 2, "
         "\"bytes\": 4, \"repeats\": 1, \"ms\": 1, \"algorithm\": \"ring\"}",
            "\"rank\""},
        {"{\"op\": \"allreduce\", \"addresses\": [\"10.42.0.2\"], \"rank\": 0, "
         "\"bytes\": 4, \"repeats\": 1, \"ms\": 1, \"algorithm\": \"ring\"}",
            "\"addresses\""},
        {"{\"op\": \"allreduce\", \"addresses\": [\"10.42.0.2\", \"10.42.0.3\"], \"rank\": 1, "
         "\"bytes\": 1073741825, \"repeats\": 1, \"ms\": 1, \"algorithm\": \"ring\"}",
            "\"bytes\""},
        {"{\"op\": \"warm\", \"addresses\": [\"10.42.0.2\", \"elsewhere\"]}", "address 1"},
        {"{\"op\": \"warm\", \"addresses\": []}", "\"addresses\""},
        {"{\"op\": \"names\", \"names\": [{\"name\": \"n3\", \"address\": \"10.42.0.3\"}]}", NULL},
        {"{\"op\": \"names\", \"names\": [{\"name\": \"n3\"}]}", "\"address\""},
        {"{\"op\": \"names\", \"names\": [{\"name\": \"a b\", \"address\": \"10.42.0.3\"}]}",
            "name: "},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct order o = ORDER_NULL;
        struct err e;
        int r = decode(cases[i].text, &o, &e);

        if (r != (cases[i].refused ? -EINVAL : 0))
            fail_msg("case %zu: %d %s: %s", i, r, e.text, cases[i].text);
        if (cases[i].refused && !strstr(e.text, cases[i].refused))
            fail_msg("case %zu: \"%s\" is not in \"%s\"", i, cases[i].refused, e.text);
        order_deinit(&o);
    }
}

/* A list of more members than a network's all-reduce may have. */
static void test_long_lists(void **state)
{
    for (unsigned over = 0; over < 2; over++) {
        json_t *list = json_array();
        struct order o = ORDER_NULL;
        struct err e = ERR_NULL;
        json_t *json;

        for (unsigned i = 0; i < ORDER_NODES_MAX + over; i++)
            (void)json_array_append_new(list, json_string("10.42.0.2"));
        json = json_pack("{s:s, s:o}", "op", "warm", "addresses", list);
        assert_int_equal(order_decode(&o, json, &e), over ? -EINVAL : 0);
        assert_int_equal(o.n_addrs, over ? 0 : ORDER_NODES_MAX);
        order_deinit(&o);
        json_decref(json);
    }
}

/* What the coordinator writes is what the member reads, whichever order it is. */
static void test_there_and_back(void **state)
{
    static const char *const texts[] = {
        "{\"op\": \"session\", " ID ", \"purpose\": \"preflight\", \"seconds\": 30}",
        "{\"op\": \"facts\"}",
        "{\"op\": \"names\", \"names\": [{\"name\": \"n3\", \"address\": \"10.42.0.3\"}]}",
        "{\"op\": \"warm\", \"addresses\": [\"10.42.0.3\", \"10.42.0.4\"]}",
        "{\"op\": \"light\", \"peer\": \"10.42.0.3\", \"pings\": 20}",
        "{\"op\": \"bulk\", \"peer\": \"10.42.0.3\", \"streams\": 4, \"ms\": 2000, "
        "\"bytes\": 9000000000, \"way\": \"in\", \"underlay\": true}",
        "{\"op\": \"bulk\", \"peer\": \"10.42.0.3\", \"streams\": 4, \"ms\": 2000, "
        "\"bytes\": 1, \"way\": \"out\"}",
        "{\"op\": \"heard\"}",
        "{\"op\": \"underlay\"}",
        "{\"op\": \"allreduce\", \"addresses\": [\"10.42.0.2\", \"10.42.0.3\"], \"rank\": 1, "
        "\"bytes\": 4096, \"repeats\": 5, \"ms\": 1000, \"algorithm\": \"tree\"}",
        "{\"op\": \"sink\", " ID ", \"ms\": 1000}",
        "{\"op\": \"source\", " ID ", \"ms\": 1000, \"bytes\": 17}",
        "{\"op\": \"hop\", " ID ", \"rank\": 7}",
        "{\"op\": \"port\", " ID "}",
    };

    _Static_assert(sizeof(texts) / sizeof(*texts) == ORDER_N, "each kind but none, and bulk twice");
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct order o = ORDER_NULL;
        struct err e;
        json_t *before = json_loads(texts[i], 0, NULL);
        json_t *after;

        assert_int_equal(decode(texts[i], &o, &e), 0);
        after = order_encode(&o);
        if (!json_equal(before, after))
            fail_msg("%s became %s", texts[i], json_dumps(after, 0));
        json_decref(before);
        json_decref(after);
        order_deinit(&o);
    }
}

/* What a member says of names is printed: it is a name and an address, or nothing. */
static void test_wrong_names(void **state)
{
    static const struct {
        const char *name;
        const char *where; /* as JSON */
        const char *taken; /* NULL: it is not */
    } cases[] = {
        {"gpu-1", "\"192.0.2.1\"", "192.0.2.1"},
        {"gpu-1", "\"FD00::0:1\"", "fd00::1"},
        {"gpu-1", "\"\"", ""},
        {"gpu-1", "7", NULL},
        {"gpu-1", "\"192.0.2.1\\u001b[2J\"", NULL},
        {"gpu-1", "\"\\u00e9\\u00e9\"", NULL},
        {"gpu\x1b[2J", "\"192.0.2.1\"", NULL},
        {"", "\"192.0.2.1\"", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct wrong_name wrong;
        json_t *where = json_loads(cases[i].where, JSON_DECODE_ANY, NULL);

        assert_int_equal(wrong_name_decode(&wrong, cases[i].name, where), cases[i].taken != NULL);
        if (cases[i].taken) {
            assert_string_equal(wrong.name, cases[i].name);
            assert_string_equal(wrong.where, cases[i].taken);
        }
        json_decref(where);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_long_lists),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_wrong_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
