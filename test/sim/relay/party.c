/* party.c - see party.h. */
#include "test/sim/relay/party.h"

#include <assert.h>
#include <string.h>

#include "crypto/aead.h"
#include "wire/wg.h"

/* The virtual clock starts at zero; the wall clock of initiations, here. */
#define WALL_START (1790000000 * NSEC_PER_SEC)

void party_init(struct party *p, const struct rng *rng, const struct party_events *events)
{
    struct x25519_secret secret;

    memset(p, 0, sizeof(*p));
    p->rng = *rng;
    p->events = *events;
    x25519_secret_make(&secret, &p->rng);
    noise_local_set(&p->local, &secret);
    cookie_checker_set_key(&p->checker, &p->local.public);
    assert(aead_lane_new(&p->lane) == 0);
}

static void release(struct keypairs_evicted *evicted)
{
    for (unsigned i = 0; i < 3; i++)
        (void)keypair_unref(evicted->kp[i]);
}

void party_deinit(struct party *p)
{
    p->lane = aead_lane_free(p->lane);
    for (unsigned i = 0; i < p->n_peers; i++) {
        struct keypairs_evicted evicted;

        keypairs_clear(&p->peers[i].keypairs, &evicted);
        release(&evicted);
        keypairs_deinit(&p->peers[i].keypairs);
    }
    secret_wipe(&p->local, sizeof(p->local));
}

struct party_peer *party_add_peer(
    struct party *p, const struct x25519_public *public, const struct endpoint *ep)
{
    struct party_peer *peer = &p->peers[p->n_peers++];

    assert(p->n_peers <= PARTY_PEERS_MAX);
    noise_remote_init(&peer->remote, &noise_profile_wireguard, &p->local, public);
    handshake_clear(&peer->hs);
    peer->cookies = (struct cookie_maker){0};
    keypairs_init(&peer->keypairs);
    peer->ep = peer->home = *ep;
    return peer;
}

/* ---- indices -------------------------------------------------------------------------------- */

static struct keypair *find_keypair(struct party *p, uint32_t index, struct party_peer **ret)
{
    for (unsigned i = 0; i < p->n_peers; i++) {
        struct keypairs *ks = &p->peers[i].keypairs;
        struct keypair *all[] = {ks->current, ks->previous, ks->next};

        for (unsigned k = 0; k < 3; k++) {
            if (all[k] && all[k]->local_index == index) {
                *ret = &p->peers[i];
                return all[k];
            }
        }
    }
    return NULL;
}

static struct party_peer *find_handshake(struct party *p, uint32_t index)
{
    for (unsigned i = 0; i < p->n_peers; i++)
        if (p->peers[i].hs.state == HANDSHAKE_STATE_INITIATION_CREATED &&
            p->peers[i].hs.local_index == index)
            return &p->peers[i];
    return NULL;
}

bool party_has_index(struct party *p, uint32_t index)
{
    struct party_peer *peer;

    return find_keypair(p, index, &peer) || find_handshake(p, index);
}

static uint32_t draw_index(struct party *p, struct party_peer *peer)
{
    uint32_t index;

    do
        index = 1 + rng_u32(&p->rng) % PARTY_INDEX_MAX;
    while (party_has_index(p, index) || p->events.is_taken(p->events.ctx, peer, index));
    return index;
}

/* ---- handshakes ----------------------------------------------------------------------------- */

static void send_handshake(
    struct party *p, struct party_peer *peer, void *msg, size_t len, nsec_t now)
{
    cookie_add_macs(&peer->cookies, &peer->remote.public, msg, len, now);
    p->events.send(p->events.ctx, &peer->ep, msg, len);
}

static void initiate(struct party *p, struct party_peer *peer, nsec_t now)
{
    struct wg_initiation msg;

    if (endpoint_is_none(&peer->ep) ||
        (peer->has_initiated && now < peer->initiated + WG_REKEY_TIMEOUT))
        return;
    peer->initiated = now;
    peer->has_initiated = true;
    handshake_clear(&peer->hs);
    if (handshake_create_initiation(&peer->hs, &p->local, &peer->remote, draw_index(p, peer),
            WALL_START + now, &p->rng, &msg) == 0)
        send_handshake(p, peer, &msg, sizeof(msg), now);
}

static void begin_session(struct party_peer *peer, struct handshake *hs, nsec_t now)
{
    struct keypairs_evicted evicted;
    struct keypair *kp;

    assert(handshake_derive(hs, aead_reference(AEAD_CIPHER_CHACHA20POLY1305), peer, now, &kp) == 0);
    keypairs_add(&peer->keypairs, kp, &evicted);
    release(&evicted);
}

static struct party_peer *find_peer(struct party *p, const struct x25519_public *key)
{
    for (unsigned i = 0; i < p->n_peers; i++)
        if (x25519_public_equal(&p->peers[i].remote.public, key))
            return &p->peers[i];
    return NULL;
}

