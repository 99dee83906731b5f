/*
 * reconcile.h - makes this machine's interface what the snapshot says.
 *
 * snapshot -> render -> diff -> engine, and for the interface itself addresses,
 * routes and MTU. It may run at any time and any number of times: what is as
 * it should be is not touched. An engine that died is started again, and an
 * interface that was deleted is made again.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/reconcile/routes.h"
#include "crypto/x25519.h"
#include "engine/engine.h"
#include "mesh/config/wg_config.h"
#include "mesh/render/render.h"
#include "net/netlink/netlink.h"

/* ---- whose it is ----------------------------------------------------------------------------- */

/*
 * Is the interface that has our name really ours?
 *
 * Another program may have made an interface of that name: a bridge, wg-quick's, another VPN's.
 * Such a one is never touched: neither its peers, nor its addresses, nor the link, nor is it
 * removed when this node leaves. It is asked when an engine is opened, not while one is open.
 *
 * Ours is one that has this node's public key, or the one that an earlier agent has told it.
 * Without a key, as a TUN device has that an engine has handed over, it is ours if it has one of
 * this node's addresses, or no address at all: nobody uses it then. All others are somebody else's.
 */

/**
 * ownership_is_of_key() - is there a WireGuard of that name, with that public key?
 * @nl:		NETLINK_ROUTE
 * @interface:	as a stranger may have said it
 * @ret:	its number, set when it is so
 *
 * Asks the kernel, or the engine that serves the interface; without the right to, the answer is no.
 */
bool ownership_is_of_key(
    struct netlink *nl, const char *interface, const struct x25519_public *key, unsigned *ret);

/** interface_setting() - a switch below net.ipv4.conf or net.ipv6.conf, like "forwarding".
 * Return: 1: on; 0: off; -1: that cannot be seen. */
int interface_setting(const char *interface, bool v4, const char *name);

/* ---- passes ---------------------------------------------------------------------------------- */

struct reconcile {
    const char *interface;          /* pins: its name */
    enum engine_kind wanted;        /* as the node was told at its join */
    const char *timestamps;         /* pins: as for engine_open(); NULL */
    struct engine *engine;          /* owns; NULL: to be opened */
    char why[ENGINE_WHY_MAX];       /* why it is of this kind; "" when it was asked for */
    struct netlink nl;              /* for the interface */
    unsigned ifindex;               /* of the interface when last seen; 0: not yet */
    bool is_whole;                  /* the last pass left it with its addresses and routes */
    bool was_whole;                 /* and so did any pass of this agent */
    bool has_lost;                  /* the last pass found an engine, and no interface of its */
    enum subnets_accept accepts;    /* which of the subnets behind other nodes are used */
    struct subnet_routes subnets;   /* behind other nodes, and which of them are used here */
    uint64_t found_rate;            /* the owner's to set: at which all is sent where the node's
                                       object has no rate, bit/s; 0: as fast as it goes */
    unsigned port_errno;            /* why the engine had not got its UDP port before the last pass;
                                       0: it had */
    bool has_opened;                /* an engine was opened, and no pass has succeeded since */
    bool lacks_v6;                  /* this machine takes no IPv6 address */
    bool has_own_hub;               /* a hub of the network runs on this machine */
    unsigned accepts_own_on;        /* the interface that takes its packets; 0: none yet */
    char rates_why[ENGINE_WHY_MAX]; /* why rates that are wanted are not kept, a clause; "": they
                                       are, or none is wanted */
    struct wg_config applied;       /* what the engine was last told */
    bool has_applied;               /* @applied is known, from this agent or an earlier one */
    bool has_passed;                /* this agent has told it: @applied is not an earlier agent's */
    bool tells_all;     /* the next pass tells each endpoint, even if the engine has it */
    bool keeps_unknown; /* peers that the engine has and the snapshot does not stay: an earlier
                           agent may have heard of them after it had kept its last snapshot */
    uint64_t n_foreign; /* peers that were removed and that no agent of this node had added */
    struct x25519_public foreign; /* the last of these; none: there was none */
};

#define RECONCILE_NULL                                                                             \
    {                                                                                              \
        .nl = NETLINK_NULL                                                                         \
    }

