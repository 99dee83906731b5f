/* hub_transport_io.c - see hub_transport_io.h. */
#include "agent/hublink/hub_transport_io.h"

#include "agent/state/state.h"
#include "base/err.h"
#include "mesh/snapshot/snapshot.h"

/* A request that is not answered after this time will not be. */
#define OVERDUE (1500 * NSEC_PER_MSEC)

/* The hub remembers requests for longer (filter/stun_heard.h). */
#define REMEMBERED (15 * NSEC_PER_SEC)

/* Called from the loop: what follows is for the next run, which is due at once. */
static void on_answer(void *ctx, const struct endpoint *to, nsec_t rtt)
{
    struct hub_transport_io *io = ctx;

    for (unsigned i = 0; i < io->n_answered; i++)
        if (endpoint_equal(to, &io->answered[i]))
            return;
    if (io->n_answered == HUB_WAYS_MAX)
        return;
    io->answered[io->n_answered++] = *to;
    io->due_at = 0;
}

void hub_transport_io_init(struct hub_transport_io *io, struct uv_loop_s *loop,
    const struct state *state, const struct state_ways *ways)
{
    *io = (struct hub_transport_io){
        .state = state, .ways = ways, .due_at = NSEC_NEVER, .is_running = true};
    udp_probe_init(&io->probe, loop, on_answer, io);
}

void hub_transport_io_stop(struct hub_transport_io *io)
{
    if (!io->is_running)
        return;
    io->is_running = false;
    io->due_at = NSEC_NEVER;
    udp_probe_stop(&io->probe);
    io->stream = hub_stream_close(io->stream);
}

/* ---- the stream ----------------------------------------------------------------------------- */

static void open_stream(struct hub_transport_io *io, nsec_t now)
{
    const struct node *self = snapshot_self(&io->state->snapshot);
    struct hub_stream_config config = {.ways = io->ways,
        .api = &io->api,
        .network = self->meta.network,
        .secret = &io->state->secret,
        .node = &self->key,
        .hub = &io->hub_key};
    struct err e = ERR_NULL;

    if (io->listen_port == 0)
        return;
    if (io->ways->n_api == 0) {
        log_limited(&io->limit, now, LOG_LEVEL_WARNING,
            "UDP to the hub fails, and this node does not know the hub's TLS key: it joined with "
            "an older version; weft leave and weft join with a new token mend that");
        return;
    }
    if (hub_stream_open(&io->stream, &config, &e) < 0)
        log_limited(&io->limit, now, LOG_LEVEL_WARNING, "%s", err_text(&e));
}

static void see_stream(struct hub_transport_io *io)
{
    io->now = (struct hub_transport_stream){.exists = io->stream != NULL};
    if (!io->stream)
        return;
    io->now.endpoint = hub_stream_endpoint(io->stream);
    hub_stream_poll(io->stream, &io->now.status);
}

static void tell(const struct hub_transport_io *io)
{
    if (hub_transport_is_by_stream(&io->transport))
        log_warning("%s", io->transport.why);
    else
        log_info("UDP to the hub passes again, the stream is left");
}

static void tell_failure(struct hub_transport_io *io, nsec_t now)
{
    const struct hub_stream_status *status = &io->now.status;

    log_limited(&io->limit, now, LOG_LEVEL_WARNING, "UDP to the hub fails, and so does TLS%s%s: %s",
        status->through[0] ? " through " : "", status->through, status->why);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void take_answers(
    struct hub_transport_io *io, struct hub_transport_io_news *news, nsec_t now)
{
    for (unsigned i = 0; i < io->n_answered; i++)
        if (hub_transport_on_answer(&io->transport, &io->answered[i], now))
            news->answered[news->n_answered++] = io->answered[i];
    io->n_answered = 0;
}

static void find_request(struct hub_transport_io *io, const struct endpoint *to,
    struct hub_transport_io_news *news, nsec_t now)
{
    const struct udp_probe_request *rq = udp_probe_unanswered(&io->probe, to, OVERDUE, now);

    if (!rq || now - rq->sent_at > REMEMBERED)
        return;
    news->ask_heard = true;
    news->request = rq->id;
}

static void carry_out(
    struct hub_transport_io *io, const struct hub_transport_wish *wish, nsec_t now)
{
    for (unsigned i = 0; wish->ask && i < io->transport.n_ways; i++)
        udp_probe_ask(&io->probe, &io->transport.ways[i], now);
    if (wish->open_stream)
        open_stream(io, now);
    if (wish->has_failure)
        tell_failure(io, now);
    if (wish->has_changed)
        tell(io);
    if (wish->close_stream)
        io->stream = hub_stream_close(io->stream);
    if (wish->join_stream && io->stream)
        hub_stream_join(io->stream, io->listen_port);
}

struct hub_transport_io_news hub_transport_io_run(struct hub_transport_io *io, nsec_t now)
{
    struct hub_transport_io_news news = {.n_answered = 0};
    struct hub_transport_wish wish;

    if (!io->is_running)
        return news;
    if (io->due_at <= now)
        io->due_at = NSEC_NEVER;
    take_answers(io, &news, now);
    see_stream(io);
    wish = hub_transport_run(&io->transport, &io->now, now);
    carry_out(io, &wish, now);
    if (wish.ask_heard)
        find_request(io, &wish.heard_way, &news, now);
    if (wish.ask || io->stream)
        io->due_at = now + TRANSPORT_CHOICE_TICK;
    news.has_changed = wish.has_changed;
    return news;
}

struct hub_transport_io_news hub_transport_io_poll(
    struct hub_transport_io *io, const struct hub_transport_io_view *view, nsec_t now)
{
    if (!view->node || !io->is_running)
        return (struct hub_transport_io_news){.n_answered = 0};
    hub_ways_list_api(&io->api, io->ways, view->node->hub);
    if (io->stream)
        hub_stream_set_api(io->stream, &io->api);
    io->hub_address = view->node->address4;
    io->hub_key = view->node->key;
    io->listen_port = view->listen_port;
    see_stream(io);
    hub_transport_poll(&io->transport, &view->hub, &io->now, now);
    return hub_transport_io_run(io, now);
}

void hub_transport_io_on_asked(struct hub_transport_io *io, nsec_t now)
{
    hub_transport_on_asked(&io->transport, now);
}

void hub_transport_io_on_heard(struct hub_transport_io *io, const struct endpoint *from)
{
    if (hub_transport_on_heard(&io->transport, from, &io->now))
        log_warning("%s", io->transport.why);
}

void hub_transport_io_speak(struct hub_transport_io *io, nsec_t now)
{
    struct endpoint inside = {.addr = io->hub_address, .port = io->transport.ways[0].port};

    udp_probe_ask(&io->probe, &inside, now);
}

bool hub_transport_io_is_settled(const struct hub_transport_io *io)
{
    return io->transport.silent_since == 0 && !hub_transport_is_by_stream(&io->transport) &&
           !io->stream;
}

const char *hub_transport_io_failure(const struct hub_transport_io *io)
{
    const struct hub_stream_status *status = &io->now.status;

    return io->stream && !status->is_open && status->why[0] != '\0' ? status->why : NULL;
}

struct endpoint hub_transport_io_endpoint(const struct hub_transport_io *io)
{
    if (!hub_transport_is_by_stream(&io->transport) || !io->stream)
        return (struct endpoint){.port = 0};
    return hub_stream_endpoint(io->stream);
}
