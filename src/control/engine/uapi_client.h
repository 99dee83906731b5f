/*
 * uapi_client.h - changes and configurations in WireGuard's cross-platform protocol.
 *
 * The client's side of it: "set=1" requests are written, answers are read. The
 * server's side is uapi/uapi.h.
 *
 * Spec: www.wireguard.com/xplatform
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct diff;
struct err;
struct offloads;
struct str;
struct wg_config;
struct x25519_public;
struct x25519_secret;

/** The request that asks for keys, settings and peers. */
#define UAPI_CLIENT_GET "get=1\n\n"

/** The request that asks for counters and offloads. */
#define UAPI_CLIENT_STATS "stats=1\n\n"

/** The request that has the process let go of its interface, which stays, and end. */
#define UAPI_CLIENT_HAND_OVER "hand_over=1\n\n"

/** Longest line of an answer. */
#define UAPI_CLIENT_LINE_MAX 1024

/**
 * uapi_client_encode() - the request that applies a change
 * @secret:	used when @d says that the private key has to be set
 * @out:	appended to; holds keys: str_deinit() wipes it
 */
void uapi_client_encode(const struct diff *d, const struct x25519_secret *secret, struct str *out);

/** uapi_client_encode_handshake() - the request that has @peer begin a handshake. @out: appended
 * to.
 */
void uapi_client_encode_handshake(const struct x25519_public *peer, struct str *out);

/**
 * uapi_client_decode() - the answer to UAPI_CLIENT_GET
 * @text:	@len bytes, up to and including the line "errno=..."
 * @ret:	untouched on failure, else to be sorted, and released with wg_config_deinit()
 *
 * Keys that are not known are skipped, as every client does.
 *
 * Return: 0; -EBADMSG with words that name the line; the errno that the engine
 * answered, negative, with words; -ENOMEM.
 */
int uapi_client_decode(struct wg_config *ret, const char *text, size_t len, struct err *e);

/** What an engine can that not each one can. */
struct uapi_abilities {
    bool keeps_rates;
    bool has_next_keys; /* it answers under two keys while one follows the other */
    bool has_access;    /* it can go by the network's rules (engine_access.h) */
};

/**
 * uapi_client_decode_stats() - of the answer to UAPI_CLIENT_STATS
 * @ret:	untouched on failure; NULL: not wanted
 * @ret_can:	untouched on failure; NULL: not wanted
 *
 * An engine that says nothing of an ability does not have it.
 *
 * Return: as uapi_client_decode(); -EBADMSG with words, too, for one of which nothing is said.
 */
int uapi_client_decode_stats(struct offloads *ret, struct uapi_abilities *ret_can, const char *text,
    size_t len, struct err *e);

/** uapi_client_result() - what the last line, "errno=N", of any answer says: 0 or as above. */
int uapi_client_result(const char *text, size_t len, struct err *e);
