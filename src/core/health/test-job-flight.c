/* test-job-flight.c - a job that stands still, and what its nodes have of PyTorch's flight
 * recorder: two nodes that send each other something, with a rank each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "health/job_health.h"
#include "health/job_sample.h"

enum { A, B, N };

#define EACH_S 3

static const char *const names[N] = {"a", "b"};

static struct world {
    struct job_health *health;
    struct findings findings;
    nsec_t now;
    int64_t at;
    uint64_t sent;
    struct flight_places flight[N];
    struct ras_ranks ras;
} w;

static int begin(void **state)
{
    w = (struct world){.now = 100 * NSEC_PER_SEC, .at = 1000000, .sent = 30000000};
    w.health = job_health_new();
    assert_non_null(w.health);
    return 0;
}

static int end(void **state)
{
    w.health = job_health_free(w.health);
    findings_deinit(&w.findings);
    return 0;
}

static void give(unsigned i)
{
    static struct job_sample s;

    s = (struct job_sample){.run = "train.1",
        .ms = EACH_S * 1000,
        .processes = {.n = 3},
        .flight = w.flight[i],
        .ras = w.ras,
        .n_peers = 1};
    s.peers[0].flow = (struct job_flow){.sent = w.sent,
        .received = w.sent,
        .busy_ms = w.sent > 0 ? 1000 : 0,
        .segments = (uint32_t)(w.sent / 1500)};
    (void)snprintf(s.peers[0].node, sizeof(s.peers[0].node), "%s", names[!i]);
    job_health_take(w.health, names[i], &s, w.now);
    /* What was written gets older. */
    for (unsigned k = 0; k < w.flight[i].n; k++)
        w.flight[i].items[k].age_ms += EACH_S * 1000;
}

/* So many samples of each, and a look each second. */
static void pass(unsigned n)
{
    for (unsigned k = 0; k < n * EACH_S; k++) {
        struct job_health_out out = {.job = "train", .findings = &w.findings};

        w.now += NSEC_PER_SEC;
        out.at = ++w.at;
        for (unsigned i = 0; k % EACH_S == 0 && i < N; i++)
            give(i);
        job_health_look(w.health, &out, w.now);
    }
}

/* Rank 0 of node a, and rank 1 of node b: both wait, but for whom @entered is too low. */
static void write_record(unsigned i, uint64_t entered, uint64_t waits_in)
{
    struct flight_places *f = &w.flight[i];

    *f = (struct flight_places){.is_known = true, .n = 1};
    f->items[0] = (struct flight_place){.key = 1,
        .rank = i,
        .n_ranks = 2,
        .entered = entered,
        .waits_in = waits_in,
        .wait_ms = 5000,
        .elements = waits_in > 0 ? 64 : 0,
        .group = "default_pg"};
    (void)snprintf(f->items[0].operation, sizeof(f->items[0].operation), "%s",
        waits_in > 0 ? "all_reduce" : "");
    (void)snprintf(f->items[0].type, sizeof(f->items[0].type), "%s", waits_in > 0 ? "Float" : "");
}

static void check_only(enum finding_code code, const char *subject, const char *text)
{
    const struct finding *f = findings_find(&w.findings, code, subject);

    if (!f)
        fail_msg("%s of %s is not found", finding_kinds[code].code, subject);
    assert_int_equal(w.findings.n, 1);
    if (text)
        assert_string_equal(f->text, text);
}

static void check_nothing(void)
{
    if (w.findings.n > 0)
        fail_msg("found: %s", w.findings.items[0]->text);
}

static void test_a_rank_that_has_not_entered(void **state)
{
    json_t *list;

    pass(10);
    w.sent = 0;
    pass(2);
    check_nothing();
    write_record(A, 12, 12);
    write_record(B, 11, 0);
    pass(3);
    check_only(FINDING_RANK_BEHIND, "train/b",
        "rank 1 of 2 on b has not entered all_reduce number 12 of default_pg (64 elements of "
        "Float), in which 1 other waits");
    assert_true(w.at - w.findings.items[0]->since >= 9);
    list = job_health_encode(w.health, "train", &w.findings, w.at);
    assert_int_equal(json_array_size(list), 1);
    json_decref(list);
    /* It goes on, and then stands still because of something else, for twice as long: what was
     * written is of before. */
    w.sent = 30000000;
    pass(1);
    check_nothing();
    w.sent = 0;
    pass(10);
    check_nothing();
    pass(5);
    check_only(FINDING_JOB_STUCK, "train", NULL);
}

static void test_a_rank_in_another_operation(void **state)
{
    pass(10);
    w.sent = 0;
    pass(2);
    write_record(A, 12, 12);
    write_record(B, 12, 12);
    w.flight[B].items[0].elements = 32;
    pass(3);
    check_only(FINDING_RANK_DIFFERS, "train/b",
        "rank 1 of 2 on b waits in all_reduce number 12 of default_pg (32 elements of Float), and "
        "1 other in all_reduce number 12 of default_pg (64 elements of Float)");
}

/* All have entered the same: then it is not theirs, and is not said to be. */
static void test_a_job_that_is_stuck_all_the_same(void **state)
{
    pass(10);
    w.sent = 0;
    pass(2);
    write_record(A, 12, 12);
    write_record(B, 12, 12);
    pass(3);
    check_only(FINDING_JOB_STUCK, "train", NULL);
}

/* NCCL's RAS may say the same: it is said once, by who says more of it; and by the RAS when the
 * recorder says nothing in time. */
static void test_two_that_say_it(void **state)
{
    pass(10);
    w.ras = (struct ras_ranks){.is_known = true, .n = 1, .still_ms = 9000};
    w.ras.items[0] = (struct ras_rank){
        .rank = 1, .n_ranks = 2, .n_waiting = 1, .n_started = 11, .operation = "AllReduce"};
    w.flight[A] = w.flight[B] = (struct flight_places){.is_known = true};
    w.sent = 0;
    pass(5);
    check_nothing();
    write_record(A, 12, 12);
    write_record(B, 11, 0);
    pass(1);
    check_only(FINDING_RANK_BEHIND, "train/b", NULL);
    w.sent = 30000000;
    pass(1);
    check_nothing();
    w.sent = 0;
    pass(16);
    check_only(FINDING_NCCL_BEHIND, "train/a", NULL);
}

/* What goes over a fabric is not seen: then so long a wait says that it stands still. */
static void test_a_job_on_a_fabric(void **state)
{
    w.sent = 0;
    write_record(A, 12, 12);
    write_record(B, 11, 0);
    pass(3);
    check_nothing();
    write_record(A, 12, 12);
    write_record(B, 11, 0);
    w.flight[A].items[0].wait_ms = 130000;
    pass(1);
    check_only(FINDING_RANK_BEHIND, "train/b", NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_rank_that_has_not_entered),
        TEST(test_a_rank_in_another_operation),
        TEST(test_a_job_that_is_stuck_all_the_same),
        TEST(test_two_that_say_it),
        TEST(test_a_job_on_a_fabric),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
