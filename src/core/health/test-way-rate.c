/* test-way-rate.c - a line that holds up a job as a finding of its way: which, when it begins, when
 * it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "health/finding.h"
#include "health/job_health.h"
#include "health/job_sample.h"
#include "health/way_rate.h"

#define N      3
#define EACH_S 3

static const char *const names[N] = {"a", "b", "c"};

/** A job of three nodes, each of which sends to the next one; and what is found of ways. */
static struct {
    struct job_health *health;
    struct findings of_job;
    struct findings of_ways;
    char changes[512]; /* of ways: "+CODE SUBJECT;", and "-" when it is over */
    nsec_t now;
    int64_t at;
    struct job_flow flow[N]; /* to the next one */
    struct job_processes processes[N];
} w;

static void set_healthy(void)
{
    for (unsigned i = 0; i < N; i++) {
        w.flow[i] = (struct job_flow){.sent = 24000000, .busy_ms = 800, .segments = 18000};
        w.processes[i] = (struct job_processes){.n = 1, .cpu = 400, .running = 400};
    }
}

/* b sends to c at 200 KB/s, and the others wait for it. */
static void slow_down_b(void)
{
    for (unsigned i = 0; i < N; i++)
        w.flow[i] = (struct job_flow){.sent = 580000, .busy_ms = 20, .segments = 400};
    w.flow[1].busy_ms = 2900;
    w.flow[1].repeated = 20;
}

static int begin(void **state)
{
    memset(&w, 0, sizeof(w));
    w.now = 100 * NSEC_PER_SEC;
    w.at = 1000000;
    w.health = job_health_new();
    assert_non_null(w.health);
    set_healthy();
    return 0;
}

static int end(void **state)
{
    w.health = job_health_free(w.health);
    findings_deinit(&w.of_job);
    findings_deinit(&w.of_ways);
    return 0;
}

static struct job_health_out out(void)
{
    return (struct job_health_out){.job = "train", .findings = &w.of_job, .at = w.at};
}

/* A finding_changed_fn. */
static void note_change(void *arg, const struct finding *f, bool is_over)
{
    size_t len = strlen(w.changes);

    (void)snprintf(w.changes + len, sizeof(w.changes) - len, "%c%s %s;", is_over ? '-' : '+',
        finding_kinds[f->code].code, f->subject);
}

/* A job_slow_fn. */
static void take(void *arg, const struct job_slow_line *line)
{
    way_rate_find(&w.of_ways, "train", line, w.at);
}

static void look_at_ways(void)
{
    findings_look(&w.of_ways, NULL);
    job_health_each_slow(w.health, w.now, take, NULL);
    findings_done(&w.of_ways, NULL, note_change, NULL);
}

static void give(unsigned i)
{
    static struct job_sample s;
    unsigned to = (i + 1) % N;
    unsigned from = (i + N - 1) % N;

    s = (struct job_sample){.ms = EACH_S * 1000, .processes = w.processes[i], .n_peers = 2};
    (void)snprintf(s.run, sizeof(s.run), "train.1");
    (void)snprintf(s.peers[0].node, sizeof(s.peers[0].node), "%s", names[to]);
    (void)snprintf(s.peers[1].node, sizeof(s.peers[1].node), "%s", names[from]);
    s.peers[0].flow = w.flow[i];
    s.peers[1].flow.received = w.flow[from].sent;
    job_health_take(w.health, names[i], &s, w.now);
}

/* So many seconds, with a look at each. */
static void pass(unsigned seconds)
{
    for (unsigned k = 0; k < seconds; k++) {
        struct job_health_out to = out();

        w.now += NSEC_PER_SEC;
        w.at++;
        for (unsigned i = 0; w.at % EACH_S == 0 && i < N; i++)
            give(i);
        job_health_look(w.health, &to, w.now);
        look_at_ways();
    }
}

