/*
 * test-access-set.c - lines of rules: what they allow, against a twin that asks one rule after the
 * other; what is no line; what is too much.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "access/access_set.h"
#include "base/err.h"
#include "base/secret.h"

#define OWN "10.42.0.2"

static void say(struct access_builder *b, const char *line)
{
    struct err e = ERR_NULL;

    if (access_builder_line(b, line, &e) != 0)
        fail_msg("\"%s\": %s", line, err_text(&e));
}

static struct access_set *finish(struct access_builder *b)
{
    struct access_set *s = NULL;
    struct err e = ERR_NULL;

    if (access_builder_finish(b, &s, &e) != 0)
        fail_msg("%s", err_text(&e));
    (void)access_builder_free(b);
    return s;
}

static struct access_set *make(const char *const *lines, size_t n)
{
    struct access_builder *b = access_builder_new(5);

    assert_non_null(b);
    for (size_t i = 0; i < n; i++)
        say(b, lines[i]);
    return finish(b);
}

#define MAKE(lines) make(lines, sizeof(lines) / sizeof(*(lines)))

static struct access_packet to_port(
    const char *remote, enum access_way way, uint8_t protocol, uint16_t port)
{
    struct access_packet p = {.way = way, .port = port};

    assert_int_equal(ip_addr_parse(&p.key.local, strchr(remote, ':') ? "fd00::2" : OWN, NULL), 0);
    assert_int_equal(ip_addr_parse(&p.key.remote, remote, NULL), 0);
    p.key.protocol = protocol;
    p.is_icmp = protocol == IP_PROTO_ICMP || protocol == IP_PROTO_ICMPV6;
    return p;
}

static bool passes(const struct access_set *s, const char *remote, enum access_way way,
    uint8_t protocol, uint16_t port)
{
    struct access_packet p = to_port(remote, way, protocol, port);

    return access_set_find(s, &p) != ACCESS_NO_RULE;
}

static const char *const lines[] = {
    "self 10.42.0.2,fd00::2",
    "refuse in",
    "set 10.42.0.1,fd00::1",
    "set 10.42.0.3,fd00::3",
    "set 10.42.0.4",
    "more 10.42.0.3,10.42.0.5",
    "rule",
    "allow icmp",
    "in set:0 10.42.0.2/32",
    "rule ssh",
    "allow tcp/22-22,udp/5000-5999",
    "in set:1 10.42.0.2/32",
    "in set:1 fd00::2/128",
    "rule many",
    "allow tcp/20-30,tcp/100-200,tcp/150-300",
    "in set:2 10.42.0.2/32",
    "rule all",
    "allow any",
    "in others:10.42.0.0/16 10.9.0.0/24",
    "out 10.9.0.0/16",
    "rule web",
    "allow tcp/443-443",
    "in 10.42.0.0/16 10.9.0.0/28",
    "out set:0",
};

static void test_what_passes(void **state)
{
    struct access_set *s = MAKE(lines);
    struct access_packet p;

    assert_true(passes(s, "10.42.0.1", ACCESS_IN, IP_PROTO_ICMP, 0));
    assert_false(passes(s, "10.42.0.1", ACCESS_IN, IP_PROTO_TCP, 22));
    assert_false(passes(s, "fd00::1", ACCESS_IN, IP_PROTO_ICMPV6, 0));
    assert_true(passes(s, "10.42.0.3", ACCESS_IN, IP_PROTO_TCP, 22));
    assert_true(passes(s, "fd00::3", ACCESS_IN, IP_PROTO_TCP, 22));
    assert_false(passes(s, "fd00::3", ACCESS_IN, IP_PROTO_TCP, 23));
    /* It is in two sets. */
    assert_true(passes(s, "10.42.0.3", ACCESS_IN, IP_PROTO_TCP, 23));
    assert_false(passes(s, "10.42.0.3", ACCESS_IN, IP_PROTO_TCP, 31));
    assert_true(passes(s, "10.42.0.3", ACCESS_IN, IP_PROTO_UDP, 5999));
    assert_false(passes(s, "10.42.0.3", ACCESS_IN, IP_PROTO_UDP, 6000));
    assert_false(passes(s, "10.42.0.5", ACCESS_IN, IP_PROTO_UDP, 5000));
    /* Ranges that overlap. */
    for (unsigned port = 0; port < 400; port++)
        assert_int_equal(passes(s, "10.42.0.4", ACCESS_IN, IP_PROTO_TCP, (uint16_t)port),
            (port >= 20 && port <= 30) || (port >= 100 && port <= 300));
    assert_false(passes(s, "10.42.0.9", ACCESS_IN, IP_PROTO_TCP, 22));
    /* Other protocols, by "any" alone; blocks in blocks. */
    p = to_port("10.42.0.9", ACCESS_IN, 47, 0);
    assert_int_equal(ip_addr_parse(&p.key.local, "10.9.0.200", NULL), 0);
    assert_int_not_equal(access_set_find(s, &p), ACCESS_NO_RULE);
    assert_int_equal(ip_addr_parse(&p.key.local, "10.9.0.3", NULL), 0);
    assert_int_not_equal(access_set_find(s, &p), ACCESS_NO_RULE);
    assert_int_equal(ip_addr_parse(&p.key.local, "10.9.1.3", NULL), 0);
    assert_int_equal(access_set_find(s, &p), ACCESS_NO_RULE);
    /* The hub is none of the others, but in the block. */
    p = to_port("10.42.0.1", ACCESS_IN, IP_PROTO_TCP, 80);
    assert_int_equal(ip_addr_parse(&p.key.local, "10.9.0.3", NULL), 0);
    assert_int_equal(access_set_find(s, &p), ACCESS_NO_RULE);
    p.port = 443;
    assert_int_not_equal(access_set_find(s, &p), ACCESS_NO_RULE);
    /* Out. */
    assert_true(passes(s, "10.9.77.1", ACCESS_OUT, 47, 0));
    assert_true(passes(s, "10.42.0.1", ACCESS_OUT, IP_PROTO_TCP, 443));
    assert_false(passes(s, "10.42.0.3", ACCESS_OUT, IP_PROTO_TCP, 443));
    assert_true(access_set_refuses(s, ACCESS_IN));
    assert_false(access_set_refuses(s, ACCESS_OUT));
    assert_int_equal(access_set_rules(s), 4);
    (void)access_set_free(s);
}

