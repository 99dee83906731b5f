/* keepalive_probe.c - see keepalive_probe.h. */
#include "agent/paths/edge/keepalive_probe.h"

#include <stdio.h>
#include <string.h>

#include "agent/paths/socket/stun_socket.h"
#include "mesh/object/object.h"
#include "os/clock.h"

/* Most time between two measurements. */
#define MEASURE_PERIOD (24 * 3600 * NSEC_PER_SEC)

/* Least time between the beginnings of two measurements. */
#define MEASURE_GAP (600 * NSEC_PER_SEC)

void keepalive_plan_init(struct keepalive_plan *p, const struct keepalive_known *known)
{
    *p = (struct keepalive_plan){.known = *known};
}

bool keepalive_plan_is_known(const struct keepalive_plan *p)
{
    return p->known.measured_at != 0;
}

/* Is a measurement due? Also if the wall clock was set back. */
static bool is_measurement_due(const struct keepalive_plan *p)
{
    nsec_t age = p->view.wall - p->known.measured_at;
    bool is_fresh = keepalive_plan_is_known(p) && age >= 0 && age < MEASURE_PERIOD;
    bool is_refused = p->machine.obstacle == KEEPALIVE_OBSTACLE_REFUSED &&
                      p->view.now - p->begun_at < MEASURE_PERIOD;

    if (is_fresh || is_refused)
        return false;
    return p->begun_at == 0 || p->view.now - p->begun_at >= MEASURE_GAP;
}

void keepalive_plan_look(struct keepalive_plan *p, const struct keepalive_view *view)
{
    bool same_hub = endpoint_equal(&p->view.hub, &view->hub);

    p->view = *view;
    /* If the hub sees this node at another address there is another NAT, or it was started anew
     * with other settings. */
    if (keepalive_plan_is_known(p) && !ip_addr_is_none(&view->outside) &&
        !ip_addr_equal(&view->outside, &p->known.outside)) {
        p->known = (struct keepalive_known)KEEPALIVE_KNOWN_NULL;
        keepalive_stop(&p->machine);
    }
    /* A measurement that is half done says nothing about the way to another hub. */
    if (!same_hub && keepalive_is_running(&p->machine))
        keepalive_stop(&p->machine);
    if (endpoint_is_none(&view->hub) || keepalive_is_running(&p->machine) || !is_measurement_due(p))
        return;
    p->begun_at = view->now;
    keepalive_start(&p->machine, view->spread, view->now);
}

void keepalive_plan_on_learned(struct keepalive_plan *p, const struct endpoint *mapped, nsec_t now)
{
    p->learned = mapped->addr;
    keepalive_on_learned(&p->machine, mapped->port, now);
}

bool keepalive_plan_finish(struct keepalive_plan *p, nsec_t wall)
{
    bool is_seen = !ip_addr_is_none(&p->view.outside);

    if (p->machine.state != KEEPALIVE_STATE_DONE)
        return false;
    p->known = (struct keepalive_known){
        .bounds = p->machine.bounds,
        .outside = is_seen ? p->view.outside : p->learned,
        .measured_at = wall,
    };
    keepalive_stop(&p->machine);
    return true;
}

nsec_t keepalive_plan_interval(const struct keepalive_plan *p)
{
    nsec_t measured = keepalive_interval(&p->known.bounds);
    nsec_t unknown = NETWORK_KEEPALIVE_UNKNOWN * NSEC_PER_SEC;

    return keepalive_cautious(&p->machine, measured != 0 ? measured : unknown);
}

static long long whole_seconds(nsec_t t)
{
    return (t + NSEC_PER_SEC / 2) / NSEC_PER_SEC;
}

