/*
 * test-ras-status.c - which ranks are missed, by what NCCL's RAS answers.
 *
 * The answers have the form that NCCL 2.28.7 to 2.32 gives them, as in its source
 * (src/ras/client_support.cc).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "health/ras_status.h"
#include "mesh/object/fields.h"

#define HEAD "SERVER PROTOCOL 2\nOK\nOK\n"
#define JOB(communicators)                                                                         \
    HEAD "{\n  \"nccl_version\": \"2.29.7\",\n  \"communicators\": [" communicators                \
         "],\n  \"ras\": {\"timeouts_count\": 0}\n}\n"
#define COMMUNICATOR(size, ranks, missing)                                                         \
    "{\"hash\": \"0x1\", \"size\": " #size ", \"ranks\": [" ranks                                  \
    "], \"missing_ranks\": [" missing "]}"
#define RANK(n, counts)                                                                            \
    "{\"rank\": " #n ", \"host\": \"10.77.0." #n "\", \"pid\": 10" #n                              \
    ", \"status\": {\"init_state\": 0}, \"collective_counts\": {" counts "}}"

static bool is_own(const void *arg, uint32_t pid)
{
    return pid == *(const uint32_t *)arg;
}

/* To a command one process of which is number @own. */
static struct ras_status decode(const char *answer, uint32_t own)
{
    struct ras_status s = {.n_started = UINT64_MAX};
    struct err e = ERR_NULL;

    if (ras_status_decode(&s, answer, strlen(answer), is_own, &own, &e) != 0)
        fail_msg("%s", e.text);
    return s;
}

static void test_all_is_well(void **state)
{
    struct ras_status s = decode(
        JOB(COMMUNICATOR(2, RANK(1, "\"AllReduce\": 7") "," RANK(2, "\"AllReduce\": 7"), "")), 101);

    assert_int_equal(s.ranks.n, 0);
    assert_int_equal(s.n_started, 14);
    assert_true(s.is_ours && s.is_first);
    s = decode(
        JOB(COMMUNICATOR(2, RANK(1, "\"AllReduce\": 7") "," RANK(2, "\"AllReduce\": 7"), "")), 102);
    assert_true(s.is_ours && !s.is_first);
    s = decode(JOB(""), 101);
    assert_true(!s.is_ours && !s.is_first && s.n_started == 0);
}

static void test_one_is_behind(void **state)
{
    struct ras_status s =
        decode(JOB(COMMUNICATOR(2, RANK(1, "\"AllGather\": 1") "," RANK(2, "\"AllGather\": 2"),
                   "") "," COMMUNICATOR(4,
                   RANK(1, "\"Broadcast\": 3, \"AllReduce\": 512") "," RANK(
                       2, "\"Broadcast\": 3, \"AllReduce\": 512") "," RANK(3,
                       "\"Broadcast\": 3, \"AllReduce\": 510") "," RANK(4,
                       "\"Broadcast\": 3, \"AllReduce\": 511"),
                   "")),
            103);
    const struct ras_rank *r = &s.ranks.items[0];
    char text[IP_ADDR_TEXT_MAX];

    /* Of the greater of the two, where both have one. */
    assert_int_equal(s.ranks.n, 1);
    assert_int_equal(r->rank, 3);
    assert_int_equal(r->n_ranks, 4);
    assert_int_equal(r->pid, 103);
    assert_int_equal(r->n_waiting, 3);
    assert_int_equal(r->n_started, 510);
    assert_string_equal(r->operation, "AllReduce");
    assert_string_equal(ip_addr_format(&r->address, text), "10.77.0.3");
    assert_true(s.is_ours && !s.is_first);
}

/* What two ranks send each other differs by its nature; and where one alone has started something,
 * it is not the others that are missed. */
static void test_what_is_no_lag(void **state)
{
    struct ras_status s =
        decode(JOB(COMMUNICATOR(3,
                   RANK(1, "\"Send\": 1, \"Recv\": 9, \"SendRecv\": 4, \"AllReduce\": 8") "," RANK(
                       2, "\"Send\": 2, \"Recv\": 8, \"SendRecv\": 4, \"AllReduce\": 7") "," RANK(3,
                       "\"Send\": 3, \"Recv\": 7, \"SendRecv\": 5, \"AllReduce\": 7"),
                   "")),
            101);

    assert_int_equal(s.ranks.n, 0);
    assert_true(s.is_first);
}

static void test_one_does_not_answer(void **state)
{
    static const char *const states[] = {"\"unresponsive\": true, \"considered_dead\": false",
        "\"unresponsive\": false, \"considered_dead\": true",
        /* It has answered, and is not in that communicator yet. */
        "\"unresponsive\": false, \"considered_dead\": false"};
    char answer[2048];

    for (unsigned i = 0; i < 3; i++) {
        struct ras_status s;

        /* Without a comma, as NCCL writes it up to 2.30. */
        (void)snprintf(answer, sizeof(answer),
            JOB(COMMUNICATOR(3, RANK(1, "\"AllReduce\": 7") "," RANK(2, "\"AllReduce\": 6"),
                "{\n \"rank\": 0,\n \"host\": \"unknown\",\n \"pid\": -1,\n \"nvml_dev\": 0\n"
                " \"status\": {%s}}")),
            states[i]);
        s = decode(answer, 101);
        assert_int_equal(s.ranks.n, 1);
        assert_int_equal(s.ranks.items[0].rank, i < 2 ? 0 : 2);
        assert_string_equal(s.ranks.items[0].operation, i < 2 ? "" : "AllReduce");
        if (i < 2)
            assert_true(s.ranks.items[0].pid == 0 && ip_addr_is_none(&s.ranks.items[0].address));
    }
}

