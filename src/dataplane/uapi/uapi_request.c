/* uapi_request.c - see uapi_internal.h: what the lines of a request do. */
#include "uapi/uapi_internal.h"

#include <errno.h>
#include <string.h>

#include "access/access_set.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/log.h"
#include "peer/peer.h"
#include "peer/relay_device.h"
#include "port/device_access.h"
#include "port/device_config.h"
#include "shared/device_state.h"

/* The protocol's limit of peers, as the whitepaper's implementation has it. */
#define PEERS_MAX 65536

/* ---- set: the device ---- */

/* Of the sockets that are open, and of later ones. */
static int set_fwmark(struct port *p, uint32_t fwmark)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < p->opt.n_workers; i++)
        r = udp_set_fwmark(&p->waiters[i].sockets, fwmark);
    if (r == 0)
        p->sockets.fwmark = fwmark;
    return r;
}

/* The network's rules: "begin", lines, "end TAG"; or "off". Nothing changes before the end. */
static int set_access(struct uapi_request *req, const char *text, struct err *e)
{
    static const char end[] = "end ";
    struct device *d = req->device;
    uint64_t tag = 0;
    int r;

    if (strcmp(text, "off") == 0) {
        device_access_end(d);
        return 0;
    }
    if (strcmp(text, "begin") == 0) {
        uapi_request_deinit(req);
        req->access = device_access_begin(d);
        return req->access ? 0 : err_set(e, -ENOMEM, "no memory for rules");
    }
    if (!req->access)
        return err_set(e, -EINVAL, "\"access=%.40s\" stands before \"access=begin\"", text);
    if (strncmp(text, end, sizeof(end) - 1) != 0)
        return access_builder_line(req->access, text, e);
    r = parse_u64(&tag, text + sizeof(end) - 1, 0, UINT64_MAX, "tag", e);
    if (r == 0)
        r = device_access_use(d, req->access, tag, e);
    uapi_request_deinit(req);
    return r;
}

static int set_device(struct uapi_request *req, const struct uapi_item *item)
{
    struct device *d = req->device;
    struct err e = ERR_NULL;
    int r;

    switch (item->key) {
    case UAPI_KEY_PRIVATE_KEY:
        device_config_set_key(d, &item->private_key);
        return 0;
    case UAPI_KEY_NEXT_PRIVATE_KEY:
        return device_config_set_next_key(d, &item->private_key);
    case UAPI_KEY_INITIATE_WITH_NEXT:
        return device_config_initiate_with_next(d, item->is_on);
    case UAPI_KEY_LISTEN_PORT:
        r = port_sockets_set_listen_port(d->port, (uint16_t)item->number, &e);
        if (r < 0)
            log_warning("%s: %s", d->name, err_text(&e));
        return r;
    case UAPI_KEY_FWMARK:
        return set_fwmark(d->port, (uint32_t)item->number);
    case UAPI_KEY_REPLACE_PEERS:
        device_config_remove_peers(d);
        return 0;
    case UAPI_KEY_RELAY:
        return relay_device_set(d, item->is_on);
    case UAPI_KEY_RATE:
        shaping_config_set(d, &d->shaping.all, item->number);
        return 0;
    case UAPI_KEY_CLASS_RATE:
        shaping_config_set(d, &d->shaping.classes[item->class_rate.class], item->class_rate.rate);
        return 0;
    case UAPI_KEY_SHOW_DSCP:
        atomic_store(&d->shaping.shows_dscp, item->is_on);
        return 0;
    case UAPI_KEY_ACCESS:
        r = set_access(req, item->text, &e);
        if (r < 0)
            log_warning("%s: the network's rules are not taken: %s", d->name, err_text(&e));
        return r;
    default:
        return -EINVAL;
    }
}

/* ---- set: peers ---- */

/* The peer that the lines are about; NULL: there is none, so they are passed over. It is looked up
 * for each line, since between two pieces of a request another client may remove it. */
static struct peer *find_present(const struct uapi_request *req)
{
    return req->in_peer ? peer_find(req->device, &req->public) : NULL;
}

/* The lines about the present peer are complete. */
static void finish_peer(struct uapi_request *req)
{
    struct peer *peer = find_present(req);
    nsec_t now = clock_now();

    req->in_peer = false;
    if (!peer || !peer->device->link.is_up)
        return;
    if (atomic_load(&peer->staged.n) > 0 && timers_on_rekey_wanted(&peer->timers))
        peer_tell(peer);
    peer_poll(peer, now);
}

