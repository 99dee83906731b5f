/* test-job-sample.c - a job's sample as JSON, there and back, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "health/job_sample.h"

static struct job_sample sample;
static struct job_sample read_again;

static int begin(void **state)
{
    sample = (struct job_sample){.run = "train.1",
        .command = "x",
        .ms = 3001,
        .processes = {9, 1, 2500, 1980, 40, 1000, 333},
        .progress = {8, 120, 7, 2100},
        .n_peers = 2};
    assert_int_equal(ip_addr_parse(&sample.peers[0].address, "10.42.0.3", NULL), 0);
    assert_int_equal(ip_addr_parse(&sample.peers[1].address, "fd5a::4", NULL), 0);
    sample.peers[0].flow =
        (struct job_flow){UINT64_C(1) << 40, 7, 3001, 12, 4000, 3, 65536, 1 << 20};
    nccl_faults_note(&sample.nccl, NCCL_FAULT_CLOSED, "Connection closed by remote peer");
    memset(&read_again, 0xff, sizeof(read_again));
    return 0;
}

static void test_there_and_back(void **state)
{
    json_t *json = job_sample_encode(&sample);
    struct err e = ERR_NULL;

    assert_non_null(json);
    assert_int_equal(job_sample_decode(&read_again, json, &e), 0);
    assert_string_equal(read_again.run, sample.run);
    assert_string_equal(read_again.command, sample.command);
    assert_int_equal(read_again.ms, sample.ms);
    assert_int_equal(read_again.n_peers, 2);
    assert_memory_equal(&read_again.processes, &sample.processes, sizeof(sample.processes));
    assert_memory_equal(&read_again.progress, &sample.progress, sizeof(sample.progress));
    assert_memory_equal(&read_again.nccl, &sample.nccl, sizeof(sample.nccl));
    for (unsigned i = 0; i < 2; i++) {
        assert_true(ip_addr_equal(&read_again.peers[i].address, &sample.peers[i].address));
        assert_memory_equal(
            &read_again.peers[i].flow, &sample.peers[i].flow, sizeof(struct job_flow));
        assert_string_equal(read_again.peers[i].node, "");
    }
    json_decref(json);
}

static void check_refused(json_t *json, const char *words)
{
    struct err e = ERR_NULL;

    assert_true(job_sample_decode(&read_again, json, &e) < 0);
    if (!strstr(err_text(&e), words))
        fail_msg("\"%s\" is not in \"%s\"", words, err_text(&e));
    assert_int_equal(read_again.ms, UINT32_MAX);
    json_decref(json);
}

static json_t *with(const char *name, json_t *value)
{
    json_t *json = job_sample_encode(&sample);

    (void)json_object_set_new(json, name, value);
    return json;
}

static json_t *with_in(const char *where, const char *name, json_t *value)
{
    json_t *json = job_sample_encode(&sample);
    json_t *in = json_object_get(json, where);

    in = json_is_array(in) ? json_array_get(in, 0) : in;
    (void)json_object_set_new(in, name, value);
    return json;
}

static void test_what_is_refused(void **state)
{
    json_t *peers = json_array();

    for (unsigned i = 0; i <= JOB_SAMPLE_PEERS_MAX; i++)
        (void)json_array_append_new(peers, json_object());
    check_refused(NULL, "sample: is not a JSON object");
    check_refused(json_array(), "sample: is not a JSON object");
    check_refused(with("run", json_string("")), "\"run\"");
    check_refused(with("milliseconds", json_integer(0)), "\"milliseconds\"");
    check_refused(with("milliseconds", json_integer(JOB_SAMPLE_MS_MAX + 1)), "\"milliseconds\"");
    check_refused(with("processes", json_null()), "\"processes\" is missing");
    check_refused(with("peers", json_integer(3)), "\"peers\"");
    check_refused(with("peers", peers), "\"peers\"");
    check_refused(with_in("processes", "stopped", json_integer(-1)), "processes: \"stopped\"");
    check_refused(with_in("processes", "runningThousandths", json_integer(1001)),
        "processes: \"runningThousandths\"");
    check_refused(with_in("progress", "ranks", json_integer(0)), "progress: \"ranks\"");
    check_refused(with_in("progress", "commMilliseconds", json_integer(3002)),
        "3002 ms in collectives are more than the 3001 ms of the sample");
    check_refused(with("nccl", json_object()), "\"nccl\"");
    check_refused(with_in("nccl", "count", json_integer(0)), "an entry of \"nccl\": \"count\"");
    check_refused(with("ras", json_object()), "\"ras\": \"stillMilliseconds\" is missing");
    check_refused(with_in("peers", "address", json_string("10.42.0")),
        "\"address\" \"10.42.0\" is no IP address");
    check_refused(with_in("peers", "sentBytes", json_string("7")), "\"sentBytes\"");
    check_refused(
        with_in("peers", "windowMilliseconds", json_integer(3002)), "each is at most the next");
    check_refused(with_in("peers", "busyMilliseconds", json_integer(3002)),
        "12 ms with a full window of 3002 ms that were busy of 3001 ms");
}

static void test_ranks_that_do_not_say(void **state)
{
    json_t *json = with("progress", json_null());

    assert_int_equal(job_sample_decode(&read_again, json, NULL), 0);
    assert_int_equal(read_again.progress.n_ranks, 0);
    json_decref(json);
}

/* A newer `weft run` may say more. */
static void test_a_field_that_is_not_known(void **state)
{
    json_t *json = with("more", json_true());

    assert_int_equal(job_sample_decode(&read_again, json, NULL), 0);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_there_and_back, begin),
        cmocka_unit_test_setup(test_what_is_refused, begin),
        cmocka_unit_test_setup(test_ranks_that_do_not_say, begin),
        cmocka_unit_test_setup(test_a_field_that_is_not_known, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
