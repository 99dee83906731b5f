/* uapi_answer.c - see uapi_internal.h. */
#include "uapi/uapi_internal.h"

#include <inttypes.h>

#include "base/drop.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/version.h"
#include "crypto/aead.h"
#include "filter/relay.h"
#include "os/clock.h"
#include "peer/peer.h"
#include "port/device.h"
#include "port/port.h"
#include "shared/device_state.h"
#include "shared/port_state.h"
#include "worker/rx.h"

/* @key: with its "=". An answer about many peers consists of such lines, and printf() would take
 * most of the time that it needs. */
static void add_line(struct str *t, const char *key, const char *value)
{
    str_add(t, key);
    str_add(t, value);
    str_add(t, "\n");
}

static void add_number(struct str *t, const char *key, uint64_t value)
{
    char digits[] = "18446744073709551615";
    char *p = digits + sizeof(digits) - 1;

    do
        *--p = (char)('0' + value % 10);
    while (value /= 10);
    add_line(t, key, p);
}

/* ---- get and stats ---- */

/* Lines that no WireGuard client knows, hence only where something is set. */
static void get_rates(const struct device *d, struct str *out)
{
    if (pace_rate(&d->shaping.all))
        str_addf(out, "rate=%" PRIu64 "\n", pace_rate(&d->shaping.all));
    for (unsigned i = 0; i < TRAFFIC_CLASS_N; i++) {
        uint64_t rate = pace_rate(&d->shaping.classes[i]);

        if (rate)
            str_addf(out, "class_rate=%s:%" PRIu64 "\n", traffic_class_names[i], rate);
    }
    if (atomic_load(&d->shaping.shows_dscp))
        str_addf(out, "show_dscp=true\n");
}

/* How the line is, where somebody has said what it carries. */
static void get_relay_line(const struct relay *relay, struct str *out)
{
    struct relay_line_report line;
    char keys[2][X25519_HEX_MAX];

    relay_line_tell(relay_line(relay), &line);
    if (line.capacity == 0)
        return;
    add_number(out, "relay_capacity=", line.capacity);
    add_number(out, "relay_rate=", line.rate);
    add_line(out, "relay_level=", relay_line_level_names[line.level]);
    if (line.notice.is_closed)
        add_line(out, "relay_closed=", "true");
    for (unsigned i = 0; i < line.n_pairs; i++) {
        const struct relay_pair *pair = &line.pairs[i].pair;

        str_addf(out, "%s=%s,%s,%" PRIu64 "\n",
            line.pairs[i].is_away ? "relay_pair_away" : "relay_pair",
            x25519_public_format_hex(&pair->keys[0], keys[0]),
            x25519_public_format_hex(&pair->keys[1], keys[1]), pair->rate);
    }
}

static void get_device(struct device *d, struct str *out)
{
    struct merging_seen seen = merging_read(&d->port->merging, clock_now());
    uint64_t drops = port_sockets_drops(d->port);
    char hex[X25519_HEX_MAX];

    if (d->local.has_key) {
        x25519_secret_write_hex(&d->local.secret, hex);
        str_addf(out, "private_key=%s\n", hex);
        secret_wipe(hex, sizeof(hex));
    }
    /* Of Weft's own, hence only where there is one. */
    if (d->next) {
        x25519_secret_write_hex(&d->next->local.secret, hex);
        str_addf(out, "next_private_key=%s\n", hex);
        secret_wipe(hex, sizeof(hex));
    }
    if (d->initiates_with_next)
        str_addf(out, "initiate_with_next=true\n");
    if (d->port->sockets.listen_port)
        str_addf(out, "listen_port=%u\n", d->port->sockets.listen_port);
    /* Of Weft's own, hence only while it cannot be listened on. */
    if (d->port->sockets.failed)
        str_addf(out, "listen_errno=%d\n", d->port->sockets.failed);
    if (d->port->sockets.fwmark)
        str_addf(out, "fwmark=%u\n", d->port->sockets.fwmark);
    if (drops > 0)
        str_addf(out, "socket_drops=%" PRIu64 "\n", drops);
    if (seen.ifindex != 0) {
        add_number(out, "merging_ifindex=", seen.ifindex);
        add_number(out, "merging_percent=", seen.percent);
        add_number(out, "merging_age_s=", (uint64_t)(seen.age / NSEC_PER_SEC));
    }
    if (d->relay.relay) {
        str_addf(out, "relay=true\n");
        get_relay_line(d->relay.relay, out);
    }
    get_rates(d, out);
}

/* Lines that no WireGuard client knows, hence only for peers that have them. */
static void get_own_keys(struct peer *peer, struct str *out)
{
    struct noise_choice choice = noise_remote_choice(&peer->remote);
    struct keypair *kp = keypairs_acquire_current(&peer->keypairs);
    struct endpoint heard = peer_copy_path(peer, &peer->heard).remote;
    enum pin pin = atomic_load(&peer->pin);
    char text[NOISE_CHOICE_TEXT_MAX], at[ENDPOINT_TEXT_MAX];

    if (!noise_choice_is_null(choice))
        add_line(out, "cipher=", noise_choice_format(choice, text));
    if (kp && kp->alg->cipher != AEAD_CIPHER_CHACHA20POLY1305)
        add_line(out, "session_cipher=", kp->alg->name);
    (void)keypair_unref(kp);
    if (atomic_load(&peer->mtu))
        add_number(out, "mtu=", atomic_load(&peer->mtu));
    if (pin != PIN_NONE)
        add_line(out, "pinned_endpoint=", pin_names[pin]);
    if (pin != PIN_NONE && !endpoint_is_none(&heard))
        add_line(out, "heard_endpoint=", endpoint_format(&heard, at));
    if (peer->is_relayed)
        add_line(out, "relayed=", "true");
    if (pace_rate(&peer->pace))
        add_number(out, "peer_rate=", pace_rate(&peer->pace));
}