static void test_no_rules_at_all(void **state)
{
    struct access_set *s = make(NULL, 0);

    assert_false(passes(s, "10.42.0.3", ACCESS_IN, IP_PROTO_TCP, 22));
    assert_false(passes(s, "fd00::3", ACCESS_OUT, IP_PROTO_TCP, 22));
    assert_false(access_set_refuses(s, ACCESS_IN));
    (void)access_set_free(s);
}

static bool is_shut(const struct access_set *s, const char *remote, uint16_t port)
{
    struct access_packet p = to_port(remote, ACCESS_IN, IP_PROTO_TCP, port);

    return access_set_is_shut(s, &p);
}

static void test_ports_that_are_shut(void **state)
{
    static const char *const said[] = {
        "self 10.42.0.2,fd00::2",
        "set 10.42.0.1",
        "set 10.42.0.3",
        "set 10.42.0.4,fd00::4",
        "shut 40001,40010-40019 1",
        "open 40012,40030",
        "shut 40000-40031,65535 1,2",
    };
    struct access_set *s = MAKE(said);
    struct access_packet p;

    assert_false(is_shut(s, "10.42.0.3", 40001));
    assert_true(is_shut(s, "10.42.0.4", 40001));
    assert_true(is_shut(s, "10.42.0.4", 40012));
    assert_false(is_shut(s, "10.42.0.4", 40000));
    assert_false(is_shut(s, "fd00::4", 40020));
    assert_true(is_shut(s, "10.42.0.5", 40000));
    assert_true(is_shut(s, "fd00::5", 65535));
    assert_false(is_shut(s, "10.42.0.5", 40030));
    assert_true(is_shut(s, "10.42.0.5", 40031));
    assert_false(is_shut(s, "10.42.0.5", 40032));
    assert_false(is_shut(s, "10.42.0.5", 39999));
    /* Of the node itself, of TCP, of what comes in. */
    p = to_port("10.42.0.5", ACCESS_IN, IP_PROTO_UDP, 40000);
    assert_false(access_set_is_shut(s, &p));
    p = to_port("10.42.0.5", ACCESS_OUT, IP_PROTO_TCP, 40000);
    assert_false(access_set_is_shut(s, &p));
    p = to_port("10.42.0.5", ACCESS_IN, IP_PROTO_TCP, 40000);
    p.key.local.b[15]++;
    assert_false(access_set_is_shut(s, &p));
    (void)access_set_free(s);
}

