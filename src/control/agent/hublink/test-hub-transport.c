/* test-hub-transport.c - by which transport the hub is reached, and the words for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "agent/hublink/hub_transport.h"

#define SEC NSEC_PER_SEC

/* A node on a clock of its own: each tick runs, each fourth polls. */
struct world {
    struct hub_transport transport;
    struct hub_transport_view view;
    struct hub_transport_stream stream;
    struct hub_endpoints endpoints;
    nsec_t now;
    bool udp_answers; /* STUN requests are answered at once */
    bool has_tls;     /* a stream that is opened is connected at once */
    unsigned n_asked;
    unsigned n_changes;
    unsigned n_failures;
    unsigned n_ask_heard;
    struct endpoint heard_way; /* the last one */
    bool is_joined;
    const char *through; /* of a stream: the proxy; NULL: none */
    const char *passed_over;
};

static struct endpoint endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

static struct world *make_world(void)
{
    static struct world w;

    w = (struct world){.now = 1000 * SEC};
    w.endpoints.all[w.endpoints.n++] = endpoint("192.0.2.1:51820");
    w.endpoints.all[w.endpoints.n++] = endpoint("192.0.2.2:51820");
    w.view.endpoints = &w.endpoints;
    return &w;
}

static void carry_out(struct world *w, const struct hub_transport_actions *actions)
{
    w->n_asked += actions->ask;
    w->n_changes += actions->has_changed;
    w->n_failures += actions->has_failure;
    if (actions->open_stream) {
        w->stream =
            (struct hub_transport_stream){.exists = true, .endpoint = endpoint("127.0.0.1:40000")};
        w->stream.status.is_open = w->has_tls;
        (void)snprintf(w->stream.status.to, sizeof(w->stream.status.to), "192.0.2.1:8443");
        (void)snprintf(w->stream.status.through, sizeof(w->stream.status.through), "%s",
            w->through ? w->through : "");
        (void)snprintf(w->stream.status.passed_over, sizeof(w->stream.status.passed_over), "%s",
            w->passed_over ? w->passed_over : "");
    }
    if (actions->close_stream) {
        assert_true(w->stream.exists);
        w->stream = (struct hub_transport_stream){.exists = false};
    }
    w->is_joined = actions->join_stream;
    if (actions->ask_heard) {
        w->n_ask_heard++;
        w->heard_way = actions->heard_way;
        w->transport.asymmetry.asked_at = w->now;
    }
    for (unsigned i = 0; actions->ask && w->udp_answers && i < w->endpoints.n; i++)
        (void)hub_transport_on_answer(&w->transport, &w->endpoints.all[i], w->now);
}

static void pass(struct world *w, nsec_t time)
{
    nsec_t until = w->now + time;

    for (unsigned tick = 0; w->now < until; tick++) {
        struct hub_transport_actions actions;

        w->now += TRANSPORT_CHOICE_TICK;
        if (tick % 4 == 0)
            hub_transport_poll(&w->transport, &w->view, &w->stream, w->now);
        actions = hub_transport_run(&w->transport, &w->stream, w->now);
        carry_out(w, &actions);
    }
}

/* UDP is blocked from now on, and a stream carries. */
static void block(struct world *w)
{
    w->has_tls = true;
    w->view.silent_since = w->now;
    pass(w, 10 * SEC);
    assert_true(w->transport.choice.by_stream);
}

static void assert_why(const struct world *w, const char *part)
{
    const char *why = hub_transport_why(&w->transport);

    if (!why || !strstr(why, part))
        fail_msg("\"%s\" is not in \"%s\"", part, why ? why : "");
}

static void test_heard_by_udp(void **state)
{
    struct world *w = make_world();

    pass(w, 100 * SEC);
    assert_int_equal(w->n_asked, 0);
    assert_false(w->stream.exists);
    assert_null(hub_transport_why(&w->transport));
}