/* Likewise, while a key changes. */
static void get_next_keys(const struct peer *peer, struct str *out)
{
    char hex[X25519_HEX_MAX];

    if (peer->next)
        add_line(out, "next_public_key=", x25519_public_format_hex(&peer->next->public, hex));
    if (peer->next && peer->next->is_heard)
        add_line(out, "heard_next=", "true");
    if (peer->has_session_under_next)
        add_line(out, "session_next=", "true");
    if (peer->keeps_to_our_key)
        add_line(out, "initiate_with_current=", "true");
}

/* Likewise: an idle network's answer would be twice as long with zeroes. */
static void get_arrivals(struct peer *peer, nsec_t now, struct str *out)
{
    struct arrivals a = peer_arrivals(peer, now);

    if (a.received)
        add_number(out, "rx_datagrams=", a.received);
    if (a.lost)
        add_number(out, "rx_lost=", a.lost);
    if (a.reordered)
        add_number(out, "rx_reordered=", a.reordered);
    if (a.repeated)
        add_number(out, "rx_repeated=", a.repeated);
}

static void get_peer(struct device *d, struct peer *peer, nsec_t now, struct str *out)
{
    struct endpoint ep = peer_copy_path(peer, &peer->path).remote;
    char text[ENDPOINT_TEXT_MAX], hex[X25519_HEX_MAX], block[IP_PREFIX_TEXT_MAX];
    struct ip_prefix prefix;
    uint32_t cursor = 0;

    add_line(out, "public_key=", x25519_public_format_hex(&peer->remote.public, hex));
    hex_encode(peer->remote.psk.b, sizeof(peer->remote.psk.b), hex);
    add_line(out, "preshared_key=", hex);
    secret_wipe(hex, sizeof(hex));
    add_line(out, "protocol_version=", "1");
    if (!endpoint_is_none(&ep))
        add_line(out, "endpoint=", endpoint_format(&ep, text));
    add_number(out, "last_handshake_time_sec=", (uint64_t)(peer->handshake_wall / NSEC_PER_SEC));
    add_number(out, "last_handshake_time_nsec=", (uint64_t)(peer->handshake_wall % NSEC_PER_SEC));
    add_number(out, "tx_bytes=", atomic_load(&peer->tx_bytes));
    add_number(out, "rx_bytes=", atomic_load(&peer->rx_bytes));
    add_number(out, "persistent_keepalive_interval=", peer->keepalive_s);
    get_own_keys(peer, out);
    get_next_keys(peer, out);
    get_arrivals(peer, now, out);
    while (allowedips_each(&d->allowed, &peer->allowed, &cursor, &prefix))
        add_line(out, "allowed_ip=", ip_prefix_format(&prefix, block));
}

void uapi_get(struct device *d, struct str *out)
{
    nsec_t now = clock_now();
    struct peer *peer;

    get_device(d, out);
    list_foreach(peer, &d->peers, siblings)
        get_peer(d, peer, now, out);
}

/* Times that an rx worker took the batch policy. Its counter is called "courtesies": such a worker
 * lets the program that woke it finish before it runs (os/thread.h). */
static uint64_t batch_periods(const struct port *p)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < p->opt.n_workers; i++)
        n += atomic_load_explicit(&p->workers[i].batch.n_begun, memory_order_relaxed);
    return n;
}

void uapi_stats(struct device *d, struct str *out)
{
    uint64_t drops[DROP_REASON_N] = {0};
    char cipher[NOISE_CHOICE_TEXT_MAX];

    str_addf(out, "version=%s\n", version_text);
    str_addf(out, "cipher=%s\n", noise_choice_format(d->cipher, cipher));
    for (int i = 0; i < AEAD_CIPHER_N; i++)
        str_addf(out, "backend_%s=%s\n", d->port->aead[i]->name, d->port->aead[i]->backend);
    for (int i = 0; i < OFFLOAD_N; i++) {
        const char *name = offload_names[i];
        const char *why = device_offload_why(d, (enum offload)i);

        str_addf(out, "offload_%s=%s\n", name, why ? "off" : "on");
        if (why)
            str_addf(out, "offload_%s_why=%s\n", name, why);
    }
    str_addf(out, "peers=%zu\nrx_workers=%u\ntx_workers=%u\ntx_queues=%u\n", d->n_peers,
        d->port->opt.n_workers, tun_readers(&d->tun), d->tun.n);
    str_addf(out, "rates=true\n");
    str_addf(out, "next_keys=true\n");
    str_addf(out, "access=true\n");
    str_addf(out, "queues_lent=%llu\ncourtesies=%llu\n",
        (unsigned long long)atomic_load(&d->tx.n_lent), (unsigned long long)batch_periods(d->port));
    port_sum_drops(d->port, drops);
    for (int i = 0; i < DROP_REASON_N; i++)
        str_addf(out, "drop_%s=%llu\n", drop_reason_names[i], (unsigned long long)drops[i]);
}
