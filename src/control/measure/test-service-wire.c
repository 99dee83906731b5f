/* test-service-wire.c - each message there and back, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "measure/service_process.h"

#define CASE(why, bytes)                                                                           \
    {                                                                                              \
        why, bytes, sizeof(bytes) - 1                                                              \
    }

/* One of each type, the longest that there can be. */
static void fill(struct service_wire ret[static SERVICE_WIRE_N])
{
    struct service_member *member = &ret[SERVICE_WIRE_MEMBER].member;

    memset(ret, 0, sizeof(*ret) * SERVICE_WIRE_N);
    for (unsigned i = 0; i < SERVICE_WIRE_N; i++)
        ret[i].type = (enum service_wire_type)i;
    memset(ret[SERVICE_WIRE_CONFIG].interface, 'i', SERVICE_WIRE_INTERFACE_CAP - 1);
    memset(ret[SERVICE_WIRE_CONFIG].socket_path, 'p', SERVICE_WIRE_PATH_CAP - 1);
    ret[SERVICE_WIRE_CONFIG].port = 51829;
    ret[SERVICE_WIRE_LIST].own = ip_addr_v4((const uint8_t[]){100, 64, 0, 1});
    ret[SERVICE_WIRE_LIST].n = SERVICE_WIRE_MEMBERS_MAX;
    ret[SERVICE_WIRE_JOBS].n = SERVICE_WIRE_JOBS_MAX;
    member->address = ip_addr_v4((const uint8_t[]){100, 64, 0, 2});
    member->underlay = ip_addr_v4((const uint8_t[]){203, 0, 113, 2});
    memset(member->path, 'w', sizeof(member->path) - 1);
    memset(member->name, 'n', sizeof(member->name) - 1);
    memset(member->hostname, 'h', sizeof(member->hostname) - 1);
    memset(member->key.b, 'k', sizeof(member->key.b));
    member->has_key = true;
}

static void test_there_and_back(void **state)
{
    struct service_wire all[SERVICE_WIRE_N];
    struct str out = STR_NULL;
    size_t off = 0;

    fill(all);
    for (unsigned i = SERVICE_WIRE_CONFIG; i < SERVICE_WIRE_N; i++) {
        size_t before = out.len;

        service_wire_encode(&out, &all[i]);
        assert_false(out.failed);
        assert_true(out.len - before <= SERVICE_WIRE_HEAD + SERVICE_WIRE_MAX);
    }
    for (unsigned i = SERVICE_WIRE_CONFIG; i < SERVICE_WIRE_N; i++) {
        struct service_wire m = {0};
        size_t used = 0;

        assert_int_equal(service_wire_decode(&m, out.text + off, out.len - off, &used), 0);
        assert_memory_equal(&m, &all[i], sizeof(m));
        off += used;
    }
    assert_int_equal(off, out.len);
    str_deinit(&out);
}

/* Every byte is waited for, and nothing behind a message is taken. */
static void test_short(void **state)
{
    struct service_wire all[SERVICE_WIRE_N];
    struct service_wire m;
    size_t used;

    fill(all);
    for (unsigned i = SERVICE_WIRE_CONFIG; i < SERVICE_WIRE_N; i++) {
        struct str out = STR_NULL;

        service_wire_encode(&out, &all[i]);
        for (size_t len = 0; len < out.len; len++)
            assert_int_equal(service_wire_decode(&m, out.text, len, &used), SERVICE_WIRE_E_SHORT);
        str_deinit(&out);
    }
}

static void test_none(void **state)
{
    static const struct {
        const char *why;
        const char *bytes;
        size_t len;
    } cases[] = {
        CASE("no type", "\0\0\0\0"),
        CASE("too long", "\x41\1\0\0\4"),
        CASE("the type of none", "\1\0\0\0\0"),
        CASE("a type that is none", "\1\0\0\0\6"),
        CASE("no number of jobs", "\1\0\0\0\5"),
        CASE("too many jobs", "\5\0\0\0\5\1\0\1\0"),
        CASE("a byte more", "\2\0\0\0\4\0"),
        CASE("no port", "\5\0\0\0\1\0\0\0\0"),
        CASE("an interface elsewhere", "\x8\0\0\0\1\3a/b\0\1\0"),
        CASE("an interface above", "\7\0\0\0\1\2..\0\1\0"),
        CASE("an interface with a zero", "\7\0\0\0\1\2a\0\0\1\0"),
        CASE("an interface that is too long", "\x15\0\0\0\1\x10"
                                              "aaaaaaaaaaaaaaaa\0\1\0"),
        CASE("a text beyond the end", "\5\0\0\0\1\0\3\1\0"),
        CASE("too many members", "\x15\0\0\0\2"
                                 "aaaaaaaaaaaaaaaa"
                                 "\1\0\2\0"),
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct service_wire m;
        size_t used;

        print_message("%s\n", cases[i].why);
        assert_int_equal(
            service_wire_decode(&m, cases[i].bytes, cases[i].len, &used), SERVICE_WIRE_E_BAD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
