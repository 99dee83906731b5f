/* test-mesh-options.c - subnets, blocks, places, names and labels, as the command line gives them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/addr.h"
#include "base/err.h"
#include "cmd/mesh_options.h"
#include "cmd/options.h"
#include "mesh/object/object.h"
#include "mesh/object/subnets.h"

/* What @parse says to @text: "" when it is taken. @o: the option that it is given for. */
static const char *say(option_fn *parse, const struct option *o, const char *text)
{
    static struct err e;

    e = (struct err)ERR_NULL;
    return parse(o, text, &e) == 0 ? "" : err_text(&e);
}

static void test_listen(void **state)
{
    struct endpoint ep;
    const struct option any = {.name = "--api", .field = &ep};
    const struct option some = {.name = "--listen", .field = &ep, .min = 1};
    char text[ENDPOINT_TEXT_MAX];

    assert_string_equal(say(option_listen, &any, ":8443"), "");
    assert_true(ip_addr_is_none(&ep.addr));
    assert_int_equal(ep.port, 8443);
    assert_string_equal(say(option_listen, &any, "0"), "");
    assert_int_equal(ep.port, 0);
    assert_string_equal(say(option_listen, &any, "192.0.2.7:443"), "");
    assert_string_equal(endpoint_format(&ep, text), "192.0.2.7:443");
    assert_string_equal(say(option_listen, &any, "[2001:db8::7]:443"), "");
    assert_string_equal(endpoint_format(&ep, text), "[2001:db8::7]:443");

    assert_string_not_equal(say(option_listen, &some, ":0"), "");
    assert_string_not_equal(say(option_listen, &any, ":65536"), "");
    assert_string_not_equal(say(option_listen, &any, ""), "");
    assert_string_not_equal(say(option_listen, &any, ":"), "");
    assert_string_equal(say(option_listen, &any, "hub.example:443"),
        "--api \"hub.example:443\" is not :PORT or ADDRESS:PORT");
    /* What was refused has changed nothing. */
    assert_string_equal(endpoint_format(&ep, text), "[2001:db8::7]:443");
}

static void test_public(void **state)
{
    struct option_list list = {0};
    const struct option o = {.name = "--public", .field = &list, .many = true};

    assert_string_equal(say(option_public, &o, "hub.example"), "");
    assert_string_equal(say(option_public, &o, "192.0.2.7:51821"), "");
    assert_int_equal(list.n, 2);
    assert_string_equal(list.items[0], "hub.example");
    assert_string_equal(list.items[1], "192.0.2.7:51821");
    assert_string_not_equal(say(option_public, &o, "192.0.2.7:0"), "");
    assert_string_not_equal(say(option_public, &o, "no host"), "");
    assert_memory_equal(say(option_public, &o, ""), "--public ", 9);
    assert_int_equal(list.n, 2);
    option_list_deinit(&list);
}

static void test_blocks(void **state)
{
    struct ip_prefix block;
    struct subnets s = SUBNETS_NULL;
    const struct option cidr4 = {.name = "--cidr4", .field = &block};
    const struct option route = {.name = "--route", .field = &s, .many = true};
    char text[SUBNETS_TEXT_MAX];

    assert_string_equal(say(option_cidr4, &cidr4, "10.9.0.0/16"), "");
    assert_string_not_equal(say(option_cidr4, &cidr4, "10.9.0.1/16"), "");
    assert_string_not_equal(say(option_cidr4, &cidr4, "fd00::/64"), "");
    assert_string_equal(ip_prefix_format(&block, text), "10.9.0.0/16");

    assert_string_equal(say(option_subnets, &route, "10.1.0.0/24,10.2.0.0/24"), "");
    assert_string_equal(say(option_subnets, &route, "10.3.0.0/24"), "");
    assert_int_equal(s.n, 3);
    assert_string_not_equal(say(option_subnets, &route, "10.3.0.0/25"), "");
    assert_string_not_equal(say(option_subnets, &route, "10.4.0.1/24"), "");
}

static void test_object_names(void **state)
{
    static const char *const good[] = {"gpu-1", "a--b", "gpu-1--gpu-2"};
    static const char *const bad[] = {
        "", "--", "a--", "--b", "a/b", "a--b/../c", "a b", "a--b--c/"};
    const char *name = NULL;
    const struct option o = {.name = "NAME", .field = &name};

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        assert_string_equal(say(option_object_name, &o, good[i]), "");
        assert_ptr_equal(name, good[i]);
    }
    name = NULL;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_string_not_equal(say(option_object_name, &o, bad[i]), "");
    assert_null(name);
}

static void test_labels(void **state)
{
    static const struct {
        const char *text;
        bool is_taken;
    } cases[] = {
        {"rack=r1", true},
        {"rack=", true},
        {"rack=a=b", true},
        {"rack", false},
        {"=r1", false},
        {"", false},
    };
    struct label *labels = NULL;
    struct err e = ERR_NULL;
    const char *two[] = {"rack=r1", "zone=eu"};
    const char *many[OBJECT_LABELS_MAX + 1];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct option_list one = {.items = (const char *[]){cases[i].text}, .n = 1};
        int r = mesh_options_parse_labels(&labels, &one, &e);

        if ((r == 0) != cases[i].is_taken)
            fail_msg("\"%s\": %d, %s", cases[i].text, r, err_text(&e));
        if (r == 0)
            free(labels);
    }
    assert_int_equal(
        mesh_options_parse_labels(&labels, &(struct option_list){.items = two, .n = 2}, &e), 0);
    assert_string_equal(labels[1].key, "zone");
    assert_string_equal(labels[1].value, "eu");
    free(labels);
    labels = NULL;
    assert_int_equal(mesh_options_parse_labels(&labels, &(struct option_list){.n = 0}, &e), 0);
    assert_non_null(labels);
    free(labels);
    for (size_t i = 0; i <= OBJECT_LABELS_MAX; i++)
        many[i] = "a=b";
    assert_true(mesh_options_parse_labels(&labels,
                    &(struct option_list){.items = many, .n = OBJECT_LABELS_MAX + 1}, &e) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listen),
        cmocka_unit_test(test_public),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_object_names),
        cmocka_unit_test(test_labels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
