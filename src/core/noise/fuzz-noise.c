/*
 * fuzz-noise.c - any datagram, against a responder, an initiator that waits for
 * an answer, and a session, all with fixed keys.
 *
 * The keys and the random source are those of test/vectors/noise-handshake.txt,
 * case "plain", so the corpus can hold messages that are right, and the fuzzer
 * starts behind the authentication.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "base/text.h"
#include "noise/cookie.h"
#include "noise/handshake.h"
#include "noise/keypair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Static and ephemeral secrets of the vector. */
#define INITIATOR           "b0f044d5ed4e132a59e324a0e55fb283d247beeb67d5c373d02bddf7baf75fb9"
#define RESPONDER           "64c034c1c89054425bc80799c6b5b0e657f53ed4621f2d1e1414a23c385e7ad9"
#define INITIATOR_EPHEMERAL "2a25278e4efd2ab4c24fd6551053050d676cf0c034187ed96d418105caad6eb4"
#define INITIATOR_SEAL      "cd9f3ba902169590576cad2c1f6b0e65e4941328e7f1dbb1d02eccb3f77c6e3b"
#define WALL                INT64_C(1790000000987654321)

static void fixed_fill(void *ctx, void *buf, size_t len)
{
    uint8_t bytes[32];

    bool ok = hex_decode(ctx, bytes, sizeof(bytes));

    assert(ok && len <= sizeof(bytes));
    memcpy(buf, bytes, len);
}

static struct noise_local local_of(const char *hex)
{
    struct noise_local local = {0};
    struct x25519_secret secret;

    if (!x25519_secret_parse_hex(&secret, hex))
        abort();
    noise_local_set(&local, &secret);
    return local;
}

/** Both sides, made once: the inputs work on copies. */
struct world {
    struct noise_local initiator;
    struct noise_local responder;
    struct noise_remote to_responder;
    struct noise_remote to_initiator;
    struct handshake waiting; /* of the initiator, after its initiation */
    struct cookie_maker maker;
    struct aead_lane *lane;
    struct keypair *kp; /* of the responder */
};

static const struct world *the_world(void)
{
    static struct world w;
    struct rng rng = {fixed_fill, (void *)(uintptr_t)INITIATOR_EPHEMERAL};
    struct wg_initiation msg;

    if (w.kp)
        return &w;
    w.initiator = local_of(INITIATOR);
    w.responder = local_of(RESPONDER);
    noise_remote_init(&w.to_responder, &noise_profile_wireguard, &w.initiator, &w.responder.public);
    noise_remote_init(&w.to_initiator, &noise_profile_wireguard, &w.responder, &w.initiator.public);
    if (handshake_create_initiation(
            &w.waiting, &w.initiator, &w.to_responder, 0x11223344, WALL, &rng, &msg) != 0)
        abort();
    cookie_add_macs(&w.maker, &w.responder.public, &msg, sizeof(msg), 0);
    if (aead_lane_new(&w.lane) != 0 || keypair_new(&w.kp) != 0 ||
        !hex_decode(INITIATOR_SEAL, w.kp->open_key.b, sizeof(w.kp->open_key.b)))
        abort();
    w.kp->alg = aead_reference(AEAD_CIPHER_CHACHA20POLY1305);
    w.kp->local_index = 0xaabbccdd;
    return &w;
}

static void on_initiation(const struct world *w, const struct wg_initiation *msg)
{
    struct noise_remote remote = w->to_initiator;
    struct handshake hs = {0};
    struct handshake_incoming in;
    struct cookie_checker checker = {0};

    cookie_checker_set_key(&checker, &w->responder.public);
    (void)cookie_check_mac1(&checker, msg, sizeof(*msg));
    if (handshake_open_initiation(&w->responder, noise_profiles, NOISE_PROFILE_N, msg, &in) != 0)
        return;
    /* The static key opens for whoever knows ours; only the timestamp proves anything. */
    if (handshake_consume_initiation(&hs, &remote, &in, 0) == 0)
        assert(x25519_public_equal(&in.public, &w->initiator.public));
}

static void on_response(const struct world *w, const struct wg_response *msg)
{
    struct handshake hs = w->waiting;
    struct keypair *kp;

    if (handshake_consume_response(&hs, &w->initiator, &w->to_responder, msg) != 0) {
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): a copy, padding and all. */
        assert(memcmp(&hs, &w->waiting, sizeof(hs)) == 0);
        return;
    }
    if (handshake_derive(&hs, aead_reference(AEAD_CIPHER_CHACHA20POLY1305), NULL, 0, &kp) == 0)
        keypair_unref(kp);
}

static void on_cookie_reply(const struct world *w, const struct wg_cookie_reply *msg)
{
    struct cookie_maker maker = w->maker;

    if (!cookie_consume_reply(&maker, &w->responder.public, msg, 0))
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): a copy, padding and all. */
        assert(memcmp(&maker, &w->maker, sizeof(maker)) == 0);
}

static void on_data(const struct world *w, const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len);
    uint64_t counter;

    if (!copy)
        return;
    memcpy(copy, data, len);
    if (keypair_open(w->kp, w->lane, copy, len, &counter))
        assert(counter < WG_REJECT_AFTER_MESSAGES);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct world *w = the_world();

    switch (wg_type_of(data, len)) {
    case WG_TYPE_INITIATION:
        on_initiation(w, (const struct wg_initiation *)data);
        break;
    case WG_TYPE_RESPONSE:
        on_response(w, (const struct wg_response *)data);
        break;
    case WG_TYPE_COOKIE_REPLY:
        on_cookie_reply(w, (const struct wg_cookie_reply *)data);
        break;
    case WG_TYPE_DATA:
        on_data(w, data, len);
        break;
    }
    return 0;
}
