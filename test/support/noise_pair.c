/* noise_pair.c - see noise_pair.h. */
#include "test/support/noise_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

void pair_init(struct pair *p, uint64_t seed)
{
    struct x25519_secret secret;

    memset(p, 0, sizeof(*p));
    p->seed = seed;
    p->rng = rng_seeded(&p->seed);
    x25519_secret_make(&secret, &p->rng);
    noise_local_set(&p->i.local, &secret);
    x25519_secret_make(&secret, &p->rng);
    noise_local_set(&p->r.local, &secret);
    noise_remote_init(&p->i.remote, &noise_profile_wireguard, &p->i.local, &p->r.local.public);
    noise_remote_init(&p->r.remote, &noise_profile_wireguard, &p->r.local, &p->i.local.public);
}

int create_initiation(struct pair *p, nsec_t wall, struct wg_initiation *ret)
{
    return handshake_create_initiation(
        &p->i.hs, &p->i.local, &p->i.remote, 0x1111, wall, &p->rng, ret);
}

int take_initiation(struct pair *p, const struct wg_initiation *msg, nsec_t now)
{
    struct handshake_incoming in;
    int r = handshake_open_initiation(&p->r.local, noise_profiles, NOISE_PROFILE_N, msg, &in);

    if (r != 0)
        return r;
    assert_true(x25519_public_equal(&in.public, &p->i.local.public));
    return handshake_consume_initiation(&p->r.hs, &p->r.remote, &in, now);
}

int create_response(struct pair *p, struct wg_response *ret)
{
    return handshake_create_response(&p->r.hs, &p->r.remote, 0x2222, &p->rng, ret);
}

int take_response(struct pair *p, const struct wg_response *msg)
{
    return handshake_consume_response(&p->i.hs, &p->i.local, &p->i.remote, msg);
}

const struct aead_algorithm *chacha(void)
{
    return aead_reference(AEAD_CIPHER_CHACHA20POLY1305);
}

/* A data message from one keypair to the other. */
bool talks(struct keypair *from, struct keypair *to)
{
    uint8_t msg[64 + WG_DATA_OVERHEAD];
    struct aead_lane *lane;
    uint64_t sent;
    uint64_t got;
    bool ok;

    memset(msg, 0x77, sizeof(msg));
    assert_int_equal(aead_lane_new(&lane), 0);
    assert_true(keypair_take_counters(from, 1, &sent));
    assert_true(keypair_seal(from, lane, sent, msg, 64));
    ok = keypair_open(to, lane, msg, sizeof(msg), &got);
    if (ok) {
        assert_int_equal(sent, got);
        assert_int_equal(msg[sizeof(struct wg_data)], 0x77);
    }
    aead_lane_free(lane);
    return ok;
}
