/* bulk.c - see bulk.h. */
#include "measure/bulk.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "measure/line.h"
#include "measure/transfer.h"
#include "os/clock.h"

#define DIAL_TIME     (1500 * NSEC_PER_MSEC)
#define UNDERLAY_TIME (800 * NSEC_PER_MSEC)
#define DRAIN_TIME    (1500 * NSEC_PER_MSEC) /* after the end, for data that is still in flight */

/* ---- the peer's side ----------------------------------------------------------------------- */

void bulk_serve(int fd, const struct order *o)
{
    nsec_t duration = (nsec_t)o->ms * NSEC_PER_MSEC;
    nsec_t now = clock_now();
    struct transfer_stream stream = {.fd = fd, .sends = o->kind == ORDER_SOURCE};
    struct transfer t = {.streams = &stream,
        .n_streams = 1,
        .bytes_max = stream.sends ? o->bytes : ORDER_BYTES_MAX,
        .duration = duration,
        .deadline = now + duration + DRAIN_TIME / 2};
    json_t *json;

    if (transfer_run(&t) < 0 || stream.sends)
        return;
    json = json_pack("{s:I, s:I}", "bytes", (json_int_t)t.received.bytes, "bitsPerSecond",
        (json_int_t)t.received.bits_per_s);
    (void)line_write(fd, json, clock_now() + NSEC_PER_SEC, NULL);
    json_decref(json);
}

/* ---- the measuring member's side ----------------------------------------------------------- */

/* The connections of one transfer. When both directions are measured, we send on the first half of
 * them and receive on the second half. */
struct lanes {
    struct transfer_stream streams[2 * ORDER_STREAMS_MAX];
    size_t n;
};

static void close_lanes(struct lanes *l)
{
    for (size_t i = 0; i < l->n; i++)
        (void)close(l->streams[i].fd);
    l->n = 0;
}

static int open_lanes(
    struct lanes *l, const struct dial_target *to, const struct order *o, bool sends, struct err *e)
{
    struct order data = {
        .kind = sends ? ORDER_SINK : ORDER_SOURCE, .ms = o->ms, .bytes = o->bytes / o->streams};
    int fds[ORDER_STREAMS_MAX];
    int r;

    if (data.bytes == 0)
        data.bytes = 1;
    r = dial_all(to, &data, o->streams, clock_now() + DIAL_TIME, fds, e);
    for (uint32_t i = 0; r == 0 && i < o->streams; i++)
        l->streams[l->n++] = (struct transfer_stream){.fd = fds[i], .sends = sends};
    return r;
}

static uint32_t retransmits(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ? 0 : info.tcpi_total_retrans;
}

/* A count in a peer's answer; 0 when it is negative or impossibly large. */
static uint64_t count_of(const json_t *json, const char *field)
{
    json_int_t v = json_integer_value(json_object_get(json, field));

    return v < 0 || (uint64_t)v > ORDER_BYTES_MAX * 1024 ? 0 : (uint64_t)v;
}

/* Reads how much the peer has received on the connections on which we sent, and adds it up. */
static int collect(const struct lanes *l, struct flow *out, struct err *e)
{
    nsec_t deadline = clock_now() + DRAIN_TIME;

    for (size_t i = 0; i < l->n; i++) {
        _cleanup_(line_buffer_deinit) struct line_buffer lb = LINE_BUFFER_NULL;
        json_t *json;
        int r;

        if (!l->streams[i].sends)
            continue;
        r = line_read(&lb, l->streams[i].fd, deadline, &json, e);
        if (r < 0)
            return r;
        out->bytes += count_of(json, "bytes");
        out->bits_per_s += count_of(json, "bitsPerSecond");
        out->retransmits += retransmits(l->streams[i].fd);
        json_decref(json);
    }
    return 0;
}

static int transfer_all(struct bulk *ret, struct lanes *lanes, const struct order *o, struct err *e)
{
    nsec_t duration = (nsec_t)o->ms * NSEC_PER_MSEC;
    struct transfer t = {.streams = lanes->streams,
        .n_streams = lanes->n,
        .bytes_max = o->bytes,
        .duration = duration,
        .deadline = clock_now() + duration + DRAIN_TIME / 2};
    int r = transfer_run(&t);

    if (r < 0)
        return err_set(e, r, "no memory for a transfer");
    ret->in = t.received;
    return collect(lanes, &ret->out, e);
}

/* Can a peer have this address? Not when it is one of this machine's own, or a loopback, link-local
 * or multicast address. This holds wherever the address comes from. */
static bool is_fit(const struct ip_addr *a)
{
    static const char *const unfit[] = {
        "127.0.0.0/8", "0.0.0.0/8", "224.0.0.0/3", "::/127", "ff00::/8"};

    if (ip_addr_is_none(a) || ip_addr_is_link_local(a) || dial_is_own(a))
        return false;
    for (size_t i = 0; i < sizeof(unfit) / sizeof(*unfit); i++) {
        struct ip_prefix p;

        if (ip_prefix_parse(&p, unfit[i], NULL) < 0 || ip_prefix_has(&p, a))
            return false;
    }
    return true;
}

/* Changes @to to the peer's address outside the overlay, and to the port that the peer has opened
 * there for this session. */
static int find_underlay(struct dial_target *to, const struct ip_addr *underlay, struct err *e)
{
    static const struct order ask = {.kind = ORDER_PORT};
    json_t *answer = NULL;
    json_int_t port;
    int r;

    if (!is_fit(underlay))
        return err_set(e, -EHOSTUNREACH, "there is no direct path to it beside the overlay");
    r = dial_ask(to, &ask, clock_now() + DIAL_TIME, &answer, e);
    if (r < 0)
        return r;
    port = json_integer_value(json_object_get(answer, "port"));
    json_decref(answer);
    if (port < 1 || port > UINT16_MAX)
        return err_set(e, -EPROTO, "it names no port beside the overlay");
    to->interface = NULL;
    to->peer = *underlay;
    to->port = (uint16_t)port;
    return 0;
}

/* Connects once before anything is measured, to check that TCP passes there and that it is the peer
 * who answers. */
static int try_underlay(const struct dial_target *to, struct err *e)
{
    struct order sink = {.kind = ORDER_SINK, .ms = 1};
    int fd;
    int r = dial_data(to, &sink, clock_now() + UNDERLAY_TIME, &fd, NULL);

    if (r < 0)
        return err_set(e, r, "no TCP connection to it came about beside the overlay within 0.8 s");
    (void)close(fd);
    return 0;
}

void bulk_run(struct bulk *ret, const struct dial_target *to, const struct order *o,
    const struct ip_addr *underlay)
{
    struct dial_target end = *to;
    struct lanes lanes = {.n = 0};
    struct err e = ERR_NULL;
    int r = 0;

    *ret = (struct bulk){0};
    if (o->underlay)
        r = find_underlay(&end, underlay, &e);
    if (r == 0 && o->underlay)
        r = try_underlay(&end, &e);
    if (r == 0 && o->way != ORDER_IN)
        r = open_lanes(&lanes, &end, o, true, &e);
    if (r == 0 && o->way != ORDER_OUT)
        r = open_lanes(&lanes, &end, o, false, &e);
    if (r == 0)
        r = transfer_all(ret, &lanes, o, &e);
    close_lanes(&lanes);
    if (r < 0)
        (void)snprintf(ret->why, sizeof(ret->why), "%.*s", RESULT_WHY_MAX - 1, err_text(&e));
    else
        (void)ip_addr_format(&end.peer, ret->via);
}
