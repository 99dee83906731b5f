/* finder.c - see finder.h: life, frames, and the actions of path/paths.h. */
#include "agent/finder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/finder_internal.h"
#include "agent/state.h"
#include "base/err.h"
#include "os/log.h"
#include "base/secret.h"
#include "engine/engine.h"
#include "os/clock.h"
#include "os/rng_kernel.h"
#include "wire/path.h"
#include "wire/stun.h"

/* ---- actions -------------------------------------------------------------------------------- */

static void send_frame(struct finder *f, const struct path_action *action)
{
    struct engine_frame frame = {
        .remote = action->remote,
        .local = action->local,
        .dont_fragment = action->dont_fragment,
        .hops = action->hops,
        .len = action->len,
    };

    if (action->len > sizeof(frame.data))
        return;
    memcpy(frame.data, action->frame, action->len);
    if (action->socket == PATH_SOCKET_MAIN)
        (void)frame_client_send(&f->port, &frame);
    else
        punch_sockets_send(f->punch, action->socket, &frame);
}

static void open_socket(struct finder *f, uint32_t socket, nsec_t now)
{
    struct err e = ERR_NULL;
    int r = punch_sockets_open(f->punch, socket, &e);

    if (r < 0)
        log_limited(&f->punch_limit, now, LOG_LEVEL_WARNING,
            "the ports of this node's NAT can be guessed less well: %s", err_text(&e));
    paths_on_socket(f->paths, socket, r == 0, now);
}

static void say(const struct path_action *action)
{
    if (action->is_warning)
        log_warning("%s", action->text);
    else
        log_info("%s", action->text);
}

static void act(struct finder *f, const struct path_action *action, nsec_t now)
{
    switch (action->kind) {
    case PATH_ACTION_SEND:
        send_frame(f, action);
        return;
    case PATH_ACTION_USE:
        finder__use(f, action, now);
        return;
    case PATH_ACTION_FRESH:
        finder__refresh_stun(f, now);
        return;
    case PATH_ACTION_EVENT:
        say(action);
        return;
    case PATH_ACTION_FITS:
        finder__mtu_fits(f, action, now);
        return;
    case PATH_ACTION_OPEN:
        open_socket(f, action->socket, now);
        return;
    case PATH_ACTION_CLOSE:
        punch_sockets_close(f->punch, action->socket);
        return;
    case PATH_ACTION_NONE:
    case PATH_ACTION_KIND_N:
        return;
    }
}

/* ---- deadlines ------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

static void arm(struct finder *f, nsec_t now)
{
    nsec_t due = nsec_min(paths_due(f->paths), f->gather_due);
    nsec_t wait;

    due = nsec_min(due, nsec_min(finder__handshake_due(f), finder__mtu_due(f)));
    due = nsec_min(due, finder__hub_beat_due(f, now));
    if (frame_client_is_open(&f->port))
        due = nsec_min(due, stun_client_due(&f->stun));
    if (due == NSEC_NEVER) {
        (void)uv_timer_stop(f->timer);
        return;
    }
    wait = nsec_max(due - now, 0);
    uv_update_time(f->loop);
    (void)uv_timer_start(f->timer, on_timer, (uint64_t)(wait / NSEC_PER_MSEC + 1), 0);
}

/* After the edges: which relays there are follows from how their own edges go. */
static bool look_at_relays(struct finder *f, nsec_t now)
{
    if (!f->has_changed)
        return false;
    f->has_changed = false;
    if (finder__choose_legs(f, now))
        f->listener.on_routes(f->listener.ctx);
    finder__update_self(f, now);
    return true;
}

void finder__run(struct finder *f, nsec_t now)
{
    struct path_action action;

    do {
        while (paths_next(f->paths, &action))
            act(f, &action, now);
    } while (look_at_relays(f, now));
    arm(f, now);
}

static void on_timer(uv_timer_t *timer)
{
    struct finder *f = timer->data;
    nsec_t now = clock_now();

    if (now >= f->gather_due)
        finder__gather(f, false, now);
    finder__ask_stun(f, now);
    /* A handshake is begun with the engine at hand: the next pass does it. */
    if (now >= finder__handshake_due(f))
        f->listener.on_routes(f->listener.ctx);
    finder__mtu_tick(f, now);
    finder__hub_beat_tick(f, now);
    paths_tick(f->paths, now);
    finder__run(f, now);
}

/* ---- frames --------------------------------------------------------------------------------- */