static void test_blocked(void **state)
{
    struct world *w = make_world();

    block(w);
    assert_int_equal(w->n_changes, 1);
    assert_true(w->is_joined);
    assert_why(w, "UDP to the hub at 192.0.2.1:51820 is blocked, packets go in TLS to "
                  "192.0.2.1:8443; let UDP port 51820 out here, and in at the hub");
}

/* STUN passes and WireGuard does not: then it is not said that UDP is blocked. */
static void test_refused(void **state)
{
    struct world *w = make_world();

    w->has_tls = true;
    w->udp_answers = true;
    w->view.silent_since = w->now;
    /* Two endpoints of 12 s each. */
    for (unsigned i = 0; i < 27 && !w->transport.choice.by_stream; i++)
        pass(w, SEC);
    assert_why(w, "the hub at 192.0.2.1:51820 answers by UDP, but WireGuard does not get "
                  "through: something on the way seems to drop it; packets go in TLS to "
                  "192.0.2.1:8443; let UDP port 51820 out here, and in at the hub, whatever it "
                  "carries");
}

/* A firewall is not blamed for what this machine's clock has done. */
static void test_locked_out(void **state)
{
    struct world *w = make_world();

    w->view.lockout = "the clock was set back";
    block(w);
    assert_why(w, "the clock was set back; packets go in TLS to 192.0.2.1:8443 until then");
    assert_null(strstr(hub_transport_why(&w->transport), "blocked"));
}

/* A proxy is shown, and so is one that fails and is passed over. */
static void test_blocked_and_a_proxy(void **state)
{
    struct world *w = make_world();

    w->through = "10.3.0.1:3128";
    block(w);
    assert_why(w, "in TLS to 192.0.2.1:8443 through the proxy 10.3.0.1:3128; let");
    w = make_world();
    w->passed_over = "10.3.0.1:3128: Connection refused";
    block(w);
    assert_why(w, "in TLS to 192.0.2.1:8443 without the proxy, which fails (10.3.0.1:3128: "
                  "Connection refused); let");
}

/* The engine hears the hub again: through the stream, which says nothing about UDP. */
static void test_heard_through_the_stream(void **state)
{
    struct world *w = make_world();

    block(w);
    w->view.silent_since = 0;
    w->view.heard_at = w->stream.endpoint;
    pass(w, 60 * SEC);
    assert_true(w->transport.choice.by_stream);
    assert_int_not_equal(w->transport.silent_since, 0);
}

static void test_udp_passes_again(void **state)
{
    struct world *w = make_world();

    block(w);
    pass(w, 10 * SEC);
    assert_true(hub_transport_is_settled(&w->transport, w->now));
    w->view.silent_since = 0;
    w->view.heard_at = w->stream.endpoint;
    w->udp_answers = true;
    /* From the first answer on it is not blocked, though it is taken again a moment later only. */
    for (unsigned i = 0; w->transport.choice.n_answered == 0 && i < 40; i++)
        pass(w, TRANSPORT_CHOICE_TICK);
    assert_true(w->transport.choice.by_stream);
    assert_false(hub_transport_is_settled(&w->transport, w->now));
    pass(w, 24 * SEC);
    assert_false(w->transport.choice.by_stream);
    assert_int_equal(w->n_changes, 2);
    assert_null(hub_transport_why(&w->transport));
    assert_false(w->is_joined);
    /* The stream stays until the hub is heard by UDP. */
    w->view.heard_at = w->endpoints.all[0];
    pass(w, 2 * SEC);
    assert_false(w->stream.exists);
}

/* A stream that does not come about is no reason to leave UDP; each failure is told once. */
static void test_neither(void **state)
{
    struct world *w = make_world();

    w->view.silent_since = w->now;
    pass(w, 5 * SEC);
    assert_true(w->stream.exists);
    (void)snprintf(w->stream.status.why, sizeof(w->stream.status.why), "no answer");
    pass(w, 60 * SEC);
    assert_int_equal(w->n_failures, 1);
    (void)snprintf(w->stream.status.why, sizeof(w->stream.status.why), "another certificate");
    pass(w, 60 * SEC);
    assert_int_equal(w->n_failures, 2);
    assert_false(w->transport.choice.by_stream);
    assert_int_equal(w->n_changes, 0);
}

