/* test-edge-parts.c - what is kept of a writer's reports, and what follows from both ends'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/edge_status.h"
#include "mesh/object/mesh_edge.h"

#define AT 1790000000

static int decode(struct edge_parts *ret, enum edge_owner owner, const char *text, struct err *e)
{
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    int r;

    assert_non_null(json);
    *ret = (struct edge_parts){.owner = owner};
    r = edge_parts_decode(ret, json, AT, e);
    json_decref(json);
    return r;
}

static void test_refusals(void **state)
{
    static const struct {
        enum edge_owner owner;
        const char *in;
        const char *says;
    } cases[] = {
        {EDGE_OWNER_AGENT, "{\"b\":7}", "the edge to \"b\": is not a JSON object"},
        {EDGE_OWNER_AGENT, "{\"b\":{\"path\":7}}", "the edge to \"b\": \"path\" is not a string"},
        {EDGE_OWNER_AGENT, "{\"b\":{\"endpoint\":\"x\"}}",
            "the edge to \"b\": \"endpoint\": \"x\" is not ADDRESS:PORT"},
        {EDGE_OWNER_AGENT, "{\"b\":{\"alarm\":1}}",
            "the edge to \"b\": \"alarm\" is neither true nor false"},
        {EDGE_OWNER_AGENT, "{\"b\":{\"lossIn\":0.1}}",
            "the edge to \"b\": \"lossIn\" is not an object"},
        {EDGE_OWNER_AGENT, "{\"b\":{\"lossIn\":{\"packets\":5}}}",
            "the edge to \"b\": \"lost\" is missing"},
        {EDGE_OWNER_AGENT,
            "{\"b\":{\"lossIn\":{\"packets\":5,\"lost\":6,\"seconds\":1,\"periods\":1}}}",
            "the edge to \"b\": \"lost\" is not a whole number from 0 to 5"},
        {EDGE_OWNER_AGENT,
            "{\"b\":{\"lossIn\":{\"packets\":5,\"lost\":1,\"seconds\":1,\"periods\":1,"
            "\"usualPpm\":1000001}}}",
            "the edge to \"b\": \"usualPpm\" is not a whole number from 0 to 1000000"},
        {EDGE_OWNER_AGENT, "{\"b\":{\"rtt\":20}}", "the edge to \"b\": \"rtt\" is not an object"},
        {EDGE_OWNER_AGENT, "{\"b\":{\"rtt\":{\"p50Ms\":20}}}",
            "the edge to \"b\": \"samples\" is missing"},
        {EDGE_OWNER_AGENT, "{\"b\":{\"rtt\":{\"p99Ms\":60000.1,\"samples\":9}}}",
            "the edge to \"b\": \"p99Ms\" is not a number of milliseconds from 0 to 60000"},
        {EDGE_OWNER_PROBE, "{\"b\":{\"tunnel\":\"maybe\"}}",
            "the edge to \"b\": \"tunnel\" is \"maybe\", and one of unknown, reached, silent is "
            "allowed"},
        {EDGE_OWNER_PROBE, "{\"b\":{\"tunnelRttMs\":-1}}",
            "the edge to \"b\": \"tunnelRttMs\" is not a number of milliseconds from 0 to 60000"},
        {EDGE_OWNER_PROBE, "{\"b\":{\"underlayRttMs\":60000.1}}",
            "the edge to \"b\": \"underlayRttMs\" is not a number of milliseconds from 0 to 60000"},
        {EDGE_OWNER_PROBE, "{\"b\":{\"tunnelRttMs\":\"1\"}}",
            "the edge to \"b\": \"tunnelRttMs\" is not a number of milliseconds from 0 to 60000"},
        {EDGE_OWNER_PROBE, "{\"b\":{\"underlay\":\"maybe\"}}",
            "the edge to \"b\": \"underlay\" is \"maybe\", and one of unknown, reached, silent is "
            "allowed"},
        {EDGE_OWNER_PROBE, "{\"b\":{\"underlayEndpoint\":\"x\"}}",
            "the edge to \"b\": \"underlayEndpoint\": \"x\" is not ADDRESS:PORT"},
        {EDGE_OWNER_PROBE, "{\"b\":{\"underlayHeard\":1}}",
            "the edge to \"b\": \"underlayHeard\" is neither true nor false"},
        {EDGE_OWNER_AGENT, "{\"b\":{\"publicKey\":\"x\"}}",
            "the edge to \"b\": \"publicKey\" is not a public key: 44 characters of base64"},
        {EDGE_OWNER_AGENT, "{\"b\":{\"fellAt\":-1}}",
            "the edge to \"b\": \"fellAt\" is not a whole number from 0 to 9223372036854775807"},
        {EDGE_OWNER_AGENT, "{\"B\":{}}",
            "node name \"B\" is not a name: 1 to 63 of a-z, 0-9 and '-', not first or last a '-'"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct edge_parts p;
        struct err e = ERR_NULL;

        assert_int_equal(decode(&p, cases[i].owner, cases[i].in, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].says);
    }
}

#define KEY "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

/* All that a part says, and a part that says nothing, come back. */
static void test_parts_come_back(void **state)
{
    static const struct {
        enum edge_owner owner;
        const char *text;
    } cases[] = {
        {EDGE_OWNER_AGENT,
            "{\"b\": {\"path\": \"stream\", \"handshakeAgeSeconds\": 0, \"endpoint\": "
            "\"192.0.2.7:51820\", \"publicKey\": \"" KEY "\", \"alarm\": true, "
            "\"lossIn\": {\"lost\": 12, \"packets\": 12000, \"seconds\": 58, \"periods\": 6, "
            "\"usualPpm\": 0, \"isWorse\": true}, "
            "\"rtt\": {\"p50Ms\": 20.5, \"p99Ms\": 60000.0, \"jitterMs\": 0.25, \"samples\": 8, "
            "\"usualMs\": 19.5}, "
            "\"fellAt\": 1789999999, \"error\": \"no engine\"}, \"c\": {}}"},
        {EDGE_OWNER_PROBE,
            "{\"b\": {\"tunnel\": \"reached\", \"tunnelRttMs\": 0.25, \"underlay\": \"silent\", "
            "\"underlayRttMs\": 60000.0, \"underlayEndpoint\": \"[2001:db8::7]:9\", "
            "\"underlayHeard\": true}, \"c\": {\"tunnel\": \"silent\", \"underlay\": "
            "\"unknown\"}}"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *json = json_loads(cases[i].text, 0, NULL);
        struct err e = ERR_NULL;
        struct edge_parts p;
        json_t *back;

        assert_int_equal(decode(&p, cases[i].owner, cases[i].text, &e), 0);
        assert_int_equal(p.n, 2);
        back = edge_parts_encode(&p, SIZE_MAX, AT);
        assert_true(json_equal(back, json));
        json_decref(back);
        json_decref(json);
        edge_parts_deinit(&p);
    }
}

/* A part that goes is marked, and a kind of path of a newer version is not reported. */
static void test_what_is_gone_or_not_known(void **state)
{
    struct err e = ERR_NULL;
    struct edge_parts p;
    json_t *json;

    assert_int_equal(
        decode(&p, EDGE_OWNER_AGENT, "{\"b\": null, \"c\": {\"path\": \"tachyons\"}}", &e), 0);
    assert_true(edge_parts_find(&p, "b")->is_gone);
    assert_false(edge_parts_find(&p, "c")->is_gone);
    assert_int_equal(edge_parts_find(&p, "c")->said.path, PATH_KIND_N);
    json = edge_part_encode(edge_parts_find(&p, "b"), EDGE_OWNER_AGENT, AT);
    assert_true(json_is_null(json));
    json = edge_part_encode(edge_parts_find(&p, "c"), EDGE_OWNER_AGENT, AT);
    assert_int_equal(json_object_size(json), 0);
    json_decref(json);
    edge_parts_deinit(&p);
}

/* There is an end of what one writer may say; who is there already is still taken. */
static void test_too_many(void **state)
{
    enum { MOST = 16384 };
    struct edge_parts p = {.owner = EDGE_OWNER_PROBE};

    for (unsigned i = 0; i <= MOST; i++) {
        struct edge_part *part = calloc(1, sizeof(*part) + 16);

        (void)snprintf(part->peer, 16, "n%05u", i);
        assert_int_equal(edge_parts_put(&p, part), i < MOST ? 0 : -ENOSPC);
    }
    assert_int_equal(p.n, MOST);
    for (unsigned i = 0; i < 2; i++) {
        struct edge_part *part = calloc(1, sizeof(*part) + 16);

        (void)snprintf(part->peer, 16, "n00007");
        part->probed.rtt_us = 7 + i;
        assert_int_equal(edge_parts_put(&p, part), 0);
        assert_int_equal(edge_parts_find(&p, "n00007")->probed.rtt_us, 7 + i);
    }
    assert_int_equal(p.n, MOST);
    edge_parts_remove(&p, "n00003");
    edge_parts_remove(&p, "n00003");
    assert_int_equal(p.n, MOST - 1);
    assert_string_equal(p.items[2]->peer, "n00002");
    assert_string_equal(p.items[3]->peer, "n00004");
    assert_string_equal(p.items[MOST - 2]->peer, "n16383");
    edge_parts_deinit(&p);
    assert_int_equal(p.n, 0);
    assert_int_equal(p.owner, EDGE_OWNER_PROBE);
}

/* An age is kept as a time, so that it goes on by itself. */
static void test_ages_go_on(void **state)
{
    struct edge_parts p;
    struct err e = ERR_NULL;
    json_t *json;

    assert_int_equal(decode(&p, EDGE_OWNER_AGENT,
                         "{\"b\":{\"handshakeAgeSeconds\":4},\"c\":{\"handshakeAgeSeconds\":null},"
                         "\"d\":{}}",
                         &e),
        0);
    json = edge_parts_encode(&p, SIZE_MAX, AT + 10);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(json, "b"), "handshakeAgeSeconds")), 14);
    assert_true(json_is_null(json_object_get(json_object_get(json, "c"), "handshakeAgeSeconds")));
    assert_null(json_object_get(json_object_get(json, "d"), "handshakeAgeSeconds"));
    json_decref(json);
    edge_parts_deinit(&p);
}

