/* test-job-health.c - who holds up a job: four nodes in a ring, of which one at a time goes wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "health/job_health.h"
#include "health/job_sample.h"

enum { A, B, C, D, N };

static const char *const names[N] = {"a", "b", "c", "d"};

/* The time of a sample, and what a node sends to the next one in it: 30 MB/s while it is busy. */
#define EACH_S 3
#define SENT   30000000
#define BUSY   1000

/* What is said of each node in the next samples, and what was said so far. */
static struct world {
    struct job_health *health;
    struct findings findings;
    nsec_t now;
    int64_t at;
    struct job_flow flow[N][N]; /* as the first sees it; @received is that of the other's @sent */
    struct job_processes processes[N];
    struct job_progress progress[N];
    struct nccl_faults nccl[N];
    struct ras_ranks ras[N];
    bool is_silent[N];
    const char *run;
    char changes[256];
} w;

static void set_healthy(void)
{
    memset(w.flow, 0, sizeof(w.flow));
    memset(w.is_silent, 0, sizeof(w.is_silent));
    for (unsigned i = 0; i < N; i++) {
        w.flow[i][(i + 1) % N] =
            (struct job_flow){.sent = SENT, .busy_ms = BUSY, .segments = 20000};
        w.processes[i] = (struct job_processes){.n = 3, .cpu = 400, .kernel = 50, .running = 333};
    }
}

static int begin(void **state)
{
    w = (struct world){.now = 100 * NSEC_PER_SEC, .at = 1000000, .run = "train.1"};
    w.health = job_health_new();
    assert_non_null(w.health);
    set_healthy();
    return 0;
}

static int end(void **state)
{
    w.health = job_health_free(w.health);
    findings_deinit(&w.findings);
    return 0;
}

static void note_change(void *arg, const struct finding *f, bool is_over)
{
    size_t len = strlen(w.changes);

    (void)snprintf(w.changes + len, sizeof(w.changes) - len, "%c%s %s;", is_over ? '-' : '+',
        finding_kinds[f->code].code, f->subject);
}

static struct job_health_out out(void)
{
    return (struct job_health_out){
        .job = "train", .findings = &w.findings, .changed = note_change, .at = w.at};
}

static void give(unsigned i)
{
    static struct job_sample s;

    s = (struct job_sample){.ms = EACH_S * 1000,
        .processes = w.processes[i],
        .progress = w.progress[i],
        .nccl = w.nccl[i],
        .ras = w.ras[i]};
    (void)snprintf(s.run, sizeof(s.run), "%s", w.run);
    for (unsigned k = 0; k < N; k++) {
        struct job_sample_peer *p = &s.peers[s.n_peers];

        if (w.flow[i][k].sent == 0 && w.flow[k][i].sent == 0 && w.flow[i][k].busy_ms == 0 &&
            w.flow[i][k].unread == 0)
            continue;
        s.n_peers++;
        p->flow = w.flow[i][k];
        p->flow.received = w.flow[k][i].sent;
        (void)snprintf(p->node, sizeof(p->node), "%s", names[k]);
    }
    job_health_take(w.health, names[i], &s, w.now);
}

static void look(void)
{
    struct job_health_out to = out();

    job_health_look(w.health, &to, w.now);
}

/* So many samples of each, and a look each second. */
static void pass(unsigned n)
{
    for (unsigned k = 0; k < n * EACH_S; k++) {
        w.now += NSEC_PER_SEC;
        w.at++;
        for (unsigned i = 0; k % EACH_S == 0 && i < N; i++)
            if (!w.is_silent[i])
                give(i);
        look();
    }
}

static void check_only(enum finding_code code, const char *subject, const char *words)
{
    const struct finding *f = findings_find(&w.findings, code, subject);

    if (!f)
        fail_msg("%s of %s is not found, but %zu others: %s", finding_kinds[code].code, subject,
            w.findings.n, w.changes);
    assert_int_equal(w.findings.n, 1);
    if (!strstr(f->text, words))
        fail_msg("\"%s\" is not in \"%s\"", words, f->text);
}

static void check_nothing(void)
{
    if (w.findings.n > 0)
        fail_msg("found: %s", w.changes);
}

