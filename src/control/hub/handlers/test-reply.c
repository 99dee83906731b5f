/*
 * test-reply.c - a request whose answer waits for the store: conflicts, and who has gone meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/content/body.h"
#include "base/err.h"
#include "hub/handlers/reply.h"
#include "test/support/sample_hub.h"

/* A request that writes one record of nobody's. */
struct call {
    struct reply reply;
    uint64_t expect;    /* at which revision the record has to be */
    unsigned *n_begun;  /* borrowed: counts */
    unsigned *n_ended;  /* likewise: the struct was freed */
    bool is_late_again; /* it begins once more when it is stored */
};

/* Who acted when a request began last, and when it was done. */
static char begun_by[AUDIT_ACTOR_MAX + 1];
static char done_by[AUDIT_ACTOR_MAX + 1];
static nsec_t begun_at;

static void note_actor(const struct reply *l, char ret[static AUDIT_ACTOR_MAX + 1])
{
    (void)snprintf(ret, AUDIT_ACTOR_MAX + 1, "%s", l->h->audit->by.actor);
}

static void ended(struct reply *l)
{
    ++*container_of(l, struct call, reply)->n_ended;
}

static void done(struct reply *l, struct response *rs)
{
    struct call *call = container_of(l, struct call, reply);

    note_actor(l, done_by);
    if (call->is_late_again) {
        call->is_late_again = false;
        call->expect = STORE_EXPECT_ANY;
        l->is_waiting = true;
        reply_again(l);
    } else {
        response_empty(rs);
    }
}

static void begin(struct reply *l, const struct request *rq, struct response *rs)
{
    struct call *call = container_of(l, struct call, reply);
    const struct store_op op = {
        .kind = STORE_OP_PUT, .key = "test/x", .value = "1", .expect = call->expect};

    ++*call->n_begun;
    note_actor(l, begun_by);
    begun_at = rq->now;
    reply_commit(l, &op, 1, done, rs);
}

static struct call *start(struct sample_hub *s, uint64_t expect, unsigned *n_begun,
    unsigned *n_ended, struct response *rs)
{
    struct request rq = {.now = s->now};
    struct call *call = reply_new(&s->hub->handlers, &rq, rs, sizeof(*call), begin);

    assert_non_null(call);
    call->expect = expect;
    call->n_begun = n_begun;
    call->n_ended = n_ended;
    call->reply.deinit = ended;
    return call;
}

static void wait_until_ready(struct sample_hub *s, struct response *rs)
{
    while (!rs->deferred->is_ready)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
}

/* As the server does when it has sent the answer. */
static int end(struct response *rs)
{
    struct deferred *d = rs->deferred;
    int status = d->rs.status;

    response_deinit(&d->rs);
    d->on_closed(d);
    return status;
}

static void test_answers(void **state)
{
    struct response rs = {0};
    unsigned n_begun = 0;
    unsigned n_ended = 0;
    struct sample_hub s;
    struct call *call;

    sample_hub_begin(&s);
    call = start(&s, STORE_EXPECT_ABSENT, &n_begun, &n_ended, &rs);
    reply_begin(&call->reply, &call->reply.rq, &rs);
    assert_non_null(rs.deferred);
    assert_false(rs.deferred->is_ready);
    wait_until_ready(&s, &rs);
    assert_int_equal(n_ended, 0);
    assert_int_equal(end(&rs), 204);
    assert_int_equal(n_begun, 1);
    assert_int_equal(n_ended, 1);
    sample_hub_end(&s);
}

/* A commit that conflicts each time is tried eight times, and then the answer is 503. */
static void test_conflicts_for_ever(void **state)
{
    struct response rs = {0};
    unsigned n_begun = 0;
    unsigned n_ended = 0;
    struct sample_hub s;
    struct call *call;

    sample_hub_begin(&s);
    call = start(&s, 4711, &n_begun, &n_ended, &rs);
    reply_begin(&call->reply, &call->reply.rq, &rs);
    assert_int_equal(begun_at, s.now);
    wait_until_ready(&s, &rs);
    assert_string_equal(
        body_refusal_text(rs.deferred->rs.body), "others change the same all the time: try again");
    assert_int_equal(end(&rs), 503);
    assert_int_equal(n_begun, 8);
    /* Each time it is later. */
    assert_int_not_equal(begun_at, s.now);
    assert_int_equal(n_ended, 1);
    sample_hub_end(&s);
}

/* Nobody waits for the answer any more: it is not tried again, and nothing is left of it. */
static void test_caller_has_gone(void **state)
{
    struct response rs = {0};
    unsigned n_begun = 0;
    unsigned n_ended = 0;
    struct sample_hub s;
    struct call *call;

    sample_hub_begin(&s);
    call = start(&s, 4711, &n_begun, &n_ended, &rs);
    reply_begin(&call->reply, &call->reply.rq, &rs);
    rs.deferred->on_closed(rs.deferred);
    assert_int_equal(n_ended, 0);
    store_wait(s.hub->store);
    assert_int_equal(n_begun, 1);
    assert_int_equal(n_ended, 1);
    sample_hub_end(&s);
}

