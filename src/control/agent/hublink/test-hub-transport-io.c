/*
 * test-hub-transport-io.c - what is asked by UDP, when it runs again, and what its owner is told.
 *
 * The hub's STUN ports are sockets of this test on loopback; the clock is what the test says. The
 * stream is test-hub-stream.c's: this node knows of no TLS key, so none is opened.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <uv.h>

#include "agent/hublink/hub_transport_io.h"
#include "agent/state/state.h"
#include "os/clock.h"
#include "test/support/heard_log.h"
#include "test/support/sample_mesh.h"
#include "wire/stun.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC

/* Two of the hub's endpoints. */
#define ENDPOINTS 2

struct world {
    uv_loop_t loop;
    struct hub_transport_io io;
    struct state state;
    struct object hub;
    struct hub_endpoints endpoints;
    struct hub_transport_view view;
    bool is_hubless;
    int fd[ENDPOINTS]; /* owns; the hub's STUN ports */
    nsec_t now;
};

static int open_port(struct endpoint *ret)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sin);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sin, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
    assert_int_equal(endpoint_parse(ret, "127.0.0.1:1", NULL), 0);
    ret->port = ntohs(sin.sin_port);
    return fd;
}

static int enter(void **state)
{
    static struct world w;

    /* An answer is dated by the machine's clock, for its round trip. */
    w = (struct world){.hub = sample_node(1), .now = clock_now()};
    w.state.snapshot = sample_snapshot(4, 2);
    for (unsigned i = 0; i < ENDPOINTS; i++)
        w.fd[i] = open_port(&w.endpoints.all[w.endpoints.n++]);
    w.view = (struct hub_transport_view){.endpoints = &w.endpoints};
    assert_int_equal(uv_loop_init(&w.loop), 0);
    hub_transport_io_init(&w.io, &w.loop, &w.state, &w.state.hub_api);
    *state = &w;
    return 0;
}

static int leave(void **state)
{
    struct world *w = *state;

    hub_transport_io_stop(&w->io);
    hub_transport_io_stop(&w->io);
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    for (unsigned i = 0; i < ENDPOINTS; i++)
        (void)close(w->fd[i]);
    snapshot_deinit(&w->state.snapshot);
    object_deinit(&w->hub);
    return uv_loop_close(&w->loop);
}

static struct hub_transport_io_result poll_hub(struct world *w)
{
    return hub_transport_io_poll(
        &w->io, &w->view, w->is_hubless ? NULL : &w->hub.node, 51820, w->now);
}

/* Takes the next request at that port, which has to be there, and answers it if it is to. */
static struct stun_transaction take_request(struct world *w, unsigned way, bool answers)
{
    uint8_t in[STUN_REQUEST_SIZE];
    uint8_t out[STUN_ANSWER_MAX];
    struct sockaddr_in from;
    socklen_t len = sizeof(from);
    struct stun_request rq;
    struct endpoint seen;
    ssize_t n = recvfrom(w->fd[way], in, sizeof(in), 0, (struct sockaddr *)&from, &len);

    assert_true(n > 0);
    assert_int_equal(stun_decode_request(&rq, in, (size_t)n), 0);
    assert_int_equal(endpoint_parse(&seen, "203.0.113.5:4000", NULL), 0);
    if (answers) {
        size_t size = stun_encode_answer(&rq, &seen, out);

        assert_true(sendto(w->fd[way], out, size, 0, (struct sockaddr *)&from, len) > 0);
    }
    return rq.id;
}

/* The answer is there once the loop has turned; it makes a run due at once. */
static void wait_for_answer(struct world *w)
{
    while (w->io.due_at != 0)
        (void)uv_run(&w->loop, UV_RUN_ONCE);
}

static void test_a_hub_that_is_heard_is_not_asked(void **state)
{
    struct world *w = *state;
    struct hub_transport_io_result result = poll_hub(w);
    char byte;

    assert_false(result.has_changed || result.ask_heard || result.n_answered > 0);
    assert_true(w->io.due_at == NSEC_NEVER);
    assert_true(hub_transport_io_is_settled(&w->io));
    assert_int_equal(recv(w->fd[0], &byte, 1, MSG_DONTWAIT), -1);
}

/* A run that was due is not due any more; one that comes earlier leaves it due. */
static void test_when_it_runs_again(void **state)
{
    struct world *w = *state;

    (void)poll_hub(w);
    w->io.due_at = w->now;
    (void)hub_transport_io_run(&w->io, w->now);
    assert_true(w->io.due_at == NSEC_NEVER);
    w->io.due_at = w->now + 1;
    (void)hub_transport_io_run(&w->io, w->now);
    assert_int_equal(w->io.due_at, w->now + 1);
}

