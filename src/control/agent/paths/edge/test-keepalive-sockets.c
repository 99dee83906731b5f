/*
 * test-keepalive-sockets.c - a measurement's requests and answers, with a hub of the test's on this
 * machine. The times between them are the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <poll.h>

#include "agent/paths/edge/keepalive_probe.h"
#include "mesh/object/object.h"
#include "net/address/sockaddr.h"
#include "os/clock.h"
#include "wire/stun.h"

#define WALL (1790000000 * NSEC_PER_SEC)

static struct world {
    uv_loop_t loop;
    struct keepalive_probe probe;
    struct keepalive_view view;
    int hub;
    struct stun_request asked; /* the last request that came to the hub */
    struct endpoint from;      /* and from where */
    unsigned n_told;
    bool is_measured; /* as was told last */
    bool is_other;
} w;

static void on_keepalive(void *ctx, bool is_measured, bool is_other)
{
    assert_ptr_equal(ctx, &w);
    w.is_measured = is_measured;
    w.is_other = is_other;
    w.n_told++;
}

static int set_up(void **state)
{
    const struct keepalive_known none = KEEPALIVE_KNOWN_NULL;
    union sockaddr_inet sa;
    socklen_t len;

    memset(&w, 0, sizeof(w));
    assert_int_equal(endpoint_parse(&w.view.hub, "127.0.0.1:1", NULL), 0);
    w.view.hub.port = 0;
    len = sockaddr_from_endpoint(&sa, &w.view.hub);
    w.hub = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w.hub, &sa.any, len), 0);
    assert_int_equal(getsockname(w.hub, &sa.any, &len), 0);
    assert_true(sockaddr_to_endpoint(&sa, &w.view.hub));
    w.view.now = clock_now();
    w.view.wall = WALL;
    assert_int_equal(uv_loop_init(&w.loop), 0);
    keepalive_probe_init(&w.probe, &w.loop, &none, on_keepalive, &w);
    return 0;
}

static int tear_down(void **state)
{
    keepalive_probe_stop(&w.probe);
    keepalive_probe_stop(&w.probe);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    (void)close(w.hub);
    return 0;
}

static void hub_takes_one(void)
{
    struct pollfd pfd = {.fd = w.hub, .events = POLLIN};
    union sockaddr_inet sa;
    socklen_t len = sizeof(sa);
    uint8_t msg[256];
    ssize_t n;

    assert_int_equal(poll(&pfd, 1, 5000), 1);
    n = recvfrom(w.hub, msg, sizeof(msg), 0, &sa.any, &len);
    assert_true(n > 0 && sockaddr_to_endpoint(&sa, &w.from));
    assert_int_equal(stun_decode_request(&w.asked, msg, (size_t)n), 0);
}

static bool has_more(void)
{
    struct pollfd pfd = {.fd = w.hub, .events = POLLIN};

    return poll(&pfd, 1, 0) == 1;
}

/* To that port of the node, as seen at where the request came from. */
static void hub_answers(const struct stun_request *rq, uint16_t port)
{
    struct endpoint to = w.from;
    union sockaddr_inet sa;
    uint8_t out[STUN_ANSWER_MAX];
    size_t n = stun_encode_answer(rq, &w.from, out);
    socklen_t len;

    to.port = port;
    len = sockaddr_from_endpoint(&sa, &to);
    assert_int_equal(sendto(w.hub, out, n, 0, &sa.any, len), (ssize_t)n);
}

static void run_until(enum keepalive_state state)
{
    for (unsigned i = 0; i < 5000 && w.probe.plan.machine.state != state; i++) {
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(w.probe.plan.machine.state, state);
}

/* As long after as the machine wants to be woken. */
static void look_when_due(void)
{
    w.view.now = nsec_max(keepalive_due(&w.probe.plan.machine), w.view.now);
    keepalive_probe_look(&w.probe, &w.view, 1);
}

/* Until the spare mapping is idle; its port. */
static uint16_t rest(void)
{
    struct stun_transaction first;
    uint16_t spare;

    keepalive_probe_look(&w.probe, &w.view, 1);
    look_when_due();
    hub_takes_one();
    assert_int_equal(w.asked.response_port, 0);
    first = w.asked.id;
    spare = w.from.port;
    /* An answer to somebody else's request is none. */
    hub_answers(&(struct stun_request){.id = {{1}}}, spare);
    hub_answers(&w.asked, spare);
    run_until(KEEPALIVE_STATE_WARM);
    look_when_due();
    hub_takes_one();
    assert_int_equal(w.from.port, spare);
    assert_memory_not_equal(&w.asked.id, &first, sizeof(first));
    hub_answers(&w.asked, spare);
    run_until(KEEPALIVE_STATE_PROVE);
    hub_takes_one();
    assert_int_not_equal(w.from.port, spare);
    assert_int_equal(w.asked.response_port, spare);
    hub_answers(&w.asked, spare);
    run_until(KEEPALIVE_STATE_REST);
    return spare;
}

static void test_the_mapping_is_still_there(void **state)
{
    uint16_t spare = rest();
    uint16_t second;

    look_when_due();
    hub_takes_one();
    second = w.from.port;
    assert_int_not_equal(second, spare);
    assert_int_equal(w.asked.response_port, 0);
    hub_answers(&w.asked, second);
    for (unsigned i = 0; i < 5000 && !w.probe.plan.machine.hub_answers; i++) {
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
        (void)poll(NULL, 0, 1);
    }
    assert_true(w.probe.plan.machine.hub_answers);
    hub_takes_one();
    assert_int_equal(w.from.port, second);
    assert_int_equal(w.asked.response_port, spare);
    hub_answers(&w.asked, spare);
    /* It has survived that long; the next trial begins. */
    for (unsigned i = 0; i < 5000 && w.probe.plan.machine.bounds.lives == 0; i++) {
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
        (void)poll(NULL, 0, 1);
    }
    assert_true(w.probe.plan.machine.bounds.lives > 0);
    assert_int_equal(w.n_told, 0);
    /* Without the hub it ends, and its sockets are closed. */
    w.view.hub.port = 0;
    keepalive_probe_look(&w.probe, &w.view, 1);
    assert_false(keepalive_is_running(&w.probe.plan.machine));
    assert_null(w.probe.spare);
    assert_null(w.probe.second);
    assert_false(uv_is_active((uv_handle_t *)&w.probe.timer));
}

static void test_a_hub_that_refuses(void **state)
{
    (void)rest();
    look_when_due();
    hub_takes_one();
    hub_takes_one();
    stun_refuse_port(&w.asked);
    hub_answers(&w.asked, w.from.port);
    run_until(KEEPALIVE_STATE_OFF);
    assert_string_equal(keepalive_plan_why(&w.probe.plan),
        "the hub does not answer at other ports (RESPONSE-PORT, RFC 5780)");
    assert_null(w.probe.spare);
}

/* It is asked again by the loop's own clock, with the same id, since an answer may be late. */
static void test_a_request_that_is_lost(void **state)
{
    struct stun_transaction first;

    keepalive_probe_look(&w.probe, &w.view, 1);
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned k = 0; k < 5000 && !has_more(); k++) {
            (void)uv_run(&w.loop, UV_RUN_NOWAIT);
            (void)poll(NULL, 0, 1);
        }
        hub_takes_one();
        if (i == 0)
            first = w.asked.id;
        assert_memory_equal(&w.asked.id, &first, sizeof(first));
    }
}