/* Who waits for something else than the store begins again by reply_again(). */
static void test_begins_again(void **state)
{
    struct response rs = {0};
    unsigned n_begun = 0;
    unsigned n_ended = 0;
    struct sample_hub s;
    struct call *call;

    sample_hub_begin(&s);
    call = start(&s, STORE_EXPECT_ABSENT, &n_begun, &n_ended, &rs);
    call->is_late_again = true;
    reply_begin(&call->reply, &call->reply.rq, &rs);
    wait_until_ready(&s, &rs);
    assert_int_equal(end(&rs), 204);
    assert_int_equal(n_begun, 2);
    assert_int_equal(n_ended, 1);
    sample_hub_end(&s);
}

/* In a commit's answer the request acts for who made it, and afterwards the hub for itself. */
static void test_who_acts(void **state)
{
    static const struct ip_addr from = {{0}};
    struct response rs = {0};
    unsigned n_begun = 0;
    unsigned n_ended = 0;
    struct sample_hub s;
    struct call *call;

    sample_hub_begin(&s);
    audit_act(&s.hub->audit, "admin:ci", &from);
    call = start(&s, STORE_EXPECT_ABSENT, &n_begun, &n_ended, &rs);
    audit_act_hub(&s.hub->audit);
    assert_string_equal(call->reply.by.actor, "admin:ci");
    reply_act(&call->reply, true);
    assert_string_equal(s.hub->audit.by.actor, "admin:ci");
    reply_begin(&call->reply, &call->reply.rq, &rs);
    audit_act_hub(&s.hub->audit);
    wait_until_ready(&s, &rs);
    assert_string_equal(done_by, "admin:ci");
    assert_string_equal(s.hub->audit.by.actor, "hub");
    assert_int_equal(end(&rs), 204);
    /* Also when it begins again. */
    audit_act(&s.hub->audit, "admin:ci", &from);
    rs = (struct response){0};
    call = start(&s, STORE_EXPECT_ABSENT, &n_begun, &n_ended, &rs);
    audit_act_hub(&s.hub->audit);
    reply_begin(&call->reply, &call->reply.rq, &rs);
    assert_string_equal(begun_by, "hub");
    wait_until_ready(&s, &rs);
    assert_string_equal(begun_by, "admin:ci");
    assert_string_equal(s.hub->audit.by.actor, "hub");
    assert_int_equal(end(&rs), 503);
    sample_hub_end(&s);
}

static void begin_waiting(struct reply *l, const struct request *rq, struct response *rs)
{
    l->is_waiting = true;
}

/* Of the request only what is the reply's own is left, for it may begin again much later. */
static void test_what_is_kept_of_a_request(void **state)
{
    json_t *body = json_pack("{s:i}", "uses", 3);
    struct request rq = {.method = "PUT",
        .path = "/v1/x",
        .authorization = "x",
        .query = "x",
        .bytes = "x",
        .n_bytes = 1,
        .body = body,
        .now = 7};
    struct response rs = {0};
    struct sample_hub s;
    struct reply *l;

    sample_hub_begin(&s);
    (void)snprintf(rq.params[0], sizeof(rq.params[0]), "default");
    l = reply_new(&s.hub->handlers, &rq, &rs, sizeof(*l), begin_waiting);
    json_decref(body);
    reply_begin(l, &rq, &rs);
    assert_ptr_equal(rs.deferred, &l->deferred);
    assert_ptr_equal(l->h, &s.hub->handlers);
    assert_int_equal(l->rq.now, 7);
    assert_string_equal(l->rq.params[0], "default");
    assert_null(l->rq.method);
    assert_null(l->rq.path);
    assert_null(l->rq.authorization);
    assert_null(l->rq.query);
    assert_null(l->rq.bytes);
    assert_int_equal(l->rq.n_bytes, 0);
    assert_int_equal(json_integer_value(json_object_get(l->rq.body, "uses")), 3);
    reply_end(l, &(struct response){.status = 204});
    assert_int_equal(end(&rs), 204);
    sample_hub_end(&s);
}

static int failed_with;

static void failed(struct reply *l, int r)
{
    failed_with = r;
}

/* What has become of a commit may be unknown, to the request as well. */
static void test_nobody_knows(void **state)
{
    const struct request rq = {.now = 7};
    struct store_answer answer = {.r = STORE_E_UNKNOWN};
    struct response rs = {0};
    struct err e = ERR_NULL;
    struct sample_hub s;
    struct reply *l;

    sample_hub_begin(&s);
    l = reply_new(&s.hub->handlers, &rq, &rs, sizeof(*l), begin_waiting);
    l->failed = failed;
    reply_begin(l, &rq, &rs);
    (void)err_set(&e, 0, "the connection broke");
    answer.e = &e;
    reply_store(l, &answer);
    assert_int_equal(failed_with, STORE_E_UNKNOWN);
    assert_true(rs.deferred->is_ready);
    assert_string_equal(body_refusal_text(rs.deferred->rs.body),
        "whether this was done is not known: look, and try again (the connection broke)");
    assert_int_equal(end(&rs), 503);
    sample_hub_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_conflicts_for_ever),
        cmocka_unit_test(test_caller_has_gone),
        cmocka_unit_test(test_begins_again),
        cmocka_unit_test(test_who_acts),
        cmocka_unit_test(test_what_is_kept_of_a_request),
        cmocka_unit_test(test_nobody_knows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
