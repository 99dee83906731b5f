/*
 * test-access-lines.c - what a network's rules become for the data plane's own filter: that it
 * decides as rules_decide() does, which is asked one rule after the other; and when an engine is
 * told.
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
#include "base/text.h"
#include "engine/engine.h"
#include "engine/engine_access.h"
#include "mesh/object/rule.h"
#include "mesh/object/subnets.h"
#include "mesh/snapshot/snapshot.h"
#include "rules/access_lines.h"
#include "rules/access_rules.h"
#include "rules/access_scope.h"

#include "test/support/sample_mesh.h"

#define SEC   NSEC_PER_SEC
#define NODES 12
#define SELF  2

static const struct job_ports no_jobs = {.n = 0};

static void put_rule(struct snapshot *s, const char *name, const char *spec)
{
    json_t *json = json_pack("{s:s, s:{s:s, s:s}, s:o}", "kind", "Rule", "metadata", "name", name,
        "network", "default", "spec", json_loads(spec, 0, NULL));
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;

    if (object_decode(&o, json, OBJECT_STRICT, &e) != 0)
        fail_msg("%s: %s", spec, err_text(&e));
    json_decref(json);
    sample_put(s, o);
}

static void put_job(struct snapshot *s, const char *job, const char *from, const char *to)
{
    char name[64];
    char spec[512];

    (void)snprintf(name, sizeof(name), "job-%s", job);
    (void)snprintf(spec, sizeof(spec),
        "{\"from\":[\"node:%s\"],\"to\":[\"node:%s\"],\"allow\":[\"tcp/"
        "1024-65535\"],\"job\":\"%s\","
        "\"run\":1}",
        from, to, job);
    put_rule(s, name, spec);
}

/* Every third node has the role a, every fourth is in the island east, and behind number 2 are
 * 10.9.0.0/24 and fd09::/64. @self: whose rules they are; 1 is the hub. */
static struct snapshot make_network(unsigned self)
{
    struct snapshot s = sample_snapshot(NODES, self);

    for (unsigned i = 1; i <= NODES; i++) {
        struct object o = sample_node(i);

        o.node.labels = calloc(1, sizeof(*o.node.labels));
        assert_non_null(o.node.labels);
        o.node.n_labels = 1;
        (void)snprintf(o.node.labels[0].key, sizeof(o.node.labels[0].key), "role");
        (void)snprintf(
            o.node.labels[0].value, sizeof(o.node.labels[0].value), "%s", i % 3 == 0 ? "a" : "b");
        if (i % 4 == 0)
            (void)snprintf(o.node.island, sizeof(o.node.island), "east");
        if (i == SELF) {
            o.node.routes = calloc(1, sizeof(*o.node.routes));
            assert_int_equal(subnets_parse(o.node.routes, "10.9.0.0/24,fd09::/64", NULL), 0);
        }
        sample_put(&s, o);
    }
    return s;
}

static struct access_set *compile(const struct str *lines)
{
    struct access_builder *b = access_builder_new(11);
    _cleanup_(freep) char *text = strdup(str_text(lines));
    struct access_set *set = NULL;
    struct err e = ERR_NULL;
    char *rest = NULL;

    assert_non_null(b);
    assert_false(lines->failed);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (access_builder_line(b, line, &e) != 0)
            fail_msg("\"%s\": %s", line, err_text(&e));
        assert_true(strlen(line) < 1000);
    }
    assert_int_equal(access_builder_finish(b, &set, &e), 0);
    (void)access_builder_free(b);
    return set;
}

static struct access_set *make_set(
    const struct snapshot *s, const struct job_ports *jobs, nsec_t now)
{
    struct str lines = STR_NULL;
    struct access_set *set;

    access_lines_format(&lines, s, jobs, now);
    set = compile(&lines);
    str_deinit(&lines);
    return set;
}

/* ---- against rules_decide() ----------------------------------------------------------------- */

static const char *const peers[] = {"members", "hub", "node:n2", "node:n3", "node:n7", "node:n40",
    "island:east", "role=a", "role=b", "role=c", "10.9.0.0/24", "10.9.0.0/28", "fd09::/80"};
static const char *const services[] = {
    "any", "icmp", "tcp", "udp", "tcp/22", "tcp/20-30", "udp/5000-5999", "udp/53", "tcp/443"};

#define N(array) ((uint32_t)(sizeof(array) / sizeof(*(array))))

