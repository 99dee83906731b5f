/*
 * state.h - what a node keeps on disk (docs/API.md, "Files").
 *
 *     node.json      who this node is: its key, and the objects that it was born with; 0600
 *     public.json    the part of it that is no secret: interface and objects; for weft probe
 *     snapshot.json  the last snapshot that came from the hub
 *     keepalive.json how long an idle UDP mapping towards the hub lives
 *     peers.json     who this node's peers are, since it first saw them (agent/node_trust.h)
 *     keys.json      while this node changes its key: the next one; 0600
 *     traffic.json   what this node has moved, and is still to be told (agent/meter.h)
 *     removed.json   this machine was a node until its hub removed it
 *     timestamp      up to what time handshakes were dated; see os/timestamp_file.h
 *     join.key       the key of a join that has not ended yet; 0600
 *     lock           held by the agent while it runs
 *
 * A file that does not parse is named in the error and never overwritten.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/paths/edge/keepalive_probe.h"
#include "api/client/client.h"
#include "api/content/token.h"
#include "base/parse.h"
#include "crypto/x25519.h"
#include "engine/engine.h"
#include "mesh/object/subnets.h"
#include "mesh/snapshot/snapshot.h"
#include "os/machine.h"

/** There is no such file: this machine has not joined, or has no snapshot yet. */
#define STATE_E_ABSENT 1

#define STATE_DIR_DEFAULT    "/var/lib/weft/node"
#define STATE_SOCKET_DEFAULT "/run/weft/agent.sock"

/** Longest state directory; a file's name and a temporary one's have to fit behind it. */
#define STATE_DIR_MAX (PATH_MAX - 64)

/** Longest name of an interface, with its zero. */
#define STATE_INTERFACE_MAX 16

/** How the hub's public API is reached: what a stream needs. From the join token. */
struct state_hub_api {
    char api[TOKEN_ENDPOINTS_MAX][TOKEN_API_MAX + 1]; /* "HOST:PORT", best first */
    unsigned n_api;             /* 0: not known, the node joined with an older version */
    struct tls_pin pin;         /* of the hub's TLS key */
    char proxy[PROXY_TEXT_MAX]; /* the HTTP proxy; "": none. May hold a password */
};

/** Most endpoints that an operator can give. */
#define STATE_GIVEN_MAX 4

/** What node.json holds: the node's key, and what was asked for at the join. */
struct state {
    struct x25519_secret secret; /* wiped by state_deinit() */
    struct x25519_public former; /* the key before this one; none: it is the first, or not known */
    struct x25519_public next;   /* not in the file: the key that this node goes on with; none: it
                                    does   not change its key */
    int64_t keyed_at;            /* when it got its key, as the file's time says, s since 1970 */
    char interface[STATE_INTERFACE_MAX];
    enum engine_kind engine;
    bool wants_relay;            /* this node is to be a relay for others, if the hub admits it */
    struct subnets routes;       /* subnets that this node asks the hub to be the way to */
    bool keeps_sources;          /* their hosts see the sender's address, and not this machine's */
    enum subnets_accept accepts; /* which subnets behind other nodes are used */
    bool keeps_hosts;            /* the nodes' names are put into the hosts file */
    bool answers_dns;            /* they are answered by DNS on the node's overlay addresses */
    struct state_hub_api hub_api;
    uint16_t listen_port;                   /* of WireGuard, UDP, host order; 0: any */
    struct endpoint given[STATE_GIVEN_MAX]; /* where the operator says that others reach us; port
                                               0: the one that WireGuard has */
    unsigned n_given;
    struct machine_traits machine; /* on which the node joined */
    bool has_machine;              /* that is known: not of a join by an older version */
    struct snapshot snapshot;      /* the network, this node and the hub, as at the join */
};

#define STATE_NULL                                                                                 \
    {                                                                                              \
        0                                                                                          \
    }

/** state_deinit() - wipe and release. */
void state_deinit(struct state *st);

/** state_check_interface() - may an interface be called that? 0 or -EINVAL with words. */
int state_check_interface(const char *name, struct err *e);

/**
 * state_parse_given() - an endpoint as an operator gives it
 * @ret:	untouched on failure; port 0: the one that the node listens on
 * @text:	"192.0.2.1", "192.0.2.1:51820" or "[2001:db8::1]:51820"
 *
 * Return: 0, or -EINVAL with words.
 */
int state_parse_given(struct endpoint *ret, const char *text, struct err *e);

/** state_is_there() - has a machine with that directory joined? True also where nobody can tell. */
bool state_is_there(const char *dir);

/** state_check_dir() - is the name of that directory short enough? 0 or -EINVAL with words. */
int state_check_dir(const char *dir, struct err *e);

/**
 * state_read() - read node.json
 * @ret:	untouched on failure
 *
 * Return: 0; STATE_E_ABSENT; or negative errno with words that name the file.
 */
int state_read(struct state *ret, const char *dir, struct err *e);

/**
 * state_write() - write node.json, and public.json before it
 *
 * Of the snapshot only the network, this node and the hubs are kept. The machine has joined as soon
 * as node.json is there.
 *
 * Return: 0; or negative errno with words that name the file.
 */
int state_write(const struct state *st, const char *dir, struct err *e);

/**
 * state_read_public() - public.json, for programs that may not read the key; as state_read()
 *
 * Of @ret the interface, the engine and the snapshot are set, and nothing else: the network, this
 * node and the hub, as at the join.
 */
