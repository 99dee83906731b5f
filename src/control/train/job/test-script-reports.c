/* test-script-reports.c - what ranks say of themselves, by the socket and added up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "health/job_sample.h"
#include "train/job/script_reports.h"

static void take(struct script_reports *r, uint32_t rank, uint64_t step, uint64_t comm_ms)
{
    script_reports_take(r, &(struct job_report){rank, step, comm_ms});
}

static struct job_progress add_up(struct script_reports *r)
{
    static struct job_sample s;

    s = (struct job_sample){.ms = 3000};
    script_reports_add(&s, r);
    return s.progress;
}

static void test_the_least_of_all_ranks(void **state)
{
    static struct script_reports r = SCRIPT_REPORTS_NULL;
    struct job_progress p;

    assert_int_equal(add_up(&r).n_ranks, 0);
    take(&r, 0, 10, 500);
    take(&r, 1, 11, 100);
    (void)add_up(&r);
    /* Of what was lost on the way the next one says the same. */
    take(&r, 0, 16, 2500);
    take(&r, 1, 14, 150);
    take(&r, 0, 18, 3000);
    p = add_up(&r);
    assert_int_equal(p.n_ranks, 2);
    assert_int_equal(p.step, 14);
    assert_int_equal(p.n_steps, 3);
    assert_int_equal(p.comm_ms, 50);
    /* One that says nothing is in no sum. */
    take(&r, 0, 20, 9999999);
    p = add_up(&r);
    assert_int_equal(p.n_ranks, 1);
    assert_int_equal(p.step, 20);
    assert_int_equal(p.comm_ms, 3000);
    assert_int_equal(add_up(&r).n_ranks, 0);
}

/* The script begins again at its checkpoint. */
static void test_a_rank_that_begins_again(void **state)
{
    static struct script_reports r = SCRIPT_REPORTS_NULL;
    struct job_progress p;

    take(&r, 0, 100, 50000);
    (void)add_up(&r);
    take(&r, 0, 90, 20);
    take(&r, 0, 92, 60);
    p = add_up(&r);
    assert_int_equal(p.step, 92);
    assert_int_equal(p.n_steps, 2);
    assert_int_equal(p.comm_ms, 40);
}

static void test_many_ranks(void **state)
{
    static struct script_reports r = SCRIPT_REPORTS_NULL;

    for (uint32_t i = 0; i < 2 * SCRIPT_REPORTS_RANKS_MAX; i++)
        take(&r, i, 1, 0);
    assert_int_equal(add_up(&r).n_ranks, SCRIPT_REPORTS_RANKS_MAX);
}

static void say(const struct script_reports *r, const char *text)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = strlen(r->name);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    assert_int_equal(r->name[0], '@');
    memcpy(to.sun_path + 1, r->name + 1, len - 1);
    assert_int_equal(sendto(fd, text, strlen(text), 0, (const struct sockaddr *)&to,
                         (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
        strlen(text));
    (void)close(fd);
}

static void test_by_the_socket(void **state)
{
    static struct script_reports r = SCRIPT_REPORTS_NULL;
    static struct script_reports other = SCRIPT_REPORTS_NULL;

    assert_int_equal(script_reports_open(&r), 0);
    assert_int_equal(script_reports_open(&other), 0);
    assert_string_not_equal(r.name, other.name);
    script_reports_read(&r);
    assert_int_equal(r.n, 0);
    say(&r, "{\"rank\":2,\"step\":5,\"commSeconds\":1}");
    say(&r, "nonsense");
    say(&r, "");
    say(&r, "{\"rank\":3,\"step\":6}");
    script_reports_read(&r);
    script_reports_read(&other);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.ranks[0].last.comm_ms, 1000);
    assert_int_equal(r.ranks[1].last.step, 6);
    assert_int_equal(other.n, 0);
    script_reports_close(&r);
    script_reports_close(&r);
    script_reports_close(&other);
    script_reports_read(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_least_of_all_ranks),
        cmocka_unit_test(test_a_rank_that_begins_again),
        cmocka_unit_test(test_many_ranks),
        cmocka_unit_test(test_by_the_socket),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
