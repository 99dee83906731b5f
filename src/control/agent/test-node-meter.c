/* test-node-meter.c - when what a node has moved is written into its file, and read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/meter.h"
#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "agent/state/state.h"
#include "test/support/heard_log.h"
#include "test/support/sample_mesh.h"

#define SEC  NSEC_PER_SEC
#define WALL 1790000000

static struct world {
    char dir[64];
    char path[96];
    struct node_meter nm;
    struct snapshot snapshot;
    struct observation seen; /* of n3 */
    nsec_t now;
} w;

static int enter(void **state)
{
    memset(&w, 0, sizeof(w));
    (void)snprintf(w.dir, sizeof(w.dir), "/tmp/weft-test-meter.XXXXXX");
    assert_non_null(mkdtemp(w.dir));
    (void)snprintf(w.path, sizeof(w.path), "%s/traffic.json", w.dir);
    w.snapshot = sample_snapshot(4, 2);
    w.seen.key = sample_key(3);
    w.now = 1000 * SEC;
    node_meter_open(&w.nm, w.dir, 0x123456789abcdef0);
    return 0;
}

static int leave(void **state)
{
    node_meter_close(&w.nm, false, w.now);
    node_meter_close(&w.nm, false, w.now);
    snapshot_deinit(&w.snapshot);
    (void)unlink(w.path);
    return rmdir(w.dir);
}

static void look(void)
{
    const struct observe seen = {.items = &w.seen, .n = 1};
    const struct reach reach = {.n = 0};
    const struct meter_facts facts = {
        .snapshot = &w.snapshot, .seen = &seen, .reach = &reach, .wall_s = WALL};

    node_meter_look(&w.nm, &facts, w.now);
}

/* So many bytes more go to n3. */
static void move(uint64_t bytes)
{
    w.seen.facts.tx_bytes += bytes;
    look();
}

static bool is_written(void)
{
    return access(w.path, F_OK) == 0;
}

/* What a later run would go on with; its number too. */
static uint64_t sent_in_file(uint64_t *ret_id)
{
    struct node_meter nm;
    uint64_t sent;

    node_meter_open(&nm, w.dir, 7);
    sent = nm.meter.n_days > 0 ? nm.meter.days[0].flows[0].sent : 0;
    if (ret_id)
        *ret_id = nm.meter.id;
    node_meter_close(&nm, false, 0);
    return sent;
}

static void test_a_meter_has_a_number_that_json_can_hold(void **state)
{
    assert_true(w.nm.meter.id != 0);
    assert_true(w.nm.meter.id < 1ull << 53);
    assert_int_equal(w.nm.meter.id, 0x123456789abcdef0 >> 11 | 1);
}

static void test_sums_are_written_each_ten_seconds(void **state)
{
    uint64_t id;

    look();
    move(100);
    node_meter_settle(&w.nm, w.now);
    assert_int_equal(sent_in_file(&id), 100);
    assert_int_equal(id, w.nm.meter.id);
    move(50);
    w.now += 10 * SEC - 1;
    node_meter_settle(&w.nm, w.now);
    assert_int_equal(sent_in_file(NULL), 100);
    w.now++;
    node_meter_settle(&w.nm, w.now);
    assert_int_equal(sent_in_file(NULL), 150);
}

/* A job has ended: what it has moved is written and reported at once. */
static void test_an_urgent_report(void **state)
{
    look();
    move(100);
    node_meter_settle(&w.nm, w.now);
    move(50);
    assert_false(node_meter_is_due(&w.nm, w.now));
    w.nm.is_urgent = true;
    assert_true(node_meter_is_due(&w.nm, w.now));
    node_meter_settle(&w.nm, w.now);
    assert_int_equal(sent_in_file(NULL), 150);
    assert_false(w.nm.is_urgent);
    assert_false(node_meter_is_due(&w.nm, w.now));
}