static void add_word(struct str *out, const char *word, bool is_first)
{
    str_addf(out, "%s\"%s\"", is_first ? "" : ",", word);
}

static void put_random_rule(struct snapshot *s, unsigned i, struct rng *rng)
{
    struct str spec = STR_NULL;
    char name[16];
    unsigned n;

    (void)snprintf(name, sizeof(name), "r%u", i);
    str_add(&spec, "{\"from\":[");
    n = 1 + rng_u32(rng) % 2;
    for (unsigned k = 0; k < n; k++)
        add_word(&spec, peers[rng_u32(rng) % 10], k == 0);
    str_add(&spec, "],\"to\":[");
    n = 1 + rng_u32(rng) % 2;
    for (unsigned k = 0; k < n; k++)
        add_word(&spec, peers[rng_u32(rng) % N(peers)], k == 0);
    str_add(&spec, "],\"allow\":[");
    n = 1 + rng_u32(rng) % 3;
    for (unsigned k = 0; k < n; k++)
        add_word(
            &spec, services[1 + rng_u32(rng) % (N(services) - (rng_u32(rng) % 4 ? 1 : 2))], k == 0);
    str_add(&spec, "]}");
    put_rule(s, name, str_text(&spec));
    str_deinit(&spec);
}

/* A packet at random between @self and another end, as both see it. False: it is never refused. */
static bool make_packet(const struct snapshot *s, struct rng *rng, struct access_packet *ret,
    struct rule_packet *ret_rule)
{
    const struct node *self = snapshot_self(s);
    const struct node *other = &s->nodes.items[rng_u32(rng) % s->nodes.n]->node;
    bool is_in = rng_u32(rng) % 2;
    bool v4 = rng_u32(rng) % 2;
    bool to_subnet = rng_u32(rng) % 3 == 0 && (!is_in || strcmp(self->meta.name, "n2") == 0);
    unsigned kind = rng_u32(rng) % 4;
    struct rule_end own = {.node = self};
    struct rule_end far = {.node = other};
    uint16_t port =
        (uint16_t)(rng_u32(rng) % 8 == 0 ? 5000 + rng_u32(rng) % 2000 : rng_u32(rng) % 60);

    if (other == self)
        return false;
    *ret = (struct access_packet){.way = is_in ? ACCESS_IN : ACCESS_OUT, .port = port};
    *ret_rule = (struct rule_packet){.service.first = port, .service.last = port};
    ret->key.local = v4 ? self->address4 : self->address6;
    ret->key.remote = v4 ? other->address4 : other->address6;
    if (to_subnet) {
        struct ip_addr addr;

        assert_int_equal(ip_addr_parse(&addr, v4 ? "10.9.0.7" : "fd09::7", NULL), 0);
        addr.b[15] = (uint8_t)(rng_u32(rng) % 64);
        if (is_in)
            ret->key.local = addr;
        else
            ret->key.remote = addr;
        *(is_in ? &own : &far) = (struct rule_end){.address = addr};
    }
    ret_rule->from = is_in ? far : own;
    ret_rule->to = is_in ? own : far;
    ret->is_icmp = kind == 0;
    ret->key.protocol = (uint8_t)(kind == 0 ? (v4 ? 1 : 58) : kind == 1 ? 6 : kind == 2 ? 17 : 47);
    ret_rule->service.protocol = kind == 0   ? RULE_PROTOCOL_ICMP
                                 : kind == 1 ? RULE_PROTOCOL_TCP
                                 : kind == 2 ? RULE_PROTOCOL_UDP
                                             : RULE_PROTOCOL_ANY;
    /* Pings of a hub, and its API. */
    return !(ret->is_icmp && (self->hub || other->hub)) && port != 8443;
}

