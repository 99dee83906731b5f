/*
 * networks.h - the networks of a hub: made, joined, removed, and the hub's own node in each.
 *
 * A network's private key is a file of its own, STATE/keys/NAME.key (0600). It is written before
 * the network is stored, and removed after the network: so a stored network always has one.
 *
 * Theory of operation. Nothing waits for the disk or the store. Making a network is two steps: the
 * key file, on a thread of the loop's pool, and then one commit with the network, its addresses'
 * cursor and the hub's own node. One network is made at a time. When the commit is on the disk, the
 * model has told its listener of the network, and its data half has been brought up; a network for
 * which that failed is taken back. Removing is done in commits of bounded size, the network's own
 * record last, so what a crash leaves is a smaller network.
 *
 * Other hubs may have the same store. A network that one of them has made this hub joins as soon as
 * it hears of it: it makes a key of its own, and then commits its own node, with an address of the
 * network like any other node's. It serves the network from then on. The node has this hub's name;
 * if a node with another key has that name, the hub does not join, and says so.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/secret.h"
#include "crypto/x25519.h"
#include "hub/model/model.h"

struct public_addresses;
struct tls_pin;

/** Most hubs of one network: each node has a session with every one of them. */
#define NETWORKS_HUBS_MAX 16

/** Outcome: there is a network of that name already. */
#define NETWORKS_E_EXISTS 1

/** Outcome of networks_read_key(), beside STATEFILE_E_ABSENT: the file holds no key. */
#define NETWORKS_E_DAMAGED 2

/** The name of the first network, unless another one is given. */
#define NETWORKS_NAME_DEFAULT "default"

/**
 * The block of a network that does not say one: in none that a tool or cloud takes by itself.
 * weft-hub(8) has the list of those that were looked at.
 */
#define NETWORKS_CIDR4_DEFAULT "10.77.0.0/16"

/** All networks of a hub. */
struct networks {
    struct disk_works *disk; /* pins: what waits for the disk */
    struct model *model;     /* pins: what is stored, and how it is written */
    const struct public_addresses
        *public_addresses;         /* pins: where the hub's own nodes say that it is reached */
    const char *state_dir;         /* pins */
    struct rng rng;                /* for keys and address blocks; used on any thread */
    uint16_t api_port;             /* TCP, that the hub's own nodes name; set by the hub */
    const struct tls_pin *tls_pin; /* pins: of the key of its API, which they name; set by the hub;
                                      NULL: none */
    bool is_serving;               /* a network that is not brought up is taken back; set by the
                                      hub, once it has brought up those that were stored */
    json_t *held_keys; /* owns: names of networks that were removed while networks_hold_keys()
                          holds; NULL: it does not */
    char adding[NAME_MAX_LEN + 1]; /* the network that is being made, or joined; "": none */
    struct err join_failure;       /* why a network was not joined; code 0: none was refused */
    nsec_t join_at;                /* no network is joined before */
    struct err key_failure;        /* the last one of networks_key() for the model; code 0: none */
    struct err refresh_failure;    /* of what networks_refresh() has begun; code 0: none */
};

/**
 * networks_init() - for the networks of @model
 * @state_dir:	has the folder "keys"
 *
 * Nothing is read: model_load() reads the networks, and asks networks_key() for their keys.
 */
void networks_init(struct networks *n, struct disk_works *disk, struct model *model,
    const struct public_addresses *public_addresses, const char *state_dir, const struct rng *rng);

/** The outcome of networks_add(). @r: as listed there; @net: lent, NULL if @r is not 0. */
typedef void (*networks_added_fn)(
    void *ctx, int r, const struct model_network *net, const struct err *e);

/**
 * networks_add() - make a network
 * @wanted:	copied, and owns nothing; a block of length 0: the default, or a random one
 * @done:	called later, once: 0; NETWORKS_E_EXISTS with words; or negative errno with words,
 *		and there is no network, unless the words say that this is not known
 *
 * Before the hub serves anybody it waits for the disk here; the commit is for store_wait().
 *
 * Return: 0: begun; or NETWORKS_E_EXISTS or negative errno with words (-EAGAIN: another one is
 * being made), and @done is not called.
 */
int networks_add(struct networks *n, const struct network *wanted, networks_added_fn done,
    void *ctx, struct err *e);

/** The outcome of networks_remove(). @r: 0: the network is gone; or negative errno: what is left of
 * it is still there. */
typedef void (*networks_removed_fn)(void *ctx, int r, const struct err *e);

/**
 * networks_remove() - with its nodes, tokens and keys
 * @done:	called once, perhaps before this returns
 *
 * Return: 0: begun; or negative errno with words, and @done is not called.
 */
int networks_remove(struct networks *n, const struct model_network *net, networks_removed_fn done,
    void *ctx, struct err *e);

/** networks_forget() - that network was removed, by whichever hub: remove this hub's key in it. */
void networks_forget(struct networks *n, const char *name);

/**
 * networks_hold_keys() - while a copy of the hub is made
 * @hold:	true: key files of networks that are removed meanwhile are kept; false: they go
 */
void networks_hold_keys(struct networks *n, bool hold);

/** networks_read_key() - read a key's file, which waits for the disk. 0, for which @ret is to be
 * wiped; NETWORKS_E_DAMAGED or STATEFILE_E_ABSENT, without words; or negative errno with words. */
int networks_read_key(
    const char *path, struct x25519_secret *ret, struct x25519_public *ret_public, struct err *e);

/**
 * networks_key() - read a network's private key, whose public half must be @public
 * @ret:	wipe after use
 *
 * Return: 0 or negative errno with words (-ENOENT: there is no file; -EUCLEAN: it is not the key).
 */
int networks_key(const struct networks *n, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e);

/**
 * networks_refresh() - have the hub's own nodes say where it is reached now
 *
 * Only those that say something else are written.
 *
 * Return: 0: begun, or nothing to do; or negative errno with words. What fails later is in
 * refresh_failure, until the next call, which the hub makes a second later.
 */
int networks_refresh(struct networks *n, nsec_t now, struct err *e);

/**
 * networks_join() - begin to join a network that this hub has no node in, if there is one
 *
 * Call it each second, and once more whenever what it has begun is stored, before the hub serves
 * anybody: join_failure says then why it could not be.
 *
 * Return: true: begun; false: there is none, or it cannot be joined now.
 */
bool networks_join(struct networks *n, nsec_t now);

/** networks_interface() - "weft-default"; a long name is cut and told apart by four hex digits. */
void networks_interface(const char *prefix, const char *name, char ret[static 16]);
