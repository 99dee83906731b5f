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
#include "measure/facts.h"
#include "measure/order.h"
#include "measure/result.h"

#define ID    "\"id\": \"000102030405060708090a0b0c0d0e0f\""
#define PROOF "00112233445566778899aabbccddeeff"

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

struct order_case {
    const char *text;
    const char *refused; /* a part of the sentence; NULL: it is taken */
};

static void assert_taken_or_refused(const struct order_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
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

static void test_bounds(void **state)
{
    static const struct order_case cases[] = {
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
        {"{\"op\": \"loss\", \"peer\": \"10.42.0.3\", \"datagrams\": 100000, "
         "\"perSecond\": 50000, \"ms\": 30000}",
            NULL},
        {"{\"op\": \"loss\", \"peer\": \"10.42.0.3\", \"datagrams\": 100001, "
         "\"perSecond\": 1, \"ms\": 1}",
            "\"datagrams\""},
        {"{\"op\": \"loss\", \"peer\": \"10.42.0.3\", \"datagrams\": 1, "
         "\"perSecond\": 50001, \"ms\": 1}",
            "\"perSecond\""},
        {"{\"op\": \"loss\", \"peer\": \"10.42.0.3\", \"datagrams\": 1, "
         "\"perSecond\": 0, \"ms\": 1}",
            "\"perSecond\""},
        {"{\"op\": \"loss\", \"peer\": \"10.42.0.3\", \"datagrams\": 1, "
         "\"perSecond\": 1, \"ms\": 30001}",
            "\"ms\""},
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

    assert_taken_or_refused(cases, sizeof(cases) / sizeof(*cases));
}

static void test_bounds_of_bursts(void **state)
{
    static const struct order_case cases[] = {
        {"{\"op\": \"burst\", \"peer\": \"10.42.0.3\", \"ms\": 1000, \"bytes\": 268435456}", NULL},
        {"{\"op\": \"burst\", \"peer\": \"10.42.0.3\", \"ms\": 1001, \"bytes\": 1}", "\"ms\""},
        {"{\"op\": \"burst\", \"peer\": \"10.42.0.3\", \"ms\": 1, \"bytes\": 268435457}",
            "\"bytes\""},
        {"{\"op\": \"burst\", \"peer\": \"10.42.0.3\", \"ms\": 1, \"bytes\": 1, \"tls\": 1}",
            "\"tls\""},
        {"{\"op\": \"burst\", \"peer\": \"10.42.0.3\", \"ms\": 1, \"bytes\": 1, "
         "\"bitsPerSecond\": 99999}",
            "\"bitsPerSecond\""},
        {"{\"op\": \"burst\", \"peer\": \"10.42.0.3\", \"ms\": 1, \"bytes\": 1, "
         "\"bitsPerSecond\": 100000, \"atOnce\": 33}",
            "\"atOnce\""},
        {"{\"op\": \"burst\", \"peer\": \"10.42.0.3\", \"ms\": 1, \"bytes\": 1, "
         "\"bitsPerSecond\": 1000000000000}",
            NULL},
        {"{\"op\": \"catch\", " ID ", \"ms\": 1000, \"size\": 9216, \"port\": 65535, "
         "\"mapped\": 0}",
            NULL},
        {"{\"op\": \"catch\", " ID ", \"ms\": 1001, \"size\": 56, \"port\": 1, \"mapped\": 0}",
            "\"ms\""},
        {"{\"op\": \"catch\", " ID ", \"ms\": 1, \"size\": 55, \"port\": 1, \"mapped\": 0}",
            "\"size\""},
        {"{\"op\": \"catch\", " ID ", \"ms\": 1, \"size\": 9217, \"port\": 1, \"mapped\": 0}",
            "\"size\""},
        {"{\"op\": \"catch\", " ID ", \"ms\": 1, \"size\": 56, \"port\": 0, \"mapped\": 0}",
            "\"port\""},
        {"{\"op\": \"catch\", " ID ", \"ms\": 1, \"size\": 56, \"port\": 1, \"mapped\": 65536}",
            "\"mapped\""},
    };

    assert_taken_or_refused(cases, sizeof(cases) / sizeof(*cases));
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
        "{\"op\": \"session\", " ID ", \"purpose\": \"bench\", \"seconds\": 30, "
        "\"proof\": \"" PROOF "\"}",
        "{\"op\": \"facts\"}",
        "{\"op\": \"names\", \"names\": [{\"name\": \"n3\", \"address\": \"10.42.0.3\"}]}",
        "{\"op\": \"warm\", \"addresses\": [\"10.42.0.3\", \"10.42.0.4\"]}",
        "{\"op\": \"light\", \"peer\": \"10.42.0.3\", \"pings\": 20}",
        "{\"op\": \"bulk\", \"peer\": \"10.42.0.3\", \"streams\": 4, \"ms\": 2000, "
        "\"bytes\": 9000000000, \"way\": \"in\", \"underlay\": true}",
        "{\"op\": \"bulk\", \"peer\": \"10.42.0.3\", \"streams\": 4, \"ms\": 2000, "
        "\"bytes\": 1, \"way\": \"out\"}",
        "{\"op\": \"loss\", \"peer\": \"10.42.0.3\", \"datagrams\": 10000, "
        "\"perSecond\": 2500, \"ms\": 4000}",
        "{\"op\": \"heard\"}",
        "{\"op\": \"underlay\"}",
        "{\"op\": \"allreduce\", \"addresses\": [\"10.42.0.2\", \"10.42.0.3\"], \"rank\": 1, "
        "\"bytes\": 4096, \"repeats\": 5, \"ms\": 1000, \"algorithm\": \"tree\"}",
        "{\"op\": \"sink\", " ID ", \"ms\": 1000}",
        "{\"op\": \"source\", " ID ", \"ms\": 1000, \"bytes\": 17}",
        "{\"op\": \"hop\", " ID ", \"rank\": 7}",
        "{\"op\": \"port\", " ID "}",
        "{\"op\": \"burst\", \"peer\": \"10.42.0.3\", \"ms\": 100, \"bytes\": 16777216, "
        "\"underlay\": true, \"tls\": true}",
        "{\"op\": \"burst\", \"peer\": \"10.42.0.3\", \"ms\": 250, \"bytes\": 625000, "
        "\"underlay\": true, \"bitsPerSecond\": 20000000, \"atOnce\": 3}",
        "{\"op\": \"catch\", " ID ", \"ms\": 100, \"size\": 1392, \"port\": 40001, "
        "\"mapped\": 1025, \"underlay\": true}",
    };

    _Static_assert(sizeof(texts) / sizeof(*texts) == ORDER_N + 2,
        "each kind but none, and three of them twice");
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

static json_t *idle_again(const json_t *json, struct err *e)
{
    struct idle_test l;

    return idle_test_decode(&l, json, e) == 0 ? idle_test_encode(&l) : NULL;
}

static json_t *bulk_again(const json_t *json, struct err *e)
{
    struct bulk b;

    return bulk_decode(&b, json, e) == 0 ? bulk_encode(&b) : NULL;
}

static json_t *loss_again(const json_t *json, struct err *e)
{
    struct loss_test l;

    return loss_test_decode(&l, json, e) == 0 ? loss_test_encode(&l) : NULL;
}

static json_t *burst_again(const json_t *json, struct err *e)
{
    struct burst b;

    return burst_decode(&b, json, e) == 0 ? burst_encode(&b) : NULL;
}

static json_t *caught_again(const json_t *json, struct err *e)
{
    struct caught c;

    return caught_decode(&c, json, e) == 0 ? caught_encode(&c) : NULL;
}

static json_t *allreduce_again(const json_t *json, struct err *e)
{
    struct allreduce rd;

    return allreduce_decode(&rd, json, e) == 0 ? allreduce_encode(&rd) : NULL;
}

static json_t *facts_again(const json_t *json, struct err *e)
{
    static struct facts f;

    return facts_decode(&f, json, e) == 0 ? facts_encode(&f) : NULL;
}

/* What a member measured and what it is, whole; a field that an older one does not say is added by
 * the reader. */
static const struct answer {
    json_t *(*again)(const json_t *json, struct err *e); /* read and written; NULL: refused */
    const char *text;
    const char *added; /* in front of the closing brace */
} idle_answer = {idle_again,
    "{'path': 'relay', 'sent': 1000000, 'heard': 49, 'back': 48, 'rttMinUs': 100, "
    "'rttMedianUs': 120, 'rttP99Us': 600000000, 'clockUs': -7, 'clockErrorUs': 51, "
    "'routeMtu': 65535, 'packetMax': 1420, 'connected': true, 'mss': 1380, 'transferred': false, "
    "'why': 'it is slow'}",
    ", 'congestion': '', 'tcpRestarts': true"},
  bulk_answer = {bulk_again,
      "{'out': {'bytes': 1125899906842624, 'bitsPerSecond': 2, 'retransmits': 2147483647}, "
      "'in': {'bytes': 0, 'bitsPerSecond': 3, 'retransmits': 0}, 'via': '10.42.0.3', 'why': ''}",
      ""},
  loss_answer = {loss_again, "{'sent': 1000000, 'heard': 9990, 'ms': 600000, 'why': ''}", ""},
  burst_answer = {burst_again,
      "{'rttMinUs': 100, 'rttMedianUs': 600000000, 'size': 1392, 'sent': 10000000, 'heard': 9990, "
      "'bitsPerSecond': 1125899906842624, 'train': {'verdict': 'line', 'bitsPerSecond': 20000000, "
      "'sentBitsPerSecond': 30000001}, 'via': '203.0.113.2', 'why': ''}",
      ""},
  caught_answer = {caught_again,
      "{'heard': 10000000, 'bitsPerSecond': 5, 'missed': 3, 'marks': [[0, 0, 1], [600000000, 32, "
      "9999999]]}",
      ""},
  old_burst_answer = {burst_again,
      "{'rttMinUs': 1, 'rttMedianUs': 2, 'size': 1392, 'sent': 1, 'heard': 1, 'bitsPerSecond': 7, "
      "'via': '', 'why': ''}",
      ", 'train': {'verdict': 'nothing', 'bitsPerSecond': 0, 'sentBitsPerSecond': 0}"},
  old_caught_answer = {caught_again, "{'heard': 9, 'bitsPerSecond': 5}", ", 'missed': 0"},
  allreduce_answer = {allreduce_again,
      "{'elapsedNs': 600000000000, 'repeats': 3, 'correct': true, 'why': ''}", ""},
  facts_answer = {facts_again,
      "{'versions': {'weft': '0.1.0', 'kernel': '6.1', 'python': '3.11', 'torch': '', 'nccl': ''}, "
      "'nofile': [1024, 9223372036854775807], 'memlock': 9223372036854775807, 'rdma': false, "
      "'tcpBuffers': [1, 2], 'interface': 'weft0', 'address': '10.42.0.2', 'hostAddress': '::', "
      "'ncclIfname': '', 'ncclFamily': 'AF_INET', 'traffic': 5, 'jobs': 4294967295, "
      "'interfaces': [{'name': 'weft0', 'address': 'fd00::1', 'running': true}]}",
      ", 'tcpRestarts': true, 'countsLoss': false, 'countsBursts': false, 'hostname': ''"};

/* @text with @part, which is in it, made @by; NULL: as it is. Quotes are single. */
static json_t *make_answer(const char *text, const char *part, const char *by)
{
    char changed[1024];
    const char *at = part ? strstr(text, part) : text + strlen(text);
    json_t *json;

    assert_non_null(at);
    (void)snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, by,
        at + (part ? strlen(part) : 0));
    for (char *p = changed; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    json = json_loads(changed, 0, NULL);
    if (!json)
        fail_msg("no JSON: %s", changed);
    return json;
}

static void test_answers_there_and_back(void **state)
{
    static const struct answer *const answers[] = {&idle_answer, &bulk_answer, &loss_answer,
        &burst_answer, &caught_answer, &old_burst_answer, &old_caught_answer, &allreduce_answer,
        &facts_answer};

    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        const struct answer *a = answers[i];
        json_t *before = make_answer(a->text, NULL, "");
        json_t *added = make_answer("{'it': 0}", "'it': 0", *a->added ? a->added + 2 : "");
        struct err e = ERR_NULL;
        json_t *after = a->again(before, &e);

        assert_string_equal(e.text, "");
        (void)json_object_update(before, added);
        if (!json_equal(before, after))
            fail_msg("%s became %s", a->text, json_dumps(after, 0));
        json_decref(before);
        json_decref(added);
        json_decref(after);
    }
}

/* Numbers of a member are shown, and its texts are copied: none is beyond its bounds. */
static void test_answer_bounds(void **state)
{
    static const struct {
        const struct answer *of;
        const char *part;
        const char *by;
        const char *refused; /* a part of the sentence */
    } cases[] = {
        {&idle_answer, "'sent': 1000000", "'sent': 1000001",
            "\"sent\" is not a whole number from 0"},
        {&idle_answer, "'heard': 49, ", "", "\"heard\" is missing"},
        {&idle_answer, "600000000,", "600000001,", "\"rttP99Us\""},
        {&idle_answer, "-7", "-7.5", "\"clockUs\" is no integer"},
        {&idle_answer, "65535", "65536", "\"routeMtu\""},
        {&idle_answer, "'relay'", "'sixteen-letters-'", "\"path\""},
        {&idle_answer, "'it is slow'", "'\\u001b[2J'", "\"why\""},
        {&idle_answer, "true,", "1,", "\"connected\" is neither"},
        {&bulk_answer, "1125899906842624", "1125899906842625", "out: \"bytes\""},
        {&bulk_answer, "2147483647", "2147483648", "out: \"retransmits\""},
        {&bulk_answer, "{'bytes': 0, 'bitsPerSecond': 3, 'retransmits': 0}", "7",
            "\"in\" is not an object"},
        {&bulk_answer, "'bitsPerSecond': 3, ", "", "in: \"bitsPerSecond\" is missing"},
        {&loss_answer, "1000000", "1000001", "\"sent\" is not a whole number from 0"},
        {&loss_answer, "'heard': 9990, ", "", "\"heard\" is missing"},
        {&loss_answer, "600000", "600001", "\"ms\""},
        {&burst_answer, "10000000", "10000001", "\"sent\" is not a whole number from 0"},
        {&burst_answer, "1392", "65536", "\"size\""},
        {&burst_answer, "1125899906842624", "-1", "\"bitsPerSecond\""},
        {&burst_answer, "'line'", "'lines'", "train: \"verdict\""},
        {&burst_answer, "30000001", "1125899906842625", "train: \"sentBitsPerSecond\""},
        {&caught_answer, "10000000", "10000001", "\"heard\""},
        {&caught_answer, "9999999", "10000001", "mark 1 of \"marks\""},
        {&caught_answer, "600000000", "600000001", "mark 1 of \"marks\""},
        {&caught_answer, "[0, 0, 1]", "[0, -1, 1]", "mark 0 of \"marks\""},
        {&caught_answer, "[0, 0, 1]", "[0, 0]", "mark 0 of \"marks\""},
        {&caught_answer, "[0, 0, 1]", "0", "mark 0 of \"marks\""},
        {&caught_answer, "[0, 0, 1]", "[0, 0, 1.5]", "mark 0 of \"marks\""},
        {&caught_answer, "'missed': 3", "'missed': 10000001", "\"missed\""},
        {&caught_answer, ", 'bitsPerSecond': 5", "", "\"bitsPerSecond\" is missing"},
        {&allreduce_answer, "600000000000", "600000000001", "\"elapsedNs\""},
        {&allreduce_answer, "600000000000", "-1", "\"elapsedNs\""},
        {&facts_answer, "'kernel': '6.1', ", "", "versions: \"kernel\" is missing"},
        {&facts_answer, "[1024, 9223372036854775807]", "[1024]",
            "\"nofile\" is not an array of 2 to 2"},
        {&facts_answer, "[1, 2]", "[1, -2]", "\"tcpBuffers\" is not two numbers"},
        {&facts_answer, "'10.42.0.2'", "'gpu-1'", "\"address\" is \"gpu-1\", which is no address"},
        {&facts_answer, "4294967295", "4294967296", "\"jobs\""},
        {&facts_answer, "'fd00::1'", "''", "an interface: \"address\""},
        {&facts_answer, ", 'running': true", "", "an interface: \"running\" is missing"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *json = make_answer(cases[i].of->text, cases[i].part, cases[i].by);
        struct err e = ERR_NULL;

        assert_null(cases[i].of->again(json, &e));
        if (!strstr(e.text, cases[i].refused))
            fail_msg("case %zu: \"%s\" is not in \"%s\"", i, cases[i].refused, e.text);
        json_decref(json);
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
        cmocka_unit_test(test_bounds_of_bursts),
        cmocka_unit_test(test_long_lists),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_answers_there_and_back),
        cmocka_unit_test(test_answer_bounds),
        cmocka_unit_test(test_wrong_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
