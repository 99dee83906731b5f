/* sample_engine.c - see sample_engine.h. */
#include "test/support/sample_engine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/config/diff.h"
#include "net/tun/offload.h"
#include "os/clock.h"
#include "os/thread.h"

static struct sample_engine *of_frames(struct engine_frames *ef)
{
    return (struct sample_engine *)((uint8_t *)ef - offsetof(struct sample_engine, frames));
}

static int send_frame(struct engine_frames *ef, const struct engine_frame *frame)
{
    struct sample_engine *se = of_frames(ef);
    size_t len = frame->len < sizeof(se->sent[0]) ? frame->len : sizeof(se->sent[0]);

    if (se->is_gone)
        return ENGINE_FRAMES_E_GONE;
    assert_true(se->n_sent < SAMPLE_ENGINE_SENT_MAX);
    memcpy(se->sent[se->n_sent], frame->data, len);
    se->sent_len[se->n_sent] = frame->len;
    se->sent_whole[se->n_sent] = frame->dont_fragment;
    se->last = *frame;
    se->sent_to[se->n_sent++] = frame->remote;
    return 0;
}

static int receive_frame(struct engine_frames *ef, struct engine_frame *ret)
{
    struct sample_engine *se = of_frames(ef);

    if (se->is_gone)
        return ENGINE_FRAMES_E_GONE;
    if (!se->has_in)
        return ENGINE_FRAMES_E_EMPTY;
    assert_true(wakeup_clear(ef->fd));
    *ret = se->in;
    se->has_in = false;
    return 0;
}

static void close_frames(struct engine_frames *ef)
{
    of_frames(ef)->n_open--;
}

static int open_frames(
    struct engine *engine, struct engine_frames **ret, uint16_t port, struct err *e)
{
    struct sample_engine *se = (struct sample_engine *)engine;

    if (se->refuses)
        return err_set(e, -EBUSY, "port %u is refused", port);
    se->n_open++;
    se->n_opened++;
    *ret = &se->frames;
    return 0;
}

static const struct engine_frames_ops frames_ops = {
    .send = send_frame, .receive = receive_frame, .close = close_frames};

/* ---- what it was told ----------------------------------------------------------------------- */

struct wg_peer *sample_engine_find(struct sample_engine *se, const struct x25519_public *key)
{
    for (size_t i = 0; i < se->config.n_peers; i++)
        if (x25519_public_equal(&se->config.peers[i].key, key))
            return &se->config.peers[i];
    return NULL;
}

static int get(struct engine *engine, struct wg_config *ret, struct err *e)
{
    struct sample_engine *se = (struct sample_engine *)engine;

    if (se->is_gone)
        return err_set(e, ENGINE_E_GONE, "the engine is gone");
    ret->public = se->config.public;
    ret->listen_port = se->config.listen_port;
    ret->listen_errno = se->config.listen_errno;
    ret->fwmark = se->config.fwmark;
    ret->is_relay = se->config.is_relay;
    ret->rates = se->config.rates;
    ret->shows_dscp = se->config.shows_dscp;
    for (size_t i = 0; i < se->config.n_peers; i++) {
        struct wg_peer copy = WG_PEER_NULL;

        assert_int_equal(wg_peer_copy(&copy, &se->config.peers[i]), 0);
        assert_int_equal(wg_config_add(ret, &copy), 0);
    }
    return 0;
}

static void remove_peer(struct sample_engine *se, const struct x25519_public *key)
{
    struct wg_peer *p = sample_engine_find(se, key);

    assert_non_null(p);
    wg_peer_deinit(p);
    *p = se->config.peers[--se->config.n_peers];
}

/* An update keeps what is not marked; an endpoint above all, which may have been learned. */
static void put_peer(struct sample_engine *se, const struct diff_peer *change)
{
    struct wg_peer *old = sample_engine_find(se, &change->peer.key);
    struct wg_peer put = WG_PEER_NULL;

    assert_int_equal(change->op == DIFF_OP_ADD, old == NULL);
    assert_int_equal(wg_peer_copy(&put, &change->peer), 0);
    if (old && !change->set_endpoint)
        put.endpoint = old->endpoint;
    if (old)
        remove_peer(se, &change->peer.key);
    assert_int_equal(wg_config_add(&se->config, &put), 0);
}

static int apply(
    struct engine *engine, const struct diff *d, const struct x25519_secret *secret, struct err *e)
{
    struct sample_engine *se = (struct sample_engine *)engine;

