/* hub_stream.c - see hub_stream.h. */
#include "agent/hublink/hub_stream.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/client/client_upgrade.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/secret.h"
#include "net/socket/stream_pump.h"
#include "os/clock.h"
#include "os/rng_kernel.h"
#include "os/thread.h"
#include "os/wakeup.h"
#include "wire/stream_proof.h"

#define PROTOCOL "weft-stream"

#define CONNECT_TIMEOUT_MS 5000
#define RETRY_FIRST        (250 * NSEC_PER_MSEC)
#define RETRY_MAX          (8 * NSEC_PER_SEC)
/* After a connection that lasted this long the next try begins with the shortest wait. */
#define GOOD_TIME (10 * NSEC_PER_SEC)

/* docs/wire/stream.md, "Frames". */
#define BEAT_EACH   (10 * NSEC_PER_SEC)
#define SILENCE_MAX (25 * NSEC_PER_SEC)

struct hub_stream {
    /* Immutable after the start. */
    struct state_ways ways;
    char path[NAME_MAX_LEN + 16];
    char claim[STREAM_PROOF_TEXT_MAX]; /* secret */
    struct endpoint local;             /* of the UDP end */
    int wake_fd;                       /* owns: see os/wakeup.h */
    pthread_t thread;

    _Atomic bool is_ending; /* set before the thread is woken */

    /* Written by the thread; only the UDP socket's address may be set by others. */
    struct stream_pump pump;
    struct client_upgrade *bytes; /* owns; NULL: not connected */
    nsec_t heard_at;              /* time when bytes last came */
    nsec_t beat_at;               /* time of the next keepalive frame */

    pthread_mutex_t lock;            /* guards what follows */
    struct hub_stream_status status; /* written by the thread, read by others */
    struct hub_ways_api api;         /* written by others, read by the thread */
};

/* ---- status --------------------------------------------------------------------------------- */

static void tell(struct hub_stream *hs, bool is_open, const char *why)
{
    (void)pthread_mutex_lock(&hs->lock);
    hs->status.is_open = is_open;
    (void)snprintf(hs->status.why, sizeof(hs->status.why), "%s", why);
    (void)pthread_mutex_unlock(&hs->lock);
}

static void tell_way(struct hub_stream *hs, const char *to, const char *proxy)
{
    (void)pthread_mutex_lock(&hs->lock);
    (void)snprintf(hs->status.to, sizeof(hs->status.to), "%s", to);
    hs->status.through[0] = '\0';
    hs->status.passed_over[0] = '\0';
    if (proxy)
        (void)proxy_name(proxy, hs->status.through);
    (void)pthread_mutex_unlock(&hs->lock);
}

/* The proxy does not lead to the hub, and the way without it does. */
static void tell_passed_over(struct hub_stream *hs, const char *proxy, const struct err *e)
{
    char name[PROXY_TEXT_MAX];

    (void)pthread_mutex_lock(&hs->lock);
    (void)snprintf(hs->status.passed_over, sizeof(hs->status.passed_over), "%.80s: %.160s",
        proxy_name(proxy, name), err_text(e));
    (void)pthread_mutex_unlock(&hs->lock);
}

void hub_stream_poll(struct hub_stream *hs, struct hub_stream_status *ret)
{
    (void)pthread_mutex_lock(&hs->lock);
    *ret = hs->status;
    (void)pthread_mutex_unlock(&hs->lock);
}

/* ---- the connection ------------------------------------------------------------------------- */

static bool is_unwanted(const void *ctx)
{
    const struct hub_stream *hs = ctx;

    return atomic_load(&hs->is_ending);
}

static int connect_by(struct hub_stream *hs, const char *to, const char *proxy, struct err *e)
{
    struct client_target target = {
        .access = CLIENT_ACCESS_HTTPS, .address = to, .pin = hs->ways.pin, .proxy = proxy};
    struct client_upgrade_wish wish = {.target = &target,
        .path = hs->path,
        .protocol = PROTOCOL,
        .authorization = hs->claim,
        .timeout_ms = CONNECT_TIMEOUT_MS,
        .is_unwanted = is_unwanted,
        .ctx = hs};

    tell_way(hs, to, proxy);
    return client_upgrade_open(&hs->bytes, &wish, e);
}

