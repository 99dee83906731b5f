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

/**
 * networks_add() - make a network, and bring it up if the hub is running
 *
 * Return: 0; NETWORKS_E_EXISTS with words; or negative errno with words, and there is no network.
 */
int networks_add(struct hub *hub, const struct network_request *rq, nsec_t now,
    struct model_network **ret, struct err *e);

/** networks_remove() - with its nodes, tokens and keys. 0 or negative errno with words. */
int networks_remove(struct hub *hub, struct model_network *net, nsec_t now, struct err *e);

/** networks_key() - read a network's private key, whose public half must be @public. */
int networks_key(struct hub *hub, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e);

/** networks_refresh() - let the hub's own nodes say where it is reached now. */
int networks_refresh(struct hub *hub, nsec_t now, struct err *e);

/** networks_interface() - "weft-default"; a long name is cut and told apart by four hex digits. */
void networks_interface(const char *prefix, const char *name, char ret[static 16]);