static void take_initiation(
    struct party *p, const struct endpoint *from, const struct wg_initiation *msg, nsec_t now)
{
    struct handshake_incoming in;
    struct handshake answer;
    struct party_peer *peer;
    struct wg_response response;

    if (!cookie_check_mac1(&p->checker, msg, sizeof(*msg)) ||
        handshake_open_initiation(&p->local, noise_profiles, 1, msg, &in) != 0)
        return;
    peer = find_peer(p, &in.public);
    handshake_clear(&answer);
    if (!peer || handshake_consume_initiation(&answer, &peer->remote, &in, now) != 0)
        return;
    peer->ep = *from;
    if (handshake_create_response(
            &answer, &peer->remote, draw_index(p, peer), &p->rng, &response) != 0)
        return;
    begin_session(peer, &answer, now);
    send_handshake(p, peer, &response, sizeof(response), now);
    p->events.receive(p->events.ctx, peer, NULL, 0);
}

static void take_response(
    struct party *p, const struct endpoint *from, const struct wg_response *msg, nsec_t now)
{
    struct party_peer *peer = find_handshake(p, le32_get(msg->receiver));

    if (!peer || !cookie_check_mac1(&p->checker, msg, sizeof(*msg)) ||
        handshake_consume_response(&peer->hs, &p->local, &peer->remote, msg) != 0)
        return;
    peer->ep = *from;
    peer->unanswered = 0;
    begin_session(peer, &peer->hs, now);
    party_send(p, peer, NULL, 0, now);
}

/* ---- data ----------------------------------------------------------------------------------- */

/* Data was sent, and neither data nor a keepalive came back (whitepaper 6.2). */
static bool is_silent(const struct party_peer *peer, nsec_t now)
{
    return peer->unanswered != 0 &&
           now - peer->unanswered > WG_KEEPALIVE_TIMEOUT + WG_REKEY_TIMEOUT;
}

void party_send(struct party *p, struct party_peer *peer, const void *data, size_t len, nsec_t now)
{
    struct keypair *kp = keypairs_acquire_current(&peer->keypairs);
    uint8_t msg[PARTY_PACKET_MAX + WG_DATA_OVERHEAD] = {0};
    size_t padded = wg_padded(len, PARTY_PACKET_MAX);
    uint64_t counter;

    assert(len <= PARTY_PACKET_MAX);
    if (!kp || !keypair_can_send(kp, now)) {
        initiate(p, peer, now);
    } else {
        if (len > 0)
            memcpy(msg + sizeof(struct wg_data), data, len);
        assert(keypair_take_counters(kp, 1, &counter));
        assert(keypair_seal(kp, p->lane, counter, msg, padded));
        p->events.send(p->events.ctx, &peer->ep, msg, padded + WG_DATA_OVERHEAD);
        if (len > 0 && peer->unanswered == 0)
            peer->unanswered = now;
        if (is_silent(peer, now) && !endpoint_is_none(&peer->home))
            peer->ep = peer->home;
        if (keypair_wants_rekey_after_send(kp, now) || is_silent(peer, now))
            initiate(p, peer, now);
    }
    aead_lane_clear(p->lane);
    (void)keypair_unref(kp);
}

static void take_data(
    struct party *p, const struct endpoint *from, const uint8_t *msg, size_t len, nsec_t now)
{
    uint8_t copy[PARTY_PACKET_MAX + WG_DATA_OVERHEAD];
    struct wg_data header;
    struct party_peer *peer;
    struct keypair *kp;
    uint64_t counter;
    bool is_fresh = false, renews;

    memcpy(&header, msg, sizeof(header));
    kp = find_keypair(p, le32_get(header.receiver), &peer);
    if (!kp || len > sizeof(copy) || !keypair_can_receive(kp, now))
        return;
    memcpy(copy, msg, len);
    if (keypair_open(kp, p->lane, copy, len, &counter))
        keypair_check_counters(kp, &counter, 1, &is_fresh);
    aead_lane_clear(p->lane);
    if (!is_fresh)
        return;
    (void)keypairs_confirm(&peer->keypairs, kp, &renews);
    peer->ep = *from;
    peer->unanswered = 0;
    p->events.receive(p->events.ctx, peer, copy + sizeof(header), len - WG_DATA_OVERHEAD);
}

void party_receive(
    struct party *p, const struct endpoint *from, const void *msg, size_t len, nsec_t now)
{
    struct wg_initiation initiation;
    struct wg_response response;

    switch (wg_type_of(msg, len)) {
    case WG_TYPE_INITIATION:
        memcpy(&initiation, msg, sizeof(initiation));
        take_initiation(p, from, &initiation, now);
        break;
    case WG_TYPE_RESPONSE:
        memcpy(&response, msg, sizeof(response));
        take_response(p, from, &response, now);
        break;
    case WG_TYPE_DATA:
        take_data(p, from, msg, len, now);
        break;
    }
}