/* As old as the clock or older is the first moment that there is; and nothing is younger than now.
 */
static void test_ages_beyond_the_clock(void **state)
{
    static const struct {
        const char *age;
        int64_t at;
        const char *words; /* NULL: it is taken */
    } cases[] = {{"0", AT, NULL}, {"1789999998", 2, NULL}, {"1789999999", 1, NULL},
        {"1790000000", 1, NULL}, {"3162240000", 1, NULL},
        {"3162240001", 0,
            "the edge to \"b\": \"handshakeAgeSeconds\" is not a whole number from 0 to "
            "3162240000"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;
        struct edge_parts p;
        char text[80];
        json_t *json;

        (void)snprintf(text, sizeof(text), "{\"b\":{\"handshakeAgeSeconds\":%s}}", cases[i].age);
        assert_int_equal(decode(&p, EDGE_OWNER_AGENT, text, &e), cases[i].words ? -EINVAL : 0);
        if (cases[i].words) {
            assert_string_equal(e.text, cases[i].words);
            continue;
        }
        assert_true(p.items[0]->said.has_handshake);
        assert_int_equal(p.items[0]->said.handshake_at, cases[i].at);
        for (int64_t later = -1; later <= 1; later++) {
            json = edge_part_encode(p.items[0], EDGE_OWNER_AGENT, cases[i].at + later);
            assert_int_equal(json_integer_value(json_object_get(json, "handshakeAgeSeconds")),
                later > 0 ? later : 0);
            json_decref(json);
        }
        edge_parts_deinit(&p);
    }
}

/* A round trip of no time is none that was measured. */
static void test_round_trips(void **state)
{
    struct err e = ERR_NULL;
    struct edge_parts p;
    json_t *json;
    char *text;

    assert_int_equal(
        decode(&p, EDGE_OWNER_PROBE, "{\"b\":{\"tunnelRttMs\":0,\"underlayRttMs\":0.001}}", &e), 0);
    assert_int_equal(p.items[0]->probed.rtt_us, 0);
    assert_int_equal(p.items[0]->probed.underlay_rtt_us, 1);
    json = edge_parts_encode(&p, SIZE_MAX, AT);
    text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(
        text, "{\"b\":{\"tunnel\":\"unknown\",\"underlay\":\"unknown\",\"underlayRttMs\":0.001}}");
    free(text);
    json_decref(json);
    edge_parts_deinit(&p);
}

/* Those in trouble have the room first. */
static void test_what_has_room(void **state)
{
    struct edge_parts p;
    struct err e = ERR_NULL;
    json_t *json;

    assert_int_equal(decode(&p, EDGE_OWNER_AGENT,
                         "{\"b\":{\"path\":\"direct\"},\"c\":{\"path\":\"relay\"},"
                         "\"z\":{\"path\":\"relay\",\"alarm\":true}}",
                         &e),
        0);
    json = edge_parts_encode(&p, 40, AT);
    assert_int_equal(json_object_size(json), 1);
    assert_non_null(json_object_get(json, "z"));
    json_decref(json);
    /* Exactly what it takes is enough, and what does not fit makes way for what does. */
    json = edge_parts_encode(&p, strlen("\"z\":{\"path\":\"relay\",\"alarm\":true},") + 1, AT);
    assert_int_equal(json_object_size(json), 1);
    assert_non_null(json_object_get(json, "z"));
    json_decref(json);
    json = edge_parts_encode(&p, strlen("\"z\":{\"path\":\"relay\",\"alarm\":true},"), AT);
    assert_int_equal(json_object_size(json), 1);
    assert_non_null(json_object_get(json, "b"));
    json_decref(json);
    edge_parts_deinit(&p);
}

/* Why a path is no better one is shown and not kept; since when it is there, the other way round.
 */
static void test_what_is_kept(void **state)
{
    struct err e = ERR_NULL;
    struct edge_parts p;
    json_t *shown;
    json_t *kept;

    assert_int_equal(decode(&p, EDGE_OWNER_AGENT,
                         "{\"b\":{\"path\":\"relay\",\"pathSince\":7,\"why\":\"its NAT\"}}", &e),
        0);
    assert_int_equal(p.items[0]->said.path_at, 7);
    shown = edge_part_encode(p.items[0], EDGE_OWNER_AGENT, AT);
    assert_string_equal(json_string_value(json_object_get(shown, "why")), "its NAT");
    assert_null(json_object_get(shown, "pathSince"));
    kept = edge_parts_encode(&p, SIZE_MAX, AT);
    assert_null(json_object_get(json_object_get(kept, "b"), "why"));
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(kept, "b"), "pathSince")), 7);
    json_decref(shown);
    json_decref(kept);
    edge_parts_deinit(&p);
}

