/* probe_answers.c - see probe_answers.h. */
#include "hub/overlay/probe_answers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/secret.h"
#include "hub/overlay/overlay_internal.h"
#include "os/clock.h"
#include "os/rng_kernel.h"
#include "path/pmtu.h"
#include "port/frame_socket.h"
#include "wire/path.h"

/* Frames taken in one turn of the loop. */
#define FRAMES_PER_TURN 256

/* Of one member: a search sends up to a dozen at once, and some rounds of it follow each other. */
#define EACH_MEMBER  (NSEC_PER_SEC / 16)
#define BURST_MEMBER 64

/* Of all: each costs the loop some 20 us, and the data threads a moment: DF is set for all. */
#define EACH_OF_ALL  (NSEC_PER_SEC / 2000)
#define BURST_OF_ALL 2000

static bool has_keys(struct overlay_node *node)
{
    const struct hub_network *hub = node->network->hub;
    struct path_keys *keys = node->probes.keys;

    if (keys)
        return true;
    keys = malloc(sizeof(*keys));
    if (!keys || !path_keys_derive(keys, &hub->secret, &hub->public, &node->key)) {
        free(keys);
        return false;
    }
    node->probes.keys = keys;
    return true;
}

/* What the member says that it has found; never by an older frame that somebody has kept. */
static void take_mtu(struct overlay_node *node, const struct path_frame *probe)
{
    if (probe->sequence <= node->probes.sequence)
        return;
    node->probes.sequence = probe->sequence;
    if (probe->size == 0 || (probe->size >= PMTU_INNER_FLOOR && probe->size <= PATH_FRAME_MAX))
        overlay__set_mtu(node, probe->size);
}

/* As long as the probe, and the same way back. */
static void answer(struct probe_answers *pa, const struct overlay_node *node,
    struct probe_answers_frame *msg, const struct path_frame *probe, size_t len)
{
    struct path_frame ack = {.kind = PATH_FRAME_PROBE_ACK,
        .size = (uint16_t)len,
        .transaction = probe->transaction,
        .session = pa->run,
        .echo = probe->session,
        .sequence = ++pa->sequence,
        .clock = probe->clock};
    struct rng rng = rng_kernel();
    struct xchacha_nonce nonce;

    rng_fill(&rng, nonce.b, sizeof(nonce.b));
    if (!path_frame_seal(node->probes.keys, &ack, &nonce, len, msg->frame))
        return;
    msg->header.flags = FRAME_SOCKET_DONT_FRAGMENT;
    /* One that finds no room is lost, as it may be on its way. */
    (void)send(pa->fd, msg, sizeof(msg->header) + len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A frame with that member's tag. */
static void take_probe(struct probe_answers *pa, struct overlay_node *node,
    struct probe_answers_frame *msg, size_t len, nsec_t now)
{
    struct path_frame probe;

    if (!rate_take(&node->probes.rate, now, EACH_MEMBER, BURST_MEMBER) ||
        !rate_take(&pa->rate, now, EACH_OF_ALL, BURST_OF_ALL) ||
        !path_frame_open(node->probes.keys, msg->frame, len, &probe) ||
        probe.kind != PATH_FRAME_PROBE || (probe.flags & PATH_FRAME_WHOLE) == 0)
        return;
    take_mtu(node, &probe);
    answer(pa, node, msg, &probe, len);
}

void probe_answers__take(
    struct probe_answers *pa, struct probe_answers_frame *msg, size_t len, nsec_t now)
{
    struct endpoint from = {.port = msg->header.port};
    struct overlay_node *nodes[OVERLAY_SHARED_MAX];
    struct path_tag tag;
    unsigned n;

    if (!path_frame_read_tag(msg->frame, len, &tag))
        return;
    memcpy(from.addr.b, msg->header.remote, sizeof(from.addr.b));
    if (ip_addr_is_link_local(&from.addr) && !ip_addr_is_v4(&from.addr))
        from.scope = msg->header.ifindex;
    n = overlay__nodes_at(pa->overlay, &from, nodes);
    for (unsigned i = 0; i < n; i++)
        if (has_keys(nodes[i]) &&
            secret_equal(nodes[i]->probes.keys->receive_tag.b, tag.b, sizeof(tag.b)))
            take_probe(pa, nodes[i], msg, len, now);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct probe_answers *pa = poll->data;
    struct probe_answers_frame msg;
    nsec_t now = clock_now();

    for (unsigned i = 0; i < FRAMES_PER_TURN; i++) {
        ssize_t n = recv(pa->fd, &msg, sizeof(msg), MSG_DONTWAIT | MSG_TRUNC);

        if (n <= 0)
            return;
        if ((size_t)n > sizeof(msg.header) && (size_t)n <= sizeof(msg))
            probe_answers__take(pa, &msg, (size_t)n - sizeof(msg.header), now);
    }
}

int probe_answers_open(struct probe_answers *pa, struct overlay *o, struct err *e)
{
    struct rng rng = rng_kernel();
    int r;

    *pa = (struct probe_answers){.overlay = o, .fd = -1, .run = rng_u64(&rng) | 1};
    r = frame_socket_join(&pa->frames, o->port, &pa->fd, e);
    if (r < 0)
        return r;
    (void)uv_poll_init(o->loop, &pa->poll, pa->fd);
    pa->poll.data = pa;
    (void)uv_poll_start(&pa->poll, UV_READABLE, on_readable);
    return 0;
}

void probe_answers_close(struct probe_answers *pa)
{
    if (!pa->frames)
        return;
    (void)uv_poll_stop(&pa->poll);
    uv_close((uv_handle_t *)&pa->poll, NULL);
    pa->frames = frame_socket_free(pa->frames);
    (void)close(pa->fd);
    pa->fd = -1;
}
