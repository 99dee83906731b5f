/*
 * local_ports.h - the ports that the kernel chooses where a program names none.
 *
 * net.ipv4.ip_local_port_range, of this network namespace and for both families.
 */
#pragma once

#include <stdint.h>

/** First to last. */
struct local_ports {
    uint16_t first;
    uint16_t last;
};

/** local_ports_read() - the range; the kernel's default if it cannot be read. */
struct local_ports local_ports_read(void);