/* Only while a job runs are reports made for what has moved alone. */
static void test_a_job_has_reports_made(void **state)
{
    node_meter_settle(&w.nm, w.now);
    assert_false(node_meter_is_due(&w.nm, w.now + 3600 * SEC));
    meter_job_begin(&w.nm.meter, "train");
    assert_false(node_meter_is_due(&w.nm, w.now + 15 * SEC - 1));
    assert_true(node_meter_is_due(&w.nm, w.now + 15 * SEC));
}

static void test_nothing_new_is_not_written(void **state)
{
    look();
    node_meter_settle(&w.nm, w.now);
    assert_false(is_written());
}

static void test_the_last_sums_are_written_at_the_end(void **state)
{
    look();
    move(100);
    node_meter_settle(&w.nm, w.now);
    move(7);
    node_meter_close(&w.nm, true, w.now);
    assert_int_equal(sent_in_file(NULL), 107);
}

/* Its files are removed then, and none comes back. */
static void test_a_node_that_leaves_writes_nothing(void **state)
{
    look();
    move(100);
    node_meter_close(&w.nm, false, w.now);
    assert_false(is_written());
}

/* Somebody may want to see what is in it. */
static void test_a_damaged_file_is_left_alone(void **state)
{
    char text[16] = "";
    const char *log;
    char words[160];
    FILE *f;

    node_meter_close(&w.nm, false, w.now);
    f = fopen(w.path, "w");
    assert_non_null(f);
    (void)fputs("{\"half", f);
    (void)fclose(f);
    heard_log_begin();
    node_meter_open(&w.nm, w.dir, 99 << 11);
    (void)snprintf(words, sizeof(words), "error: weft: %s is damaged: ", w.path);
    log = heard_log_end();
    assert_memory_equal(log, words, strlen(words));
    assert_non_null(strstr(
        log, "; it is left as it is, and what is counted is not kept until it is removed\n"));
    assert_int_equal(w.nm.meter.id, 99);
    look();
    move(100);
    node_meter_settle(&w.nm, w.now);
    node_meter_close(&w.nm, true, w.now);
    f = fopen(w.path, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof(text), f));
    (void)fclose(f);
    assert_string_equal(text, "{\"half");
}

/* It is tried again with the next report that there is something new for. */
static void test_a_file_that_cannot_be_written(void **state)
{
    char words[200];

    look();
    move(100);
    assert_int_equal(mkdir(w.path, 0700), 0);
    heard_log_begin();
    node_meter_settle(&w.nm, w.now);
    (void)snprintf(words, sizeof(words),
        "warning: weft: what this node has moved is not kept, trying again: ");
    assert_memory_equal(heard_log_end(), words, strlen(words));
    assert_int_equal(rmdir(w.path), 0);
    move(7);
    w.now += 10 * SEC;
    heard_log_begin();
    node_meter_settle(&w.nm, w.now);
    assert_string_equal(heard_log_end(), "");
    assert_int_equal(sent_in_file(NULL), 107);
}

static void test_who_is_in_the_jobs_that_run_here(void **state)
{
    json_t *names = json_pack("[s, s, i]", "n2", "n3", 7);
    json_t *jobs;
    char *text;

    meter_job_begin(&w.nm.meter, "train");
    meter_job_begin(&w.nm.meter, "eval");
    meter_job_members(meter_job_find(&w.nm.meter, "train"), names);
    jobs = meter_jobs_encode(&w.nm.meter);
    text = json_dumps(jobs, JSON_COMPACT);
    assert_string_equal(
        text, "[{\"job\":\"train\",\"nodes\":[\"n2\",\"n3\"]},{\"job\":\"eval\",\"nodes\":[]}]");
    free(text);
    json_decref(jobs);
    json_decref(names);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_a_meter_has_a_number_that_json_can_hold),
        TEST(test_sums_are_written_each_ten_seconds),
        TEST(test_an_urgent_report),
        TEST(test_a_job_has_reports_made),
        TEST(test_nothing_new_is_not_written),
        TEST(test_the_last_sums_are_written_at_the_end),
        TEST(test_a_node_that_leaves_writes_nothing),
        TEST(test_a_damaged_file_is_left_alone),
        TEST(test_a_file_that_cannot_be_written),
        TEST(test_who_is_in_the_jobs_that_run_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
