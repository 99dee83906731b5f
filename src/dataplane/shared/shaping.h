/*
 * shaping.h - the rates that an interface keeps; part of struct device.
 *
 * Written under the port's lock (port/shaping_config.h); read by any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "packet/class_sched.h"
#include "packet/pace.h"

/** What each datagram adds to the message in it: the headers of IPv4 and UDP. */
#define SHAPING_OVERHEAD 28

struct device_shaping {
    _Atomic bool is_on;                   /* there is a rate: of these, or of a peer */
    _Atomic bool has_classes;             /* the queues are sorted by class */
    _Atomic bool shows_dscp;              /* datagrams have the DSCP of the packet in them */
    struct pace all;                      /* of all that the interface sends */
    struct pace classes[TRAFFIC_CLASS_N]; /* of each class */
    unsigned n_rates;                     /* that are set, of peers too; under the port's lock */
};
