/* port_map_internal.h - of port_map.c, for its test. */
#pragma once

#include "base/clock.h"
#include "net/gateway/port_mapping.h"

/** port_map__pause_after() - how long to leave the router alone after that answer. */
nsec_t port_map__pause_after(const struct port_mapping *pm);