static void test_no_more_than_fit(void **state)
{
    static char answer[65536];
    size_t len = (size_t)snprintf(
        answer, sizeof(answer), HEAD "{\"communicators\": [{\"size\": 40, \"ranks\": [");
    struct ras_status s;

    for (unsigned i = 0; i < 40; i++)
        len += (size_t)snprintf(answer + len, sizeof(answer) - len,
            "%s{\"rank\": %u, \"pid\": %u, \"collective_counts\": {\"Reduce\": %u}}",
            i > 0 ? "," : "", i, i + 1, i < 20 ? 4u : 5u);
    (void)snprintf(answer + len, sizeof(answer) - len, "]}]}");
    s = decode(answer, 1);
    assert_int_equal(s.ranks.n, RAS_RANKS_MAX);
    assert_int_equal(s.ranks.items[3].rank, 3);
    assert_int_equal(s.ranks.items[3].n_waiting, 20);
}

static void test_what_is_no_answer(void **state)
{
    static const struct {
        const char *answer;
        const char *words;
    } cases[] = {
        {"", "has closed before it had answered"},
        {"SERVER PROTOCOL 2\nOK\n", "has closed before it had answered"},
        {"SSH-2.0-OpenSSH_9.2\r\n", "answers \"SSH-2.0-OpenSSH_9.2?\" in place of \"SERVER"},
        {"SERVER PROTOCOL 2\nOK\nERROR: Unknown command SET FORMAT json\nNCCL version 2.24.3\n",
            "answers \"ERROR: Unknown command SET FORMAT json\" in place of \"OK\""},
        {HEAD "NCCL version 2.24.3\n", "answers no JSON: "},
        {HEAD "{\"communicators\": [\n", "answers no JSON: "},
        {HEAD "[]", "is not a JSON object"},
        {HEAD "{}", "\"communicators\" is missing"},
        {HEAD "{\"communicators\": [{\"size\": 0, \"ranks\": []}]}",
            "a communicator: \"size\" is not a whole number from 1 to 1000000"},
        {HEAD "{\"communicators\": [{\"size\": 1, \"ranks\": [{\"rank\": -1}]}]}",
            "a rank: \"rank\" is not a whole number"},
        {HEAD "{\"communicators\": [{\"size\": 1, \"ranks\": [{\"rank\": 1}]}]}",
            "a rank: \"collective_counts\" is missing"},
    };
    uint32_t own = 1;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ras_status s = {.n_started = 77};
        struct err e = ERR_NULL;

        assert_int_equal(
            ras_status_decode(&s, cases[i].answer, strlen(cases[i].answer), is_own, &own, &e),
            -EINVAL);
        if (!strstr(e.text, cases[i].words))
            fail_msg("\"%s\" is not in \"%s\"", cases[i].words, e.text);
        assert_int_equal(s.n_started, 77);
    }
}

static struct ras_ranks read_again(json_t *ras, int r)
{
    struct ras_ranks again = {.n = 0};
    json_t *json = json_pack("{s:o*}", "ras", ras);
    struct fields f = fields_make(json, "sample", NULL);

    ras_ranks_read(&again, &f, "ras");
    assert_int_equal(fields_end(&f), r);
    json_decref(json);
    return again;
}

static void test_as_the_hub_is_told(void **state)
{
    struct ras_ranks ranks = {.is_known = true, .n = 2, .still_ms = 12000};
    struct ras_ranks again;

    ranks.items[0] = (struct ras_rank){.rank = 3,
        .n_ranks = 8,
        .pid = 77,
        .n_waiting = 7,
        .n_started = 511,
        .operation = "AllReduce",
        .address = ip_addr_v4((const uint8_t[]){10, 77, 0, 3})};
    ranks.items[1] = (struct ras_rank){.rank = 5, .n_ranks = 8};
    again = read_again(ras_ranks_encode(&ranks), 0);
    assert_memory_equal(&again, &ranks, sizeof(ranks));
    assert_null(ras_ranks_encode(&(struct ras_ranks){.n = 0}));
    again = read_again(ras_ranks_encode(&(struct ras_ranks){.is_known = true}), 0);
    assert_true(again.is_known && again.n == 0);
    /* A hub takes no more than it has space for, and nothing that is not so. */
    assert_int_equal(
        read_again(
            json_pack("{s:i, s:[{}, {}, {}, {}, {}]}", "stillMilliseconds", 1, "ranks"), -EINVAL)
            .n,
        0);
    assert_int_equal(read_again(json_pack("{s:i, s:[{s:i, s:i, s:s}]}", "stillMilliseconds", 1,
                                    "ranks", "rank", 1, "ofRanks", 2, "address", "here"),
                         -EINVAL)
                         .n,
        0);
    assert_int_equal(
        read_again(json_pack("{s:i, s:[{s:i, s:i, s:s}]}", "stillMilliseconds", 1, "ranks", "rank",
                       1, "ofRanks", 2, "operation", "AnOperationOfALongLongName"),
            -EINVAL)
            .n,
        0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_well),
        cmocka_unit_test(test_one_is_behind),
        cmocka_unit_test(test_what_is_no_lag),
        cmocka_unit_test(test_one_does_not_answer),
        cmocka_unit_test(test_no_more_than_fit),
        cmocka_unit_test(test_what_is_no_answer),
        cmocka_unit_test(test_as_the_hub_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
