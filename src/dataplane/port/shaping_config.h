/*
 * shaping_config.h - the rates of an interface, of its classes and of its peers: set and ended.
 *
 * With the first rate the interface's queues are sorted by class (net/tun/tun_steer.h), which is
 * undone with the last one that ends. While the interface itself has one, its superpackets are so
 * short that none holds up the others for long. Rates are in bit/s, of IPv4 datagrams with their
 * headers, as traffic_rate_is_allowed() allows.
 *
 * Threads: all calls are under the port's lock, outside the gates.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "packet/class_sched.h"

struct device;
struct peer;

/** shaping_config_set() - of all that the interface sends; 0: none. Call
 * device_link_on_configured() afterwards. */
void shaping_config_set(struct device *d, uint64_t bits_per_s);

/** shaping_config_set_class() - of what is sent in @class; 0: none. */
void shaping_config_set_class(struct device *d, enum traffic_class class, uint64_t bits_per_s);

/** shaping_config_set_peer() - of what is sent to @peer; 0: none, as before it is removed. */
void shaping_config_set_peer(struct peer *peer, uint64_t bits_per_s);

/** shaping_config_show_dscp() - have datagrams carry the DSCP of the packets in them. */
void shaping_config_show_dscp(struct device *d, bool shows);