static int begin_peer(struct uapi_request *req, const struct x25519_public *public)
{
    struct device *d = req->device;
    struct peer *peer;
    int r;

    finish_peer(req);
    req->in_peer = true;
    req->public = req->named = *public;
    req->is_new_peer = false;
    /* Our own key as a peer is passed over, so that one file can serve all nodes. */
    if (peer_find(d, public) || (d->local.has_key && x25519_public_equal(public, &d->local.public)))
        return 0;
    peer = peer_find_next(d, public);
    if (peer) {
        req->public = peer->remote.public;
        return 0;
    }
    if (d->n_peers >= PEERS_MAX)
        return -ENOSPC;
    r = peer_new(&peer, d, public);
    req->is_new_peer = r == 0;
    return r;
}

/* The peer whose key is @old goes on as the present one. */
static int replace_peer(
    struct uapi_request *req, struct peer *present, const struct x25519_public *old)
{
    struct peer *peer = peer_find(req->device, old);
    int r = 0;

    if (x25519_public_equal(old, &req->named))
        return -EINVAL;
    /* It may have been done before. */
    if (!peer)
        return 0;
    if (peer != present && !req->is_new_peer)
        return -EEXIST;
    if (peer != present)
        device_config_remove_peer(req->device, present);
    req->is_new_peer = false;
    r = device_config_set_peer_next(peer, &req->named);
    if (r < 0)
        return r;
    device_config_use_peer_next(peer);
    req->public = req->named;
    return 0;
}

static int set_allowed_ip(struct device *d, struct peer *peer, const struct uapi_item *item)
{
    int r = 0;

    port_gates_close(d->port, d);
    if (item->allowed_ip.is_removal)
        allowedips_remove(&d->allowed, &item->allowed_ip.prefix, &peer->allowed);
    else
        r = allowedips_insert(&d->allowed, &item->allowed_ip.prefix, &peer->allowed);
    port_gates_open(d->port, d);
    return r;
}

/* From whichever address the kernel chooses. */
static void set_endpoint(struct peer *peer, const struct endpoint *ep)
{
    (void)pthread_mutex_lock(&peer->lock);
    peer->path = (struct udp_path){.remote = *ep};
    (void)pthread_mutex_unlock(&peer->lock);
}

/* Which cipher the next session has. A session with another one is replaced at once. */
static void set_cipher(struct peer *peer, struct noise_choice choice)
{
    enum aead_cipher before = peer->remote.profile->transport;
    struct keypair *kp;

    noise_remote_set_choice(&peer->remote, choice);
    if (before == choice.wanted)
        return;
    /* A handshake under way goes on: packets wait for it. take_response() has the rest. */
    kp = keypairs_acquire_current(&peer->keypairs);
    if (kp && kp->alg->cipher != choice.wanted && timers_on_rekey_wanted(&peer->timers))
        peer_tell(peer);
    (void)keypair_unref(kp);
}