/** What a run did. */
struct reconcile_result {
    bool opened;      /* an engine was started or taken up */
    size_t n_changes; /* peers that were added, changed or removed, and changes to the interface */
    bool was_gone;    /* the interface, or the process that runs it, had gone since the last pass */
    bool was_down;    /* the interface was down, though an earlier pass had it up */
    bool lost_route;  /* a block's route did not lead into it any more, though a pass had set it */
    struct ip_prefix route; /* that block, if so */
    char renamed[IFNAMSIZ]; /* the name that it had been given, and has no more; "": none */
    size_t n_foreign;       /* of them, peers removed that no agent of this node had added */
};

/**
 * reconcile_init() - nothing is opened yet but the connection to the kernel
 * @interface:	pinned; its name
 * @wanted:	the kind of engine that the node was told to use at its join
 * @accepts:	which of the subnets behind other nodes are used
 *
 * Return: 0 or negative errno with words.
 */
int reconcile_init(struct reconcile *rc, const char *interface, enum engine_kind wanted,
    enum subnets_accept accepts, struct err *e);

/** reconcile_deinit() - the interface stays as it is. Idempotent, safe on RECONCILE_NULL. */
void reconcile_deinit(struct reconcile *rc);

/**
 * reconcile_assume() - what an earlier agent told the engine
 *
 * From the cached snapshot, at start: so that an endpoint which the engine has
 * learned since is not mistaken for one that it has to be told. Peers that are not in that snapshot
 * keep their sessions, until the caller clears @keeps_unknown, when somebody has said who there is.
 */
void reconcile_assume(struct reconcile *rc, const struct render_input *in);

/**
 * reconcile_run() - one pass
 * @in:		as for render_config()
 * @secret:	the node's private key
 *
 * Return: 0; or negative errno with words: run it again later.
 */
int reconcile_run(struct reconcile *rc, const struct render_input *in,
    const struct x25519_secret *secret, struct reconcile_result *ret, struct err *e);

/**
 * reconcile_observe() - what the engine has now
 * @ret:	untouched on failure, else sorted, to be released with wg_config_deinit()
 *
 * Return: 0; ENGINE_E_GONE with words: reconcile_run() will open another; or
 * negative errno with words.
 */
int reconcile_observe(struct reconcile *rc, struct wg_config *ret, struct err *e);

/** reconcile_handshake() - have that peer begin a handshake. 0, or non-zero with words. */
int reconcile_handshake(struct reconcile *rc, const struct x25519_public *peer, struct err *e);

/**
 * reconcile_resend_endpoint() - a peer does not answer where the engine has it
 * @at:		where that is
 *
 * WireGuard follows the source of every authentic packet, so somebody on the
 * way who lets a copy arrive first from elsewhere leads a peer astray, and
 * nothing it sends after that gets through. The next pass tells the engine the
 * wanted endpoint again.
 *
 * Return: the wanted one is another, so there is something to tell.
 */
bool reconcile_resend_endpoint(
    struct reconcile *rc, const struct x25519_public *peer, const struct endpoint *at);

/**
 * reconcile_see_links() - how large may a packet be that leaves this machine?
 *
 * Return: bytes of the largest inner packet that any of its links carries; 0 when that is not
 * known. The same until the next call.
 */
uint16_t reconcile_see_links(struct reconcile *rc);

/**
 * reconcile_retire_engine() - have the process that runs the interface end; the next run starts
 * another
 *
 * The interface stays, with its addresses and routes, where that process can hand it over; it is
 * taken down where it cannot, and made anew.
 *
 * Return: 0; ENGINE_E_UNSUPPORTED with words: the engine is the kernel's; or negative errno with
 * words.
 */
int reconcile_retire_engine(struct reconcile *rc, struct err *e);

/**
 * reconcile_take_down() - remove the interface, its engine, its rules
 *
 * An interface of that name that somebody else has made stays. That can only be told with what an
 * earlier agent has told its own (reconcile_assume()).
 *
 * Return: 0 or negative errno with words.
 */
int reconcile_take_down(struct reconcile *rc, struct err *e);
