/*
 * device_accept.h - which of its peers' packets a device hands to its interface.
 *
 * A hub limits that, so that nothing of one member ever reaches another through the hub's own
 * sessions, whatever the machine's forwarding and routes are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

struct ip_info;

/** All zeroes: everything that its peers may send. */
struct device_accept {
    struct {
        struct ip_addr to; /* packets for this address; both none: for anybody */
        uint16_t tcp_port; /* and of them only TCP to this port; 0: all */
    } at[2];
};

/**
 * device_accept_has() - may the packet @p go to the interface?
 * @ip:		from ip_parse() of @p
 */
bool device_accept_has(const struct device_accept *a, const uint8_t *p, const struct ip_info *ip);