static int set_peer(struct uapi_request *req, const struct uapi_item *item)
{
    struct device *d = req->device;
    struct peer *peer = find_present(req);
    nsec_t now;

    if (!req->in_peer)
        return -EINVAL;
    if (!peer)
        return 0;
    switch (item->key) {
    case UAPI_KEY_REMOVE:
        device_config_remove_peer(d, peer);
        return 0;
    case UAPI_KEY_UPDATE_ONLY:
        if (req->is_new_peer)
            device_config_remove_peer(d, peer);
        return 0;
    case UAPI_KEY_PRESHARED_KEY:
        peer->remote.psk = item->preshared_key;
        return 0;
    case UAPI_KEY_ENDPOINT:
        set_endpoint(peer, &item->endpoint);
        return 0;
    case UAPI_KEY_KEEPALIVE:
        peer->keepalive_s = (uint16_t)item->number;
        timers_set_persistent_keepalive(
            &peer->timers, peer->keepalive_s * NSEC_PER_SEC, clock_now());
        return 0;
    case UAPI_KEY_REPLACE_ALLOWED_IPS:
        port_gates_close(d->port, d);
        allowedips_remove_owner(&d->allowed, &peer->allowed);
        port_gates_open(d->port, d);
        return 0;
    case UAPI_KEY_ALLOWED_IP:
        return set_allowed_ip(d, peer, item);
    case UAPI_KEY_PROTOCOL_VERSION:
        return 0;
    case UAPI_KEY_CIPHER:
        set_cipher(peer, item->cipher);
        return 0;
    case UAPI_KEY_MTU:
        atomic_store(&peer->mtu, (uint16_t)item->number);
        peer->device->link.has_new_mtus = true;
        return 0;
    case UAPI_KEY_NEXT_PUBLIC_KEY:
        return device_config_set_peer_next(peer, &item->public_key);
    case UAPI_KEY_REPLACES:
        return replace_peer(req, peer, &item->public_key);
    case UAPI_KEY_INITIATE_WITH_CURRENT:
        peer->keeps_to_our_key = item->is_on;
        return 0;
    case UAPI_KEY_PINNED:
        atomic_store(&peer->pin, item->pin);
        return 0;
    case UAPI_KEY_HANDSHAKE:
        /* Whatever session there is goes on until the new one replaces it. */
        if (d->link.is_up && d->local.has_key) {
            now = clock_now();
            handshake_io_initiate(peer, now);
            peer_poll(peer, now);
        }
        return 0;
    case UAPI_KEY_RELAYED:
        return relay_device_set_peer(peer, item->is_on);
    case UAPI_KEY_PEER_RATE:
        shaping_config_set(d, &peer->pace, item->number);
        return 0;
    default:
        return -EINVAL;
    }
}

static int set_line(struct uapi_request *req, const char *line)
{
    struct uapi_item item;
    int r = uapi_parse(&item, line);

    if (r < 0)
        return r;
    if (item.key == UAPI_KEY_PUBLIC_KEY)
        r = begin_peer(req, &item.public_key);
    else if (item.key > UAPI_KEY_PUBLIC_KEY)
        r = set_peer(req, &item);
    else if (!req->in_peer)
        r = set_device(req, &item);
    else
        r = -EINVAL;
    secret_wipe(&item, sizeof(item));
    return r;
}

/* ---- requests ---- */

static void begin_request(struct uapi_request *req, const char *line)
{
    struct uapi_item item;
    int r = uapi_parse(&item, line);

    *req = (struct uapi_request){.device = req->device, .command = UAPI_KEY_SET, .error = r};
    if (r < 0)
        return;
    if (item.key <= UAPI_KEY_HAND_OVER)
        req->command = item.key;
    else
        req->error = -EINVAL;
    secret_wipe(&item, sizeof(item));
}

/* Let the interface stay when this process ends, and have the listener told so. */
static int hand_over(struct device *d)
{
    int r = d->listener.on_handed_over ? tun_set_persistent(&d->tun, true) : -EOPNOTSUPP;

    if (r == 0)
        d->listener.on_handed_over(d->listener.ctx);
    return r;
}

static void end_request(struct uapi_request *req, struct str *out)
{
    finish_peer(req);
    uapi_request_deinit(req);
    device_link_on_configured(req->device);
    if (req->error == 0 && req->command == UAPI_KEY_GET)
        uapi_get(req->device, out);
    if (req->error == 0 && req->command == UAPI_KEY_STATS)
        uapi_stats(req->device, out);
    if (req->error == 0 && req->command == UAPI_KEY_ACCESS_COUNTS)
        device_access_tell(req->device, out);
    if (req->error == 0 && req->command == UAPI_KEY_HAND_OVER)
        req->error = hand_over(req->device);
    str_addf(out, "errno=%d\n\n", req->error);
    req->command = UAPI_KEY_NONE;
}

void uapi_request_line(struct uapi_request *req, const char *line, struct str *out)
{
    if (line[0] == '\0') {
        if (req->command != UAPI_KEY_NONE)
            end_request(req, out);
        return;
    }
    if (req->command == UAPI_KEY_NONE)
        begin_request(req, line);
    else if (req->error == 0 && req->command == UAPI_KEY_SET)
        req->error = set_line(req, line);
    else if (req->error == 0)
        req->error = -EINVAL;
}

void uapi_request_deinit(struct uapi_request *req)
{
    req->access = access_builder_free(req->access);
}

void uapi_request_break(struct uapi_request *req)
{
    if (req->command == UAPI_KEY_NONE)
        req->command = UAPI_KEY_SET;
    if (req->error == 0)
        req->error = -EMSGSIZE;
}