static void test_against_the_rules(void **state)
{
    uint64_t seed = 5;
    struct rng rng = rng_seeded(&seed);

    for (unsigned round = 0; round < 60; round++) {
        struct snapshot s = make_network(round % 5 == 0 ? 1 : SELF);
        const struct snapshot_list *rules;
        struct access_set *set;
        unsigned n_passed = 0;

        for (unsigned i = 0; i < 1 + round; i++)
            put_random_rule(&s, i, &rng);
        rules = snapshot_list(&s, &rule_kind);
        set = make_set(&s, &no_jobs, SEC);
        assert_true(access_set_refuses(set, ACCESS_IN) && access_set_refuses(set, ACCESS_OUT));
        for (unsigned i = 0; i < 5000; i++) {
            struct rule_packet by_rules;
            struct access_packet p;
            bool is_allowed;

            if (!make_packet(&s, &rng, &p, &by_rules))
                continue;
            is_allowed =
                rules_decide((const struct object *const *)rules->items, rules->n, false, &by_rules)
                    .is_allowed;
            if ((access_set_find(set, &p) != ACCESS_NO_RULE) != is_allowed)
                fail_msg(
                    "round %u: the rules say %d: way %d, protocol %u, port %u, remote %u local %u",
                    round, is_allowed, p.way, p.key.protocol, p.port, p.key.remote.b[15],
                    p.key.local.b[15]);
            n_passed += is_allowed;
        }
        assert_true(round < 20 || n_passed > 100);
        (void)access_set_free(set);
        snapshot_deinit(&s);
    }
}

static bool passes(const struct access_set *set, enum access_way way, const struct node *self,
    const struct node *other, uint8_t protocol, uint16_t port)
{
    struct access_packet p = {.way = way, .port = port, .is_icmp = protocol == 1};

    p.key.local = self->address4;
    p.key.remote = other->address4;
    p.key.protocol = protocol;
    return access_set_find(set, &p) != ACCESS_NO_RULE;
}

/* Pings between a node and its hub, and the hub's API. */
static void test_what_is_never_refused(void **state)
{
    for (unsigned self = 1; self <= 2; self++) {
        struct snapshot s = make_network(self);
        const struct node *own = snapshot_self(&s);
        const struct node *hub = snapshot_find_node(&s, "hub");
        const struct node *n3 = snapshot_find_node(&s, "n3");
        struct access_set *set;

        s.network.isolation = ISOLATION_STRICT;
        set = make_set(&s, &no_jobs, SEC);
        assert_true(passes(set, ACCESS_OUT, own, self == 1 ? n3 : hub, 1, 0));
        assert_true(passes(set, ACCESS_IN, own, self == 1 ? n3 : hub, 1, 0));
        assert_int_equal(passes(set, ACCESS_OUT, own, n3, 1, 0), self == 1);
        assert_int_equal(passes(set, ACCESS_IN, own, n3, 1, 0), self == 1);
        assert_int_equal(passes(set, ACCESS_OUT, own, hub, 6, 8443), true);
        assert_int_equal(passes(set, ACCESS_IN, own, n3, 6, 8443), self == 1);
        assert_false(passes(set, ACCESS_OUT, own, n3, 6, 8443));
        assert_false(passes(set, ACCESS_OUT, own, n3, 6, 22));
        (void)access_set_free(set);
        snapshot_deinit(&s);
    }
}

/* ---- jobs ----------------------------------------------------------------------------------- */

static void say(struct job_ports *jp, const char *job, const char *text, nsec_t now)
{
    struct job_ports_word w;
    json_t *json = json_loads(text, 0, NULL);
    struct err e = ERR_NULL;

    if (job_ports_word_decode(&w, json, &e) != 0)
        fail_msg("%s", err_text(&e));
    json_decref(json);
    assert_true(job_ports_set(jp, job, &w, now));
}

static bool is_shut(
    const struct access_set *set, const struct snapshot *s, const char *from, uint16_t port)
{
    struct access_packet p = {.way = ACCESS_IN, .port = port};

    p.key.local = snapshot_self(s)->address6;
    p.key.remote = snapshot_find_node(s, from)->address6;
    p.key.protocol = 6;
    return access_set_is_shut(set, &p);
}

