/*
 * test-resolved-link.c - what the agent writes down for systemd-resolved, and what root's side
 * believes of it. The interface is "lo", with its addresses.
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
#include <sys/stat.h>
#include <unistd.h>

#include "agent/resolved_link.h"
#include "agent/resolver.h"
#include "base/err.h"
#include "mesh/names/hosts.h"

static char path[64];

static int enter(void **state)
{
    (void)state;
    (void)snprintf(path, sizeof(path), "/tmp/weft-test-resolved-%d.json", getpid());
    return 0;
}

static int leave(void **state)
{
    (void)state;
    (void)unlink(path);
    return 0;
}

static struct ip_addr address(const char *text)
{
    struct ip_addr a;

    assert_int_equal(ip_addr_parse(&a, text, NULL), 0);
    return a;
}

static struct ip_prefix prefix(const char *text)
{
    struct ip_prefix p;

    assert_int_equal(ip_prefix_parse(&p, text, NULL), 0);
    return p;
}

static struct resolver_place loopback(void)
{
    return (struct resolver_place){.network = "default", .address4 = address("127.0.0.1")};
}

/* What is written is read back, and written again only when it is another thing. */
static void test_there_and_back(void **state)
{
    struct resolver_place place = loopback();
    struct resolved_link last = {.index = 0};
    struct resolved_link link;
    struct stat before;
    struct stat after;

    (void)state;
    resolved_link_write(path, "lo", &place, &last);
    assert_int_equal(resolved_link_read(path, &link, NULL), 0);
    assert_string_equal(link.interface, "lo");
    assert_int_equal(link.index, if_nametoindex("lo"));
    assert_string_equal(link.network, "default");
    assert_true(ip_addr_equal(&link.address4, &place.address4));
    assert_true(ip_addr_is_none(&link.address6));
    assert_int_equal(stat(path, &before), 0);
    resolved_link_write(path, "lo", &place, &last);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    place.address6 = address("::1");
    resolved_link_write(path, "lo", &place, &last);
    assert_int_equal(resolved_link_read(path, &link, NULL), 0);
    assert_true(ip_addr_equal(&link.address6, &place.address6));
}

/* Each of its parts makes another one of it. */
static void test_which_links_are_the_same(void **state)
{
    struct resolved_link link = {.interface = "lo",
        .index = 1,
        .network = "default",
        .address4 = address("127.0.0.1"),
        .address6 = address("::1")};
    struct resolved_link others[] = {link, link, link, link, link, link};
    json_t *json = resolved_link_encode(&link);
    char *text = json_dumps(json, JSON_COMPACT);

    (void)state;
    assert_string_equal(text, "{\"interface\":\"lo\",\"index\":1,\"network\":\"default\","
                              "\"address4\":\"127.0.0.1\",\"address6\":\"::1\"}");
    free(text);
    json_decref(json);
    others[1].interface[0] = 'x';
    others[2].index++;
    others[3].network[0] = 'x';
    others[4].address4 = address("127.0.0.2");
    others[5].address6 = address("::2");
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_int_equal(resolved_link_equal(&link, &others[i]), i == 0);
}

/* An interface that is not there has nothing to be told of. */
static void test_no_interface(void **state)
{
    struct resolver_place place = loopback();
    struct resolved_link last = {.index = 0};
    struct err e = ERR_NULL;

    (void)state;
    resolved_link_write(path, "weft-nothing", &place, &last);
    assert_int_equal(resolved_link_read(path, &last, &e), -ENOENT);
}

static const char *say_to(const char *text)
{
    static struct err e;
    struct resolved_link link;
    FILE *f = fopen(path, "w");

    e = (struct err)ERR_NULL;
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
    assert_true(resolved_link_read(path, &link, &e) < 0);
    return err_text(&e);
}

static void test_what_is_no_link(void **state)
{
    static char big[8192];

    (void)state;
    memset(big, ' ', sizeof(big) - 1);
    assert_non_null(strstr(say_to(big), "longer than 4096 bytes"));
    big[4097] = '\0';
    assert_non_null(strstr(say_to(big), "longer than 4096 bytes"));
    big[4096] = '\0';
    assert_non_null(strstr(say_to(big), " is damaged"));
    assert_non_null(strstr(say_to("{\"interface\":\"lo\",\"index\":1,\"network\":\"default\","
                                  "\"address4\":\"10.0.0.1\",\"more\":1}"),
        "more"));
    assert_non_null(strstr(say_to("{\"interface\":\"1234567890123456\",\"index\":1,"
                                  "\"network\":\"default\",\"address4\":\"10.0.0.1\"}"),
        "interface"));
    assert_true(say_to("")[0] != '\0');
    assert_non_null(strstr(say_to("{\"interface\":\"a/b\",\"index\":1,\"network\":\"default\","
                                  "\"address4\":\"10.0.0.1\"}"),
        "is not a name"));
    assert_non_null(strstr(say_to("{\"interface\":\"lo\",\"index\":1,\"network\":\"x.com\","
                                  "\"address4\":\"10.0.0.1\"}"),
        "network"));
    assert_non_null(strstr(say_to("{\"interface\":\"lo\",\"index\":0,\"network\":\"default\","
                                  "\"address4\":\"10.0.0.1\"}"),
        "index"));
}

