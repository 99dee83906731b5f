/* test-keepalive-probe.c - when idle time is measured, and what is used meanwhile: a virtual clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/paths/edge/keepalive_probe.h"
#include "mesh/object/object.h"

#define START (1000 * NSEC_PER_SEC)
#define WALL  (1790000000 * NSEC_PER_SEC)
#define HOUR  (3600 * NSEC_PER_SEC)

/** A node whose NAT forgets after @holds; the hub answers, or does not know RESPONSE-PORT. */
struct world {
    struct keepalive_plan plan;
    struct keepalive_view view;
    nsec_t holds;
    nsec_t used; /* when the spare mapping was */
    bool refuses;
    unsigned n_questions;
    unsigned n_results;
};

static struct ip_addr address(const char *text)
{
    struct ip_addr a;

    assert_int_equal(ip_addr_parse(&a, text, NULL), 0);
    return a;
}

static struct world world(int holds_s)
{
    struct keepalive_known none = KEEPALIVE_KNOWN_NULL;
    struct world w = {
        .holds = holds_s * NSEC_PER_SEC,
        .view = {.hub = {.addr = address("203.0.113.1"), .port = 51820},
            .outside = address("198.51.100.7"),
            .is_natted = true,
            .now = START,
            .wall = WALL},
    };

    keepalive_plan_init(&w.plan, &none);
    return w;
}

static void answer(struct world *w, enum keepalive_action action)
{
    struct endpoint mapped = {.addr = w->view.outside, .port = 4000};
    nsec_t now = w->view.now;

    if (action == KEEPALIVE_ACTION_OPEN)
        return;
    w->n_questions++;
    if (action == KEEPALIVE_ACTION_ASK)
        keepalive_on_answered(&w->plan.machine);
    if (action == KEEPALIVE_ACTION_LEARN) {
        w->used = now;
        keepalive_plan_on_learned(&w->plan, &mapped, now);
    } else if (w->refuses) {
        keepalive_on_refused(&w->plan.machine);
    } else if (now - w->used < w->holds) {
        w->used = now;
        keepalive_on_arrived(&w->plan.machine, now);
    }
}

/* As the agent does it: looks each second, the machine's own times between them. */
static void run(struct world *w, nsec_t limit)
{
    nsec_t until = w->view.now + limit;

    while (w->view.now < until) {
        enum keepalive_action action;
        nsec_t next = w->view.now + NSEC_PER_SEC;

        keepalive_plan_look(&w->plan, &w->view);
        while ((action = keepalive_next(&w->plan.machine, w->view.now)) != KEEPALIVE_ACTION_NONE)
            answer(w, action);
        if (keepalive_plan_finish(&w->plan, w->view.wall))
            w->n_results++;
        if (keepalive_is_running(&w->plan.machine))
            next = nsec_min(next, nsec_max(keepalive_due(&w->plan.machine), w->view.now + 1));
        w->view.wall += next - w->view.now;
        w->view.now = next;
    }
}

static int interval(const struct world *w)
{
    return (int)(keepalive_plan_interval(&w->plan) / NSEC_PER_SEC);
}

static void test_measured_once_a_day(void **state)
{
    struct world w = world(29);
    char text[KEEPALIVE_TEXT_MAX];

    assert_int_equal(interval(&w), NETWORK_KEEPALIVE_UNKNOWN);
    run(&w, 300 * NSEC_PER_SEC);
    assert_int_equal(w.n_results, 1);
    assert_in_range(interval(&w), 18, 21);
    keepalive_plan_describe(&w.plan, text);
    assert_string_equal(text, "the NAT forgets a silent UDP mapping after about 29 s");
    run(&w, 23 * HOUR);
    assert_int_equal(w.n_results, 1);
    run(&w, 2 * HOUR);
    assert_int_equal(w.n_results, 2);
    assert_in_range(w.n_questions, 20, 2 * KEEPALIVE_PACKETS_MAX);
}

/* Does a look begin one? */
static bool begins(struct keepalive_plan *plan, struct keepalive_view view)
{
    keepalive_plan_look(plan, &view);
    return keepalive_is_running(&plan->machine);
}