static void test_a_job_that_goes_well(void **state)
{
    pass(40);
    assert_string_equal(w.changes, "");
}

/* Steps of different lengths, and lines that differ from each other. */
static void test_a_job_that_goes_unevenly(void **state)
{
    for (unsigned k = 0; k < 60; k++) {
        for (unsigned i = 0; i < N; i++) {
            struct job_flow *f = &w.flow[i][(i + 1) % N];

            f->sent = SENT / (1 + (k + i) % 3);
            f->busy_ms = (uint32_t)(f->sent / (uint64_t)(10000 * (i + 1)) * (3 + k % 2) / 4);
            f->busy_ms = f->busy_ms < 2900 ? f->busy_ms : 2900;
            w.processes[i].cpu = 200 + 100 * ((k + i) % 4);
        }
        pass(1);
    }
    assert_string_equal(w.changes, "");
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* From b to c it goes at 200 KB/s: all of the ring does, and what goes from a to b looks slow as
 * well, since acknowledgements of it wait in the same line. */
static void slow_down_b(void)
{
    for (unsigned i = 0; i < N; i++)
        w.flow[i][(i + 1) % N] = (struct job_flow){.sent = 580000, .busy_ms = 20, .segments = 400};
    w.flow[B][C].busy_ms = 2950;
    w.flow[B][C].repeated = 20;
    w.flow[A][B].busy_ms = 1700;
}

static void test_a_slow_line(void **state)
{
    const struct finding *f;

    pass(10);
    slow_down_b();
    pass(4);
    check_only(FINDING_RANK_LINE_SLOW, "train/b", "b > c: 0.20 MB/s while it sends, was ");
    f = findings_find(&w.findings, FINDING_RANK_LINE_SLOW, "train/b");
    assert_non_null(strstr(f->text, "was 31 MB/s; it is busy 98 % of the time; 5.0 % of its "));
    assert_non_null(strstr(f->fix, "On b: weft paths c says"));
    /* Since about when it began. */
    assert_true(w.at - f->since >= 8 && w.at - f->since <= 16);
    pass(200);
    check_only(FINDING_RANK_LINE_SLOW, "train/b", "was 31 MB/s");
    set_healthy();
    pass(3);
    check_nothing();
    assert_string_equal(w.changes, "+WEFT-RANK-001 train/b;-WEFT-RANK-001 train/b;");
}

/* Nothing arrives at all. */
static void test_a_line_that_is_dead(void **state)
{
    pass(10);
    for (unsigned i = 0; i < N; i++)
        w.flow[i][(i + 1) % N] = (struct job_flow){.sent = 0};
    w.flow[B][C].busy_ms = 3000;
    pass(4);
    check_only(FINDING_RANK_LINE_SLOW, "train/b", "b > c: 0.00 MB/s");
}

static void set_star(void)
{
    memset(w.flow, 0, sizeof(w.flow));
    for (unsigned i = 0; i < N; i++)
        for (unsigned k = 0; k < N; k++)
            if (i != k)
                w.flow[i][k] = (struct job_flow){.sent = SENT, .busy_ms = BUSY, .segments = 20000};
}

static void test_all_that_a_node_sends_is_slow(void **state)
{
    set_star();
    pass(10);
    for (unsigned k = 0; k < N; k++)
        if (k != B) {
            w.flow[B][k] = (struct job_flow){.sent = 200000, .busy_ms = 2900};
            w.flow[k][B] = (struct job_flow){.sent = 200000, .busy_ms = 1800};
        }
    pass(4);
    check_only(FINDING_RANK_LINE_SLOW, "train/b", "b > ");
    assert_non_null(strstr(w.findings.items[0]->text, ", "));
}

static void test_all_that_comes_to_a_node_is_slow(void **state)
{
    set_star();
    pass(10);
    for (unsigned i = 0; i < N; i++)
        if (i != C)
            w.flow[i][C] = (struct job_flow){.sent = 200000, .busy_ms = 2900};
    pass(4);
    check_only(FINDING_RANK_LINE_SLOW, "train/c", " > c: 0.07 MB/s");
    assert_non_null(strstr(w.findings.items[0]->text, ", "));
}

/* Short messages that wait for each other are no slow line. */
static void test_short_messages(void **state)
{
    pass(10);
    for (unsigned i = 0; i < N; i++)
        w.flow[i][(i + 1) % N] =
            (struct job_flow){.sent = 300000, .busy_ms = 2990, .segments = 3000};
    pass(10);
    check_nothing();
}

/* Of a line that was always as it is nothing is said. */
static void test_a_line_of_which_nothing_else_is_known(void **state)
{
    slow_down_b();
    pass(40);
    check_nothing();
}

/* ---- processes ------------------------------------------------------------------------------ */

static void test_who_does_not_read(void **state)
{
    pass(10);
    /* c reads nothing, so what b has for it fills its window; and so b reads nothing from a. */
    for (unsigned i = 0; i < N; i++)
        w.flow[i][(i + 1) % N] = (struct job_flow){.sent = 0};
    w.flow[B][C] = (struct job_flow){.busy_ms = 3000, .window_ms = 2990, .queued = 900000};
    w.flow[C][B].unread = 400000;
    w.flow[A][B] = (struct job_flow){.busy_ms = 3000, .window_ms = 2990, .queued = 900000};
    w.flow[B][A].unread = 400000;
    pass(4);
    check_only(FINDING_RANK_UNREAD, "train/c", "c does not read what has come from b, who waits");
}

static void stop_all_but(unsigned who, struct job_processes p)
{
    for (unsigned i = 0; i < N; i++) {
        w.flow[i][(i + 1) % N] = (struct job_flow){.sent = SENT / 10, .busy_ms = BUSY / 10};
        w.processes[i] = (struct job_processes){.n = 3, .cpu = 100, .running = 100};
    }
    p.n = 3;
    w.processes[who] = p;
}

static void test_who_computes(void **state)
{
    pass(10);
    stop_all_but(C, (struct job_processes){.cpu = 980, .kernel = 30, .running = 1000});
    pass(6);
    check_only(FINDING_RANK_SLOW, "train/c", "c computes 100 % of the time while the others wait");
    assert_non_null(strstr(w.findings.items[0]->text, "the job moves 4.0 MB/s, was "));
    set_healthy();
    pass(3);
    check_nothing();
}

/* What the others have sent it lies there, since it computes. */
static void test_who_computes_and_does_not_read(void **state)
{
    pass(10);
    stop_all_but(C, (struct job_processes){.cpu = 980, .kernel = 30, .running = 1000});
    w.flow[C][B].unread = 400000;
    pass(6);
    check_only(FINDING_RANK_SLOW, "train/c", "c computes 100 % of the time while the others wait");
    assert_string_equal(w.changes, "+WEFT-RANK-003 train/c;");
    /* Where all of them do, as who waits actively does, it is all that is known. */
    set_healthy();
    pass(10);
    stop_all_but(C, (struct job_processes){.cpu = 980, .kernel = 30, .running = 1000});
    for (unsigned i = 0; i < N; i++)
        w.processes[i] = w.processes[C];
    w.flow[C][B].unread = 400000;
    pass(6);
    check_only(FINDING_RANK_UNREAD, "train/c", "c does not read what has come from b, who waits");
}

static void test_who_waits_for_a_disk(void **state)
{
    pass(10);
    stop_all_but(D, (struct job_processes){.cpu = 60, .waiting = 900});
    pass(6);
    check_only(FINDING_RANK_SLOW, "train/d", "d waits for a disk, or another device, 96 % of the");
}

static void test_who_gets_no_core(void **state)
{
    pass(10);
    stop_all_but(A, (struct job_processes){.cpu = 200, .running = 1000});
    pass(6);
    check_only(FINDING_RANK_SLOW, "train/a", "a wants a core, and does not get it, for 100 %");
}

static void test_who_is_in_the_kernel(void **state)
{
    pass(10);
    stop_all_but(A, (struct job_processes){.cpu = 990, .kernel = 970, .running = 1000});
    pass(6);
    check_only(FINDING_RANK_KERNEL, "train/a", "a is in the kernel 97 % of the time");
    /* Also where it shares its core with others. */
    set_healthy();
    pass(10);
    stop_all_but(A, (struct job_processes){.cpu = 500, .kernel = 450, .running = 1000});
    pass(6);
    check_only(FINDING_RANK_KERNEL, "train/a", "a is in the kernel 45 % of the time");
    /* Of one that gets next to nothing that is not known. */
    set_healthy();
    pass(10);
    stop_all_but(A, (struct job_processes){.cpu = 200, .kernel = 200, .running = 1000});
    pass(6);
    check_only(FINDING_RANK_SLOW, "train/a", "a wants a core, and does not get it, for 100 %");
}

/* What it moves, beside what is usual; not known while a part of it is not heard. */
static void test_what_it_moves(void **state)
{
    uint64_t rate = 0;
    uint64_t usual = 0;

    assert_false(job_health_rate(NULL, NSEC_PER_SEC, &rate, &usual));
    assert_false(job_health_rate(w.health, w.now, &rate, &usual));
    pass(10);
    assert_true(job_health_rate(w.health, w.now, &rate, &usual));
    assert_true(rate > 0);
    assert_in_range(usual, rate - rate / 8, rate + rate / 8);
    w.is_silent[A] = true;
    pass(6);
    assert_false(job_health_rate(w.health, w.now, &rate, &usual));
}

/* All compute, but its ranks say that they are in no collective, while the others' are. */
static void test_who_is_in_no_collective(void **state)
{
    uint64_t step = 0;
    double rate = 0;

    assert_false(job_health_step(NULL, &step, &rate));
    pass(10);
    assert_false(job_health_step(w.health, &step, &rate));
    stop_all_but(A, (struct job_processes){.cpu = 1000, .running = 1000});
    for (unsigned i = 0; i < N; i++) {
        w.processes[i] = w.processes[A];
        w.progress[i] = (struct job_progress){
            .n_ranks = 8, .step = 100 + i, .n_steps = 6, .comm_ms = i == D ? 90 : 2700};
    }
    pass(6);
    check_only(FINDING_RANK_SLOW, "train/d", "d is outside of collectives 97 % of the time while");
    assert_true(job_health_step(w.health, &step, &rate));
    assert_int_equal(step, 100);
    assert_true(rate > 1.99 && rate < 2.01);
}

/* All of them compute, as NCCL does while it waits: nobody is named. */
static void test_all_compute(void **state)
{
    pass(10);
    stop_all_but(A, (struct job_processes){.cpu = 1000, .running = 1000});
    for (unsigned i = 0; i < N; i++)
        w.processes[i] = w.processes[A];
    pass(10);
    check_nothing();
}

static void test_who_is_stopped(void **state)
{
    pass(10);
    for (unsigned i = 0; i < N; i++)
        w.flow[i][(i + 1) % N] = (struct job_flow){.sent = 0};
    w.flow[A][B].busy_ms = 3000; /* it waits for the one that is stopped */
    w.processes[B] = (struct job_processes){.n = 3, .n_stopped = 1, .stopped_ms = 2500};
    pass(1);
    check_only(FINDING_RANK_STOPPED, "train/b", "b: 1 of the job's 3 processes there is stopped");
    pass(20);
    check_only(FINDING_RANK_STOPPED, "train/b", "b: 1 of the job's 3 processes there is stopped");
    set_healthy();
    pass(1);
    check_nothing();
}

/* A process that stops for a moment, as under a tracer, is not. */
static void test_who_stops_for_a_moment(void **state)
{
    pass(10);
    w.processes[B].n_stopped = 1;
    w.processes[B].stopped_ms = 900;
    pass(3);
    check_nothing();
}

/* ---- who is not heard ----------------------------------------------------------------------- */

static void test_who_is_gone(void **state)
{
    pass(10);
    for (unsigned i = 0; i < N; i++)
        w.flow[i][(i + 1) % N] = (struct job_flow){.sent = 0};
    /* What is sent to it is not acknowledged. Its line is not called slow meanwhile. */
    w.flow[B][C].busy_ms = 3000;
    w.is_silent[C] = true;
    pass(6);
    check_only(FINDING_RANK_GONE, "train/c", "c: nothing is heard of the job there");
    assert_string_equal(w.changes, "+WEFT-RANK-005 train/c;");
    set_healthy();
    pass(1);
    check_nothing();
}

static void test_who_has_ended_is_not_missed(void **state)
{
    pass(10);
    w.is_silent[C] = true;
    job_health_end(w.health, "c");
    job_health_end(w.health, "nobody");
    pass(10);
    check_nothing();
}

/* It is this end that does not hear. */
static void test_nobody_is_heard(void **state)
{
    pass(10);
    for (unsigned i = 0; i < N; i++)
        w.is_silent[i] = true;
    pass(20);
    check_nothing();
}

/* While a node is late nothing is concluded, and what was found stays. */
static void test_what_was_found_stays_while_one_is_late(void **state)
{
    pass(10);
    slow_down_b();
    pass(4);
    w.is_silent[D] = true;
    pass(3);
    set_healthy();
    w.is_silent[D] = true;
    pass(1);
    check_only(FINDING_RANK_LINE_SLOW, "train/b", "b > c");
    w.is_silent[D] = false;
    pass(2);
    check_nothing();
}

/* ---- stuck ---------------------------------------------------------------------------------- */

static void stand_still(void)
{
    for (unsigned i = 0; i < N; i++) {
        w.flow[i][(i + 1) % N] = (struct job_flow){.sent = 60, .busy_ms = 2, .segments = 1};
        w.processes[i] = (struct job_processes){.n = 3, .cpu = 5};
    }
}

static void test_stuck(void **state)
{
    pass(10);
    stand_still();
    pass(2);
    check_nothing();
    pass(2);
    check_only(FINDING_JOB_STUCK, "train", "nothing moves between its 4 nodes, and none of its");
    assert_true(w.at - w.findings.items[0]->since >= 10);
    set_healthy();
    pass(1);
    check_nothing();
}

/* A job that pauses for 12 s now and then is called stuck at the first pause, and not again. */
static void test_a_job_that_pauses(void **state)
{
    pass(10);
    for (unsigned k = 0; k < 4; k++) {
        stand_still();
        pass(4);
        set_healthy();
        pass(10);
    }
    assert_true(strlen(w.changes) <= strlen("+WEFT-JOB-001 train;-WEFT-JOB-001 train;"));
    stand_still();
    pass(12);
    check_only(FINDING_JOB_STUCK, "train", "its longest pause was ");
}

/* ---- what NCCL's RAS says ------------------------------------------------------------------- */

/* Of rank 2, as a has heard it; @node: where that runs, NULL: the hub does not know. */
static struct ras_rank *say_missed(const char *node, const char *operation, uint32_t still_ms)
{
    struct ras_ranks *ras = &w.ras[A];
    struct ras_rank *one = &ras->items[ras->n++];

    *one = (struct ras_rank){.rank = 2, .n_ranks = 4, .pid = 77, .n_waiting = 3, .n_started = 511};
    (void)snprintf(one->operation, sizeof(one->operation), "%s", operation);
    if (node) {
        (void)snprintf(one->node, sizeof(one->node), "%s", node);
        one->address = ip_addr_v4((const uint8_t[]){10, 77, 0, 3});
    }
    ras->still_ms = still_ms;
    ras->is_known = true;
    return one;
}

static void test_a_rank_that_has_not_started(void **state)
{
    json_t *list;

    pass(10);
    /* While something moves it may only be late. */
    (void)say_missed("c", "AllReduce", 40000);
    pass(10);
    check_nothing();
    stand_still();
    pass(2);
    check_nothing();
    pass(2);
    check_only(FINDING_NCCL_BEHIND, "train/c",
        "rank 2 of 4 on c, process 77 has not started AllReduce number 512, for which 3 others "
        "wait");
    assert_true(w.at - w.findings.items[0]->since < 20);
    list = job_health_encode(w.health, "train", &w.findings, w.at);
    assert_int_equal(json_array_size(list), 1);
    json_decref(list);
    set_healthy();
    w.ras[A] = (struct ras_ranks){.n = 0};
    pass(1);
    check_nothing();
    assert_string_equal(w.changes, "+WEFT-NCCL-007 train/c;-WEFT-NCCL-007 train/c;");
}

static void test_ranks_that_do_not_answer(void **state)
{
    pass(10);
    stand_still();
    /* One of a node stands for all of it, and it is said of a where the node is not known. */
    (void)say_missed("d", "", 9000);
    say_missed("d", "", 9000)->rank = 3;
    *say_missed(NULL, "", 9000) = (struct ras_rank){.rank = 1, .n_ranks = 4};
    pass(4);
    assert_int_equal(w.findings.n, 2);
    assert_string_equal(w.findings.items[0]->text,
        "rank 1 of 4 on an unknown node does not answer NCCL, and no rank starts anything");
    assert_string_equal(w.findings.items[0]->subject, "train/a");
    assert_string_equal(w.findings.items[1]->text,
        "rank 2 of 4 on d, process 77 does not answer NCCL, and no rank starts anything");
    assert_string_equal(w.findings.items[1]->subject, "train/d");
    /* That nothing starts is not known yet, and then not in time. */
    w.ras[A].still_ms = 0;
    pass(1);
    check_nothing();
    pass(8);
    check_only(FINDING_JOB_STUCK, "train", "nothing moves between its 4 nodes");
}

/* What goes over a fabric is not seen, so it takes longer. */
static void test_a_rank_that_has_not_started_on_a_fabric(void **state)
{
    memset(w.flow, 0, sizeof(w.flow));
    pass(4);
    (void)say_missed("c", "AllGather", 119000);
    pass(2);
    check_nothing();
    w.ras[A].still_ms = 122000;
    pass(1);
    check_only(FINDING_NCCL_BEHIND, "train/c", "has not started AllGather number 512");
    assert_true(w.at - w.findings.items[0]->since >= 120);
    /* A node that has ended says nothing any more. */
    job_health_end(w.health, "a");
    w.is_silent[A] = true;
    pass(1);
    check_nothing();
}

/* One that has not moved anything yet is on its way. */
static void test_a_job_that_has_not_begun(void **state)
{
    stand_still();
    pass(30);
    check_nothing();
}

/* ---- life ----------------------------------------------------------------------------------- */

static void test_the_next_run(void **state)
{
    pass(10);
    w.is_silent[C] = true;
    pass(6);
    check_only(FINDING_RANK_GONE, "train/c", "c");
    /* It begins without that node, and knows what lines carried. */
    w.run = "train.2";
    pass(3);
    check_nothing();
    w.is_silent[C] = false;
    slow_down_b();
    pass(4);
    check_only(FINDING_RANK_LINE_SLOW, "train/b", "b > c: 0.20 MB/s");
}

static void test_cleared(void **state)
{
    struct job_health_out to;

    pass(10);
    slow_down_b();
    pass(4);
    to = out();
    job_health_clear(w.health, &to);
    check_nothing();
    job_health_clear(w.health, &to);
    assert_string_equal(w.changes, "+WEFT-RANK-001 train/b;-WEFT-RANK-001 train/b;");
}

static void test_as_json(void **state)
{
    json_t *list = job_health_encode(NULL, "train", &w.findings, w.at);

    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    pass(10);
    slow_down_b();
    pass(4);
    list = job_health_encode(w.health, "train", &w.findings, w.at);
    assert_int_equal(json_array_size(list), 1);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(list, 0), "subject")), "train/b");
    json_decref(list);
    list = job_health_encode(w.health, "other", &w.findings, w.at);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
}

