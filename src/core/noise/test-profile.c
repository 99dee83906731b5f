/* test-profile.c - profiles and the choice among them: who agrees with whom, and who never does. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "noise/identity.h"
#include "noise/profile.h"
#include "test/support/noise_pair.h"

/* Which cipher each side wants, whether it takes the other's, and what comes of it. */
struct choice_case {
    const char *initiator;
    const char *responder;
    int r;                      /* of taking the initiation */
    enum aead_cipher transport; /* of the session, if there is one */
};

static void choose(struct noise_remote *remote, const char *text)
{
    struct err e = ERR_NULL;
    struct noise_choice choice;

    assert_int_equal(noise_choice_parse(&choice, text, &e), 0);
    noise_remote_set_choice(remote, choice);
    assert_true(noise_choice_equal(noise_remote_choice(remote), choice));
}

static void check_choice(const struct choice_case *c, uint64_t seed)
{
    const struct noise_profile *profile = noise_profiles[c->transport];
    const struct aead_algorithm *alg = aead_reference(c->transport);
    struct wg_initiation m1;
    struct wg_response m2;
    struct keypair *ki;
    struct keypair *kr;
    struct pair p;

    pair_init(&p, seed);
    choose(&p.i.remote, c->initiator);
    choose(&p.r.remote, c->responder);
    assert_int_equal(create_initiation(&p, WALL, &m1), 0);
    assert_int_equal(take_initiation(&p, &m1, 0), c->r);
    if (c->r != 0) {
        assert_int_equal(p.r.hs.state, HANDSHAKE_STATE_NONE);
        assert_int_equal(create_response(&p, &m2), HANDSHAKE_E_STATE);
        /* The same again tells nothing new. */
        assert_int_equal(take_initiation(&p, &m1, NSEC_PER_SEC), HANDSHAKE_E_REPLAY);
        return;
    }
    assert_ptr_equal(p.r.hs.profile, profile);
    assert_int_equal(create_response(&p, &m2), 0);
    assert_int_equal(take_response(&p, &m2), 0);
    assert_ptr_equal(p.i.hs.profile, profile);
    assert_int_equal(handshake_derive(&p.i.hs, alg, NULL, 0, &ki), 0);
    assert_int_equal(handshake_derive(&p.r.hs, alg, NULL, 0, &kr), 0);
    assert_true(talks(ki, kr));
    assert_true(talks(kr, ki));
    keypair_unref(ki);
    keypair_unref(kr);
}

