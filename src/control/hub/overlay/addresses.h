/*
 * addresses.h - where the nodes were, for a hub that is started again (recontact.h).
 *
 * STATE/addresses.json:
 *
 *     {"default": {"PUBLIC KEY": "203.0.113.5:51820", ...}, ...}
 *
 * An address in the file is a hint: nothing is relayed there before a handshake has shown that the
 * node is there.
 *
 * The file is written whole, so the more nodes are in it, the less often it is written: what it
 * costs each second stays the same. A hub that ends between two writes has not noted the last ones,
 * which then come back by themselves, more slowly.
 *
 * Threads: the hub's loop only. Writing the file waits for the disk, at most once in two seconds.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/clock.h"
#include "crypto/x25519.h"
#include "os/log.h"

struct endpoint;

struct addresses {
    char *path;      /* owns; NULL: nothing is written */
    json_t *known;   /* owns: what was read at the start; NULL: nothing was */
    nsec_t write_at; /* the file is not written before */
    struct log_limit limit;
};

#define ADDRESSES_NULL                                                                             \
    {                                                                                              \
        0                                                                                          \
    }

/**
 * addresses_open() - read what the hub knew when it ran last
 *
 * A file that does not parse is named in a warning and left as it is; then nothing is written.
 */
void addresses_open(struct addresses *a, const char *state_dir);

/** addresses_close() - release. Idempotent. */
void addresses_close(struct addresses *a);

/** addresses_find() - where the node with @key was; false: nobody knows, and @ret is untouched. */
bool addresses_find(const struct addresses *a, const char *network, const struct x25519_public *key,
    struct endpoint *ret);

/** addresses_may_write() - is there a file, and was it not written just now? */
bool addresses_may_write(const struct addresses *a, nsec_t now);

/** addresses_add() - one entry of a network's object in what addresses_write() takes. */
void addresses_add(json_t *network, const struct x25519_public *key, const struct endpoint *at);

/**
 * addresses_write() - replace what is in the file
 * @all:	taken; the object of all networks; NULL: no memory
 *
 * A failure is named in the log.
 */
void addresses_write(struct addresses *a, json_t *all, nsec_t now);
