/* hub_transport_io.c - see hub_transport_io.h. */
#include "agent/hublink/hub_transport_io.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/client.h"
#include "base/err.h"
#include "base/secret.h"
#include "mesh/snapshot/snapshot.h"
#include "net/socket/stream_pump.h"
#include "os/clock.h"
#include "os/worker.h"
#include "wire/stream.h"

/* ---- a stream in TLS ------------------------------------------------------------------------- */

/*
 * The node's end of a stream: its datagrams to the hub, in TLS
 * (docs/wire/stream.md).
 *
 * Theory of operation. A UDP socket on loopback takes what WireGuard would send
 * to the hub; a thread carries it to the hub's API port and back, through an
 * HTTP proxy if there is one. When the connection ends it makes another, later
 * and later while that fails; the socket stays, so WireGuard notices nothing
 * but lost packets. Datagrams that come from another port than WireGuard's are
 * dropped.
 *
 * Threads: the thread owns the connection; the rest may be called from the one
 * thread that opened it.
 */

#define PROTOCOL "weft-stream"

#define CONNECT_TIMEOUT_MS 5000
#define RETRY_FIRST        (250 * NSEC_PER_MSEC)
#define RETRY_MAX          (8 * NSEC_PER_SEC)
/* After a connection that lasted this long the next try begins with the shortest wait. */
#define GOOD_TIME (10 * NSEC_PER_SEC)

/* docs/wire/stream.md, "Frames". */
#define KEEPALIVE_EACH (10 * NSEC_PER_SEC)
#define SILENCE_MAX    (25 * NSEC_PER_SEC)

struct hub_stream {
    /* Immutable after the start. */
    struct state_hub_api hub_api;
    char path[NAME_MAX_LEN + 16];
    char claim[STREAM_PROOF_TEXT_MAX]; /* secret */
    struct endpoint local;             /* of the UDP end: where WireGuard has to send for the hub */
    struct worker *worker;             /* owns; its loop carries */

    /* Written by the thread; only the UDP socket's address may be set by others. */
    struct stream_pump pump;
    struct client_upgrade *bytes; /* owns; NULL: not connected */
    nsec_t heard_at;              /* time when bytes last came */
    nsec_t keepalive_at;          /* time of the next keepalive frame */

    pthread_mutex_t lock;            /* guards what follows */
    struct hub_stream_status status; /* written by the thread, read by others */
    struct hub_api_list api;         /* written by others, read by the thread */
};

/* ---- status ---------------------------------------------------------------------------------- */

static void stream_tell(struct hub_stream *hs, bool is_open, const char *why)
{
    (void)pthread_mutex_lock(&hs->lock);
    hs->status.is_open = is_open;
    (void)snprintf(hs->status.why, sizeof(hs->status.why), "%s", why);
    (void)pthread_mutex_unlock(&hs->lock);
}

/* ---- the connection -------------------------------------------------------------------------- */

static bool is_unwanted(const void *ctx)
{
    return worker_is_ending(((const struct hub_stream *)ctx)->worker);
}

static int connect_by(struct hub_stream *hs, const char *to, const char *proxy, struct err *e)
{
    struct client_target target = {
        .access = CLIENT_ACCESS_HTTPS, .address = to, .pin = hs->hub_api.pin, .proxy = proxy};
    struct client_upgrade_options opt = {.target = &target,
        .path = hs->path,
        .protocol = PROTOCOL,
        .authorization = hs->claim,
        .timeout_ms = CONNECT_TIMEOUT_MS,
        .is_unwanted = is_unwanted,
        .ctx = hs};
    int r;

    (void)pthread_mutex_lock(&hs->lock);
    (void)snprintf(hs->status.to, sizeof(hs->status.to), "%s", to);
    hs->status.through[0] = '\0';
    hs->status.passed_over[0] = '\0';
    if (proxy)
        (void)proxy_name(proxy, hs->status.through);
    (void)pthread_mutex_unlock(&hs->lock);
    r = client_upgrade_open(&hs->bytes, &opt, e);
    (void)pthread_mutex_lock(&hs->lock);
    hs->status.is_refused = r == CLIENT_E_REFUSED || r == CLIENT_E_UNTRUSTED;
    (void)pthread_mutex_unlock(&hs->lock);
    return r;
}