static void test_counters(void **state)
{
    static const char *const before[] = {"set", "rule a", "rule", "rule c", "rule b"};
    static const char *const after[] = {"rule b", "rule d", "rule c", "rule"};
    struct access_set *old = MAKE(before);
    struct access_set *new = MAKE(after);
    uint32_t cursor = 0;
    uint64_t passed = 0;

    access_set_count(old, 0);
    access_set_count(old, 1);
    access_set_count(old, 3);
    access_set_count(old, 3);
    access_set_count(new, 0);
    access_set_count(new, 1);
    access_set_add_counts(new, old);
    assert_string_equal(access_set_each(new, &cursor, &passed), "b");
    assert_int_equal(passed, 3);
    assert_string_equal(access_set_each(new, &cursor, &passed), "d");
    assert_int_equal(passed, 1);
    assert_null(access_set_each(new, &cursor, &passed));
    (void)access_set_free(old);
    (void)access_set_free(new);
}

static void test_what_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        " ",
        "rules",
        "self",
        "self 10.42.0",
        "self 10.42.0.2,",
        "self ,10.42.0.2",
        "set 10.42.0.2 10.42.0.3",
        "set 10.42.0.2/32",
        "more",
        "refuse",
        "refuse both",
        "rule a b",
        "rule UPPER",
        "rule -a",
        "allow",
        "allow tcp",
        "allow tcp/22",
        "allow tcp/23-22",
        "allow tcp/0-65536",
        "allow tcp/-",
        "allow tcp/1-2-3",
        "allow sctp/1-2",
        "allow any,",
        "in",
        "in set:0",
        "in set:9 10.42.0.2/32",
        "in set: 10.42.0.2/32",
        "in set:0 10.42.0.2/33",
        "in set:0 10.42.0.2/32 ",
        "in others: 10.42.0.2/32",
        "out",
        "out set:-1",
        "out others:10.42.0.0",
        "out set:4294967296",
        "open",
        "open 65536",
        "open 1-",
        "shut 1",
        "shut 1 ",
        "shut 1 9",
        "shut  0",
        "shut 2-1 0",
    };
    struct access_builder *b = access_builder_new(1);
    static const char *const first[] = {"more 10.42.0.1", "allow any", "in 10.0.0.0/8 10.0.0.1",
        "out 10.0.0.0/8", "out set:0", "shut 1 0"};

    for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
        assert_int_equal(access_builder_line(b, first[i], NULL), -EINVAL);
    say(b, "set 10.42.0.1");
    say(b, "rule a");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct err e = ERR_NULL;

        /* "out others:10.42.0.0" is one address, which is a block. */
        if (strcmp(wrong[i], "out others:10.42.0.0") == 0)
            continue;
        if (access_builder_line(b, wrong[i], &e) != -EINVAL)
            fail_msg("\"%s\" was taken", wrong[i]);
        assert_true(err_text(&e)[0] != '\0');
    }
    (void)access_set_free(finish(b));
}