/* Of two commands of one node the first counts, until it is not heard any more; and a node that
 * says too much counts as often as others. */
static void test_two_commands_of_a_node(void **state)
{
    static struct job_sample s;

    pass(10);
    s = (struct job_sample){.run = "train.1", .command = "second", .ms = 3000};
    s.processes.n_stopped = 1;
    s.processes.stopped_ms = 60000;
    job_health_take(w.health, "b", &s, w.now);
    look();
    check_nothing();
    give(A);
    w.processes[A].n_stopped = 1;
    w.processes[A].stopped_ms = 60000;
    give(A);
    look();
    check_nothing();
}

static void note_rate(void *arg, const char *from, const char *to, uint64_t rate)
{
    struct world *world = arg;
    size_t len = strlen(world->changes);

    (void)snprintf(world->changes + len, sizeof(world->changes) - len, "%s>%s %llu;", from, to,
        (unsigned long long)rate);
}

/* What goes from node to node now; not what a node has said that is not heard any more. */
static void test_rates(void **state)
{
    job_health_each_rate(NULL, w.now, note_rate, &w);
    job_health_each_rate(w.health, w.now, note_rate, &w);
    assert_string_equal(w.changes, "");
    pass(2);
    w.changes[0] = '\0';
    job_health_each_rate(w.health, w.now, note_rate, &w);
    assert_string_equal(w.changes, "a>b 10000000;b>c 10000000;c>d 10000000;d>a 10000000;");
    job_health_end(w.health, "a");
    w.changes[0] = '\0';
    job_health_each_rate(w.health, w.now, note_rate, &w);
    assert_string_equal(w.changes, "b>c 10000000;c>d 10000000;d>a 10000000;");
    w.changes[0] = '\0';
    job_health_each_rate(w.health, w.now + 2 * JOB_HEALTH_GONE, note_rate, &w);
    assert_string_equal(w.changes, "");
}