void keepalive_plan_describe(const struct keepalive_plan *p, char buf[static KEEPALIVE_TEXT_MAX])
{
    const struct keepalive_bounds *b = &p->known.bounds;
    /* Without a session by UDP nobody sees whether there is a NAT; the measurement is older. */
    bool is_seen = !endpoint_is_none(&p->view.hub);
    const char *who = !is_seen            ? "a silent UDP flow is forgotten"
                      : p->view.is_natted ? "the NAT forgets a silent UDP mapping"
                                          : "there is no NAT, but a firewall forgets a silent flow";

    if (b->dies == NSEC_NEVER && !is_seen)
        (void)snprintf(buf, KEEPALIVE_TEXT_MAX, "a silent UDP flow is kept for more than %lld s",
            whole_seconds(b->lives));
    else if (b->dies == NSEC_NEVER && p->view.is_natted)
        (void)snprintf(buf, KEEPALIVE_TEXT_MAX,
            "the NAT keeps a silent UDP mapping for more than %lld s", whole_seconds(b->lives));
    else if (b->dies == NSEC_NEVER)
        (void)snprintf(buf, KEEPALIVE_TEXT_MAX,
            "there is no NAT, and nothing on the way forgets a silent flow within %lld s",
            whole_seconds(b->lives));
    else if (b->lives == 0)
        (void)snprintf(buf, KEEPALIVE_TEXT_MAX, "%s within %lld s", who, whole_seconds(b->dies));
    else
        (void)snprintf(buf, KEEPALIVE_TEXT_MAX, "%s after about %lld s", who,
            whole_seconds((b->lives + b->dies) / 2));
}

const char *keepalive_plan_why(const struct keepalive_plan *p)
{
    if (endpoint_is_none(&p->view.hub))
        return "there is no session with the hub by UDP";
    switch (p->machine.obstacle) {
    case KEEPALIVE_OBSTACLE_SILENCE:
        return "the hub does not answer STUN by UDP";
    case KEEPALIVE_OBSTACLE_ELSEWHERE:
        return "what the hub answers to another port of this node does not arrive, as behind a "
               "NAT with several addresses";
    case KEEPALIVE_OBSTACLE_REFUSED:
        return "the hub does not answer at other ports (RESPONSE-PORT, RFC 5780)";
    case KEEPALIVE_OBSTACLE_NONE:
        break;
    }
    return keepalive_is_running(&p->machine) ? "the measurement goes on"
                                             : "the measurement has not begun";
}

/* ---- the probe ------------------------------------------------------------------------------- */

/*
 * A hub answers at other ports so many times a second for each source address
 * (docs/wire/stun.md), and a measurement asks for a dozen such answers: this much
 * time for each node of the network keeps all of them under it.
 */
#define SPREAD_EACH (300 * NSEC_PER_MSEC)

static void probe_act(struct keepalive_probe *p, nsec_t now);

static void on_probe_timer(uv_timer_t *timer)
{
    probe_act(timer->data, clock_now());
}

void keepalive_probe_init(struct keepalive_probe *p, uv_loop_t *loop,
    const struct keepalive_known *known, keepalive_fn fn, void *ctx)
{
    *p = (struct keepalive_probe){.loop = loop, .fn = fn, .ctx = ctx, .rng = rng_kernel()};
    keepalive_plan_init(&p->plan, known);
    p->interval = keepalive_plan_interval(&p->plan);
    (void)uv_timer_init(loop, &p->timer);
    p->timer.data = p;
    p->has_timer = true;
}

static void close_sockets(struct keepalive_probe *p)
{
    p->spare = stun_socket_close(p->spare);
    p->second = stun_socket_close(p->second);
}

void keepalive_probe_stop(struct keepalive_probe *p)
{
    if (!p->has_timer)
        return;
    p->has_timer = false;
    uv_close((uv_handle_t *)&p->timer, NULL);
    close_sockets(p);
}

/* ---- answers -------------------------------------------------------------------------------- */