/* As test-job-ports.c has it of the packet filter. */
static void test_jobs(void **state)
{
    struct snapshot s = make_network(SELF);
    struct job_ports jp = {.n = 0};
    struct access_set *set;

    put_job(&s, "train", "n3", "n2");
    put_job(&s, "eval", "n4", "n2");
    put_job(&s, "far", "n3", "n4");
    set = make_set(&s, &jp, SEC);
    assert_false(access_set_refuses(set, ACCESS_IN));
    /* Before the jobs have said anything all that the kernel chooses is theirs. */
    assert_true(is_shut(set, &s, "n5", 40001));
    assert_false(is_shut(set, &s, "n3", 40001) || is_shut(set, &s, "n4", 40001));
    assert_false(is_shut(set, &s, "n5", 32767) || is_shut(set, &s, "n5", 61000));
    (void)access_set_free(set);
    say(&jp, "train",
        "{\"own\":[29500,40001],\"others\":[9100,40002,40005],\"first\":40000,"
        "\"last\":50000}",
        SEC);
    say(&jp, "eval",
        "{\"own\":[40002],\"others\":[9100,40001,40005],\"first\":40000,\"last\":50000}", SEC);
    set = make_set(&s, &jp, SEC);
    assert_true(is_shut(set, &s, "n5", 29500) && is_shut(set, &s, "n4", 29500));
    assert_false(is_shut(set, &s, "n3", 29500));
    assert_true(is_shut(set, &s, "n3", 40002));
    assert_false(is_shut(set, &s, "n4", 40002));
    assert_false(is_shut(set, &s, "n5", 40005));
    assert_true(is_shut(set, &s, "n5", 40006));
    assert_false(is_shut(set, &s, "n4", 40006));
    assert_false(is_shut(set, &s, "n5", 39999));
    (void)access_set_free(set);
    job_ports_deinit(&jp);
    snapshot_deinit(&s);
}

/* On the hub it is the port that the rule has. */
static void test_jobs_of_a_hub(void **state)
{
    struct snapshot s = make_network(1);
    struct access_set *set;

    put_rule(&s, "jobhub-train",
        "{\"from\":[\"node:n3\"],\"to\":[\"hub\"],\"allow\":[\"tcp/29400\"],\"job\":\"train\","
        "\"run\":1}");
    set = make_set(&s, &no_jobs, SEC);
    assert_true(is_shut(set, &s, "n5", 29400));
    assert_false(is_shut(set, &s, "n3", 29400));
    assert_false(is_shut(set, &s, "n5", 40000));
    (void)access_set_free(set);
    snapshot_deinit(&s);
}

/* ---- an engine ------------------------------------------------------------------------------ */

/* One that keeps what it is told, and says what it has been given. */
struct kept {
    struct engine engine;
    char *lines; /* owns */
    uint64_t tag;
    unsigned n_set;
    bool is_unable;
    uint64_t passed;
};

static int keep(struct engine *engine, const char *lines, uint64_t tag, struct err *e)
{
    struct kept *k = (struct kept *)engine;

    if (k->is_unable)
        return err_set(e, ENGINE_E_UNSUPPORTED, "it cannot");
    free(k->lines);
    k->lines = lines ? strdup(lines) : NULL;
    k->tag = tag;
    k->n_set++;
    return 0;
}

static int tell(struct engine *engine, struct engine_access *ret, struct err *e)
{
    struct kept *k = (struct kept *)engine;

    *ret = (struct engine_access){.is_on = k->lines != NULL, .tag = k->tag, .n_rules = 1};
    ret->rules = calloc(1, sizeof(*ret->rules));
    ret->rules[0].name[0] = 'a';
    ret->rules[0].passed = k->passed;
    return 0;
}

static const struct engine_ops kept_ops = {.set_access = keep, .get_access = tell};

/* This machine's packet filter takes nothing. */
int nft_replace_table(const char *family, const char *table, const char *body, struct err *e);
int nft_run(const char *commands, struct err *e);
int nft_list(const char *family, const char *table, const char *const *what, size_t n, json_t **ret,
    struct err *e);
int nft_each_counter(const char *family, const char *table,
    void (*fn)(void *ctx, const char *name, uint64_t packets), void *ctx, struct err *e);

static bool has_filter;

int nft_replace_table(const char *family, const char *table, const char *body, struct err *e)
{
    return has_filter || !body ? 0 : err_set(e, -EPROTONOSUPPORT, "there is none");
}

int nft_run(const char *commands, struct err *e)
{
    return has_filter ? 0 : err_set(e, -EPROTONOSUPPORT, "there is none");
}

int nft_list(const char *family, const char *table, const char *const *what, size_t n, json_t **ret,
    struct err *e)
{
    return err_set(e, -EPROTONOSUPPORT, "there is none");
}

int nft_each_counter(const char *family, const char *table,
    void (*fn)(void *ctx, const char *name, uint64_t packets), void *ctx, struct err *e)
{
    return err_set(e, -EPROTONOSUPPORT, "there is none");
}