static void on_socket_frame(void *ctx, uint32_t socket, const struct engine_frame *frame)
{
    struct path_arrival in = {
        .from = frame->remote,
        .local = frame->local,
        .socket = socket,
        .at = frame->received_at,
    };
    uint8_t buf[ENGINE_FRAME_MAX];
    struct finder *f = ctx;
    nsec_t now = clock_now();

    if (socket == FINDER_FRESH_SOCKET) {
        finder__take_fresh(f, frame, now);
    } else if (frame->len > 0 && frame->data[0] == PATH_FRAME_TYPE) {
        memcpy(buf, frame->data, frame->len);
        paths_on_frame(f->paths, &in, buf, frame->len, now);
    } else {
        finder__take_stun(f, frame, now);
    }
    finder__run(f, now);
}

static void on_frame(void *ctx, const struct engine_frame *frame)
{
    on_socket_frame(ctx, PATH_SOCKET_MAIN, frame);
}

void finder_set_engine(struct finder *f, struct engine *engine, uint16_t port, nsec_t now)
{
    uint16_t before = f->port.port;
    bool opened = frame_client_keep(&f->port, engine, port, now);

    punch_sockets_set_port(f->punch, port);
    f->pins = engine && engine_kind_of(engine) == ENGINE_KIND_USERSPACE;
    if (!opened)
        return;
    if (before != port || f->network == 0)
        finder__gather(f, true, now);
    else
        stun_client_restart(&f->stun, now);
    finder__ask_stun(f, now);
    finder__run(f, now);
}

void finder_set_link_mtu(struct finder *f, uint16_t mtu)
{
    f->link_mtu = mtu;
}

bool finder_pins(const struct finder *f)
{
    return f->pins && frame_client_is_open(&f->port);
}

const struct path_side *finder_self(const struct finder *f)
{
    return &f->self;
}

static void on_hub_answer(void *ctx, const struct endpoint *to, nsec_t rtt)
{
    finder__on_hub_answer(ctx, to, clock_now());
}

void finder_set_relay(struct finder *f, bool relays, bool is_new, nsec_t now)
{
    if (is_new)
        f->run = rng_u64(&f->rng) >> 1 | 1;
    if (relays == f->relays && !is_new)
        return;
    if (relays != f->relays)
        log_info(relays ? "this node relays for others now" : "this node does not relay any more");
    f->relays = relays;
    finder__update_self(f, now);
    finder__run(f, now);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int new_paths(struct finder *f, struct err *e)
{
    struct paths_options opt = {
        .secret = f->state->secret,
        .rng = f->rng,
    };
    nsec_t now = clock_now();
    int r;

    memcpy(opt.name, f->state->snapshot.self, sizeof(opt.name));
    r = paths_new(&f->paths, &opt, now);
    secret_wipe(&opt.secret, sizeof(opt.secret));
    if (r < 0)
        return err_set(e, r, "paths cannot be looked for: %s", strerror(-r));
    paths_set_clock(f->paths, clock_wall() - now, now);
    return 0;
}

int finder_new(struct finder **ret, struct uv_loop_s *loop, const struct state *state,
    const struct finder_listener *listener, struct err *e)
{
    struct finder *f = calloc(1, sizeof(*f));
    int r;

    if (!f)
        return err_set(e, -ENOMEM, "no memory for finding paths");
    f->loop = loop;
    f->state = state;
    f->listener = *listener;
    f->rng = rng_kernel();
    f->net_fd = -1;
    f->gather_due = NSEC_NEVER;
    f->timer = calloc(1, sizeof(*f->timer));
    frame_client_init(&f->port, loop, on_frame, f);
    f->run = rng_u64(&f->rng) >> 1 | 1;
    r = f->timer ? new_paths(f, e) : -ENOMEM;
    if (r < 0) {
        free(f->timer);
        free(f);
        return r;
    }
    udp_probe_init(&f->hub_probe, loop, on_hub_answer, f);
    (void)uv_timer_init(loop, f->timer);
    f->timer->data = f;
    r = punch_sockets_new(&f->punch, loop, on_socket_frame, f, e);
    if (r == 0)
        r = finder__start_self(f, e);
    if (r < 0)
        f = finder_free(f, false);
    else
        *ret = f;
    return r;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

struct finder *finder_free(struct finder *f, bool leaving)
{
    if (!f)
        return NULL;
    finder__stop_self(f, leaving);
    udp_probe_stop(&f->hub_probe);
    frame_client_close(&f->port);
    f->punch = punch_sockets_free(f->punch);
    uv_close((uv_handle_t *)f->timer, on_closed);
    f->paths = paths_free(f->paths);
    for (size_t i = 0; i < f->n_peers; i++)
        f->peers[i].mtu = finder__mtu_free(f->peers[i].mtu);
    free(f->peers);
    free(f->routes);
    free(f);
    return NULL;
}
