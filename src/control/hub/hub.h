/*
 * hub.h - the control half of a hub.
 *
 * Everything here runs on one libuv loop, the process's main loop: the API
 * server, the store, the watches and the overlay's calls. Nothing is locked.
 * Devices and the relay, which have threads of their own, are behind the overlay.
 *
 * Theory of operation. The store is the truth, and nobody waits for it. A
 * handler checks, hands a commit to the store, and returns (reply.h). When the
 * commit is on the disk the store tells its watch, which takes the change into
 * the model below; that is the only place where the model changes, so a change
 * made by another hub on the same store takes the same way as our own. Each
 * change then reaches, in the same turn and in this order: the overlay (WireGuard
 * peers, relay tables), the nodes' watches, and the caller's answer. What only
 * reads, reads the model, at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "hub/model/model.h"
#include "hub/networks/public_addresses.h"

struct hub;
struct overlay;

/** How a hub is set up; fixed while it runs. Texts are borrowed until hub_free(). */
struct hub_config {
    const char *name;      /* of its node in each network; see hub_check_name(); NULL: "hub" */
    const char *state_dir; /* keys, certificate, admin token; made if missing */
    int64_t audit_age_s;   /* entries of the audit log are kept so long; 0: the default */
    const struct json_t *price_table; /* what bytes cost (docs/COST.md); NULL: not known */
    const char *store_url;            /* see store_open.h */
    struct store *store;              /* taken, instead of one at that URL: tests; NULL: none */
    const char *socket_path;          /* of the admin's unix socket */
    const char *interface_prefix;     /* of its interfaces: "weft" gives "weft-default" */
    struct endpoint api_listen;       /* TCP; address none: all of them, v4 and v6 */
    uint16_t udp_port;                /* where WireGuard and the relay listen */
    bool has_web;                     /* it shows a page to browsers */
    const char *const *options; /* lent to hub_new(): the command line, for backups; NULL: none */
    size_t n_options;
    struct hub_places
        public_addresses; /* where nodes reach @udp_port, at least one, with endpoints */
};

/** hub_check_name() - may a hub be called that? 0, or -EINVAL with words. */
int hub_check_name(const char *name, struct err *e);

/**
 * hub_new() - open the state and the store
 * @loop:	pinned
 * @overlay:	pinned; NULL: no data half, and somebody else has made the interfaces
 *
 * Makes what is missing: directories, TLS key and certificate, admin token.
 *
 * Return: 0 or negative errno with words that name the file or value.
 */
int hub_new(struct hub **ret, struct uv_loop_s *loop, const struct hub_config *config,
    struct overlay *overlay, struct err *e);

/**
 * hub_start() - bring up every network, and answer machines, members and administrators
 * @first_network:	made if the hub has no network yet; NULL: "default"
 * @first_cidr4:	its block; len 0: the default
 *
 * What is given and not so, because the hub has other networks already, is warned of.
 *
 * Return: 0 or negative errno with words.
 */
int hub_start(
    struct hub *hub, const char *first_network, const struct ip_prefix *first_cidr4, struct err *e);

/**
 * hub_failure() - has the hub stopped its loop, because it cannot go on?
 *
 * Return: 0: it has not; -EEXIST with words: another process runs as this hub.
 */
int hub_failure(const struct hub *hub, struct err *e);

/**
 * hub_stop() - write what is pending, take the networks down, answer nobody any more
 *
 * Takes all networks out of the overlay. Its libuv handles close in the next turns: run the loop
 * until it is empty, then hub_free().
 */
void hub_stop(struct hub *hub);

/** hub_free() - after hub_stop(), or after a hub_start() that failed. */
struct hub *hub_free(struct hub *hub);

/** hub_api_port() - the TCP port of the API; known once hub_start() has returned. */
uint16_t hub_api_port(const struct hub *hub);

/** hub_web_url() - the URL of the page with a login of role admin, which is used once, within
 * WEB_LOGIN_TTL; a secret, for the caller to free(). NULL: there is no page, or no memory. */
char *hub_web_url(struct hub *hub);

/** Room for a pin as text, with the terminating zero. */
#define HUB_PIN_TEXT_MAX 45

/** hub_pin() - base64 of the SHA-256 of the TLS key, as clients pin it; into @buf; returns @buf. */
const char *hub_pin(const struct hub *hub, char buf[static HUB_PIN_TEXT_MAX]);

/** hub_next_network() - walk the networks by name; NULL: start, and the end. Lends. */
const struct model_network *hub_next_network(struct hub *hub, const struct model_network *after);