/* What an earlier run has measured behind another NAT is given up, and that is told. */
static void test_an_interval_that_changes(void **state)
{
    struct keepalive_known known = {
        .measured_at = WALL, .bounds = {.lives = 28 * NSEC_PER_SEC, .dies = 30 * NSEC_PER_SEC}};

    assert_int_equal(ip_addr_parse(&known.outside, "198.51.100.7", NULL), 0);
    assert_int_equal(w.probe.interval, NETWORK_KEEPALIVE_UNKNOWN * NSEC_PER_SEC);
    keepalive_probe_stop(&w.probe);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    keepalive_probe_init(&w.probe, &w.loop, &known, on_keepalive, &w);
    assert_int_equal(w.probe.interval, 21 * NSEC_PER_SEC);
    w.view.outside = known.outside;
    keepalive_probe_look(&w.probe, &w.view, 1);
    assert_int_equal(w.n_told, 0);
    assert_int_equal(ip_addr_parse(&w.view.outside, "192.0.2.99", NULL), 0);
    keepalive_probe_look(&w.probe, &w.view, 1);
    assert_int_equal(w.n_told, 1);
    assert_true(w.is_other && !w.is_measured);
    assert_int_equal(w.probe.interval, NETWORK_KEEPALIVE_UNKNOWN * NSEC_PER_SEC);
    keepalive_probe_look(&w.probe, &w.view, 1);
    assert_int_equal(w.n_told, 1);
}

/* A result is told of, also where the interval stays what it was. */
static void test_a_result(void **state)
{
    nsec_t before = clock_wall();

    for (unsigned i = 0; i < 2; i++) {
        keepalive_probe_look(&w.probe, &w.view, 1);
        w.probe.plan.machine.state = KEEPALIVE_STATE_DONE;
        w.probe.plan.machine.bounds.lives = 28 * NSEC_PER_SEC;
        keepalive_probe_look(&w.probe, &w.view, 1);
        assert_int_equal(w.n_told, i + 1);
        assert_true(w.is_measured);
        assert_int_equal(w.is_other, i == 0);
        assert_int_equal(w.probe.interval, 21 * NSEC_PER_SEC);
        assert_true(w.probe.plan.known.measured_at >= before);
        assert_true(w.probe.plan.known.measured_at <= clock_wall());
        assert_null(w.probe.spare);
    }
}

/* So much time for each node of the network, and no less than for one. */
static void test_when_the_first_question_goes(void **state)
{
    for (size_t n_nodes = 0; n_nodes < 2; n_nodes++) {
        w.probe.plan.begun_at = 0;
        keepalive_probe_look(&w.probe, &w.view, n_nodes);
        assert_true(keepalive_is_running(&w.probe.plan.machine));
        assert_in_range(w.probe.plan.machine.spread, 0, 300 * NSEC_PER_MSEC - 1);
        w.view.hub.port ^= 1;
        keepalive_probe_look(&w.probe, &w.view, n_nodes);
        assert_false(keepalive_is_running(&w.probe.plan.machine));
    }
}

static void test_it_asks_nothing_any_more(void **state)
{
    keepalive_probe_stop(&w.probe);
    keepalive_probe_look(&w.probe, &w.view, 1);
    look_when_due();
    assert_false(keepalive_is_running(&w.probe.plan.machine));
    assert_false(has_more());
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_mapping_is_still_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_hub_that_refuses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_request_that_is_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_interval_that_changes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_result, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_when_the_first_question_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_it_asks_nothing_any_more, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
