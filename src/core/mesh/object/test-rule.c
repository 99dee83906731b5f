/* test-rule.c - rules as text and JSON, and what they allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/object.h"
#include "mesh/object/rule.h"

static void test_peers(void **state)
{
    static const struct {
        const char *text;
        bool is_source;
        bool is_destination;
    } rows[] = {
        {"members", true, true},
        {"hub", true, true},
        {"node:gpu-1", true, true},
        {"island:east", true, true},
        {"role=gpu", true, true},
        {"10.9.0.0/24", false, true},
        {"fd09::/64", false, true},
        {"", false, false},
        {"gpu-1", false, false},
        {"node:", false, false},
        {"node:a--b", false, false},
        {"island:East", false, false},
        {"=x", false, false},
        {"10.9.0.1/24", false, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (unsigned way = 0; way < 2; way++) {
            bool is_taken = way == 0 ? rows[i].is_source : rows[i].is_destination;
            struct rule_peer peer;
            struct err e = ERR_NULL;
            char text[RULE_TEXT_MAX];
            int r = rule_peer_parse(&peer, rows[i].text, way == 1, &e);

            if (r != (is_taken ? 0 : -EINVAL))
                fail_msg("\"%s\": %d %s", rows[i].text, r, err_text(&e));
            if (r == 0)
                assert_string_equal(rule_peer_format(&peer, text), rows[i].text);
            else
                assert_true(err_text(&e)[0] != '\0');
        }
}

static void test_services(void **state)
{
    static const struct {
        const char *text;
        uint16_t first;
        uint16_t last;
        bool is_taken;
    } rows[] = {
        {"any", 0, 65535, true},
        {"icmp", 0, 65535, true},
        {"tcp", 0, 65535, true},
        {"tcp/22", 22, 22, true},
        {"udp/5000-5999", 5000, 5999, true},
        {"tcp/65535", 65535, 65535, true},
        {"tcp/65536", 0, 0, false},
        {"tcp/", 0, 0, false},
        {"tcp/9-8", 0, 0, false},
        {"tcp/1-", 0, 0, false},
        {"icmp/1", 0, 0, false},
        {"any/22", 0, 0, false},
        {"sctp", 0, 0, false},
        {"", 0, 0, false},
        {"tcp/00000000022", 0, 0, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct rule_service s;
        struct err e = ERR_NULL;
        char text[RULE_TEXT_MAX];
        int r = rule_service_parse(&s, rows[i].text, &e);

        if (r != (rows[i].is_taken ? 0 : -EINVAL))
            fail_msg("\"%s\": %d %s", rows[i].text, r, err_text(&e));
        if (r != 0)
            continue;
        assert_int_equal(s.first, rows[i].first);
        assert_int_equal(s.last, rows[i].last);
        assert_string_equal(rule_service_format(&s, text), rows[i].text);
    }
}

/* ---- what is allowed ------------------------------------------------------------------------ */

static int make(struct object *ret, const char *name, const char *spec, struct err *e)
{
    json_t *json = json_pack("{s:s, s:{s:s, s:s}, s:o}", "kind", "Rule", "metadata", "name", name,
        "network", "default", "spec", json_loads(spec, 0, NULL));
    int r = object_decode(ret, json, OBJECT_STRICT, e);

    json_decref(json);
    return r;
}

static struct label gpu = {.key = "role", .value = "gpu"};
static struct node_hub hub_part;
static struct node nodes[] = {
    {.meta.name = "gpu-1", .labels = &gpu, .n_labels = 1, .island = "east"},
    {.meta.name = "gpu-2", .labels = &gpu, .n_labels = 1},
    {.meta.name = "nas", .island = "east"},
    {.meta.name = "hub", .hub = &hub_part},
};

/* "gpu-1 > nas tcp/22"; a destination that is no node is an address. */
static struct rule_packet packet(const char *from, const char *to, const char *service)
{
    struct rule_packet p = {.from.node = NULL};

    for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
        if (strcmp(nodes[i].meta.name, from) == 0)
            p.from.node = &nodes[i];
        if (strcmp(nodes[i].meta.name, to) == 0)
            p.to.node = &nodes[i];
    }
    if (!p.to.node)
        assert_int_equal(ip_addr_parse(&p.to.address, to, NULL), 0);
    assert_int_equal(rule_service_parse(&p.service, service, NULL), 0);
    return p;
}

