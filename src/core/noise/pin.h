/*
 * pin.h - what moves a peer's endpoint, beside its configuration.
 *
 * A peer's endpoint follows its authentic packets in any WireGuard. Where
 * somebody finds paths that would make endpoints flap while both ends change
 * from one to another; so it is he who says what they follow.
 */
#pragma once

#include <stdbool.h>

enum pin {
    PIN_NONE,    /* every authentic packet, as in any WireGuard */
    PIN_FIXED,   /* nothing */
    PIN_SESSION, /* a new session: it goes the way that its handshake came */
    PIN_N,
};

/** pin_name() - "false", "true", "session": the configuration protocol's words. */
const char *pin_name(enum pin pin);

/** pin_parse() - false when @text is none of them; @ret is then untouched. */
bool pin_parse(enum pin *ret, const char *text);