static uint64_t passed_by(const struct access_rules *ar, const char *rule)
{
    for (size_t i = 0; i < ar->counts.n_totals; i++)
        if (strcmp(ar->counts.totals[i].count.rule, rule) == 0)
            return ar->counts.totals[i].count.passed;
    return 0;
}

static void test_an_engine_is_told(void **state)
{
    struct kept k = {.engine.ops = &kept_ops, .passed = 4};
    struct snapshot s = make_network(SELF);
    struct access_rules ar = {.fault = ERR_NULL};

    has_filter = false;
    access_rules_apply(&ar, "weft0", &k.engine, &s, SEC);
    assert_int_equal(k.n_set, 0);
    put_rule(&s, "a", "{\"from\":[\"members\"],\"to\":[\"members\"],\"allow\":[\"tcp/22\"]}");
    /* Before there is an engine, what it is to be told is known. */
    access_rules_apply(&ar, "weft0", NULL, &s, 2 * SEC);
    assert_int_equal(ar.fault.code, 0);
    assert_false(access_rules_are_enforced(&ar));
    access_rules_tell(&ar, &k.engine);
    assert_int_equal(k.n_set, 1);
    assert_non_null(strstr(k.lines, "\nrule a\nallow tcp/22-22\n"));
    access_rules_apply(&ar, "weft0", &k.engine, &s, 2 * SEC);
    assert_int_equal(k.n_set, 2);
    access_rules_apply(&ar, "weft0", &k.engine, &s, 3 * SEC);
    assert_int_equal(k.n_set, 2);
    assert_true(access_rules_are_enforced(&ar));
    access_rules_count(&ar, "weft0", &k.engine, &s, 20 * SEC);
    assert_int_equal(passed_by(&ar, "a"), 4);
    /* Counters are read before a rule goes. */
    k.passed = 7;
    put_rule(&s, "b", "{\"from\":[\"hub\"],\"to\":[\"members\"],\"allow\":[\"any\"]}");
    assert_int_equal(snapshot_delete(&s, &rule_kind, "a", NULL), 0);
    access_rules_apply(&ar, "weft0", &k.engine, &s, 21 * SEC);
    assert_int_equal(k.n_set, 3);
    assert_int_equal(passed_by(&ar, "a"), 7);
    /* One that was started anew without our knowing. */
    free(k.lines);
    k.lines = NULL;
    access_rules_count(&ar, "weft0", &k.engine, &s, 40 * SEC);
    assert_int_equal(k.n_set, 4);
    assert_non_null(strstr(k.lines, "\nrule b\n"));
    /* The packet filter is there at last, and the engine lets all pass. */
    has_filter = true;
    access_rules_apply(&ar, "weft0", &k.engine, &s, 140 * SEC);
    assert_int_equal(k.n_set, 5);
    assert_null(k.lines);
    access_rules_deinit(&ar);
    snapshot_deinit(&s);
}

static void test_an_engine_that_cannot(void **state)
{
    struct kept k = {.engine.ops = &kept_ops, .is_unable = true};
    struct snapshot s = make_network(SELF);
    struct access_rules ar = {.fault = ERR_NULL};

    has_filter = false;
    put_rule(&s, "a", "{\"from\":[\"members\"],\"to\":[\"members\"],\"allow\":[\"tcp/22\"]}");
    access_rules_apply(&ar, "weft0", &k.engine, &s, SEC);
    assert_string_equal(err_text(&ar.fault), "there is none, and it cannot");
    assert_false(access_rules_are_enforced(&ar));
    k.is_unable = false;
    access_rules_apply(&ar, "weft0", &k.engine, &s, 2 * SEC);
    assert_int_equal(ar.fault.code, 0);
    /* The last rule goes. */
    assert_int_equal(snapshot_delete(&s, &rule_kind, "a", NULL), 0);
    access_rules_apply(&ar, "weft0", &k.engine, &s, 3 * SEC);
    assert_null(k.lines);
    assert_null(ar.own.lines);
    /* What an earlier agent has left. */
    assert_int_equal(keep(&k.engine, "refuse in\n", 1, NULL), 0);
    access_rules_tell(&ar, &k.engine);
    assert_null(k.lines);
    access_rules_deinit(&ar);
    snapshot_deinit(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_rules),
        cmocka_unit_test(test_what_is_never_refused),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_jobs_of_a_hub),
        cmocka_unit_test(test_an_engine_is_told),
        cmocka_unit_test(test_an_engine_that_cannot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