    if (se->is_gone)
        return err_set(e, ENGINE_E_GONE, "the engine is gone");
    se->n_applied++;
    se->n_touched = d->n_peers;
    if (d->set_key)
        assert_true(x25519_derive_public(secret, &se->config.public));
    if (d->set_listen_port)
        se->config.listen_port = d->listen_port;
    if (d->set_fwmark)
        se->config.fwmark = d->fwmark;
    if (d->set_relay)
        se->config.is_relay = d->is_relay;
    if (diff_count_rates(d) > 0)
        se->config.rates = d->rates;
    if (d->set_shows_dscp)
        se->config.shows_dscp = d->shows_dscp;
    for (size_t i = 0; i < d->n_peers; i++)
        if (d->peers[i].op == DIFF_OP_REMOVE)
            remove_peer(se, &d->peers[i].peer.key);
        else
            put_peer(se, &d->peers[i]);
    return 0;
}

static int handshake(struct engine *engine, const struct x25519_public *peer, struct err *e)
{
    struct sample_engine *se = (struct sample_engine *)engine;

    if (!sample_engine_find(se, peer))
        return err_set(e, -ENOENT, "there is no such peer");
    se->n_handshakes++;
    return 0;
}

/* In any case for as long as it is not an older version. */
static int check_rates(struct engine *engine, struct err *e)
{
    struct sample_engine *se = (struct sample_engine *)engine;

    return se->is_old ? err_set(e, ENGINE_E_UNSUPPORTED, "it is an older version") : 0;
}

static int offloads(struct engine *engine, struct offloads *ret, struct err *e)
{
    const struct sample_engine *se = (struct sample_engine *)engine;

    if (!se->offloads)
        return ENGINE_E_UNSUPPORTED;
    *ret = *se->offloads;
    return 0;
}

/* As the kernel's: it keeps no rates, and there is no process. */
static int refuse_rates(struct engine *engine, struct err *e)
{
    return err_set(e, ENGINE_E_UNSUPPORTED,
        "the kernel's WireGuard keeps no rates and shows no DSCP; with \"weft join --engine "
        "userspace\" it is done");
}

static int refuse_retirement(struct engine *engine, struct err *e)
{
    return err_set(e, ENGINE_E_UNSUPPORTED, "the kernel engine is not a process");
}

static int retire(struct engine *engine, struct err *e)
{
    struct sample_engine *se = (struct sample_engine *)engine;

    return se->cannot_retire ? err_set(e, ENGINE_E_UNSUPPORTED, "it is an older version") : 0;
}

static void close_engine(struct engine *engine)
{
    ((struct sample_engine *)engine)->is_closed = true;
}

/* ---- life ----------------------------------------------------------------------------------- */

static const struct engine_ops ops[ENGINE_KIND_N] = {
    [ENGINE_KIND_USERSPACE] = {.kind = ENGINE_KIND_USERSPACE,
        .get = get,
        .apply = apply,
        .handshake = handshake,
        .offloads = offloads,
        .check_rates = check_rates,
        .retire = retire,
        .open_frames = open_frames,
        .close = close_engine},
    [ENGINE_KIND_KERNEL] = {.kind = ENGINE_KIND_KERNEL,
        .get = get,
        .apply = apply,
        .handshake = handshake,
        .offloads = offloads,
        .check_rates = refuse_rates,
        .retire = refuse_retirement,
        .open_frames = open_frames,
        .close = close_engine},
};

void sample_engine_init(struct sample_engine *se, enum engine_kind kind)
{
    memset(se, 0, sizeof(*se));
    se->engine.ops = &ops[kind];
    se->frames = (struct engine_frames){.ops = &frames_ops, .fd = wakeup_open()};
    assert_true(se->frames.fd >= 0);
}

void sample_engine_deinit(struct sample_engine *se)
{
    assert_int_equal(se->n_open, 0);
    wg_config_deinit(&se->config);
    (void)close(se->frames.fd);
}

void sample_engine_put(
    struct sample_engine *se, const struct endpoint *remote, const uint8_t *data, size_t len)
{
    assert_false(se->has_in);
    se->in = (struct engine_frame){.remote = *remote, .received_at = clock_now(), .len = len};
    memcpy(se->in.data, data, len);
    se->has_in = true;
    wakeup_signal(se->frames.fd);
}
