/*
 * device_listener.h - whom a device tells what happens.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct udp_path;
struct x25519_public;

/**
 * Told about what happens. Calls come on the port's control thread, or on that
 * of a caller who removes a peer; always with the port's lock held: they may not
 * call anything of port.h or device.h. NULL members are skipped.
 */
struct device_listener {
    /* A session with @peer is ready to send; @path is where it speaks from, and to. */
    void (*on_session)(void *ctx, const struct x25519_public *peer, const struct udp_path *path);
    /* An authenticated packet of @peer came from another place than the last one did. */
    void (*on_path)(void *ctx, const struct x25519_public *peer, const struct udp_path *path);
    /* May a session with @peer not have this receiver index, because something else that
     * shares the port takes it for its own? Then another one is drawn. */
    bool (*is_index_taken)(void *ctx, const struct x25519_public *peer, uint32_t index);
    /* The interface was deleted: nothing will move any more. */
    void (*on_gone)(void *ctx);
    /* The interface stays, for another process: let go of it, and end. NULL: it cannot be had. */
    void (*on_handed_over)(void *ctx);
    void *ctx; /* pinned: handed to the calls */
};