static void test_who_reaches_whom(void **state)
{
    static const char *const specs[] = {
        "{\"from\":[\"role=gpu\"],\"to\":[\"role=gpu\"],\"allow\":[\"any\"]}",
        "{\"from\":[\"members\"],\"to\":[\"node:nas\",\"10.9.0.0/24\"],"
        "\"allow\":[\"tcp/22\",\"icmp\",\"udp/5000-5999\"]}",
        "{\"from\":[\"hub\"],\"to\":[\"island:east\"],\"allow\":[\"tcp\"]}",
    };
    static const struct {
        const char *from, *to, *service;
        const char *rule; /* NULL: refused */
    } rows[] = {
        {"gpu-1", "gpu-2", "tcp/1", "r0"},
        {"gpu-1", "nas", "tcp/22", "r1"},
        {"gpu-1", "nas", "tcp/23", NULL},
        {"gpu-1", "nas", "udp/22", NULL},
        {"gpu-1", "nas", "udp/5999", "r1"},
        {"gpu-1", "nas", "udp/6000", NULL},
        {"gpu-1", "nas", "icmp", "r1"},
        {"nas", "gpu-1", "tcp/22", NULL},
        {"gpu-2", "10.9.0.7", "tcp/22", "r1"},
        {"gpu-2", "10.9.1.7", "tcp/22", NULL},
        {"hub", "gpu-1", "tcp/80", "r2"},
        {"hub", "gpu-2", "tcp/80", NULL},
        {"hub", "nas", "icmp", NULL},
    };
    struct object rules[3];
    const struct object *all[3];
    char name[8];

    for (unsigned i = 0; i < 3; i++) {
        struct err e = ERR_NULL;

        (void)snprintf(name, sizeof(name), "r%u", i);
        if (make(&rules[i], name, specs[i], &e) != 0)
            fail_msg("%s", err_text(&e));
        all[i] = &rules[i];
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct rule_packet p = packet(rows[i].from, rows[i].to, rows[i].service);
        struct rule_answer answer = rules_decide(all, 3, false, &p);
        const char *is = answer.rule ? answer.rule->meta.name : "none";

        if (answer.is_allowed != (rows[i].rule != NULL) ||
            strcmp(is, rows[i].rule ? rows[i].rule : "none") != 0)
            fail_msg("%s > %s %s: %s", rows[i].from, rows[i].to, rows[i].service, is);
        /* Without any rule all is allowed, but where the network is isolated. */
        assert_true(rules_decide(all, 0, false, &p).is_allowed);
        assert_false(rules_decide(all, 0, true, &p).is_allowed);
    }
    for (unsigned i = 0; i < 3; i++)
        object_deinit(&rules[i]);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *name, *spec, *words;
    } rows[] = {
        {"R", "{\"from\":[\"hub\"],\"to\":[\"hub\"],\"allow\":[\"any\"]}", "rule name"},
        {"r", "{\"from\":[],\"to\":[\"hub\"],\"allow\":[\"any\"]}", "from"},
        {"r", "{\"to\":[\"hub\"],\"allow\":[\"any\"]}", "from"},
        {"r", "{\"from\":[7],\"to\":[\"hub\"],\"allow\":[\"any\"]}",
            "an item of \"from\" is not a string"},
        {"r", "{\"from\":[\"gpu\"],\"to\":[\"hub\"],\"allow\":[\"any\"]}",
            "\"gpu\" is none of members, hub, node:NAME"},
        {"r", "{\"from\":[\"10.9.0.0/24\"],\"to\":[\"hub\"],\"allow\":[\"any\"]}",
            "as a destination only"},
        {"r", "{\"from\":[\"hub\"],\"to\":[\"hub\"],\"allow\":[\"ssh\"]}",
            "\"ssh\" is none of any, icmp, tcp, udp"},
        {"r", "{\"from\":[\"hub\"],\"to\":[\"hub\"],\"allow\":[\"any\"],\"deny\":[]}", "deny"},
    };
    struct object o;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct err e = ERR_NULL;

        if (make(&o, rows[i].name, rows[i].spec, &e) != -EINVAL ||
            !strstr(err_text(&e), rows[i].words))
            fail_msg("%s: %s", rows[i].spec, err_text(&e));
    }
}

/* A job's rule lets its members in, and refuses others at its TCP ports alone. */
static void test_a_job(void **state)
{
    static const char spec[] =
        "{\"from\":[\"node:gpu-1\"],\"to\":[\"node:gpu-2\"],\"allow\":[\"tcp/1024-65535\","
        "\"udp/1024-65535\"],\"job\":\"train\",\"run\":3}";
    struct object rule = OBJECT_NULL;
    struct err e = ERR_NULL;
    struct rule_packet p = packet("nas", "gpu-2", "tcp/40000");
    const struct object *all[1];
    struct rule_answer answer;
    json_t *json;

    assert_int_equal(make(&rule, "job-train", spec, &e), 0);
    all[0] = &rule;
    assert_true(rules_are_open(all, 1, false));
    assert_false(rules_are_open(all, 1, true));
    answer = rules_decide(all, 1, false, &p);
    assert_true(answer.is_allowed && !answer.rule && answer.job == &rule);
    p = packet("nas", "gpu-2", "tcp/22");
    assert_null(rules_decide(all, 1, false, &p).job);
    p = packet("nas", "gpu-2", "udp/40000");
    assert_null(rules_decide(all, 1, false, &p).job);
    p = packet("gpu-1", "gpu-2", "tcp/40000");
    answer = rules_decide(all, 1, true, &p);
    assert_true(answer.is_allowed && answer.rule == &rule && !answer.job);
    json = object_encode(&rule);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(json, "spec"), "job")), "train");
    json_decref(json);
    object_deinit(&rule);
    /* Its two fields go with each other. */
    assert_true(
        make(&rule, "job-train",
            "{\"from\":[\"hub\"],\"to\":[\"hub\"],\"allow\":[\"any\"],\"job\":\"a\"}", &e) < 0);
    assert_non_null(strstr(err_text(&e), "go with each other"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_a_job),
        cmocka_unit_test(test_services),
        cmocka_unit_test(test_who_reaches_whom),
        cmocka_unit_test(test_what_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