/* The hub is asked about each of its endpoints in turn, and its answers turn the words. */
static void test_which_direction_fails(void **state)
{
    struct world *w = make_world();
    struct endpoint seen_at = endpoint("203.0.113.5:3333");
    struct endpoint first;

    block(w);
    pass(w, 3 * SEC);
    assert_true(w->n_ask_heard > 0);
    first = w->heard_way;
    w->n_ask_heard = 0;
    pass(w, 2 * SEC);
    assert_true(w->n_ask_heard > 0);
    assert_false(endpoint_equal(&first, &w->heard_way));

    assert_true(hub_transport_on_heard(&w->transport, &seen_at, &w->stream));
    assert_string_equal(hub_transport_why(&w->transport),
        "the hub hears this node at 203.0.113.5:3333, but nothing that the hub sends by UDP "
        "arrives: a firewall or NAT here drops UDP in, or one at the hub drops it out; packets go "
        "in TLS to 192.0.2.1:8443; let UDP from 192.0.2.1:51820 in");
    assert_true(hub_transport_is_settled(&w->transport, w->now));
    /* Told once. */
    assert_false(hub_transport_on_heard(&w->transport, &seen_at, &w->stream));
}

/* By the third time that the hub says so, or where it says nothing, after as long. */
static void test_when_it_is_settled_that_both_fail(void **state)
{
    struct world *w = make_world();

    block(w);
    for (unsigned i = 0; i < 3; i++) {
        assert_false(hub_transport_is_settled(&w->transport, w->now));
        (void)hub_transport_on_heard(&w->transport, NULL, &w->stream);
    }
    assert_true(hub_transport_is_settled(&w->transport, w->now));

    w = make_world();
    block(w);
    assert_false(hub_transport_is_settled(&w->transport, w->transport.choice.taken_at + 7 * SEC));
    assert_true(hub_transport_is_settled(&w->transport, w->transport.choice.taken_at + 8 * SEC));
}

/* A heartbeat is due 12 s after the last line. What the hub sent within that time arrived before
 * UDP was blocked, perhaps both ways. */
static void test_what_came_before_a_late_line(void **state)
{
    for (int is_late = 0; is_late < 2; is_late++) {
        struct world *w = make_world();
        nsec_t last_line = w->now;

        w->view.heard_at = endpoint("192.0.2.1:51820");
        w->view.rx_bytes = 500;
        pass(w, 6 * SEC);
        w->view.rx_bytes = 648;
        pass(w, 6 * SEC);
        w->has_tls = true;
        w->view.silent_since = last_line;
        w->view.is_suspect = true;
        w->view.is_late = is_late != 0;
        pass(w, 30 * SEC);
        assert_true(w->transport.choice.by_stream);
        assert_why(w, is_late ? "192.0.2.1:51820 is blocked" : "the hub's datagrams arrive");
    }
}

/*
 * Only UDP out was blocked, and passes again. The hub is heard through the stream for a while
 * still, and the words must not outlive the return to UDP.
 */
static void test_direction_is_forgotten_with_the_first_answer(void **state)
{
    struct world *w = make_world();

    w->has_tls = true;
    w->view.silent_since = w->now;
    while (!w->transport.choice.by_stream) {
        w->view.rx_bytes += 148;
        pass(w, SEC);
    }
    assert_int_equal(udp_asymmetry_of(&w->transport.asymmetry), UDP_ASYMMETRY_OUT);
    assert_string_equal(hub_transport_why(&w->transport),
        "the hub's datagrams arrive, but it does not hear this node: a firewall here or at the hub "
        "drops UDP to 192.0.2.1:51820; packets go in TLS to 192.0.2.1:8443; let UDP port 51820 out "
        "here, and in there");
    w->view.silent_since = 0;
    w->view.heard_at = w->stream.endpoint;
    w->udp_answers = true;
    while (w->transport.choice.by_stream)
        pass(w, SEC);
    hub_transport_poll(&w->transport, &w->view, &w->stream, w->now);
    assert_int_equal(udp_asymmetry_of(&w->transport.asymmetry), UDP_ASYMMETRY_UNKNOWN);
}

