/* keepalive_probe.c - see keepalive_probe.h. */
#include "agent/paths/edge/keepalive_probe.h"

#include <string.h>

#include "agent/paths/socket/stun_socket.h"
#include "os/clock.h"
#include "os/rng_kernel.h"

/*
 * A hub answers at other ports so many times a second for each source address
 * (docs/wire/stun.md), and a measurement asks for a dozen such answers: this much
 * time for each node of the network keeps all of them under it.
 */
#define SPREAD_EACH (300 * NSEC_PER_MSEC)

static void act(struct keepalive_probe *p, nsec_t now);

static void on_timer(uv_timer_t *timer)
{
    act(timer->data, clock_now());
}

void keepalive_probe_init(struct keepalive_probe *p, uv_loop_t *loop,
    const struct keepalive_known *known, const struct keepalive_listener *listener)
{
    *p = (struct keepalive_probe){.loop = loop, .listener = *listener, .rng = rng_kernel()};
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

static bool is_ours(const struct keepalive_probe *p, const struct stun_transaction *id)
{
    return memcmp(id, &p->id, sizeof(*id)) == 0;
}

static void on_spare(void *ctx, const uint8_t *msg, size_t len)
{
    struct keepalive_probe *p = ctx;
    struct keepalive *machine = &p->plan.machine;
    struct stun_response answer;
    nsec_t now = clock_now();

    if (stun_decode_response(&answer, msg, len) != 0 || !is_ours(p, &answer.id))
        return;
    if (machine->state == KEEPALIVE_STATE_LEARN || machine->state == KEEPALIVE_STATE_AGAIN)
        keepalive_plan_on_learned(&p->plan, &answer.mapped, now);
    else
        keepalive_on_arrived(machine, now);
    act(p, now);
}

/* A refusal comes to the socket that has asked. */
static void on_second(void *ctx, const uint8_t *msg, size_t len)
{
    struct keepalive_probe *p = ctx;
    struct stun_refusal refusal;

    if (stun_decode_refusal(&refusal, msg, len) != 0 || !is_ours(p, &refusal.id) ||
        refusal.code != STUN_UNKNOWN_ATTRIBUTE)
        return;
    keepalive_on_refused(&p->plan.machine);
    act(p, clock_now());
}

/* ---- questions ------------------------------------------------------------------------------ */

static void learn(struct keepalive_probe *p)
{
    uint8_t request[STUN_REQUEST_SIZE];

    stun_encode_request(&p->id, request);
    stun_socket_send(p->spare, &p->plan.view.hub, request, sizeof(request));
}

static void ask(struct keepalive_probe *p)
{
    uint8_t request[STUN_PORT_REQUEST_SIZE];

    stun_encode_port_request(&p->id, p->plan.machine.port, request);
    stun_socket_send(p->second, &p->plan.view.hub, request, sizeof(request));
}

static void open_sockets(struct keepalive_probe *p)
{
    bool v4 = ip_addr_is_v4(&p->plan.view.hub.addr);

    close_sockets(p);
    p->spare = stun_socket_open(p->loop, v4, on_spare, p);
    p->second = stun_socket_open(p->loop, v4, on_second, p);
}

static void carry_out(struct keepalive_probe *p, enum keepalive_action action)
{
    /* A question that is repeated keeps its id: its answer may be late (RFC 8489 section 6.2.1). */
    if (action != KEEPALIVE_ACTION_OPEN && p->plan.machine.n_tries == 1)
        rng_fill(&p->rng, p->id.b, sizeof(p->id.b));
    switch (action) {
    case KEEPALIVE_ACTION_OPEN:
        open_sockets(p);
        return;
    case KEEPALIVE_ACTION_LEARN:
        learn(p);
        return;
    case KEEPALIVE_ACTION_ASK:
        ask(p);
        return;
    case KEEPALIVE_ACTION_NONE:
        return;
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void wait(struct keepalive_probe *p, nsec_t now)
{
    nsec_t due = keepalive_due(&p->plan.machine);

    if (!keepalive_is_running(&p->plan.machine)) {
        close_sockets(p);
        (void)uv_timer_stop(&p->timer);
        return;
    }
    uv_update_time(p->loop);
    (void)uv_timer_start(
        &p->timer, on_timer, (uint64_t)(nsec_max(due - now, 0) / NSEC_PER_MSEC + 1), 0);
}

static void act(struct keepalive_probe *p, nsec_t now)
{
    enum keepalive_action action;
    nsec_t interval;

    while ((action = keepalive_next(&p->plan.machine, now)) != KEEPALIVE_ACTION_NONE)
        carry_out(p, action);
    if (keepalive_plan_finish(&p->plan, clock_wall()))
        p->listener.on_result(p->listener.ctx);
    interval = keepalive_plan_interval(&p->plan);
    if (interval != p->interval) {
        p->interval = interval;
        p->listener.on_interval(p->listener.ctx);
    }
    wait(p, now);
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
    act(p, view->now);
}