static const char *check(const struct resolved_link *link, const struct hosts_rules *rules)
{
    static struct err e;

    e = (struct err)ERR_NULL;
    return resolved_link_check(link, rules, &e) == 0 ? "" : err_text(&e);
}

/* Only the interface's own addresses, in the blocks of the network that root knows of. */
static void test_what_is_believed(void **state)
{
    struct hosts_rules rules = {
        .network = "default", .cidr4 = prefix("127.0.0.0/8"), .cidr6 = prefix("fd00::/8")};
    struct resolved_link link = {.interface = "lo",
        .index = if_nametoindex("lo"),
        .network = "default",
        .address4 = address("127.0.0.1")};

    (void)state;
    assert_string_equal(check(&link, &rules), "");
    link.address4 = address("127.9.9.9");
    assert_string_equal(check(&link, &rules), "127.9.9.9 is no address of lo");
    link.address4 = address("127.0.0.1");
    link.address6 = address("::1");
    assert_string_equal(check(&link, &rules), "::1 is not in the network's block, fd00::/8");
    rules.cidr6 = prefix("::/64");
    link.address6 = address("::9");
    assert_string_equal(check(&link, &rules), "::9 is no address of lo");
    link.address6 = (struct ip_addr){{0}};
    link.index++;
    assert_non_null(strstr(check(&link, &rules), "interface lo is not number"));
    link.index--;
    rules.cidr4 = prefix("10.77.0.0/16");
    assert_string_equal(
        check(&link, &rules), "127.0.0.1 is not in the network's block, 10.77.0.0/16");
    (void)snprintf(rules.network, sizeof(rules.network), "other");
    assert_string_equal(
        check(&link, &rules), "the network \"default\" is not the one that was joined, \"other\"");
}

/* The words that the program is called with, a call a line. */
static void test_what_is_reported(void **state)
{
    static const char script[] = "#!/bin/sh\necho \"$@\" >> \"$0.said\"\n"
                                 "[ \"$1$2\" != dnsbad ] || { echo refused >&2; exit 1; }\n";
    static const char wanted[] = "domain lo ~default.weft\ndefault-route lo false\n"
                                 "dnssec lo no\ndnsovertls lo no\ndns lo 127.0.0.1 ::1\n"
                                 "domain bad ~default.weft\ndefault-route bad false\n"
                                 "dnssec bad no\ndnsovertls bad no\ndns bad 127.0.0.1\n";
    struct resolved_link link = {.interface = "lo",
        .network = "default",
        .address4 = address("127.0.0.1"),
        .address6 = address("::1")};
    struct err e = ERR_NULL;
    char said[sizeof(wanted) + 64] = "";
    char name[80];
    FILE *f = fopen(path, "w");

    (void)state;
    assert_non_null(f);
    (void)fputs(script, f);
    (void)fclose(f);
    assert_int_equal(chmod(path, 0700), 0);
    (void)snprintf(name, sizeof(name), "%s.said", path);
    assert_int_equal(resolved_link_tell(&link, path, &e), 0);
    (void)snprintf(link.interface, sizeof(link.interface), "bad");
    link.address6 = (struct ip_addr){{0}};
    assert_true(resolved_link_tell(&link, path, &e) != 0);
    assert_non_null(strstr(err_text(&e), "refused"));
    f = fopen(name, "r");
    assert_non_null(f);
    assert_int_equal(fread(said, 1, sizeof(said) - 1, f), strlen(wanted));
    (void)fclose(f);
    (void)unlink(name);
    assert_string_equal(said, wanted);
}

/* After a call that fails no other is made. */
static void test_a_call_that_fails(void **state)
{
    static const char script[] =
        "#!/bin/sh\necho \"$1\" >> \"$0.said\"\n[ \"$1\" != default-route ]\n";
    struct resolved_link link = {
        .interface = "lo", .network = "default", .address4 = address("127.0.0.1")};
    char said[64] = "";
    char name[80];
    FILE *f = fopen(path, "w");

    (void)state;
    assert_non_null(f);
    (void)fputs(script, f);
    (void)fclose(f);
    assert_int_equal(chmod(path, 0700), 0);
    (void)snprintf(name, sizeof(name), "%s.said", path);
    assert_true(resolved_link_tell(&link, path, NULL) != 0);
    f = fopen(name, "r");
    assert_non_null(f);
    assert_true(fread(said, 1, sizeof(said) - 1, f) > 0);
    (void)fclose(f);
    (void)unlink(name);
    assert_string_equal(said, "domain\ndefault-route\n");
}

/* The folder is the agent's: nothing else is read for it, and nothing waited for. */
static void test_what_is_no_file(void **state)
{
    struct resolved_link link;
    struct err e = ERR_NULL;

    (void)state;
    assert_int_equal(symlink("/etc/hostname", path), 0);
    assert_int_equal(resolved_link_read(path, &link, &e), -ELOOP);
    (void)unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(resolved_link_read(path, &link, &e), -EPERM);
    assert_non_null(strstr(err_text(&e), "is no file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_there_and_back, enter, leave),
        cmocka_unit_test_setup_teardown(test_which_links_are_the_same, enter, leave),
        cmocka_unit_test_setup_teardown(test_no_interface, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_no_link, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_believed, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_reported, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_call_that_fails, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_no_file, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
