/*
 * class_marks.h - what goes to the hubs goes first, and then what a job's processes exchange: rules
 * that mark it.
 *
 * While the interface has a rate, packets wait in it by class, which is told by their DSCP
 * (net/tun/tun_steer.h). What goes to a hub's overlay addresses is the API, rendezvous and the
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
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct err;
struct local_ports;
struct snapshot;
struct str;
struct wg_config;

/** The rules are put again after this time: other programs may have flushed them. */
#define CLASS_MARKS_PERIOD (60 * NSEC_PER_SEC)

struct class_marks {
    char *body;      /* owns; the rules that were put last; NULL: none */
    nsec_t put_at;   /* time of that */
    bool is_removed; /* there are none, as far as is known */
    bool has_failed; /* they could not be put the last time, which was logged */
};

#define CLASS_MARKS_NULL                                                                           \
    {                                                                                              \
        0                                                                                          \
    }

/** class_marks_deinit() - release; the rules stay. Idempotent. */
void class_marks_deinit(struct class_marks *cm);

/** class_marks_format() - the rules for what leaves @interface to the snapshot's hubs, and between
 * @ports, in nft's syntax; appends to @out. Without a hub there is none for hubs. */
void class_marks_format(const struct snapshot *s, const char *interface,
    const struct local_ports *ports, struct str *out);

/**
 * class_marks_apply() - put or remove the rules, as is due; to be called after every pass
 * @config:	of the interface; without a rate in it the rules are removed
 *
 * A node works without them, so what fails is logged, and tried again after CLASS_MARKS_PERIOD.
 */
void class_marks_apply(struct class_marks *cm, const char *interface, const struct snapshot *s,
    const struct wg_config *config, nsec_t now);

/** class_marks_forget() - the interface is another one: the rules have to be put again. */
void class_marks_forget(struct class_marks *cm);

/** class_marks_remove() - remove the rules, if there are any. 0 or negative errno with words. */
int class_marks_remove(const char *interface, struct err *e);
