/* uapi_answer.c - see uapi_answer.h. */
#include "uapi/uapi_answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drop.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/version.h"
#include "crypto/aead.h"
#include "peer/peer.h"
#include "peer/relay_device.h"
#include "port/device.h"
#include "port/port.h"
#include "shared/device_state.h"
#include "shared/port_state.h"
#include "uapi/uapi.h"
#include "worker/rx.h"

/* ---- the text ---- */

static bool make_room(struct uapi_text *t, size_t more)
{
    size_t cap = t->cap ? t->cap : 512;
    char *p;

    while (cap - t->len <= more)
        cap *= 2;
    if (cap == t->cap)
        return true;
    /* Not realloc(): what it leaves behind may hold a key. */
    p = malloc(cap);
    if (!p)
        return false;
    if (t->p) {
        memcpy(p, t->p, t->len);
        secret_wipe(t->p, t->len);
        free(t->p);
    }
    t->p = p;
    t->cap = cap;
    return true;
}

void uapi_text_add(struct uapi_text *t, const char *fmt, ...)
{
    char line[UAPI_LINE_MAX];
    va_list ap;
    size_t len;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    len = n < 0 ? 0 : (size_t)n;
    if (len >= sizeof(line))
        len = sizeof(line) - 1;
    if (!make_room(t, len)) {
        t->has_failed = true;
    } else {
        memcpy(t->p + t->len, line, len);
        t->len += len;
        t->p[t->len] = '\0';
    }
    secret_wipe(line, len);
}

void uapi_text_deinit(struct uapi_text *t)
{
    if (t->p)
        secret_wipe(t->p, t->len);
    free(t->p);
    *t = (struct uapi_text){0};
}

/* ---- get and stats ---- */

static void get_device(struct device *d, struct uapi_text *out)
{
    char hex[X25519_HEX_MAX];

    if (d->local.has_key) {
        x25519_secret_write_hex(&d->local.secret, hex);
        uapi_text_add(out, "private_key=%s\n", hex);
        secret_wipe(hex, sizeof(hex));
    }
    if (d->port->sockets.listen_port)
        uapi_text_add(out, "listen_port=%u\n", d->port->sockets.listen_port);
    if (d->port->sockets.fwmark)
        uapi_text_add(out, "fwmark=%u\n", d->port->sockets.fwmark);
    if (relay_device_is_on(d))
        uapi_text_add(out, "relay=true\n");
}

static void get_allowed_ips(struct device *d, struct peer *peer, struct uapi_text *out)
{
    char text[IP_PREFIX_TEXT_MAX];
    struct ip_prefix prefix;
    uint32_t cursor = 0;

    while (allowedips_each(&d->allowed, &peer->allowed, &cursor, &prefix))
        uapi_text_add(out, "allowed_ip=%s\n", ip_prefix_format(&prefix, text));
}

/* Lines that no WireGuard client knows, hence only for peers that have them. */
static void get_own_keys(struct peer *peer, struct uapi_text *out)
{
    struct noise_choice choice = noise_remote_choice(&peer->remote);
    struct keypair *kp = keypairs_acquire_current(&peer->keypairs);
    char text[NOISE_CHOICE_TEXT_MAX];

    if (!noise_choice_is_null(choice))
        uapi_text_add(out, "cipher=%s\n", noise_choice_format(choice, text));
    if (kp && kp->alg->cipher != AEAD_CIPHER_CHACHA20POLY1305)
        uapi_text_add(out, "session_cipher=%s\n", kp->alg->name);
    (void)keypair_unref(kp);
    if (atomic_load(&peer->mtu))
        uapi_text_add(out, "mtu=%u\n", atomic_load(&peer->mtu));
    if (peer_get_pin(peer) != PIN_NONE)
        uapi_text_add(out, "pinned_endpoint=%s\n", pin_name(peer_get_pin(peer)));
    if (peer->is_relayed)
        uapi_text_add(out, "relayed=true\n");
}

static void get_peer(struct device *d, struct peer *peer, struct uapi_text *out)
{
    struct endpoint ep = peer_get_path(peer).remote;
    char text[ENDPOINT_TEXT_MAX], hex[X25519_HEX_MAX];

    uapi_text_add(out, "public_key=%s\n", x25519_public_format_hex(&peer->remote.public, hex));
    hex_encode(peer->remote.psk.b, sizeof(peer->remote.psk.b), hex);
    uapi_text_add(out, "preshared_key=%s\nprotocol_version=1\n", hex);
    secret_wipe(hex, sizeof(hex));
    if (!endpoint_is_none(&ep))
        uapi_text_add(out, "endpoint=%s\n", endpoint_format(&ep, text));
    uapi_text_add(out, "last_handshake_time_sec=%lld\nlast_handshake_time_nsec=%lld\n",
        (long long)(peer->handshake_wall / NSEC_PER_SEC),
        (long long)(peer->handshake_wall % NSEC_PER_SEC));
    uapi_text_add(out, "tx_bytes=%llu\nrx_bytes=%llu\npersistent_keepalive_interval=%u\n",
        (unsigned long long)atomic_load(&peer->tx_bytes),
        (unsigned long long)atomic_load(&peer->rx_bytes), peer->keepalive_s);
    get_own_keys(peer, out);
    get_allowed_ips(d, peer, out);
}

void uapi_get(struct device *d, struct uapi_text *out)
{
    struct peer *peer;

    get_device(d, out);
    list_foreach(peer, &d->peers, siblings)
        get_peer(d, peer, out);
}

/* Times that an rx worker took the batch policy. Its counter is called "courtesies": such a worker
 * lets the program that woke it finish before it runs (os/sched_batch.h). */
static uint64_t batch_periods(const struct port *p)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < p->opt.n_workers; i++)
        n += atomic_load_explicit(&p->workers[i].batch.n_begun, memory_order_relaxed);
    return n;
}

void uapi_stats(struct device *d, struct uapi_text *out)
{
    uint64_t drops[DROP_REASON_N] = {0};
    char cipher[NOISE_CHOICE_TEXT_MAX];

    uapi_text_add(out, "version=%s\n", version_text);
    uapi_text_add(out, "cipher=%s\n", noise_choice_format(d->cipher, cipher));
    for (int i = 0; i < AEAD_CIPHER_N; i++)
        uapi_text_add(out, "backend_%s=%s\n", d->port->aead[i]->name, d->port->aead[i]->backend);
    for (int i = 0; i < OFFLOAD_N; i++) {
        const char *name = offload_name((enum offload)i);
        const char *why = device_offload_why(d, (enum offload)i);

        uapi_text_add(out, "offload_%s=%s\n", name, why ? "off" : "on");
        if (why)
            uapi_text_add(out, "offload_%s_why=%s\n", name, why);
    }
    uapi_text_add(out, "peers=%zu\nrx_workers=%u\ntx_workers=%u\ntx_queues=%u\n", d->n_peers,
        d->port->opt.n_workers, tun_readers(&d->tun), d->tun.n);
    uapi_text_add(out, "queues_lent=%llu\ncourtesies=%llu\n",
        (unsigned long long)atomic_load(&d->tx.n_lent), (unsigned long long)batch_periods(d->port));
    port_sum_drops(d->port, drops);
    for (int i = 0; i < DROP_REASON_N; i++)
        uapi_text_add(out, "drop_%s=%llu\n", drop_reason_name((enum drop_reason)i),
            (unsigned long long)drops[i]);
}