/* What answers from elsewhere is not the hub. */
static void test_answer_of_a_stranger(void **state)
{
    struct world *w = make_world();
    struct endpoint stranger = endpoint("198.51.100.1:51820");

    pass(w, SEC);
    assert_false(hub_transport_on_answer(&w->transport, &stranger, w->now));
    assert_true(hub_transport_on_answer(&w->transport, &w->endpoints.all[1], w->now));
    /* By UDP nothing is in question. */
    assert_false(hub_transport_on_heard(&w->transport, &stranger, &w->stream));
}

static struct hub_transport_actions run(struct world *w)
{
    return hub_transport_run(&w->transport, &w->stream, w->now);
}

static void poll_it(struct world *w)
{
    hub_transport_poll(&w->transport, &w->view, &w->stream, w->now);
}

static void test_what_a_poll_takes(void **state)
{
    struct world *w = make_world();
    const struct hub_transport *ht = &w->transport;

    w->view.silent_since = 7 * SEC;
    w->view.handshake_at = 6 * SEC;
    w->view.is_suspect = true;
    w->view.lockout = "the clock was set back";
    poll_it(w);
    assert_int_equal(ht->silent_since, 7 * SEC);
    assert_int_equal(ht->handshake_at, 6 * SEC);
    assert_true(ht->is_suspect);
    assert_string_equal(ht->lockout, "the clock was set back");
    assert_int_equal(ht->n_endpoints, 2);
    assert_true(endpoint_equal(&ht->endpoints[0], &w->endpoints.all[0]));
    assert_true(endpoint_equal(&ht->endpoints[1], &w->endpoints.all[1]));
    assert_int_equal(ht->asymmetry.silent_since, 7 * SEC);
    w->view = (struct hub_transport_view){.endpoints = &w->endpoints};
    poll_it(w);
    assert_int_equal(ht->silent_since, 0);
    assert_int_equal(ht->handshake_at, 0);
    assert_false(ht->is_suspect);
    assert_string_equal(ht->lockout, "");
    assert_int_equal(ht->asymmetry.silent_since, 0);
}

/* Who is heard at the stream's end is silent by UDP, from when that was first seen. */
static void test_who_is_heard_at_the_end_of_a_stream(void **state)
{
    struct world *w = make_world();

    w->view.heard_at = endpoint("127.0.0.1:40000");
    w->stream.endpoint = w->view.heard_at;
    poll_it(w);
    assert_int_equal(w->transport.silent_since, 0);
    w->stream.exists = true;
    poll_it(w);
    assert_int_equal(w->transport.silent_since, w->now);
    w->now += SEC;
    poll_it(w);
    assert_int_equal(w->transport.silent_since, w->now - SEC);
    /* A time that is known goes before. */
    w->view.silent_since = 5 * SEC;
    poll_it(w);
    assert_int_equal(w->transport.silent_since, 5 * SEC);
    w->view.silent_since = 0;
    w->view.heard_at = w->endpoints.all[0];
    poll_it(w);
    assert_int_equal(w->transport.silent_since, 0);
}

static void test_what_an_answer_says(void **state)
{
    struct world *w = make_world();
    struct transport_choice *tc = &w->transport.choice;

    poll_it(w);
    tc->n_asked = tc->n_beside = 4;
    w->transport.asymmetry.from = endpoint("203.0.113.5:3333");
    assert_true(hub_transport_on_answer(&w->transport, &w->endpoints.all[0], 2000 * SEC));
    assert_int_equal(tc->answered_at, 2000 * SEC);
    assert_int_equal(tc->n_asked, 0);
    assert_int_equal(tc->n_beside, 0);
    assert_int_equal(tc->passes_since, 2000 * SEC);
    assert_int_equal(tc->n_answered, 0);
    assert_int_equal(w->transport.asymmetry.answered_at, 2000 * SEC);
    assert_true(endpoint_is_none(&w->transport.asymmetry.from));
    /* The first one counts, and none while there is a session. */
    assert_true(hub_transport_on_answer(&w->transport, &w->endpoints.all[0], 2001 * SEC));
    assert_int_equal(tc->passes_since, 2000 * SEC);
    tc->passes_since = 0;
    tc->is_suspect = true;
    tc->by_stream = true;
    assert_true(hub_transport_on_answer(&w->transport, &w->endpoints.all[1], 2002 * SEC));
    assert_int_equal(tc->passes_since, 0);
    assert_int_equal(tc->n_answered, 1);
}

