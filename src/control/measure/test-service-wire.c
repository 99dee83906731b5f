/* test-service-wire.c - each message there and back, and what is none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "api/content/body.h"
#include "base/err.h"
#include "measure/order.h"
#include "measure/service_process.h"

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
    member->stun_port = UINT16_MAX;
}

static void test_there_and_back(void **state)
{
    struct service_wire all[SERVICE_WIRE_N];

    fill(all);
    for (unsigned i = 0; i < SERVICE_WIRE_N; i++) {
        struct service_wire m;
        json_t *json = service_wire_encode(&all[i]);

        assert_int_equal(service_wire_decode(&m, json, NULL), 0);
        assert_memory_equal(&m, &all[i], sizeof(m));
        json_decref(json);
    }
}

/* Of a list none may be known: neither the own address nor how a member is reached, nor its key. */
static void test_unknown(void **state)
{
    struct service_wire list = {.type = SERVICE_WIRE_LIST, .n = 1};
    struct service_wire member = {.type = SERVICE_WIRE_MEMBER};
    struct service_wire m;
    json_t *json = service_wire_encode(&list);

    assert_int_equal(service_wire_decode(&m, json, NULL), 0);
    assert_true(ip_addr_is_none(&m.own));
    json_decref(json);
    json = service_wire_encode(&member);
    assert_null(json_object_get(json, "key"));
    assert_int_equal(service_wire_decode(&m, json, NULL), 0);
    assert_true(ip_addr_is_none(&m.member.underlay) && !m.member.has_key);
    json_decref(json);
}

static void test_none(void **state)
{
    static const struct {
        const char *text;
        const char *words; /* a part of the refusal */
    } cases[] = {
        {"{}", "op"},
        {"{\"op\":\"none\"}", "op"},
        {"{\"op\":4}", "op"},
        {"{\"op\":\"jobs\"}", "jobs"},
        {"{\"op\":\"jobs\",\"jobs\":65537}", "jobs"},
        {"{\"op\":\"jobs\",\"jobs\":-1}", "jobs"},
        {"{\"op\":\"config\",\"interface\":\"\",\"socket\":\"\",\"port\":0}", "port"},
        {"{\"op\":\"config\",\"interface\":\"\",\"socket\":\"\",\"port\":65536}", "port"},
        {"{\"op\":\"config\",\"interface\":\"\",\"port\":1}", "socket"},
        {"{\"op\":\"config\",\"interface\":\"a/b\",\"socket\":\"\",\"port\":1}", "interface"},
        {"{\"op\":\"config\",\"interface\":\"..\",\"socket\":\"\",\"port\":1}", "interface"},
        {"{\"op\":\"config\",\"interface\":\"a\\u0001\",\"socket\":\"\",\"port\":1}", "interface"},
        {"{\"op\":\"config\",\"interface\":\"aaaaaaaaaaaaaaaa\",\"socket\":\"\",\"port\":1}",
            "interface"},
        {"{\"op\":\"list\",\"own\":\"10.77.0.2\",\"members\":131073}", "members"},
        {"{\"op\":\"list\",\"own\":\"here\",\"members\":1}", "own"},
        {"{\"op\":\"member\",\"address\":\"10.77.0.3\",\"underlay\":\"::\",\"path\":\"\","
         "\"name\":\"n\",\"hostname\":\"\",\"hub\":false,\"key\":\"6b6b\"}",
            "key"},
        {"{\"op\":\"member\",\"address\":\"10.77.0.1\",\"underlay\":\"203.0.113.1\",\"path\":\"\","
         "\"name\":\"n\",\"hostname\":\"\",\"hub\":true,\"stunPort\":65536}",
            "stunPort"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct service_wire m = {.n = 7};
        struct err e = ERR_NULL;
        json_t *json = json_loads(cases[i].text, 0, NULL);

        print_message("%s\n", cases[i].text);
        assert_non_null(json);
        assert_int_equal(service_wire_decode(&m, json, &e), -EINVAL);
        assert_non_null(strstr(e.text, cases[i].words));
        assert_int_equal(m.n, 7);
        json_decref(json);
    }
}

/* ---- out of order ---------------------------------------------------------------------------- */

/* What comes of a process that is told @text, and then nothing more. */
static int run_told(const char *text, struct err *e)
{
    int pair[2];
    int r;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(write(pair[1], text, strlen(text)), (ssize_t)strlen(text));
    (void)close(pair[1]);
    r = service_process_run(pair[0], e);
    (void)close(pair[0]);
    return r;
}

/* Before it knows its configuration it takes nothing else, and no line that is none. */
static void test_out_of_order(void **state)
{
    struct err e = ERR_NULL;

    assert_int_equal(run_told("", &e), 0);
    assert_int_equal(run_told("{\"op\":\"look\"}\n", &e), -EPROTO);
    assert_non_null(strstr(e.text, "out of turn"));
    assert_int_equal(run_told("{\"op\":\"list\",\"own\":\"::\",\"members\":0}\n", &e), -EPROTO);
    assert_int_equal(run_told("look\n", &e), -EINVAL);
    assert_int_equal(run_told("{\"op\":\"look\"}", &e), 0);
}

static void test_too_long(void **state)
{
    static char text[ORDER_LINE_MAX + 2];
    struct err e = ERR_NULL;

    memset(text, ' ', sizeof(text) - 1);
    assert_int_equal(run_told(text, &e), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_out_of_order),
        cmocka_unit_test(test_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