static void test_too_much(void **state)
{
    struct access_builder *b = access_builder_new(1);
    struct access_set *s = NULL;
    struct err e = ERR_NULL;
    int r = 0;

    say(b, "set");
    for (unsigned i = 0; i < ACCESS_RULES_LIMIT; i++)
        say(b, "rule a");
    assert_int_equal(access_builder_line(b, "rule a", &e), -E2BIG);
    for (unsigned i = 0; i < ACCESS_SERVICES_LIMIT; i++)
        say(b, "allow icmp");
    assert_int_equal(access_builder_line(b, "allow icmp", &e), -E2BIG);
    (void)access_builder_free(b);
    /* Each port of each rule apart, and no two peers have the same rules: more than is kept. */
    b = access_builder_new(1);
    for (unsigned i = 0; i < 400; i++) {
        char line[64];

        say(b, "set");
        say(b, "rule a");
        for (unsigned k = 0; k < ACCESS_SERVICES_LIMIT; k++) {
            unsigned port = i * 64 + k;

            (void)snprintf(line, sizeof(line), "allow tcp/%u-%u", port, port);
            say(b, line);
        }
        for (unsigned k = 0; k <= i; k++) {
            (void)snprintf(line, sizeof(line), "out set:%u", k);
            say(b, line);
        }
    }
    r = access_builder_finish(b, &s, &e);
    assert_int_equal(r, -E2BIG);
    assert_null(s);
    assert_non_null(strstr(err_text(&e), "more than 1048576 ranges"));
    (void)access_builder_free(b);
}

/* ---- the twin ------------------------------------------------------------------------------- */

#define RULES    40
#define SERVICES 4
#define PAIRS    4
#define SETS     8
#define HOSTS    24

struct twin_rule {
    struct {
        uint8_t protocol; /* 0: any */
        unsigned first, last;
    } services[SERVICES];
    struct {
        bool is_out;
        int set;       /* or */
        unsigned from; /* the block 10.from.0.0/16 or, from 100 on, 10.0.from.0/24 */
        bool is_others;
        unsigned to; /* the block 10.1.0.0/(8 * to) */
    } pairs[PAIRS];
};

struct twin {
    bool sets[SETS][HOSTS];
    struct twin_rule rules[RULES];
};

/* 10.0.7.1, 10.7.0.1, and so on; so hosts are in blocks, some in several. */
static void host_text(unsigned host, char ret[static 32])
{
    (void)snprintf(ret, 32, "10.%u.%u.%u", host % 3, host / 3 % 4, host);
}

static bool in_block(unsigned host, unsigned block)
{
    if (block < 100)
        return host % 3 == block;
    return host % 3 == 0 && host / 3 % 4 == block - 100;
}

static void block_text(unsigned block, char ret[static 32])
{
    if (block < 100)
        (void)snprintf(ret, 32, "10.%u.0.0/16", block);
    else
        (void)snprintf(ret, 32, "10.0.%u.0/24", block - 100);
}

/* A rule at random, and its lines. */
static void make_rule(struct access_builder *b, struct twin_rule *r, unsigned i, struct rng *rng)
{
    char line[160];
    char block[32];

    (void)snprintf(line, sizeof(line), "rule r%u", i);
    say(b, line);
    for (unsigned k = 0; k < SERVICES; k++) {
        unsigned kind = rng_u32(rng) % 8;

        r->services[k].protocol = kind == 0 ? 1 : kind % 2 ? 6 : 17;
        r->services[k].first = rng_u32(rng) % 100;
        r->services[k].last = r->services[k].first + rng_u32(rng) % 20;
        if (kind == 0)
            (void)snprintf(line, sizeof(line), "allow icmp");
        else
            (void)snprintf(line, sizeof(line), "allow %s/%u-%u", kind % 2 ? "tcp" : "udp",
                r->services[k].first, r->services[k].last);
        if (kind == 2 && rng_u32(rng) % 8 == 0) {
            r->services[k].protocol = 0;
            (void)snprintf(line, sizeof(line), "allow any");
        }
        say(b, line);
    }
    for (unsigned k = 0; k < PAIRS; k++) {
        char peer[64];

        r->pairs[k].is_out = rng_u32(rng) % 2;
        r->pairs[k].set = rng_u32(rng) % 2 ? (int)(rng_u32(rng) % SETS) : -1;
        r->pairs[k].from = rng_u32(rng) % 2 ? rng_u32(rng) % 3 : 100 + rng_u32(rng) % 4;
        r->pairs[k].is_others = rng_u32(rng) % 2;
        r->pairs[k].to = 1 + rng_u32(rng) % 4;
        block_text(r->pairs[k].from, block);
        if (r->pairs[k].set >= 0)
            (void)snprintf(peer, sizeof(peer), "set:%d", r->pairs[k].set);
        else
            (void)snprintf(
                peer, sizeof(peer), "%s%s", r->pairs[k].is_others ? "others:" : "", block);
        if (r->pairs[k].is_out)
            (void)snprintf(line, sizeof(line), "out %s", peer);
        else
            (void)snprintf(line, sizeof(line), "in %s 10.1.1.1/%u", peer, 8 * r->pairs[k].to);
        say(b, line);
    }
}