/* Each in turn, while the stream is open and it is known where the hub may be. */
static void test_which_way_is_asked_about(void **state)
{
    struct world *w = make_world();
    struct hub_transport_actions actions;

    block(w);
    w->transport.asymmetry.asked_at = 0;
    for (unsigned i = 0; i < 4; i++) {
        struct endpoint before = w->heard_way;

        actions = run(w);
        assert_true(actions.ask_heard);
        assert_false(endpoint_equal(&actions.heard_way, &before));
        w->heard_way = actions.heard_way;
    }
    w->transport.asymmetry.asked_at = w->now;
    assert_false(run(w).ask_heard);
    w->transport.asymmetry.asked_at = 0;
    w->stream.status.is_open = false;
    assert_false(run(w).ask_heard);
    w->stream.status.is_open = true;
    w->transport.n_endpoints = 0;
    assert_false(run(w).ask_heard);
    w->transport.n_endpoints = 2;
    assert_true(run(w).ask_heard);
}

/* One that is wanted and there is none; one that is there and not wanted; else neither. */
static void test_when_a_stream_is_opened_and_closed(void **state)
{
    struct world *w = make_world();
    struct hub_transport_actions actions;

    poll_it(w);
    w->stream.exists = true;
    actions = run(w);
    assert_true(actions.close_stream);
    assert_false(actions.open_stream || actions.join_stream);
    w->stream.exists = false;
    actions = run(w);
    assert_false(actions.close_stream || actions.open_stream || actions.join_stream);
    block(w);
    actions = run(w);
    assert_true(actions.join_stream);
    assert_false(actions.close_stream || actions.open_stream);
    w->stream = (struct hub_transport_stream){.exists = false};
    actions = run(w);
    assert_true(actions.open_stream && actions.join_stream);
    assert_false(actions.close_stream);
}

/* A stream that is open has not failed, whatever it said before. */
static void test_what_is_a_failure(void **state)
{
    struct world *w = make_world();

    poll_it(w);
    (void)snprintf(w->stream.status.why, sizeof(w->stream.status.why), "no answer");
    w->stream.status.is_open = true;
    assert_false(run(w).has_failure);
    w->stream.status.is_open = false;
    assert_true(run(w).has_failure);
    assert_string_equal(w->transport.failed, "no answer");
    assert_false(run(w).has_failure);
    w->stream.status.why[0] = '\0';
    assert_false(run(w).has_failure);
    assert_string_equal(w->transport.failed, "no answer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heard_by_udp),
        cmocka_unit_test(test_blocked),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_locked_out),
        cmocka_unit_test(test_blocked_and_a_proxy),
        cmocka_unit_test(test_heard_through_the_stream),
        cmocka_unit_test(test_udp_passes_again),
        cmocka_unit_test(test_neither),
        cmocka_unit_test(test_which_direction_fails),
        cmocka_unit_test(test_when_it_is_settled_that_both_fail),
        cmocka_unit_test(test_what_came_before_a_late_line),
        cmocka_unit_test(test_direction_is_forgotten_with_the_first_answer),
        cmocka_unit_test(test_answer_of_a_stranger),
        cmocka_unit_test(test_what_a_poll_takes),
        cmocka_unit_test(test_who_is_heard_at_the_end_of_a_stream),
        cmocka_unit_test(test_what_an_answer_says),
        cmocka_unit_test(test_which_way_is_asked_about),
        cmocka_unit_test(test_when_a_stream_is_opened_and_closed),
        cmocka_unit_test(test_what_is_a_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