/* Each of these is trouble, and goes before what is none. */
static void test_what_is_trouble(void **state)
{
    static const struct {
        enum edge_owner owner;
        const char *text;
        const char *first; /* NULL: none is trouble */
    } cases[] = {
        {EDGE_OWNER_AGENT, "{\"b\":{},\"c\":{\"alarm\":true}}", "c"},
        {EDGE_OWNER_AGENT, "{\"b\":{},\"c\":{\"error\":\"no\"}}", "c"},
        {EDGE_OWNER_AGENT, "{\"b\":{},\"c\":{\"fellAt\":7}}", "c"},
        {EDGE_OWNER_AGENT, "{\"b\":{},\"c\":{\"path\":\"relay\"}}", NULL},
        {EDGE_OWNER_PROBE, "{\"b\":{\"tunnel\":\"reached\"},\"c\":{\"tunnel\":\"silent\"}}", "c"},
        {EDGE_OWNER_PROBE, "{\"b\":{\"tunnel\":\"reached\"},\"c\":{\"underlay\":\"silent\"}}",
            NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;
        struct edge_parts p;
        json_t *json;

        assert_int_equal(decode(&p, cases[i].owner, cases[i].text, &e), 0);
        json = edge_parts_encode(&p, SIZE_MAX, AT);
        assert_int_equal(json_object_size(json), 2);
        assert_string_equal(
            json_object_iter_key(json_object_iter(json)), cases[i].first ? cases[i].first : "b");
        json_decref(json);
        edge_parts_deinit(&p);
    }
}

static void name_of(unsigned i, char buf[static 16])
{
    (void)snprintf(buf, 16, "n%u", i);
}

/* One after another, in an order that is none; then anew, without every third. */
static void test_thousands(void **state)
{
    enum { N = 10007 };
    struct edge_parts p = {.owner = EDGE_OWNER_AGENT};
    char name[16];

    for (unsigned i = 0; i < N; i++) {
        struct edge_parts one;
        char text[64];
        struct err e = ERR_NULL;

        name_of(i * 4099 % N, name);
        (void)snprintf(text, sizeof(text), "{\"%s\":{\"path\":\"relay\"}}", name);
        assert_int_equal(decode(&one, EDGE_OWNER_AGENT, text, &e), 0);
        assert_int_equal(edge_parts_put(&p, one.items[0]), 0);
        one.items[0] = NULL;
        edge_parts_deinit(&one);
    }
    assert_int_equal(p.n, N);
    for (unsigned i = 1; i < N; i++)
        assert_true(strcmp(p.items[i - 1]->peer, p.items[i]->peer) < 0);
    edge_parts_begin(&p);
    for (unsigned i = 0; i < N; i++) {
        name_of(i, name);
        if (i % 3 != 0)
            edge_parts_find(&p, name)->is_old = false;
    }
    edge_parts_end(&p);
    for (unsigned i = 0; i < N; i++) {
        name_of(i, name);
        assert_int_equal(edge_parts_find(&p, name) != NULL, i % 3 != 0);
    }
    edge_parts_remove(&p, "n1");
    assert_null(edge_parts_find(&p, "n1"));
    edge_parts_deinit(&p);
}

static void test_sequence(void **state)
{
    struct edge_sequence s = {.run = 0};

    /* A hub that was started anew knows of no run. */
    assert_false(edge_sequence_takes(&s, 7, 4, false));
    assert_true(edge_sequence_takes(&s, 7, 5, true));
    assert_true(edge_sequence_takes(&s, 7, 6, false));
    /* Its answer was lost. */
    assert_true(edge_sequence_takes(&s, 7, 6, false));
    /* One between was lost; one of before; one of another run. */
    assert_false(edge_sequence_takes(&s, 7, 8, false));
    assert_false(edge_sequence_takes(&s, 7, 5, false));
    assert_false(edge_sequence_takes(&s, 8, 7, false));
    assert_true(edge_sequence_takes(&s, 8, 1, true));
    assert_false(edge_sequence_takes(&s, 7, 7, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_parts_come_back),
        cmocka_unit_test(test_what_is_gone_or_not_known),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_what_is_kept),
        cmocka_unit_test(test_what_is_trouble),
        cmocka_unit_test(test_ages_go_on),
        cmocka_unit_test(test_ages_beyond_the_clock),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_what_has_room),
        cmocka_unit_test(test_thousands),
        cmocka_unit_test(test_sequence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
