/*
 * networks.h - the networks of a hub: made, removed, and the hub's own place in each.
 *
 * A network's private key is a file of its own (0600), written before the
 * network is stored and removed after it; so a stored network always has one.
 */
#pragma once

#include "base/clock.h"
#include "crypto/x25519.h"
#include "hub/request.h"
#include "hub/model.h"

struct err;
struct hub;

/** There is a network of that name already. */
#define NETWORKS_E_EXISTS 1

/** The first network, unless it was said otherwise. */
#define NETWORKS_NAME_DEFAULT "default"

/**
 * The block of a network that does not say one: in none that a tool or cloud takes by itself.
 * weft-hub(8) has the list of those that were looked at.
 */
#define NETWORKS_CIDR4_DEFAULT "10.77.0.0/16"

/** What has become of it. @r: as of networks_add(); @net: lent, NULL if it is not 0. */
typedef void (*networks_added_fn)(void *ctx, int r, struct model_network *net, const struct err *e);

/**
 * networks_add() - make a network, and bring it up if the hub is running
 * @done:	called later, once: 0; NETWORKS_E_EXISTS with words; or negative errno with words,
 *		and there is no network, unless the words say that this is not known
 *
 * Return: 0: begun; NETWORKS_E_EXISTS or negative errno with words, and @done is not called.
 */
int networks_add(struct hub *hub, const struct network_request *rq, networks_added_fn done,
    void *ctx, struct err *e);

/** The network is gone; or, when @r is not 0, what is left of it is there (negative errno). */
typedef void (*networks_removed_fn)(void *ctx, int r, const struct err *e);

/**
 * networks_remove() - with its nodes, tokens and keys
 * @done:	called once, perhaps before this returns
 *
 * Return: 0: begun; or negative errno with words, and @done is not called.
 */
int networks_remove(
    struct hub *hub, struct model_network *net, networks_removed_fn done, void *ctx, struct err *e);

/**
 * networks_hold_keys() - while a copy of the hub is made
 * @hold:	true: key files of networks that are removed meanwhile are kept; false: they go
 */
void networks_hold_keys(struct hub *hub, bool hold);

/** networks_key() - read a network's private key, whose public half must be @public. */
int networks_key(struct hub *hub, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e);

/**
 * networks_refresh() - have the hub's own nodes say where it is reached now
 *
 * Return: 0 or negative errno with words; what fails later is in the hub's refresh_failure.
 */
int networks_refresh(struct hub *hub, nsec_t now, struct err *e);

/** networks_interface() - "weft-default"; a long name is cut and told apart by four hex digits. */
void networks_interface(const char *prefix, const char *name, char ret[static 16]);