static void test_too_many_nodes(void **state)
{
    static struct job_sample s;
    char name[16];

    pass(10);
    s = (struct job_sample){.run = "train.1", .ms = 3000, .n_peers = 1};
    for (unsigned i = 0; i < 2 * JOB_HEALTH_NODES_MAX; i++) {
        (void)snprintf(name, sizeof(name), "n-%u", i);
        (void)snprintf(s.peers[0].node, sizeof(s.peers[0].node), "%s", name);
        job_health_take(w.health, i % 2 ? name : "a", &s, w.now + (nsec_t)i * NSEC_PER_SEC);
    }
    look();
    assert_true(w.findings.n <= FINDINGS_MAX);
}

/* ---- NCCL's log ----------------------------------------------------------------------------- */

static void send_nothing(void)
{
    for (unsigned i = 0; i < N; i++)
        w.flow[i][(i + 1) % N] = (struct job_flow){.sent = 0};
}

static void test_each_fault_in_the_log(void **state)
{
    static const struct {
        enum nccl_fault_kind kind;
        enum finding_code code;
    } kinds[] = {{NCCL_FAULT_TIMEOUT, FINDING_NCCL_TIMEOUT},
        {NCCL_FAULT_CLOSED, FINDING_NCCL_CLOSED}, {NCCL_FAULT_UNREACHED, FINDING_NCCL_UNREACHED},
        {NCCL_FAULT_COMPLETION, FINDING_NCCL_COMPLETION}, {NCCL_FAULT_POLL, FINDING_NCCL_POLL}};

    pass(10);
    send_nothing();
    /* Each says more than those before it. */
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        nccl_faults_note(&w.nccl[B], kinds[i].kind, "it is so");
        pass(1);
        check_only(kinds[i].code, "train/b", "b: NCCL says \"it is so\"");
        nccl_faults_note(&w.nccl[B], kinds[i].kind, "it is so");
        pass(1);
        check_only(kinds[i].code, "train/b", "\"it is so\", and more like it");
    }
    /* While the job stands it goes on to be so. */
    pass(60);
    check_only(FINDING_NCCL_POLL, "train/b", "b: NCCL says");
}