/* Tries each of the hub's addresses: through the proxy if there is one, and then without. */
static int connect_any(struct hub_stream *hs, struct err *e)
{
    const char *proxy = hs->hub_api.proxy[0] ? hs->hub_api.proxy : NULL;
    struct hub_api_list api;
    int r = -ENOENT;

    (void)pthread_mutex_lock(&hs->lock);
    api = hs->api;
    (void)pthread_mutex_unlock(&hs->lock);
    for (unsigned i = 0; i < api.n && !is_unwanted(hs); i++) {
        r = connect_by(hs, api.items[i], proxy, e);
        if (r != 0 && proxy && !is_unwanted(hs)) {
            struct err ignored = ERR_NULL;

            r = connect_by(hs, api.items[i], NULL, &ignored);
            if (r == 0) {
                char name[PROXY_TEXT_MAX];

                /* The proxy does not lead to the hub, and the way without it does. */
                (void)pthread_mutex_lock(&hs->lock);
                (void)snprintf(hs->status.passed_over, sizeof(hs->status.passed_over),
                    "%.80s: %.160s", proxy_name(proxy, name), err_text(e));
                (void)pthread_mutex_unlock(&hs->lock);
            }
        }
        if (r == 0)
            break;
    }
    return r;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static ssize_t read_bytes(void *ctx, void *buf, size_t cap)
{
    struct hub_stream *hs = ctx;
    ssize_t n = client_upgrade_read(hs->bytes, buf, cap);

    if (n > 0)
        hs->heard_at = clock_now();
    return n;
}

static ssize_t write_bytes(void *ctx, const void *buf, size_t len)
{
    const struct hub_stream *hs = ctx;

    return client_upgrade_write(hs->bytes, buf, len);
}

/* One turn. Return: 0, STREAM_PUMP_E_MORE, or the reason why the connection has ended. */
static int stream_move(struct hub_stream *hs)
{
    struct stream_bytes bytes = {.read = read_bytes, .write = write_bytes, .ctx = hs};
    nsec_t now = clock_now();
    int in;
    int out;

    if (now >= hs->keepalive_at) {
        hs->pump.owes_heartbeat = true;
        hs->keepalive_at = now + KEEPALIVE_EACH;
    }
    in = stream_pump_inward(&hs->pump, &bytes);
    if (in != 0 && in != STREAM_PUMP_E_MORE)
        return in;
    out = stream_pump_outward(&hs->pump, &bytes);
    if (out != 0 && out != STREAM_PUMP_E_MORE)
        return out;
    if (now - hs->heard_at >= SILENCE_MAX)
        return -ETIMEDOUT;
    return in == STREAM_PUMP_E_MORE ? in : out;
}

static const char *why_ended(int r)
{
    switch (r) {
    case STREAM_PUMP_E_ENDED:
        return "the hub has closed it";
    case STREAM_PUMP_E_GARBAGE:
        return "what the hub sent is not a frame";
    case -ETIMEDOUT:
        return "the hub is silent";
    }
    return "the connection is lost";
}

/* Carries datagrams until the connection ends. */
static void carry(struct hub_stream *hs)
{
    int r = STREAM_PUMP_E_MORE; /* what came together with the hub's answer waits already */

    hs->heard_at = clock_now();
    hs->keepalive_at = hs->heard_at + KEEPALIVE_EACH;
    stream_pump_restart(&hs->pump);
    stream_tell(hs, true, "");
    while (!is_unwanted(hs) && (r == 0 || r == STREAM_PUMP_E_MORE)) {
        if (r == 0) {
            bool is_full = stream_pump_is_full(&hs->pump);
            struct pollfd fds[] = {
                {.fd = client_upgrade_fd(hs->bytes),
                    .events = (short)(POLLIN | (is_full ? POLLOUT : 0))},
                {.fd = is_full ? -1 : hs->pump.udp_fd, .events = POLLIN},
                {.fd = worker_fd(hs->worker), .events = POLLIN},
            };
            nsec_t wait = nsec_min(hs->keepalive_at, hs->heard_at + SILENCE_MAX) - clock_now();

            /* Waits until bytes can be read or written, a keepalive frame is due, or another thread
             * wakes it. */
            (void)poll(fds, 3, (int)(nsec_max(wait, 0) / NSEC_PER_MSEC) + 1);
        }
        r = stream_move(hs);
    }
    stream_tell(hs, false, why_ended(r));
    hs->bytes = client_upgrade_close(hs->bytes);
}

static void stream_run(struct worker *w, void *ctx)
{
    struct hub_stream *hs = ctx;
    struct rng rng = rng_kernel();
    nsec_t retry = RETRY_FIRST;

    while (!is_unwanted(hs)) {
        nsec_t begun = clock_now();
        struct err e = ERR_NULL;
        uint64_t half;

        if (connect_any(hs, &e) == 0)
            carry(hs);
        else
            stream_tell(hs, false, err_text(&e));
        if (clock_now() - begun >= GOOD_TIME + CONNECT_TIMEOUT_MS * NSEC_PER_MSEC)
            retry = RETRY_FIRST;
        /* A random time between half of @retry and all of it, so that nodes do not all connect at
         * once. */
        half = (uint64_t)(retry / 2 / NSEC_PER_MSEC);
        retry = nsec_min(retry * 2, RETRY_MAX);
        worker_wait(
            hs->worker, clock_now() + (nsec_t)(half + rng_u64(&rng) % (half + 1)) * NSEC_PER_MSEC);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static void make_free(struct hub_stream *hs)
{
    stream_pump_close(&hs->pump);
    (void)pthread_mutex_destroy(&hs->lock);
    secret_wipe(hs->claim, sizeof(hs->claim));
    free(hs);
}

static int stream_start(struct hub_stream *hs, const struct hub_transport_io *io, struct err *e)
{
    const struct x25519_public *own = &snapshot_self(&io->state->snapshot)->key;
    struct endpoint any = {.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1})};
    struct endpoint nobody = {.port = 0};
    struct stream_claim claim = {.node = *own};
    int r;

    if (!stream_proof_make(&claim.proof, &io->state->secret, &io->hub_key, own))
        return err_set(e, -EINVAL, "the hub's key is none that anybody can have");
    (void)stream_claim_format(&claim, hs->claim);
    secret_wipe(&claim, sizeof(claim));
    r = stream_pump_open(&hs->pump, &any, &nobody, false, e);
    if (r < 0)
        return r;
    hs->local = stream_pump_local(&hs->pump);
    r = worker_start(
        &hs->worker, &(struct worker_config){.name = "stream", .loop = stream_run, .ctx = hs});
    return r < 0 ? err_set(e, r, "the stream's thread does not start: %s", strerror(-r)) : 0;
}

/* Begins to connect, in a thread. */
static int hub_stream_open(
    struct hub_stream **ret, const struct hub_transport_io *io, struct err *e)
{
    struct hub_stream *hs = calloc(1, sizeof(*hs));
    int r;

    if (!hs)
        return err_set(e, -ENOMEM, "no memory for a stream");
    hs->hub_api = *io->hub_api;
    hs->api = io->api;
    hs->pump = (struct stream_pump)STREAM_PUMP_NULL;
    (void)pthread_mutex_init(&hs->lock, NULL);
    (void)snprintf(hs->path, sizeof(hs->path), "/v1/stream/%s",
        snapshot_self(&io->state->snapshot)->meta.network);
    r = stream_start(hs, io, e);
    if (r < 0) {
        make_free(hs);
        return r;
    }
    *ret = hs;
    return 0;
}

/* Waits for its thread, a second at most. */
static struct hub_stream *hub_stream_close(struct hub_stream *hs)
{
    if (!hs)
        return NULL;
    hs->worker = worker_stop(hs->worker);
    make_free(hs);
    return NULL;
}

/* ---- the transport --------------------------------------------------------------------------- */

/* A request that is not answered after this time will not be. */
#define OVERDUE (1500 * NSEC_PER_MSEC)

/* The hub remembers requests for longer (filter/relay.h). */
#define REMEMBERED (15 * NSEC_PER_SEC)

/* Called from the loop: what follows is for the next run, which is due at once. */
static void on_answer(void *ctx, const struct endpoint *to, nsec_t rtt)
{
    struct hub_transport_io *io = ctx;

    for (unsigned i = 0; i < io->n_answered; i++)
        if (endpoint_equal(to, &io->answered[i]))
            return;
    if (io->n_answered == HUB_ENDPOINTS_MAX)
        return;
    io->answered[io->n_answered++] = *to;
    io->due_at = 0;
}

void hub_transport_io_init(struct hub_transport_io *io, struct uv_loop_s *loop,
    const struct state *state, const struct state_hub_api *hub_api)
{
    *io = (struct hub_transport_io){
        .state = state, .hub_api = hub_api, .due_at = NSEC_NEVER, .is_running = true};
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

/* ---- the stream ------------------------------------------------------------------------------ */

static void open_stream(struct hub_transport_io *io, nsec_t now)
{
    struct err e = ERR_NULL;

    if (io->listen_port == 0)
        return;
    if (io->hub_api->n_api == 0) {
        log_limited(&io->limit, now, LOG_LEVEL_WARNING,
            "UDP to the hub fails, and this node does not know the hub's TLS key: it joined with "
            "an older version; weft leave and weft join with a new token mend that");
        return;
    }
    if (hub_stream_open(&io->stream, io, &e) < 0)
        log_limited(&io->limit, now, LOG_LEVEL_WARNING, "%s", err_text(&e));
}

static void see_stream(struct hub_transport_io *io)
{
    io->now = (struct hub_transport_stream){.exists = io->stream != NULL};
    if (!io->stream)
        return;
    io->now.endpoint = io->stream->local;
    (void)pthread_mutex_lock(&io->stream->lock);
    io->now.status = io->stream->status;
    (void)pthread_mutex_unlock(&io->stream->lock);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void carry_out(
    struct hub_transport_io *io, const struct hub_transport_actions *actions, nsec_t now)
{
    const struct hub_stream_status *status = &io->now.status;
    struct endpoint wireguard = {
        .addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1}), .port = io->listen_port};

    for (unsigned i = 0; actions->ask && i < io->transport.n_endpoints; i++)
        udp_probe_ask(&io->probe, &io->transport.endpoints[i], now);
    if (actions->open_stream)
        open_stream(io, now);
    if (actions->has_failure)
        log_limited(&io->limit, now, LOG_LEVEL_WARNING,
            "UDP to the hub fails, and so does TLS%s%s: %s", status->through[0] ? " through " : "",
            status->through, status->why);
    if (actions->has_changed && io->transport.choice.by_stream)
        log_warning("%s", io->transport.why);
    else if (actions->has_changed)
        log_info("UDP to the hub passes again, the stream is left");
    if (actions->close_stream)
        io->stream = hub_stream_close(io->stream);
    /* It carries WireGuard's datagrams from then on; until then none passes either way. */
    if (actions->join_stream && io->stream && io->listen_port != 0)
        (void)stream_pump_connect(&io->stream->pump, &wireguard);
}

struct hub_transport_io_result hub_transport_io_run(struct hub_transport_io *io, nsec_t now)
{
    struct hub_transport_io_result result = {.n_answered = 0};
    struct hub_transport_actions actions;
    const struct udp_probe_request *rq = NULL;

    if (!io->is_running)
        return result;
    if (io->due_at <= now)
        io->due_at = NSEC_NEVER;
    for (unsigned i = 0; i < io->n_answered; i++)
        if (hub_transport_on_answer(&io->transport, &io->answered[i], now))
            result.answered[result.n_answered++] = io->answered[i];
    io->n_answered = 0;
    see_stream(io);
    actions = hub_transport_run(&io->transport, &io->now, now);
    carry_out(io, &actions, now);
    if (actions.ask_heard)
        rq = udp_probe_unanswered(&io->probe, &actions.heard_way, OVERDUE, now);
    if (rq && now - rq->sent_at <= REMEMBERED) {
        result.ask_heard = true;
        result.request = rq->id;
    }
    if (actions.ask || io->stream)
        io->due_at = now + TRANSPORT_CHOICE_TICK;
    result.has_changed = actions.has_changed;
    return result;
}

struct hub_transport_io_result hub_transport_io_poll(struct hub_transport_io *io,
    const struct hub_transport_view *view, const struct node *node, uint16_t listen_port,
    nsec_t now)
{
    if (!node || !io->is_running)
        return (struct hub_transport_io_result){.n_answered = 0};
    hub_api_list_make(&io->api, io->hub_api, node->hub);
    if (io->stream) {
        (void)pthread_mutex_lock(&io->stream->lock);
        io->stream->api = io->api;
        (void)pthread_mutex_unlock(&io->stream->lock);
    }
    io->hub_address = node->address4;
    io->hub_key = node->key;
    io->listen_port = listen_port;
    see_stream(io);
    hub_transport_poll(&io->transport, view, &io->now, now);
    return hub_transport_io_run(io, now);
}

void hub_transport_io_on_heard(struct hub_transport_io *io, const struct endpoint *from)
{
    if (hub_transport_on_heard(&io->transport, from, &io->now))
        log_warning("%s", io->transport.why);
}

void hub_transport_io_speak(struct hub_transport_io *io, nsec_t now)
{
    struct endpoint inside = {.addr = io->hub_address, .port = io->transport.endpoints[0].port};

    udp_probe_ask(&io->probe, &inside, now);
}

bool hub_transport_io_is_settled(const struct hub_transport_io *io)
{
    return io->transport.silent_since == 0 && !io->transport.choice.by_stream && !io->stream;
}

const char *hub_transport_io_failure(const struct hub_transport_io *io)
{
    const struct hub_stream_status *status = &io->now.status;

    return io->stream && !status->is_open && status->why[0] != '\0' ? status->why : NULL;
}

struct endpoint hub_transport_io_endpoint(const struct hub_transport_io *io)
{
    bool is_used = io->transport.choice.by_stream && io->stream;

    return is_used ? io->stream->local : (struct endpoint){.port = 0};
}
