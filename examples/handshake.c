/*
 * handshake.c - two nodes shake hands and one sends the other a packet, all in memory.
 *
 * Linked with src/core/ and nothing else: no socket, no clock, no thread. Time and randomness are
 * arguments; the bytes from one node to the other are WireGuard's. make core && build/handshake
 */
#include <stdio.h>
#include <string.h>

#include "base/secret.h"
#include "noise/handshake.h"
#include "noise/keypair.h"

#define NOW  (100 * NSEC_PER_SEC)             /* monotonic: since anything */
#define WALL (1700000000 * NSEC_PER_SEC)      /* since 1970: an initiation carries it */
#define TEXT "the first packet in the tunnel" /* a real one would be an IP packet */

struct node {
    struct noise_local local;   /* its own static keys */
    struct noise_remote remote; /* what it knows of the other */
    struct handshake hs;
    struct keypair *keypair; /* after the handshake */
};

/* Each makes its own keys, and is told the other's public one: by a hub, or by hand. */
static void introduce(struct node *a, struct node *b, const struct rng *rng)
{
    struct x25519_secret secret;

    x25519_secret_make(&secret, rng);
    noise_local_set(&a->local, &secret);
    x25519_secret_make(&secret, rng);
    noise_local_set(&b->local, &secret);
    noise_remote_init(&a->remote, &noise_profile_wireguard, &a->local, &b->local.public);
    noise_remote_init(&b->remote, &noise_profile_wireguard, &b->local, &a->local.public);
}

/* @a begins, @b answers; each then has its end of the same keypair. 0 or a HANDSHAKE_E_*. */
static int shake_hands(struct node *a, struct node *b, const struct rng *rng)
{
    const struct aead_algorithm *alg = aead_reference(AEAD_CIPHER_CHACHA20POLY1305);
    struct wg_initiation initiation;
    struct wg_response response;
    struct handshake_incoming in;
    int r;

    r = handshake_create_initiation(&a->hs, &a->local, &a->remote, 1, WALL, rng, &initiation);
    if (r == 0)
        r = handshake_open_initiation(&b->local, noise_profiles, NOISE_PROFILE_N, &initiation, &in);
    if (r == 0)
        r = handshake_consume_initiation(&b->hs, &b->remote, &in, NOW);
    if (r == 0)
        r = handshake_create_response(&b->hs, &b->remote, 2, rng, &response);
    if (r == 0)
        r = handshake_consume_response(&a->hs, &a->local, &a->remote, &response);
    if (r == 0)
        r = handshake_derive(&b->hs, alg, b, NOW, &b->keypair);
    if (r == 0)
        r = handshake_derive(&a->hs, alg, a, NOW, &a->keypair);
    return r;
}

/* One data message from @a to @b; does what arrives say what was sent? */
static bool send_text(struct node *a, struct node *b, struct aead_lane *lane)
{
    uint8_t msg[32 + WG_DATA_OVERHEAD] = {0};
    uint8_t *text = msg + sizeof(struct wg_data);
    uint64_t counter;

    memcpy(text, TEXT, sizeof(TEXT));
    if (!keypair_take_counters(a->keypair, 1, &counter) ||
        !keypair_seal(a->keypair, lane, counter, msg, 32))
        return false;
    printf("%zu bytes on the wire, the text is %s in them\n", sizeof(msg),
        memcmp(text, TEXT, sizeof(TEXT)) == 0 ? "readable" : "not readable");
    if (!keypair_open(b->keypair, lane, msg, sizeof(msg), &counter))
        return false;
    printf("opened, counter %llu: \"%s\"\n", (unsigned long long)counter, (const char *)text);
    return memcmp(text, TEXT, sizeof(TEXT)) == 0;
}

int main(void)
{
    uint64_t seed = 1; /* keys that repeat: for an example, never for a tunnel */
    struct rng rng = rng_seeded(&seed);
    struct aead_lane *lane;
    struct node a = {0};
    struct node b = {0};
    bool ok;

    if (aead_lane_new(&lane) < 0)
        return 1;
    introduce(&a, &b, &rng);
    ok = shake_hands(&a, &b, &rng) == 0 && send_text(&a, &b, lane);
    aead_lane_clear(lane); /* before the keypairs go */
    keypair_unref(a.keypair);
    keypair_unref(b.keypair);
    aead_lane_free(lane);
    secret_wipe(&a.local, sizeof(a.local));
    secret_wipe(&b.local, sizeof(b.local));
    return ok ? 0 : 1;
}