static bool is_same(const struct stun_transaction *a, const struct stun_transaction *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static void on_spare(void *ctx, const uint8_t *msg, size_t len)
{
    struct keepalive_probe *p = ctx;
    struct keepalive *machine = &p->plan.machine;
    struct stun_response answer;
    nsec_t now = clock_now();

    if (stun_decode_response(&answer, msg, len) != 0 || !is_same(&answer.id, &p->id))
        return;
    if (machine->state == KEEPALIVE_STATE_LEARN || machine->state == KEEPALIVE_STATE_AGAIN)
        keepalive_plan_on_learned(&p->plan, &answer.mapped, now);
    else
        keepalive_on_arrived(machine, now);
    probe_act(p, now);
}

/* What it has asked for itself, or a refusal, which comes to the socket that has asked. */
static void on_second(void *ctx, const uint8_t *msg, size_t len)
{
    struct keepalive_probe *p = ctx;
    struct stun_response answer;
    struct stun_refusal refusal;

    if (stun_decode_response(&answer, msg, len) == 0 && is_same(&answer.id, &p->own))
        keepalive_on_answered(&p->plan.machine);
    if (stun_decode_refusal(&refusal, msg, len) != 0 || !is_same(&refusal.id, &p->id) ||
        refusal.code != STUN_UNKNOWN_ATTRIBUTE)
        return;
    keepalive_on_refused(&p->plan.machine);
    probe_act(p, clock_now());
}

/* ---- questions ------------------------------------------------------------------------------ */

static void take_action(struct keepalive_probe *p, enum keepalive_action action)
{
    bool v4 = ip_addr_is_v4(&p->plan.view.hub.addr);
    uint8_t request[STUN_REQUEST_SIZE];

    /* A question that is repeated keeps its id: its answer may be late (RFC 8489 section 6.2.1). */
    if (action != KEEPALIVE_ACTION_OPEN && p->plan.machine.n_tries == 1) {
        rng_fill(&p->rng, p->id.b, sizeof(p->id.b));
        rng_fill(&p->rng, p->own.b, sizeof(p->own.b));
    }
    switch (action) {
    case KEEPALIVE_ACTION_OPEN:
        close_sockets(p);
        p->spare = stun_socket_open(p->loop, v4, on_spare, p);
        p->second = stun_socket_open(p->loop, v4, on_second, p);
        return;
    case KEEPALIVE_ACTION_LEARN:
        stun_encode_request(&p->id, 0, request);
        stun_socket_send(p->spare, &p->plan.view.hub, request, sizeof(request));
        return;
    case KEEPALIVE_ACTION_ASK:
    case KEEPALIVE_ACTION_PROVE:
        if (action == KEEPALIVE_ACTION_ASK) {
            stun_encode_request(&p->own, 0, request);
            stun_socket_send(p->second, &p->plan.view.hub, request, sizeof(request));
        }
        stun_encode_request(&p->id, p->plan.machine.port, request);
        stun_socket_send(p->second, &p->plan.view.hub, request, sizeof(request));
        return;
    case KEEPALIVE_ACTION_NONE:
        return;
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void arm_timer(struct keepalive_probe *p, nsec_t now)
{
    nsec_t due = keepalive_due(&p->plan.machine);

    if (!keepalive_is_running(&p->plan.machine)) {
        close_sockets(p);
        (void)uv_timer_stop(&p->timer);
        return;
    }
    uv_update_time(p->loop);
    (void)uv_timer_start(
        &p->timer, on_probe_timer, (uint64_t)(nsec_max(due - now, 0) / NSEC_PER_MSEC + 1), 0);
}

static void probe_act(struct keepalive_probe *p, nsec_t now)
{
    enum keepalive_action action;
    nsec_t before = p->interval;
    bool is_measured;

    while ((action = keepalive_next(&p->plan.machine, now)) != KEEPALIVE_ACTION_NONE)
        take_action(p, action);
    is_measured = keepalive_plan_finish(&p->plan, clock_wall());
    p->interval = keepalive_plan_interval(&p->plan);
    if (is_measured || p->interval != before)
        p->fn(p->ctx, is_measured, p->interval != before);
    arm_timer(p, now);
}

void keepalive_probe_look(
    struct keepalive_probe *p, const struct keepalive_view *view, size_t n_nodes)
{
    struct keepalive_view spread = *view;

    if (!p->has_timer)
        return;
    spread.spread =
        (nsec_t)(rng_u64(&p->rng) % ((uint64_t)SPREAD_EACH * (n_nodes > 0 ? n_nodes : 1)));
    keepalive_plan_look(&p->plan, &spread);
    probe_act(p, view->now);
}
