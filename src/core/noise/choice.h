/*
 * choice.h - which cipher a peer's data may travel in.
 *
 * We initiate with the wanted one's profile (profile.h). To an initiation of the
 * peer's we answer if it was made under that profile, or under any other where
 * the choice leaves it open: that is what lets two sides be told of a change
 * one after the other without a moment in which neither can reach the other
 * (docs/wire/aes.md).
 *
 * As text: "aes256gcm" (that and nothing else), or "aes256gcm,chacha20poly1305"
 * (the first one wanted, and all of them taken).
 */
#pragma once

#include <stdbool.h>

#include "crypto/aead.h"

struct err;

struct noise_choice {
    enum aead_cipher wanted; /* what we initiate with */
    bool takes_any;          /* we answer to any cipher that this build knows */
};

/** WireGuard's own cipher and nothing else: what stock peers get. */
#define NOISE_CHOICE_NULL                                                                          \
    {                                                                                              \
        0                                                                                          \
    }

/** Longest text, with its zero. */
#define NOISE_CHOICE_TEXT_MAX 40

static inline bool noise_choice_equal(struct noise_choice a, struct noise_choice b)
{
    return a.wanted == b.wanted && a.takes_any == b.takes_any;
}

/** noise_choice_is_null() - is it what every WireGuard does? Then nobody need be told. */
static inline bool noise_choice_is_null(struct noise_choice c)
{
    return c.wanted == AEAD_CIPHER_CHACHA20POLY1305 && !c.takes_any;
}

/** noise_choice_parse() - 0, or -EINVAL with words. */
int noise_choice_parse(struct noise_choice *ret, const char *text, struct err *e);

/** noise_choice_format() - the text that parses to it. Returns @buf. */
const char *noise_choice_format(struct noise_choice c, char buf[static NOISE_CHOICE_TEXT_MAX]);