static void test_choice(void **state)
{
    static const char cc[] = "chacha20poly1305";
    static const char aes[] = "aes256gcm";
    static const char cc_any[] = "chacha20poly1305,aes256gcm";
    static const char aes_any[] = "aes256gcm,chacha20poly1305";
    static const struct choice_case cases[] = {
        {cc, cc, 0, AEAD_CIPHER_CHACHA20POLY1305},
        {aes, aes, 0, AEAD_CIPHER_AES256GCM},
        /* A mismatch fails, whoever begins. */
        {aes, cc, HANDSHAKE_E_PROFILE, AEAD_CIPHER_AES256GCM},
        {cc, aes, HANDSHAKE_E_PROFILE, AEAD_CIPHER_CHACHA20POLY1305},
        {cc_any, aes, HANDSHAKE_E_PROFILE, AEAD_CIPHER_CHACHA20POLY1305},
        /* Where the responder leaves it open, the initiator decides. */
        {aes, aes_any, 0, AEAD_CIPHER_AES256GCM},
        {aes, cc_any, 0, AEAD_CIPHER_AES256GCM},
        {cc, aes_any, 0, AEAD_CIPHER_CHACHA20POLY1305},
        {cc, cc_any, 0, AEAD_CIPHER_CHACHA20POLY1305},
        {aes_any, cc_any, 0, AEAD_CIPHER_AES256GCM},
        {aes_any, aes, 0, AEAD_CIPHER_AES256GCM},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        check_choice(&cases[i], 20 + i);
}

/*
 * A downgrade: somebody in the middle leads each side to believe that the other
 * wanted the other profile. Neither message can be carried from one to the other.
 */
static void test_downgrade(void **state)
{
    static const struct noise_profile *const plain = &noise_profile_wireguard;
    struct handshake_incoming in;
    struct wg_initiation m1;
    struct wg_response m2;
    struct pair p;

    pair_init(&p, 6);
    choose(&p.i.remote, "aes256gcm,chacha20poly1305");
    choose(&p.r.remote, "aes256gcm,chacha20poly1305");
    /* An AES initiation does not open as a ChaCha20-Poly1305 one. */
    assert_int_equal(create_initiation(&p, WALL, &m1), 0);
    assert_int_equal(
        handshake_open_initiation(&p.r.local, &plain, 1, &m1, &in), HANDSHAKE_E_INVALID);
    /* Nor does a responder that was made to take it for one produce a response that fits. */
    assert_int_equal(take_initiation(&p, &m1, 0), 0);
    p.r.hs.profile = &noise_profile_wireguard;
    noise_profile_start(p.r.hs.profile, &p.r.hs.chaining_key, &p.r.hs.hash);
    assert_int_equal(create_response(&p, &m2), 0);
    assert_int_equal(take_response(&p, &m2), HANDSHAKE_E_INVALID);
    assert_int_equal(p.i.hs.state, HANDSHAKE_STATE_INITIATION_CREATED);
}

/* The same secrets under the two profiles give keys that have nothing to do with each other. */
static void test_key_separation(void **state)
{
    struct wg_initiation initiations[NOISE_PROFILE_N];
    struct wg_response responses[NOISE_PROFILE_N];
    struct keypair *kp[NOISE_PROFILE_N];

    for (unsigned c = 0; c < NOISE_PROFILE_N; c++) {
        struct pair p;

        pair_init(&p, 30);
        p.i.remote.profile = p.r.remote.profile = noise_profiles[c];
        assert_int_equal(create_initiation(&p, WALL, &initiations[c]), 0);
        assert_int_equal(take_initiation(&p, &initiations[c], 0), 0);
        assert_int_equal(create_response(&p, &responses[c]), 0);
        assert_int_equal(
            handshake_derive(&p.r.hs, aead_reference((enum aead_cipher)c), NULL, 0, &kp[c]), 0);
    }
    /* Same randomness, so the same ephemerals; all that is encrypted differs. */
    assert_memory_equal(initiations[0].ephemeral, initiations[1].ephemeral, WG_KEY_SIZE);
    assert_memory_equal(responses[0].ephemeral, responses[1].ephemeral, WG_KEY_SIZE);
    assert_memory_not_equal(initiations[0].encrypted_static, initiations[1].encrypted_static,
        sizeof(initiations[0].encrypted_static));
    assert_memory_not_equal(&kp[0]->seal_key, &kp[1]->seal_key, sizeof(struct aead_key));
    assert_memory_not_equal(&kp[0]->open_key, &kp[1]->open_key, sizeof(struct aead_key));
    for (unsigned c = 0; c < NOISE_PROFILE_N; c++)
        keypair_unref(kp[c]);
}

static void test_choice_text(void **state)
{
    static const char *const good[] = {"chacha20poly1305", "aes256gcm",
        "aes256gcm,chacha20poly1305", "chacha20poly1305,aes256gcm"};
    static const char *const bad[] = {"", ",", "aes", "AES256GCM", "aes256gcm,",
        "aes256gcm,aes256gcm", "aes256gcm,chacha20poly1305,", ",aes256gcm", "auto",
        "aes256gcm, chacha20poly1305"};
    char buf[NOISE_CHOICE_TEXT_MAX];
    struct noise_choice choice = NOISE_CHOICE_NULL;
    struct err e = ERR_NULL;

    assert_string_equal(noise_choice_format(choice, buf), good[0]);
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        assert_int_equal(noise_choice_parse(&choice, good[i], &e), 0);
        assert_string_equal(noise_choice_format(choice, buf), good[i]);
        assert_int_equal(noise_choice_is_null(choice), i == 0);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(noise_choice_parse(&choice, bad[i], &e), -EINVAL);
        assert_non_null(strstr(err_text(&e), "aes256gcm"));
    }
}

static void test_pins(void **state)
{
    static const char *const bad[] = {"", "False", "sessions", "pin"};
    enum pin pin = PIN_N;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_false(pin_parse(&pin, bad[i]));
        assert_int_equal(pin, PIN_N);
    }
    for (int i = 0; i < PIN_N; i++) {
        assert_true(pin_parse(&pin, pin_names[i]));
        assert_int_equal(pin, i);
    }
}

/* What two keys share is known while there are two, and gone when there are not. */
static void test_what_is_shared_goes_with_the_key(void **state)
{
    static const struct x25519_secret none = {{0}};
    static const struct x25519_shared zeroes = {{0}};
    struct noise_remote remote;
    struct pair p;

    pair_init(&p, 5);
    noise_remote_init(&remote, p.i.remote.profile, &p.i.local, &p.r.local.public);
    assert_true(remote.has_static_static);
    assert_memory_equal(
        &remote.static_static, &p.i.remote.static_static, sizeof(remote.static_static));
    noise_local_set(&p.i.local, &none);
    assert_false(p.i.local.has_key);
    noise_remote_set_local(&remote, &p.i.local);
    assert_false(remote.has_static_static);
    assert_memory_equal(&remote.static_static, &zeroes, sizeof(zeroes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_downgrade),
        cmocka_unit_test(test_key_separation),
        cmocka_unit_test(test_choice_text),
        cmocka_unit_test(test_pins),
        cmocka_unit_test(test_what_is_shared_goes_with_the_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