/* What is heard by UDP is settled; a stream that is used, and a hub that is silent, are not. */
static void test_what_is_settled(void **state)
{
    struct world *w = *state;

    (void)poll_hub(w);
    assert_true(hub_transport_io_is_settled(&w->io));
    w->io.transport.choice.by_stream = true;
    assert_false(hub_transport_io_is_settled(&w->io));
    assert_int_equal(hub_transport_io_endpoint(&w->io).port, 0);
    w->io.transport.choice.by_stream = false;
    w->io.transport.silent_since = 1;
    assert_false(hub_transport_io_is_settled(&w->io));
    w->io.transport.silent_since = 0;
    /* Without a stream there is none that has failed. */
    (void)snprintf(w->io.now.status.why, sizeof(w->io.now.status.why), "no answer");
    assert_null(hub_transport_io_failure(&w->io));
}

static void test_a_silent_hub_is_asked_at_each_endpoint(void **state)
{
    struct world *w = *state;
    struct hub_transport_io_result result;

    w->view.silent_since = w->now;
    (void)poll_hub(w);
    assert_false(hub_transport_io_is_settled(&w->io));
    assert_int_equal(w->io.due_at, w->now + TRANSPORT_CHOICE_TICK);
    (void)take_request(w, 0, false);
    (void)take_request(w, 1, true);
    wait_for_answer(w);
    w->now += 50 * MS;
    result = hub_transport_io_run(&w->io, w->now);
    assert_int_equal(result.n_answered, 1);
    assert_true(endpoint_equal(&result.answered[0], &w->endpoints.all[1]));
    /* Told once. */
    assert_int_equal(hub_transport_io_run(&w->io, w->now).n_answered, 0);
}

static void test_answers_of_one_endpoint_count_once(void **state)
{
    struct world *w = *state;
    struct hub_transport_io_result result;

    w->view.silent_since = w->now;
    (void)poll_hub(w);
    w->now += SEC;
    (void)poll_hub(w);
    (void)take_request(w, 0, true);
    (void)take_request(w, 0, true);
    wait_for_answer(w);
    for (unsigned i = 0; i < 20; i++)
        (void)uv_run(&w->loop, UV_RUN_NOWAIT);
    result = hub_transport_io_run(&w->io, w->now);
    assert_int_equal(result.n_answered, 1);
}

/* What answers where the hub is not any more is no answer of the hub. */
static void test_an_answer_from_where_it_was(void **state)
{
    struct world *w = *state;
    struct hub_transport_io_result result;

    w->view.silent_since = w->now;
    (void)poll_hub(w);
    (void)take_request(w, 1, true);
    wait_for_answer(w);
    w->endpoints.n = 1;
    result = poll_hub(w);
    assert_int_equal(result.n_answered, 0);
    assert_int_equal(w->io.n_answered, 0);
}

/* The engine is not told of a stream that there is none of. */
static void test_without_a_key_there_is_no_stream(void **state)
{
    static const char words[] =
        "warning: weft: UDP to the hub fails, and this node does not know the hub's TLS key: it "
        "joined with an older version; weft leave and weft join with a new token mend that\n";
    struct world *w = *state;

    w->view.silent_since = w->now;
    heard_log_begin();
    for (unsigned i = 0; i < 40; i++, w->now += TRANSPORT_CHOICE_TICK) {
        struct hub_transport_io_result result = poll_hub(w);

        assert_false(result.has_changed);
    }
    assert_memory_equal(heard_log_end(), words, strlen(words));
    assert_null(w->io.stream);
    assert_int_equal(hub_transport_io_endpoint(&w->io).port, 0);
}

static void test_no_hub_and_no_life(void **state)
{
    struct world *w = *state;

    w->view.silent_since = w->now;
    w->is_hubless = true;
    (void)poll_hub(w);
    assert_true(w->io.due_at == NSEC_NEVER);
    w->is_hubless = false;
    hub_transport_io_stop(&w->io);
    (void)poll_hub(w);
    assert_true(w->io.due_at == NSEC_NEVER);
    assert_int_equal(hub_transport_io_run(&w->io, w->now).n_answered, 0);
}

/* What is due when it is stopped is not due any more. */
static void test_an_end_while_something_is_asked(void **state)
{
    struct world *w = *state;

    w->view.silent_since = w->now;
    (void)poll_hub(w);
    assert_true(w->io.due_at != NSEC_NEVER);
    hub_transport_io_stop(&w->io);
    assert_true(w->io.due_at == NSEC_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_hub_that_is_heard_is_not_asked, enter, leave),
        cmocka_unit_test_setup_teardown(test_when_it_runs_again, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_settled, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_silent_hub_is_asked_at_each_endpoint, enter, leave),
        cmocka_unit_test_setup_teardown(test_answers_of_one_endpoint_count_once, enter, leave),
        cmocka_unit_test_setup_teardown(test_an_answer_from_where_it_was, enter, leave),
        cmocka_unit_test_setup_teardown(test_without_a_key_there_is_no_stream, enter, leave),
        cmocka_unit_test_setup_teardown(test_no_hub_and_no_life, enter, leave),
        cmocka_unit_test_setup_teardown(test_an_end_while_something_is_asked, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