static void test_a_slow_way(void **state)
{
    const struct finding *f;
    int64_t began;

    look_at_ways();
    pass(60);
    assert_string_equal(w.changes, "");
    began = w.at;
    slow_down_b();
    pass(10);
    /* The job's own finding comes first. */
    assert_non_null(findings_find(&w.of_job, FINDING_RANK_LINE_SLOW, "train/b"));
    assert_string_equal(w.changes, "");
    pass(10);
    assert_string_equal(w.changes, "+WEFT-RATE-003 b>c;");
    pass(100);
    f = findings_find(&w.of_ways, FINDING_WAY_SLOW, "b>c");
    assert_non_null(f);
    assert_string_equal(f->text,
        "what job train sends from b to c goes at 0.20 MB/s while there is something to send, and "
        "in the last hour went at 31 MB/s; 5.0 % of its segments are sent again");
    assert_non_null(strstr(f->fix, "On b: weft paths c says"));
    assert_non_null(strstr(f->fix, "weft get edges b c --history"));
    assert_in_range(f->since, began, began + 15);
    set_healthy();
    pass(10);
    assert_string_equal(w.changes, "+WEFT-RATE-003 b>c;-WEFT-RATE-003 b>c;");
}

/* A third of what was usual is slow, and half of it no more; between them it stays as it is. */
static void test_that_it_lasts(void **state)
{
    pass(60);
    slow_down_b();
    w.flow[1] = (struct job_flow){.sent = 32000000, .busy_ms = 2900, .segments = 24000};
    pass(40);
    assert_string_equal(w.changes, "");
    w.flow[1].sent = 26000000;
    pass(40);
    assert_string_equal(w.changes, "+WEFT-RATE-003 b>c;");
    w.flow[1].sent = 40000000;
    pass(40);
    assert_string_equal(w.changes, "+WEFT-RATE-003 b>c;");
    w.flow[1].sent = 46000000;
    pass(20);
    assert_string_equal(w.changes, "+WEFT-RATE-003 b>c;-WEFT-RATE-003 b>c;");
}

/* What has no traffic has no rate, and what is seldom asked to carry something holds up nobody. */
static void test_little_traffic(void **state)
{
    job_health_each_slow(NULL, w.now, take, NULL);
    pass(60);
    for (unsigned i = 0; i < N; i++)
        w.flow[i] = (struct job_flow){.sent = 0};
    pass(60);
    set_healthy();
    pass(60);
    w.flow[1] = (struct job_flow){.sent = 40000, .busy_ms = 200, .segments = 30};
    pass(60);
    assert_string_equal(w.changes, "");
}

/* Where a process wants a core, at either end, the job's part is found and not the way. */
static void test_a_busy_machine(void **state)
{
    for (unsigned i = 1; i < N; i++) {
        set_healthy();
        pass(60);
        slow_down_b();
        w.processes[i] = (struct job_processes){.n = 1, .cpu = 200, .running = 400};
        pass(40);
        assert_non_null(findings_find(&w.of_job, FINDING_RANK_LINE_SLOW, "train/b"));
        assert_string_equal(w.changes, "");
    }
    w.processes[N - 1].cpu = 300;
    pass(20);
    assert_string_equal(w.changes, "+WEFT-RATE-003 b>c;");
}

/* A cause that comes before it says why; and when the run is over nothing is slow. */
static void test_what_ends_it(void **state)
{
    struct job_health_out to = out();

    pass(60);
    slow_down_b();
    pass(30);
    w.processes[0].n_stopped = 1;
    w.processes[0].stopped_ms = 3000;
    pass(4);
    assert_string_equal(w.changes, "+WEFT-RATE-003 b>c;-WEFT-RATE-003 b>c;");
    w.processes[0].n_stopped = 0;
    pass(30);
    job_health_clear(w.health, &to);
    look_at_ways();
    assert_string_equal(
        w.changes, "+WEFT-RATE-003 b>c;-WEFT-RATE-003 b>c;+WEFT-RATE-003 b>c;-WEFT-RATE-003 b>c;");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_slow_way),
        TEST(test_that_it_lasts),
        TEST(test_little_traffic),
        TEST(test_a_busy_machine),
        TEST(test_what_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
