/*
 * userspace.h - the engine that runs in a process: `weft wg`, or any wireguard-go.
 *
 * It is asked in WireGuard's cross-platform protocol. How the text gets there
 * is a function, so that a hub can hand in the device that it runs itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/engine.h"

/**
 * engine_transport_fn - one request, one answer
 * @in:		@len bytes: "set=1" or "get=1", its lines, and an empty line
 * @ret_out:	the answer, gives it; @ret_len bytes; it holds keys
 *
 * Return: 0; ENGINE_E_GONE with words; or negative errno with words.
 */
typedef int (*engine_transport_fn)(
    void *ctx, const char *in, size_t len, char **ret_out, size_t *ret_len, struct err *e);

/**
 * engine_userspace_new() - an engine behind a function
 * @fn:		called for each get and apply, from within it
 * @ctx:	pinned: handed to @fn
 *
 * Return: 0 or -ENOMEM.
 */
int engine_userspace_new(struct engine **ret, engine_transport_fn fn, void *ctx);

/**
 * engine_userspace_open() - the process that runs @interface, started if there is none
 *
 * @timestamps:	as for engine_open()
 *
 * It is this program's own `weft wg`, in the background and in a session of its
 * own, so that it lives on when the caller ends.
 *
 * Return: 0 or negative errno with words.
 */
int engine_userspace_open(
    struct engine **ret, const char *interface, const char *timestamps, struct err *e);

/** engine_userspace_is_served() - does a process answer for @interface? */
bool engine_userspace_is_served(const char *interface);

/** engine_userspace_check() - as engine_check(). */
int engine_userspace_check(const char *interface, struct err *e);
