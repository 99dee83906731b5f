/*
 * port_mapping_internal.h - the UPnP half of port_mapping.h, in port_mapping_upnp.c.
 */
#pragma once

#include "net/gateway/port_mapping.h"

/** port_mapping__upnp_ask() - 0 or PORT_MAPPING_E_REFUSED. @wanted: external port to ask for first.
 */
int port_mapping__upnp_ask(struct port_mapping *ret, uint16_t internal, uint16_t wanted);

/** port_mapping__upnp_remove() - take back what the router gave; whether it does is not told. */
void port_mapping__upnp_remove(const struct port_mapping *pm);
