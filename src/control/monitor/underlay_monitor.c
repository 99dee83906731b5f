/* underlay_monitor.c - see underlay_monitor.h. */
#include "monitor/underlay_monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/secret.h"

/* Most frames that are read in one call, so that many of them do not delay the pings. */
#define FRAMES_A_TURN 256

/* So many pings without an answer, one after the other, at an endpoint that has answered: then the
 * others are asked, too. */
#define SUSPECT_AFTER 3

/* A frame of a member proves for so many rounds that what it sends arrives here. */
#define HEARD_ROUNDS 3

bool underlay_monitor_init(struct underlay_monitor *u, const struct x25519_secret *secret,
    nsec_t period, const struct rng *rng)
{
    *u = (struct underlay_monitor)UNDERLAY_MONITOR_NULL;
    if (!x25519_derive_public(secret, &u->public))
        return false;
    u->secret = *secret;
    u->rng = *rng;
    u->period = period;
    u->session = rng_u64(rng) | 1;
    return true;
}

int underlay_monitor_set_port(struct underlay_monitor *u, uint16_t port, struct err *e)
{
    int r;

    if (port == 0 || (u->udp.poll_fd >= 0 && u->udp.port == port))
        return 0;
    raw_udp_close(&u->udp);
    r = raw_udp_open(&u->udp, port);
    if (r < 0)
        return err_set(e, r, "no raw sockets beside UDP port %u: %s%s", port, strerror(-r),
            r == -EPERM || r == -EACCES ? "; it takes root, or CAP_NET_RAW" : "");
    return 0;
}

static void free_members(struct underlay_member *members, size_t n)
{
    for (size_t i = 0; i < n; i++)
        secret_wipe(&members[i].keys, sizeof(members[i].keys));
    free(members);
}

void underlay_monitor_close(struct underlay_monitor *u)
{
    raw_udp_close(&u->udp);
    secret_wipe(&u->secret, sizeof(u->secret));
    free_members(u->members, u->n);
    free(u->by_tag);
    *u = (struct underlay_monitor)UNDERLAY_MONITOR_NULL;
}

/* ---- the members ---------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(
        ((const struct underlay_member *)a)->name, ((const struct underlay_member *)b)->name);
}

/* What stands in front of each frame that the member sends. */
static const struct path_tag *tag_of(const struct underlay_member *m)
{
    return &m->keys.receive_tag;
}

static int compare_tags(const void *a, const void *b, void *ctx)
{
    const struct underlay_member *members = ctx;
    const struct path_tag *x = tag_of(&members[*(const size_t *)a]);
    const struct path_tag *y = tag_of(&members[*(const size_t *)b]);

    return memcmp(x->b, y->b, sizeof(x->b));
}

/* Takes over what is known of the member, or derives its keys. */
static void begin_member(struct underlay_monitor *u, struct underlay_member *m)
{
    const struct underlay_member *was =
        u->n > 0 ? bsearch(m, u->members, u->n, sizeof(*m), compare_names) : NULL;

    if (was && x25519_public_equal(&was->public, &m->public)) {
        const struct underlay_member now = *m;

        *m = *was;
        memcpy(m->at, now.at, sizeof(m->at));
        m->n_at = now.n_at;
        m->asked = m->asked < m->n_at ? m->asked : 0;
    } else {
        m->has_keys = path_keys_derive(&m->keys, &u->secret, &u->public, &m->public);
    }
}

int underlay_monitor_set(
    struct underlay_monitor *u, struct underlay_member *members, size_t n, nsec_t now)
{
    size_t *by_tag = calloc(n + 1, sizeof(*by_tag));

    if (!by_tag) {
        free_members(members, n);
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        begin_member(u, &members[i]);
        by_tag[i] = i;
    }
    qsort_r(by_tag, n, sizeof(*by_tag), compare_tags, members);
    if (n == 0)
        u->due_at = NSEC_NEVER;
    else if (u->n == 0) {
        u->due_at = now;
        u->cursor = rng_u32(&u->rng) % n;
    }
    if (u->cursor >= n)
        u->cursor = 0;
    free_members(u->members, u->n);
    free(u->by_tag);
    u->members = members;
    u->n = n;
    u->by_tag = by_tag;
    return 0;
}

