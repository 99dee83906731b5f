/*
 * filter_rules.h - the packet filter's rules about the overlay's interface: the segment size of
 * what is forwarded, what may be forwarded, and marks by class. (Who may reach whom:
 * rules/access_rules.h.)
 *
 * Threads: the loop's, where nothing else is said.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"
#include "mesh/object/subnets.h"
#include "rules/kept_table.h"

struct local_ports;
struct snapshot;
struct str;
struct wg_config;

/* ---- the segment size ------------------------------------------------------------------------ */

/*
 * The segment size of TCP connections that this machine forwards.
 *
 * A connection that starts or ends here learns its segment size from the route.
 * A connection that is forwarded, of a container or a machine behind this one,
 * learns it from its two ends, which do not know the tunnel. So the MSS that they
 * announce is lowered, in both directions, to what the routes to both ends allow.
 */

/* ---- what is forwarded ----------------------------------------------------------------------- */

/*
 * Rules that let a node forward, for others, only what is for its subnets.
 *
 * A machine that is the way to a subnet has forwarding switched on, and then
 * forwards every packet: a hostile member could send through it to everything
 * that it reaches. So packets from the interface are forwarded only to the
 * subnets that the hub has admitted. Exempt are answers to connections that
 * began elsewhere, and packets that a rule of this machine redirects (a
 * published port of a container).
 *
 * Hosts of the subnet do not know the overlay: unless they have a route back,
 * their answers get lost. So packets to them get this machine's address in that
 * subnet as their source (masquerade), unless the node was told otherwise.
 */

/**
 * route_guard_format() - the table's contents, as nft(8) has them
 * @interface:	a name that nft takes as it is
 * @routes:	subnets that the hub has admitted; none: nothing is forwarded
 *
 * Pure.
 */
void route_guard_format(
    struct str *out, const char *interface, const struct subnets *routes, bool masquerades);

/* ---- when ------------------------------------------------------------------------------------ */

/*
 * When both of these are put, and when they are removed.
 *
 * Two sets of rules: the MSS clamp (mss_clamp_*()), which every node has, and the guard
 * (route_guard_*()), which a node has that is the way to a subnet. Both are put again each minute,
 * because other programs that load a packet filter often flush all rules. Rules that an earlier run
 * has left behind are removed.
 *
 * forward_rules_*_is_due() and forward_rules_on_guard() are pure; forward_rules_apply() calls
 * them and does what is due.
 */

struct forward_rules {
    nsec_t clamped_at;      /* time of the last attempt to put the clamp; 0: none */
    bool cannot_clamp;      /* the clamp could not be put, which was logged once */
    nsec_t guarded_at;      /* time of the last attempt to put or remove the guard; 0: none */
    bool was_router;        /* that attempt was to put it */
    bool is_removed;        /* the guard is known to be absent */
    struct subnets routes;  /* the guard's, as of that attempt */
    struct err guard_fault; /* why the guard could not be put; without words: it could */
};

/*
 * Parameters in common. @routes: the subnets that the hub has admitted. @is_router: this node asks
 * to be the way to a subnet, or is.
 */

/** forward_rules_clamp_is_due() - is the clamp to be put? */
bool forward_rules_clamp_is_due(const struct forward_rules *fr, nsec_t now);

/** forward_rules_guard_is_due() - is the guard to be put, or removed where this node is no router?
 */
bool forward_rules_guard_is_due(
    const struct forward_rules *fr, const struct subnets *routes, bool is_router, nsec_t now);

/**
 * forward_rules_on_guard() - an attempt to put or remove the guard has ended at @now
 * @e:		why it failed; code 0: it did not; copied
 */
void forward_rules_on_guard(struct forward_rules *fr, const struct subnets *routes, bool is_router,
    const struct err *e, nsec_t now);

/** forward_rules_forget() - the interface is another one: all rules have to be put again. */
void forward_rules_forget(struct forward_rules *fr);

/**
 * forward_rules_apply() - put and remove what is due; to be called after every pass
 * @interface:		its name
 * @masquerades:	hosts of the subnets see this machine's address in the place of the sender's
 *
 * A node works without these rules, so what fails is logged and tried again after
 * a minute.
 */
void forward_rules_apply(struct forward_rules *fr, const char *interface,
    const struct subnets *routes, bool is_router, bool masquerades, nsec_t now);

/* ---- marks by class -------------------------------------------------------------------------- */

/*
 * What goes to the hubs goes first, and then what a job's processes exchange: rules
 * that mark it.
 *
 * While the interface has a rate, packets wait in it by class, which is told by their DSCP
 * (net/tun/tun.h). What goes to a hub's overlay addresses is the API, rendezvous and the
 * stores where training jobs meet: a job's own programs speak there, too, and mark nothing. So the
 * packet filter gives what is unmarked and goes to a hub, from here or forwarded, CS6.
 *
 * Collectives are before all else that is unmarked. NCCL, Gloo and UCX mark nothing either, and
 * their processes listen where the kernel has them listen: so theirs are the TCP connections of
 * which both ports are of the kernel's range for ports that nobody has named
 * (net.ipv4.ip_local_port_range), and those of Open MPI where `weft run` has told it to listen
 * there. A service, such as a store of data or of checkpoints, has a port of its own, which is
 * outside that range as a rule. They get AF21, of the class priority.
 *
 * Any other mark that somebody has set stays. Without a rate there are no rules.
 */

struct class_marks {
    struct kept_table table;
    bool has_failed; /* they could not be put the last time, which was logged */
};

/** class_marks_format() - the rules for what leaves @interface to the snapshot's hubs, and between
 * @ports, in nft's syntax; appends to @out. Without a hub there is none for hubs. */
void class_marks_format(const struct snapshot *s, const char *interface,
    const struct local_ports *ports, struct str *out);

/**
 * class_marks_apply() - put or remove the rules, as is due; to be called after every pass
 * @config:	of the interface; without a rate in it the rules are removed
 *
 * A node works without them, so what fails is logged, and tried again after KEPT_TABLE_PERIOD.
 */
void class_marks_apply(struct class_marks *cm, const char *interface, const struct snapshot *s,
    const struct wg_config *config, nsec_t now);

/** class_marks_forget() - the interface is another one: the rules have to be put again. Releases
 * what is owned, and leaves the rules where they are. */
void class_marks_forget(struct class_marks *cm);

/** filter_rules_remove() - remove all rules about that interface, as far as there are any. */
void filter_rules_remove(const char *interface);