static void test_when_a_measurement_begins(void **state)
{
    static const struct {
        nsec_t measured_at, wall; /* since 1970 */
        nsec_t begun_at, now;
        enum keepalive_obstacle obstacle;
        bool begins;
    } cases[] = {
        {0, WALL, 0, 1, KEEPALIVE_OBSTACLE_NONE, true},
        {0, 5 * NSEC_PER_SEC, 0, 1, KEEPALIVE_OBSTACLE_NONE, true},
        {WALL, WALL, 0, START, KEEPALIVE_OBSTACLE_NONE, false},
        {WALL, WALL + 24 * HOUR - 1, 0, START, KEEPALIVE_OBSTACLE_NONE, false},
        {WALL, WALL + 24 * HOUR, 0, START, KEEPALIVE_OBSTACLE_NONE, true},
        /* The clock was set back. */
        {WALL, WALL - 1, 0, START, KEEPALIVE_OBSTACLE_NONE, true},
        /* The last one began a while ago, and had no result. */
        {0, WALL, START, START + HOUR / 6 - 1, KEEPALIVE_OBSTACLE_NONE, false},
        {0, WALL, START, START + HOUR / 6, KEEPALIVE_OBSTACLE_NONE, true},
        {0, WALL, START, START + HOUR / 6, KEEPALIVE_OBSTACLE_SILENCE, true},
        {0, WALL, START, START + 24 * HOUR - 1, KEEPALIVE_OBSTACLE_REFUSED, false},
        {0, WALL, START, START + 24 * HOUR, KEEPALIVE_OBSTACLE_REFUSED, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct world w = world(28);

        w.plan.known.measured_at = cases[i].measured_at;
        w.plan.known.outside = w.view.outside;
        w.plan.begun_at = cases[i].begun_at;
        w.plan.machine.obstacle = cases[i].obstacle;
        w.view.wall = cases[i].wall;
        w.view.now = cases[i].now;
        w.view.spread = 5;
        assert_int_equal(begins(&w.plan, w.view), cases[i].begins);
        assert_int_equal(w.plan.begun_at, cases[i].begins ? cases[i].now : cases[i].begun_at);
        if (cases[i].begins)
            assert_int_equal(keepalive_due(&w.plan.machine), cases[i].now + 5);
    }
}

/* What is half done of one hub says nothing of the way to another, which is asked in its turn. */
static void test_another_hub(void **state)
{
    struct world w = world(28);

    assert_true(begins(&w.plan, w.view));
    w.view.now += NSEC_PER_SEC;
    assert_true(begins(&w.plan, w.view));
    assert_int_equal(w.plan.begun_at, START);
    w.view.hub.port++;
    assert_false(begins(&w.plan, w.view));
    w.view.now = START + HOUR;
    assert_true(begins(&w.plan, w.view));
    assert_int_equal(w.plan.begun_at, START + HOUR);
}

/* Where the hub's view of this node is not known, the address of the spare mapping takes its
 * place. */
static void test_what_is_kept_of_a_result(void **state)
{
    const struct endpoint mapped = {.addr = address("198.51.100.9"), .port = 4000};
    const struct keepalive_bounds bounds = {.lives = 27 * NSEC_PER_SEC, .dies = 29 * NSEC_PER_SEC};

    for (unsigned is_seen = 0; is_seen < 2; is_seen++) {
        struct world w = world(28);

        if (!is_seen)
            w.view.outside = (struct ip_addr){{0}};
        assert_true(begins(&w.plan, w.view));
        keepalive_plan_on_learned(&w.plan, &mapped, START);
        assert_int_equal(w.plan.machine.port, 4000);
        assert_false(keepalive_plan_finish(&w.plan, WALL));
        assert_false(keepalive_plan_is_known(&w.plan));
        w.plan.machine.state = KEEPALIVE_STATE_DONE;
        w.plan.machine.bounds = bounds;
        assert_true(keepalive_plan_finish(&w.plan, WALL + 7));
        assert_true(keepalive_plan_is_known(&w.plan));
        assert_int_equal(w.plan.known.measured_at, WALL + 7);
        assert_int_equal(w.plan.known.bounds.lives, bounds.lives);
        assert_int_equal(w.plan.known.bounds.dies, bounds.dies);
        assert_true(ip_addr_equal(&w.plan.known.outside, is_seen ? &w.view.outside : &mapped.addr));
        assert_false(keepalive_plan_finish(&w.plan, WALL + 8));
    }
}

static void test_why_there_is_no_result(void **state)
{
    static const struct {
        enum keepalive_obstacle obstacle;
        const char *why;
    } cases[] = {
        {KEEPALIVE_OBSTACLE_NONE, "the measurement has not begun"},
        {KEEPALIVE_OBSTACLE_SILENCE, "the hub does not answer STUN by UDP"},
        {KEEPALIVE_OBSTACLE_ELSEWHERE,
            "what the hub answers to another port of this node does not arrive, as behind a NAT "
            "with several addresses"},
        {KEEPALIVE_OBSTACLE_REFUSED,
            "the hub does not answer at other ports (RESPONSE-PORT, RFC 5780)"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct world w = world(28);

        w.plan.view.hub = w.view.hub;
        w.plan.machine.obstacle = cases[i].obstacle;
        assert_string_equal(keepalive_plan_why(&w.plan), cases[i].why);
    }
}

static void test_no_session_no_questions(void **state)
{
    struct world w = world(28);
    struct endpoint hub = w.view.hub;

    w.view.hub = (struct endpoint){.port = 0};
    run(&w, HOUR);
    assert_int_equal(w.n_questions, 0);
    assert_int_equal(interval(&w), NETWORK_KEEPALIVE_UNKNOWN);
    assert_string_equal(keepalive_plan_why(&w.plan), "there is no session with the hub by UDP");
    /* It goes, comes, and goes again in the middle: nothing is asked without it. */
    w.view.hub = hub;
    run(&w, 30 * NSEC_PER_SEC);
    assert_string_equal(keepalive_plan_why(&w.plan), "the measurement goes on");
    w.view.hub = (struct endpoint){.port = 0};
    run(&w, 1);
    w.n_questions = 0;
    run(&w, HOUR);
    assert_int_equal(w.n_questions, 0);
}

/* What an earlier run has measured is used at once and not measured again. */
static void test_survives_a_restart(void **state)
{
    struct world w = world(28);
    struct keepalive_known known;
    nsec_t wall;

    run(&w, 300 * NSEC_PER_SEC);
    known = w.plan.known;
    wall = w.view.wall;
    w = world(28);
    w.view.wall = wall;
    keepalive_plan_init(&w.plan, &known);
    assert_in_range(interval(&w), 18, 21);
    w.view.outside = (struct ip_addr){{0}}; /* nobody has told yet */
    run(&w, HOUR);
    assert_int_equal(w.n_questions, 0);
    assert_true(keepalive_plan_is_known(&w.plan));
}

/* Behind another NAT the old figure may be too long: it is not used a second longer. */
static void test_another_nat(void **state)
{
    struct world w = world(70);

    run(&w, 600 * NSEC_PER_SEC);
    assert_true(interval(&w) > 40);
    w.view.outside = address("192.0.2.99");
    w.holds = 28 * NSEC_PER_SEC;
    run(&w, NSEC_PER_SEC);
    assert_int_equal(interval(&w), NETWORK_KEEPALIVE_UNKNOWN);
    run(&w, 300 * NSEC_PER_SEC);
    assert_in_range(interval(&w), 18, 21);
    assert_int_equal(w.n_results, 2);
}

/* An address that changes all the time costs no more than so many packets an hour. */
static void test_restless_address(void **state)
{
    struct world w = world(28);

    for (unsigned i = 0; i < 3600; i++) {
        w.view.outside = address(i % 2 ? "192.0.2.99" : "198.51.100.7");
        run(&w, NSEC_PER_SEC);
    }
    assert_true(w.n_questions <= 7 * KEEPALIVE_PACKETS_MAX);
    assert_int_equal(interval(&w), NETWORK_KEEPALIVE_UNKNOWN);
}

static void test_hub_that_refuses(void **state)
{
    struct world w = world(28);

    w.refuses = true;
    run(&w, 23 * HOUR);
    assert_int_equal(w.n_questions, 3);
    assert_false(keepalive_plan_is_known(&w.plan));
    assert_string_equal(keepalive_plan_why(&w.plan),
        "the hub does not answer at other ports (RESPONSE-PORT, RFC 5780)");
    w.refuses = false; /* it was replaced by a newer one */
    run(&w, 2 * HOUR);
    assert_in_range(interval(&w), 18, 21);
}

static void test_words(void **state)
{
    static const struct {
        nsec_t lives, dies;
        bool is_natted;
        const char *text;
        bool is_blocked;
    } cases[] = {
        {80, 0, false, "a silent UDP flow is kept for more than 80 s", true},
        {27, 29, true, "a silent UDP flow is forgotten after about 28 s", true},
        {27, 29, true, "the NAT forgets a silent UDP mapping after about 28 s"},
        {0, 3, true, "the NAT forgets a silent UDP mapping within 3 s"},
        {80, 0, true, "the NAT keeps a silent UDP mapping for more than 80 s"},
        {80, 0, false, "there is no NAT, and nothing on the way forgets a silent flow within 80 s"},
        {27, 29, false, "there is no NAT, but a firewall forgets a silent flow after about 28 s"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct keepalive_known known = {.measured_at = WALL,
            .bounds = {.lives = cases[i].lives * NSEC_PER_SEC,
                .dies = cases[i].dies ? cases[i].dies * NSEC_PER_SEC : NSEC_NEVER}};
        struct keepalive_plan plan;
        char text[KEEPALIVE_TEXT_MAX];

        keepalive_plan_init(&plan, &known);
        plan.view.is_natted = cases[i].is_natted;
        if (!cases[i].is_blocked)
            assert_int_equal(endpoint_parse(&plan.view.hub, "192.0.2.1:51820", NULL), 0);
        keepalive_plan_describe(&plan, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured_once_a_day),
        cmocka_unit_test(test_when_a_measurement_begins),
        cmocka_unit_test(test_another_hub),
        cmocka_unit_test(test_what_is_kept_of_a_result),
        cmocka_unit_test(test_why_there_is_no_result),
        cmocka_unit_test(test_no_session_no_questions),
        cmocka_unit_test(test_survives_a_restart),
        cmocka_unit_test(test_another_nat),
        cmocka_unit_test(test_restless_address),
        cmocka_unit_test(test_hub_that_refuses),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