/* Tries each of the hub's addresses: through the proxy if there is one, and then without. */
static int connect_any(struct hub_stream *hs, struct err *e)
{
    const char *proxy = hs->ways.proxy[0] ? hs->ways.proxy : NULL;
    struct hub_ways_api api;
    int r = -ENOENT;

    (void)pthread_mutex_lock(&hs->lock);
    api = hs->api;
    (void)pthread_mutex_unlock(&hs->lock);
    for (unsigned i = 0; i < api.n && !is_unwanted(hs); i++) {
        r = connect_by(hs, api.items[i], proxy, e);
        if (r != 0 && proxy && !is_unwanted(hs)) {
            struct err ignored = ERR_NULL;

            r = connect_by(hs, api.items[i], NULL, &ignored);
            if (r == 0)
                tell_passed_over(hs, proxy, e);
        }
        if (r == 0)
            break;
    }
    return r;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

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

/* Waits until bytes can be read or written, a keepalive frame is due, or another thread wakes it.
 */
static void wait_for(struct hub_stream *hs)
{
    bool is_full = stream_pump_is_full(&hs->pump);
    struct pollfd fds[] = {
        {.fd = client_upgrade_fd(hs->bytes), .events = (short)(POLLIN | (is_full ? POLLOUT : 0))},
        {.fd = is_full ? -1 : hs->pump.udp_fd, .events = POLLIN},
        {.fd = hs->wake_fd, .events = POLLIN},
    };
    nsec_t wait = nsec_min(hs->beat_at, hs->heard_at + SILENCE_MAX) - clock_now();

    (void)poll(fds, 3, (int)(nsec_max(wait, 0) / NSEC_PER_MSEC) + 1);
}

/* One turn. Return: 0, STREAM_PUMP_E_MORE, or the reason why the connection has ended. */
static int move(struct hub_stream *hs)
{
    struct stream_bytes bytes = {.read = read_bytes, .write = write_bytes, .ctx = hs};
    nsec_t now = clock_now();
    int in;
    int out;

    if (now >= hs->beat_at) {
        stream_pump_beat(&hs->pump);
        hs->beat_at = now + BEAT_EACH;
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
    int r = 0;

    hs->heard_at = clock_now();
    hs->beat_at = hs->heard_at + BEAT_EACH;
    stream_pump_restart(&hs->pump);
    tell(hs, true, "");
    while (!is_unwanted(hs) && (r == 0 || r == STREAM_PUMP_E_MORE)) {
        if (r == 0)
            wait_for(hs);
        r = move(hs);
    }
    tell(hs, false, why_ended(r));
    hs->bytes = client_upgrade_close(hs->bytes);
}

/* Waits for a random time between half of *@retry and all of it, so that nodes do not all connect
 * at once. Doubles *@retry. */
static void pause_for(struct hub_stream *hs, nsec_t *retry)
{
    struct pollfd wake = {.fd = hs->wake_fd, .events = POLLIN};
    struct rng rng = rng_kernel();
    uint64_t half = (uint64_t)(*retry / 2 / NSEC_PER_MSEC);

    *retry = nsec_min(*retry * 2, RETRY_MAX);
    (void)poll(&wake, 1, (int)(half + rng_u64(&rng) % (half + 1)));
}

static void *run(void *arg)
{
    struct hub_stream *hs = arg;
    nsec_t retry = RETRY_FIRST;

    while (!is_unwanted(hs)) {
        nsec_t begun = clock_now();
        struct err e = ERR_NULL;

        if (connect_any(hs, &e) == 0)
            carry(hs);
        else
            tell(hs, false, err_text(&e));
        if (clock_now() - begun >= GOOD_TIME + CONNECT_TIMEOUT_MS * NSEC_PER_MSEC)
            retry = RETRY_FIRST;
        pause_for(hs, &retry);
    }
    return NULL;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void make_free(struct hub_stream *hs)
{
    stream_pump_close(&hs->pump);
    if (hs->wake_fd >= 0)
        (void)close(hs->wake_fd);
    (void)pthread_mutex_destroy(&hs->lock);
    secret_wipe(hs->claim, sizeof(hs->claim));
    free(hs);
}

static int make_claim(struct hub_stream *hs, const struct hub_stream_config *config, struct err *e)
{
    struct stream_claim claim = {.node = *config->node};

    if (!stream_proof_make(&claim.proof, config->secret, config->hub, config->node))
        return err_set(e, -EINVAL, "the hub's key is none that anybody can have");
    (void)stream_claim_format(&claim, hs->claim);
    secret_wipe(&claim, sizeof(claim));
    return 0;
}

static int start(struct hub_stream *hs, const struct hub_stream_config *config, struct err *e)
{
    struct endpoint any = {.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1})};
    struct endpoint nobody = {.port = 0};
    int r = make_claim(hs, config, e);

    if (r == 0)
        r = stream_pump_open(&hs->pump, &any, &nobody, false, e);
    if (r < 0)
        return r;
    hs->local = stream_pump_local(&hs->pump);
    hs->wake_fd = wakeup_open();
    r = hs->wake_fd < 0 ? hs->wake_fd : thread_start(&hs->thread, "stream", -1, run, hs);
    return r < 0 ? err_set(e, r, "the stream's thread does not start: %s", strerror(-r)) : 0;
}

int hub_stream_open(struct hub_stream **ret, const struct hub_stream_config *config, struct err *e)
{
    struct hub_stream *hs = calloc(1, sizeof(*hs));
    int r;

    if (!hs)
        return err_set(e, -ENOMEM, "no memory for a stream");
    hs->ways = *config->ways;
    hs->api = *config->api;
    hs->wake_fd = -1;
    hs->pump = (struct stream_pump)STREAM_PUMP_NULL;
    (void)pthread_mutex_init(&hs->lock, NULL);
    (void)snprintf(hs->path, sizeof(hs->path), "/v1/stream/%s", config->network);
    r = start(hs, config, e);
    if (r < 0) {
        make_free(hs);
        return r;
    }
    *ret = hs;
    return 0;
}

struct hub_stream *hub_stream_close(struct hub_stream *hs)
{
    if (!hs)
        return NULL;
    atomic_store(&hs->is_ending, true);
    wakeup_signal(hs->wake_fd);
    (void)pthread_join(hs->thread, NULL);
    make_free(hs);
    return NULL;
}

void hub_stream_join(struct hub_stream *hs, uint16_t port)
{
    struct endpoint wireguard = {
        .addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1}), .port = port};

    if (port != 0)
        (void)stream_pump_connect(&hs->pump, &wireguard);
}

void hub_stream_set_api(struct hub_stream *hs, const struct hub_ways_api *api)
{
    (void)pthread_mutex_lock(&hs->lock);
    hs->api = *api;
    (void)pthread_mutex_unlock(&hs->lock);
}

struct endpoint hub_stream_endpoint(const struct hub_stream *hs)
{
    return hs->local;
}
