/*
 * test-kube-log.c - adding to the journal of a store in Kubernetes when an answer is lost: what is
 * not known to be undone is never answered as a failure.
 *
 * The API server is a canned_server.h, which answers one request after the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/kubernetes/kubernetes_internal.h"
#include "base/err.h"
#include "os/clock.h"
#include "test/support/canned_kube.h"

#define N(a) (sizeof(a) / sizeof(*(a)))

#define RECORD(data) CANNED_OK "{\"metadata\":{\"resourceVersion\":\"1\"},\"data\":\"" data "\"}"
#define FLOOR(first, next)                                                                         \
    RECORD("{\\\"layout\\\":1,\\\"first\\\":" first ",\\\"next\\\":" next ",\\\"parts\\\":0}")
#define OTHERS RECORD("{\\\"by\\\":\\\"other\\\",\\\"commits\\\":[]}")
#define MADE   CANNED_OK "{}"
#define ABSENT                                                                                     \
    CANNED_STATUS("404 Not Found") "{\"reason\":\"NotFound\",\"details\":{\"name\":\"x\"}}"
#define EXISTS    CANNED_STATUS("409 Conflict") "{\"reason\":\"AlreadyExists\"}"
#define FORBIDDEN CANNED_STATUS("403 Forbidden") "{\"message\":\"not yet\"}"

/* ---- the store's other side ------------------------------------------------------------------ */

static void no_submit(struct store *s, struct store_job *job)
{
    fail_msg("nobody asks the store");
}

static void no_free(struct store *s)
{
}

static const struct store_ops ops = {.submit = no_submit, .free = no_free};

struct setting {
    struct canned_server server;
    struct kubernetes q;
    struct list jobs; /* one commit, until it is done */
    struct err e;
};

static void begin(struct setting *s, const char *const *answers, size_t n)
{
    const struct store_op put = {.kind = STORE_OP_PUT, .key = "k", .value = "1", .expect = 0};
    struct store_job *job = store_job_new(STORE_JOB_COMMIT);

    memset(s, 0, sizeof(*s));
    canned_kube_start(&s->server, &s->q.client, answers, n);
    assert_int_equal(store__init(&s->q.base, &ops, &s->e), 0);
    assert_int_equal(memory_open(&s->q.mirror, "", 0, &s->e), 0);
    assert_int_equal(store_job_set_ops(job, &put, 1), 0);
    list_init(&s->jobs);
    list_add_tail(&s->jobs, &job->link);
}

/* What the one commit came to. */
static int append(struct setting *s)
{
    return kube_log__append(&s->q, &s->jobs, clock_now() + 10 * NSEC_PER_SEC, &s->e);
}

static void end(struct setting *s, const char *asked)
{
    struct store_job *job;

    canned_server_join(&s->server);
    assert_string_equal(s->server.asked, asked);
    while ((job = list_first(&s->jobs, struct store_job, link))) {
        list_remove(&job->link);
        store_job_free(job);
    }
    store_free(s->q.mirror);
    free(s->q.clear_from);
    kube_client_deinit(&s->q.client);
    store__deinit(&s->q.base);
}

#define RECORDS    "/apis/weft.dev/v1alpha1/namespaces/weft/records"
#define POST       "POST " RECORDS "|"
#define GET(name)  "GET " RECORDS "/" name "|"
#define ENTRY(seq) GET("entry-000000000000" seq)

/* ---- tests ----------------------------------------------------------------------------------- */

/* What all of it is for: made at once; and made, but the answer is lost. */
static void test_made(void **state)
{
    static const char *const at_once[] = {MADE, FLOOR("1", "1")};
    static const char *const behind_another[] = {
        EXISTS, OTHERS, ABSENT, FLOOR("1", "1"), MADE, FLOOR("1", "1")};
    struct setting s;

    begin(&s, at_once, N(at_once));
    assert_int_equal(append(&s), 0);
    assert_true(list_is_empty(&s.jobs));
    assert_int_equal(s.q.seq, 1);
    end(&s, POST GET("floor"));
    begin(&s, behind_another, N(behind_another));
    assert_int_equal(append(&s), 0);
    assert_true(list_is_empty(&s.jobs));
    assert_int_equal(s.q.seq, 2);
    end(&s, POST ENTRY("0001") ENTRY("0002") GET("floor") POST GET("floor"));
}

