/* test-nft.c - a table of our own, in a network namespace of our own. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/text.h"
#include "net/netlink/nft.h"
#include "os/process.h"
#include "test/support/emulated.h"

#define CHAIN(name)                                                                                \
    "chain " name " { type nat hook output priority -100; "                                        \
    "ip daddr 10.9.9.9 dnat to 192.0.2.1; }"

static const char *list_chain(const char *name)
{
    const char *const argv[] = {"/usr/sbin/nft", "list", "chain", "ip", "weft_test", name, NULL};
    static struct err e;

    e = (struct err)ERR_NULL;
    return process_run(argv, 5000, &e) == 0 ? "there" : "missing";
}

static void test_table(void **state)
{
    struct err e = ERR_NULL;
    int r;

    if (unshare(CLONE_NEWNET) < 0 || emulated_lacks("nf_tables"))
        skip();
    r = nft_replace_table("ip", "weft_test", CHAIN("one"), &e);
    if (r != 0)
        fail_msg("%s", err_text(&e));
    assert_string_equal(list_chain("one"), "there");
    assert_int_equal(nft_replace_table("ip", "weft_test", CHAIN("two"), &e), 0);
    assert_string_equal(list_chain("one"), "missing");
    assert_string_equal(list_chain("two"), "there");
    /* What does not parse changes nothing, and is said. */
    assert_true(nft_replace_table("ip", "weft_test", "chain three { nonsense", &e) < 0);
    assert_non_null(strstr(err_text(&e), "syntax error"));
    assert_string_equal(list_chain("two"), "there");
    assert_int_equal(nft_replace_table("ip", "weft_test", NULL, &e), 0);
    assert_string_equal(list_chain("two"), "missing");
    assert_int_equal(nft_replace_table("ip", "weft_test", NULL, &e), 0);
}

static void add_up(void *ctx, const char *name, uint64_t packets)
{
    uint64_t *sum = ctx;

    assert_int_equal(name[0], 'c');
    *sum += packets;
}

/* More than the kernel tells in one message. */
static void test_counters_alone(void **state)
{
    struct str body = STR_NULL;
    struct err e = ERR_NULL;
    uint64_t sum = 0;

    if (unshare(CLONE_NEWNET) < 0 || emulated_lacks("nf_tables"))
        skip();
    for (unsigned i = 0; i < 1000; i++)
        str_addf(&body, "counter c%u { packets %u bytes 300 }\n", i, i);
    str_add(&body, "set seen { type ipv4_addr; }\nquota q { 25 mbytes }\n");
    assert_int_equal(nft_replace_table("inet", "weft_test", str_text(&body), &e), 0);
    /* Another table's are not told. */
    assert_int_equal(
        nft_replace_table("inet", "weft_other", "counter d { packets 1 bytes 1 }", &e), 0);
    if (nft_each_counter("inet", "weft_test", add_up, &sum, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(sum, 1000 * 999 / 2);
    assert_int_equal(nft_each_counter("ip6", "weft_test", add_up, &sum, &e), 0);
    assert_int_equal(sum, 1000 * 999 / 2);
    assert_int_equal(nft_replace_table("inet", "weft_test", NULL, &e), 0);
    str_deinit(&body);
}

static void test_what_is_in_it(void **state)
{
    static const char *const what[] = {"counters", "set seen"};
    static const char *const missing[] = {"set unseen"};
    struct err e = ERR_NULL;
    json_t *list = NULL;
    char *text;

    if (unshare(CLONE_NEWNET) < 0 || emulated_lacks("nf_tables"))
        skip();
    assert_int_equal(nft_replace_table("inet", "weft_test",
                         "counter c0 { packets 5 bytes 300 }\n"
                         "set seen { type ipv4_addr . inet_proto . inet_service; "
                         "elements = { 10.42.0.2 . tcp . 22 } }",
                         &e),
        0);
    if (nft_list("inet", "weft_test", what, 2, &list, &e) != 0)
        fail_msg("%s", err_text(&e));
    text = json_dumps(list, JSON_COMPACT);
    assert_non_null(strstr(text, "\"name\":\"c0\""));
    assert_non_null(strstr(text, "\"packets\":5"));
    /* Protocols are numbers, whatever this machine calls them. */
    assert_non_null(strstr(text, "[\"10.42.0.2\",6,22]"));
    free(text);
    json_decref(list);
    list = NULL;
    assert_true(nft_list("inet", "weft_test", missing, 1, &list, &e) < 0);
    assert_null(list);
    assert_true(nft_list("inet", "weft_other", what, 1, &list, &e) < 0);
    assert_int_equal(nft_replace_table("inet", "weft_test", NULL, &e), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_what_is_in_it),
        cmocka_unit_test(test_counters_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
