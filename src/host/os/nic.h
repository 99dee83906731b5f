/*
 * nic.h - what ethtool(8) says and sets of a network device: the lengths of its rings, and features
 * by their names.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** The rings of a device, in descriptors. */
struct nic_rings {
    uint32_t rx;
    uint32_t rx_max; /* up to which @rx may be set */
    uint32_t tx;
    uint32_t tx_max;
};

/** nic_get_rings() - 0; or negative errno: -EOPNOTSUPP, the device has none that can be set. */
int nic_get_rings(const char *device, struct nic_rings *ret);

/** nic_set_rings() - set both lengths; the line may stop for a moment. 0 or negative errno. */
int nic_set_rings(const char *device, const struct nic_rings *rings);

/**
 * nic_get_feature() - is a feature such as "rx-udp-gro-forwarding" on?
 *
 * Return: 0; or negative errno: -EOPNOTSUPP, the kernel knows none of that name, or the device does
 * not let it be changed.
 */
int nic_get_feature(const char *device, const char *name, bool *ret);

/** The kernel's GRO, and its merging of datagrams for whoever takes them merged. */
#define NIC_GRO            "rx-gro"
#define NIC_GRO_FORWARDING "rx-udp-gro-forwarding"

/** nic_has_gro() - does @device have NIC_GRO on, and do the work itself, as a network card and a
 * veth do? Above others, as a bridge is, or from a program, as in a TUN, nothing is merged. */
bool nic_has_gro(const char *device);

/** nic_lacks_merging() - is NIC_GRO_FORWARDING off at @device, though it can be changed, and
 * nic_has_gro()? */
bool nic_lacks_merging(const char *device);

/** nic_set_feature() - 0 or negative errno; -EOPNOTSUPP also where the device did not take it. */
int nic_set_feature(const char *device, const char *name, bool on);