/* Nothing was sent that could have been done. */
static void test_refused(void **state)
{
    static const char *const answers[] = {FORBIDDEN};
    struct setting s;

    begin(&s, answers, N(answers));
    assert_int_equal(append(&s), -EACCES);
    assert_false(list_is_empty(&s.jobs));
    end(&s, POST);
}

/* The first request may have made it, whatever is answered to the second: an API server that has
 * just begun refuses everybody until it knows the roles. */
static void test_lost_then_refused(void **state)
{
    static const char *const answers[] = {NULL, FORBIDDEN};
    struct setting s;

    begin(&s, answers, N(answers));
    assert_int_equal(append(&s), KUBE_E_LOST);
    assert_false(list_is_empty(&s.jobs));
    end(&s, POST POST);
}

/* One that has just begun does not have the resources for a moment, either. */
static void test_starting(void **state)
{
    static const char *const answers[] = {
        CANNED_STATUS("404 Not Found") "404 page not found", MADE, FLOOR("1", "1")};
    struct setting s;

    begin(&s, answers, N(answers));
    assert_int_equal(append(&s), 0);
    assert_true(list_is_empty(&s.jobs));
    end(&s, POST POST GET("floor"));
}

/* It is there, and whose it is cannot be read. */
static void test_there_and_unread(void **state)
{
    static const char *const answers[] = {NULL, EXISTS, FORBIDDEN};
    struct setting s;

    begin(&s, answers, N(answers));
    assert_int_equal(append(&s), KUBE_E_LOST);
    end(&s, POST POST ENTRY("0001"));
}

/* It was made, and whether it counts cannot be read. */
static void test_made_and_floor_unread(void **state)
{
    static const char *const answers[] = {MADE, FORBIDDEN};
    struct setting s;

    begin(&s, answers, N(answers));
    assert_int_equal(append(&s), KUBE_E_LOST);
    end(&s, POST GET("floor"));
}

/* Somebody has deleted the records: that is a failure, and none that is waited out. */
static void test_floor_gone(void **state)
{
    static const char *const first[] = {MADE, ABSENT};
    static const char *const next[] = {EXISTS, ABSENT, ABSENT};
    static const char *const reading[] = {ABSENT, ABSENT};
    struct setting s;

    begin(&s, first, N(first));
    assert_int_equal(append(&s), KUBE_E_LOST);
    assert_non_null(strstr(err_text(&s.e), "deleted the records"));
    end(&s, POST GET("floor"));
    begin(&s, next, N(next));
    assert_int_equal(append(&s), KUBE_E_LOST);
    end(&s, POST ENTRY("0001") GET("floor"));
    begin(&s, reading, N(reading));
    assert_int_equal(kube_log__follow(&s.q, clock_now() + 10 * NSEC_PER_SEC, &s.e), -EIO);
    end(&s, ENTRY("0001") GET("floor"));
}

/* The journal was cut meanwhile: the entry may have counted, and have been removed since. */
static void test_cut_meanwhile(void **state)
{
    static const char *const others_are_there[] = {NULL, EXISTS, OTHERS, ABSENT,
        FLOOR("600", "600"), FLOOR("600", "600"), ABSENT, FLOOR("600", "600")};
    static const char *const it_is_made[] = {NULL, MADE, FLOOR("600", "600"), CANNED_OK "{}",
        FLOOR("600", "600"), ABSENT, FLOOR("600", "600")};
    struct setting s;

    begin(&s, others_are_there, N(others_are_there));
    assert_int_equal(append(&s), KUBE_E_LOST);
    assert_int_equal(s.q.seq, 599);
    end(&s,
        POST POST ENTRY("0001") ENTRY("0002") GET("floor") GET("floor") ENTRY("0600") GET("floor"));
    begin(&s, it_is_made, N(it_is_made));
    assert_int_equal(append(&s), KUBE_E_LOST);
    assert_int_equal(s.q.seq, 599);
    end(&s, POST POST GET("floor") "DELETE " RECORDS "/entry-0000000000000001|" GET("floor")
                ENTRY("0600") GET("floor"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_lost_then_refused),
        cmocka_unit_test(test_starting),
        cmocka_unit_test(test_there_and_unread),
        cmocka_unit_test(test_made_and_floor_unread),
        cmocka_unit_test(test_floor_gone),
        cmocka_unit_test(test_cut_meanwhile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