static void test_a_fault_that_the_job_has_survived(void **state)
{
    pass(10);
    nccl_faults_note(&w.nccl[B], NCCL_FAULT_CLOSED, "closed by remote peer");
    pass(1);
    check_only(FINDING_NCCL_CLOSED, "train/b", "closed by remote peer");
    pass(25);
    check_nothing();
    assert_string_equal(w.changes, "+WEFT-NCCL-004 train/b;-WEFT-NCCL-004 train/b;");
}

/* Who has ended by it has said it last, within half a second; the others are still there. */
static void test_the_last_words_of_a_command(void **state)
{
    static struct job_sample s;

    pass(10);
    send_nothing();
    pass(1);
    s = (struct job_sample){.run = "train.1", .ms = 100};
    nccl_faults_note(&s.nccl, NCCL_FAULT_COMPLETION, "status=12");
    w.is_silent[C] = true;
    give(C);
    job_health_take(w.health, "c", &s, w.now + NSEC_PER_MSEC);
    job_health_end(w.health, "c");
    pass(1);
    check_only(FINDING_NCCL_COMPLETION, "train/c", "c: NCCL says \"status=12\"");
    /* When all have ended nothing is found any more. */
    for (unsigned i = 0; i < N; i++)
        job_health_end(w.health, names[i]);
    memset(w.is_silent, true, sizeof(w.is_silent));
    pass(1);
    check_nothing();
}