static struct underlay_member *find_by_tag(
    const struct underlay_monitor *u, const struct path_tag *wanted)
{
    size_t low = 0;
    size_t high = u->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct underlay_member *m = &u->members[u->by_tag[middle]];
        const struct path_tag *has = tag_of(m);
        int order = memcmp(has->b, wanted->b, sizeof(has->b));

        if (order == 0)
            return m;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- asking --------------------------------------------------------------------------------- */

void underlay_monitor__on_ping(struct underlay_member *m, uint64_t transaction, nsec_t now)
{
    bool was_missed = m->sent_at != 0;
    bool keeps = m->reach == EDGE_REACH_REACHED && m->n_silent < SUSPECT_AFTER;
    unsigned enough = m->n_at > SUSPECT_AFTER ? m->n_at : SUSPECT_AFTER;

    if (was_missed)
        m->n_silent++;
    if (was_missed && !keeps)
        m->asked = (m->asked + 1) % m->n_at;
    if (m->reach == EDGE_REACH_REACHED)
        enough += SUSPECT_AFTER;
    if (m->n_silent >= enough)
        m->reach = EDGE_REACH_SILENT;
    if (m->reach != EDGE_REACH_REACHED)
        m->endpoint = m->at[m->asked];
    m->transaction = transaction;
    m->sent_at = now;
}

static void ask(struct underlay_monitor *u, struct underlay_member *m, nsec_t now)
{
    struct path_frame f = {.kind = PATH_FRAME_PING,
        .session = u->session,
        .sequence = ++u->n_sent,
        .clock = (uint64_t)now};
    struct raw_udp_packet to = {.remote = {.port = 0}};
    struct xchacha_nonce nonce;
    uint8_t out[PATH_FRAME_MIN];

    underlay_monitor__on_ping(m, rng_u64(&u->rng), now);
    f.transaction = m->transaction;
    rng_fill(&u->rng, &nonce, sizeof(nonce));
    to.remote = m->at[m->asked];
    /* A ping that could not be sent counts like a lost one. */
    if (path_frame_seal(&m->keys, &f, &nonce, sizeof(out), out))
        (void)raw_udp_send(&u->udp, &to, out, sizeof(out));
}

nsec_t underlay_monitor_period(const struct underlay_monitor *u)
{
    return nsec_max(u->period, (nsec_t)u->n * UNDERLAY_PACE);
}

void underlay_monitor_run(struct underlay_monitor *u, nsec_t now)
{
    nsec_t step = u->n > 0 ? underlay_monitor_period(u) / (nsec_t)u->n : 0;

    /* After a suspend of the machine the turns that it missed are left out. */
    if (u->n > 0 && now - u->due_at > underlay_monitor_period(u))
        u->due_at = now;
    for (; u->n > 0 && u->due_at <= now; u->due_at += step) {
        struct underlay_member *m = &u->members[u->cursor];

        if (u->udp.poll_fd >= 0 && m->n_at > 0 && m->has_keys)
            ask(u, m, now);
        u->cursor = (u->cursor + 1) % u->n;
    }
}

/* ---- answers -------------------------------------------------------------------------------- */

void underlay_monitor__on_frame(
    struct underlay_member *m, const struct path_frame *f, const struct endpoint *from, nsec_t now)
{
    m->heard_at = now;
    if (f->kind != PATH_FRAME_PONG || m->sent_at == 0 || f->transaction != m->transaction)
        return;
    m->rtt = nsec_max(now - m->sent_at - (nsec_t)f->held_us * NSEC_PER_USEC, 1);
    m->endpoint = *from;
    m->reach = EDGE_REACH_REACHED;
    m->n_silent = 0;
    m->sent_at = 0;
}

void underlay_monitor_take(struct underlay_monitor *u, nsec_t now)
{
    uint8_t buf[PATH_FRAME_MAX];

    for (unsigned i = 0; u->udp.poll_fd >= 0 && i < FRAMES_A_TURN; i++) {
        struct raw_udp_packet packet;
        struct underlay_member *m;
        struct path_frame f;
        struct path_tag tag;
        size_t len;

        if (raw_udp_receive(&u->udp, &packet, buf, sizeof(buf), &len) != 0)
            return;
        if (!path_frame_read_tag(buf, len, &tag))
            continue;
        m = find_by_tag(u, &tag);
        if (m && m->has_keys && path_frame_open(&m->keys, buf, len, &f))
            underlay_monitor__on_frame(m, &f, &packet.remote, now);
    }
}

void underlay_monitor_tell(
    const struct underlay_monitor *u, size_t index, struct edge_probed *ret, nsec_t now)
{
    const struct underlay_member *m = &u->members[index];

    ret->underlay = (uint8_t)m->reach;
    ret->underlay_rtt_us = m->reach == EDGE_REACH_REACHED ? (uint32_t)(m->rtt / NSEC_PER_USEC) : 0;
    ret->endpoint = m->endpoint;
    ret->is_heard =
        m->heard_at != 0 && now - m->heard_at < HEARD_ROUNDS * underlay_monitor_period(u);
}