int state_read_public(struct state *ret, const char *dir, struct err *e);

/** state_write_public() - write public.json alone; returns as state_write(), which calls it. */
int state_write_public(const struct state *st, const char *dir, struct err *e);

/** state_read_snapshot() - read snapshot.json; as state_read(). */
int state_read_snapshot(struct snapshot *ret, const char *dir, struct err *e);

/**
 * state_write_snapshot() - write snapshot.json
 *
 * Return: 0; or negative errno with words that name the file.
 */
int state_write_snapshot(const struct snapshot *s, const char *dir, struct err *e);

/** state_timestamp_path() - the file of that name; @dir has at most STATE_DIR_MAX bytes. Returns
 * @buf. */
const char *state_timestamp_path(char buf[static PATH_MAX], const char *dir);

/** state_read_keepalive() - read keepalive.json; as state_read(). */
int state_read_keepalive(struct keepalive_known *ret, const char *dir, struct err *e);

/** state_write_keepalive() - write keepalive.json. 0; or negative errno with words that name the
 * file. */
int state_write_keepalive(const struct keepalive_known *k, const char *dir, struct err *e);

/** state_read_traffic() - read traffic.json; as state_read(). @ret: a new reference. */
int state_read_traffic(json_t **ret, const char *dir, struct err *e);

/** state_write_traffic() - write traffic.json; as state_write_snapshot(). @json: taken. */
int state_write_traffic(json_t *json, const char *dir, struct err *e);

/** state_read_peers() - read peers.json; as state_read(). @ret: a new reference. */
int state_read_peers(json_t **ret, const char *dir, struct err *e);

/** state_write_peers() - write peers.json; as state_write_snapshot(). @json: taken. */
int state_write_peers(json_t *json, const char *dir, struct err *e);

/** What keys.json holds while this node changes its key (mesh/keys/key_rotation.h). */
struct state_next_key {
    struct x25519_public from;   /* its key until then */
    struct x25519_secret secret; /* of the next one; wipe it after use */
    bool has_moved;              /* it calls under that */
    char statement[NODE_KEYS_STATEMENT_MAX + 1];
    json_t *seen; /* owns; names of stock peers that have had a session under it; NULL: none has */
};

/** state_next_key_deinit() - wipe and release. */
void state_next_key_deinit(struct state_next_key *k);

/** state_read_next_key() - read keys.json; as state_read(). */
int state_read_next_key(struct state_next_key *ret, const char *dir, struct err *e);

/** state_write_next_key() - write keys.json. 0; or negative errno with words that name the file. */
int state_write_next_key(const struct state_next_key *k, const char *dir, struct err *e);

/** state_forget_next_key() - remove keys.json. 0 or negative errno with words. */
int state_forget_next_key(const char *dir, struct err *e);

/** state_is_own_key() - is that a key of this node: its own, the one before, or the next one? */
bool state_is_own_key(const struct state *st, const struct x25519_public *key);

/**
 * state_join_key() - the key to join with: the one of an earlier try, else a new one
 * @ret_is_old:	it is that of an earlier try
 *
 * It is on the disk before it is returned, so that a try whose answer is lost is
 * repeated with the same key.
 *
 * Return: 0 or negative errno with words that name the file.
 */
int state_join_key(struct x25519_secret *ret, bool *ret_is_old, const char *dir, struct err *e);

/** state_forget_join_key() - remove join.key; after state_write(). 0 or negative errno with words.
 */
int state_forget_join_key(const char *dir, struct err *e);

/** state_remove() - remove all files but the lock, node.json last. 0 or negative errno with words.
 */
int state_remove(const char *dir, struct err *e);

/**
 * state_lock() - lock the directory for this process alone
 * @ret_fd:	gives
 *
 * Return: 0; -EBUSY when an agent has it; or negative errno, with words.
 */
int state_lock(const char *dir, int *ret_fd, struct err *e);

/* ---- removed.json ---------------------------------------------------------------------------- */

/*
 * When a hub removes this node, the agent ends, and all other files of the node are removed.
 * Commands that look for the node later tell from this file why there is none. The next join
 * removes it.
 */

#define REMOVED_REASON_MAX 255

struct removed {
    char node[NAME_MAX_LEN + 1];
    char network[NAME_MAX_LEN + 1];
    char reason[REMOVED_REASON_MAX + 1]; /* the hub's words; "": none */
    char socket_path[PATH_MAX];          /* the socket on which its agent listened */
    int64_t at;                          /* s since 1970 */
};

/**
 * removed_set_reason() - copy the hub's words
 * @reason:	UTF-8; of a longer one, as many whole characters as there is room for
 */
void removed_set_reason(struct removed *rm, const char *reason);

/** removed_write() - write the file. 0; or negative errno with words that name the file. */
int removed_write(const struct removed *rm, const char *dir, struct err *e);

/** removed_read() - read the file. 0; STATE_E_ABSENT; or negative errno with words that name the
 * file. */
int removed_read(struct removed *ret, const char *dir, struct err *e);

/** removed_forget() - remove the file, if there is one. 0 or negative errno with words. */
int removed_forget(const char *dir, struct err *e);

/** Room for removed_explain(), with its zero. */
#define REMOVED_TEXT_MAX (2 * NAME_MAX_LEN + REMOVED_REASON_MAX + 160)

/** removed_explain() - what happened, a sentence without its full stop. Returns @buf. */
const char *removed_explain(const struct removed *rm, char buf[static REMOVED_TEXT_MAX]);