/* A node that is down is why others say that it has closed its connections. */
static void test_a_fault_that_follows(void **state)
{
    pass(10);
    send_nothing();
    nccl_faults_note(&w.nccl[B], NCCL_FAULT_CLOSED, "closed by remote peer");
    w.is_silent[C] = true;
    pass(6);
    check_only(FINDING_RANK_GONE, "train/c", "c: nothing is heard");
}

/* It holds up nobody, so it hides nothing. */
static void test_another_network(void **state)
{
    struct job_health_out to;

    nccl_faults_note(&w.nccl[A], NCCL_FAULT_NETWORK, "NCCL uses Socket");
    pass(10);
    check_only(FINDING_NCCL_NETWORK, "train/a", "a: NCCL uses Socket");
    slow_down_b();
    pass(4);
    assert_non_null(findings_find(&w.findings, FINDING_NCCL_NETWORK, "train/a"));
    assert_non_null(findings_find(&w.findings, FINDING_RANK_LINE_SLOW, "train/b"));
    set_healthy();
    pass(3);
    check_only(FINDING_NCCL_NETWORK, "train/a", "a: NCCL uses Socket");
    w.run = "train.2";
    memset(w.nccl, 0, sizeof(w.nccl));
    pass(1);
    check_nothing();
    nccl_faults_note(&w.nccl[A], NCCL_FAULT_NETWORK, "NCCL uses Socket");
    pass(1);
    check_only(FINDING_NCCL_NETWORK, "train/a", "a: NCCL uses Socket");
    to = out();
    job_health_clear(w.health, &to);
    check_nothing();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_a_job_that_goes_well),
        TEST(test_a_job_that_goes_unevenly),
        TEST(test_a_slow_line),
        TEST(test_a_line_that_is_dead),
        TEST(test_all_that_a_node_sends_is_slow),
        TEST(test_all_that_comes_to_a_node_is_slow),
        TEST(test_short_messages),
        TEST(test_a_line_of_which_nothing_else_is_known),
        TEST(test_who_does_not_read),
        TEST(test_who_computes),
        TEST(test_who_computes_and_does_not_read),
        TEST(test_who_waits_for_a_disk),
        TEST(test_who_gets_no_core),
        TEST(test_who_is_in_the_kernel),
        TEST(test_what_it_moves),
        TEST(test_who_is_in_no_collective),
        TEST(test_all_compute),
        TEST(test_who_is_stopped),
        TEST(test_who_stops_for_a_moment),
        TEST(test_who_is_gone),
        TEST(test_who_has_ended_is_not_missed),
        TEST(test_nobody_is_heard),
        TEST(test_what_was_found_stays_while_one_is_late),
        TEST(test_stuck),
        TEST(test_a_rank_that_has_not_started),
        TEST(test_ranks_that_do_not_answer),
        TEST(test_a_rank_that_has_not_started_on_a_fabric),
        TEST(test_a_job_that_pauses),
        TEST(test_a_job_that_has_not_begun),
        TEST(test_the_next_run),
        TEST(test_cleared),
        TEST(test_as_json),
        TEST(test_two_commands_of_a_node),
        TEST(test_rates),
        TEST(test_too_many_nodes),
        TEST(test_each_fault_in_the_log),
        TEST(test_a_fault_that_the_job_has_survived),
        TEST(test_the_last_words_of_a_command),
        TEST(test_a_fault_that_follows),
        TEST(test_another_network),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
#undef TEST
}