static bool rule_lets(const struct twin *t, const struct twin_rule *r, unsigned host, bool is_out,
    unsigned common, uint8_t protocol, unsigned port)
{
    bool allows = false;
    bool is_about = false;

    for (unsigned k = 0; k < SERVICES; k++)
        allows |=
            r->services[k].protocol == 0 ||
            (r->services[k].protocol == protocol &&
                (protocol == 1 || (port >= r->services[k].first && port <= r->services[k].last)));
    for (unsigned k = 0; k < PAIRS; k++) {
        bool names = r->pairs[k].set >= 0 ? t->sets[r->pairs[k].set][host]
                                          : in_block(host, r->pairs[k].from) &&
                                                !(r->pairs[k].is_others && t->sets[0][host]);

        is_about |= names && r->pairs[k].is_out == is_out && (is_out || common >= r->pairs[k].to);
    }
    return allows && is_about;
}

static void test_against_the_twin(void **state)
{
    uint64_t seed = 3;
    struct rng rng = rng_seeded(&seed);

    for (unsigned round = 0; round < 20; round++) {
        static struct twin t;
        struct access_builder *b = access_builder_new(rng_u64(&rng));
        struct access_set *s;
        unsigned n_passed = 0;

        memset(&t, 0, sizeof(t));
        for (unsigned i = 0; i < SETS; i++) {
            say(b, "set");
            for (unsigned host = 0; host < HOSTS; host++) {
                char text[32];
                char line[64];

                t.sets[i][host] = rng_u32(&rng) % 3 == 0;
                host_text(host, text);
                (void)snprintf(line, sizeof(line), "more %s", text);
                if (t.sets[i][host])
                    say(b, line);
            }
        }
        for (unsigned i = 0; i < RULES; i++)
            make_rule(b, &t.rules[i], i, &rng);
        s = finish(b);
        for (unsigned i = 0; i < 20000; i++) {
            /* As many bytes of the address as this has are those of 10.1.1.1. */
            static const char *const locals[] = {
                "", "10.9.9.9", "10.1.9.9", "10.1.1.9", "10.1.1.1"};
            unsigned common = 1 + rng_u32(&rng) % 4;
            unsigned host = rng_u32(&rng) % HOSTS;
            uint8_t protocol = (const uint8_t[]){1, 6, 17, 47}[rng_u32(&rng) % 4];
            unsigned port = rng_u32(&rng) % 130;
            bool is_out = rng_u32(&rng) % 2;
            char remote[32];
            struct access_packet p;
            uint32_t rule;

            host_text(host, remote);
            p = to_port(remote, is_out ? ACCESS_OUT : ACCESS_IN, protocol, (uint16_t)port);
            assert_int_equal(ip_addr_parse(&p.key.local, locals[common], NULL), 0);
            rule = access_set_find(s, &p);
            if (rule != ACCESS_NO_RULE) {
                assert_true(rule_lets(&t, &t.rules[rule], host, is_out, common, protocol, port));
                n_passed++;
                continue;
            }
            for (unsigned k = 0; k < RULES; k++)
                if (rule_lets(&t, &t.rules[k], host, is_out, common, protocol, port))
                    fail_msg("round %u: rule %u lets it pass", round, k);
        }
        assert_true(n_passed > 1000 && n_passed < 19500);
        (void)access_set_free(s);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_passes),
        cmocka_unit_test(test_no_rules_at_all),
        cmocka_unit_test(test_ports_that_are_shut),
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_against_the_twin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
