/* port_mapping_upnp.c - UPnP IGD, through miniupnpc; see port_mapping.h. */
#include <miniupnpc/miniupnpc.h>
#include <miniupnpc/upnpcommands.h>
#include <stdio.h>
#include <string.h>

#include "net/gateway/port_mapping_internal.h"

#define DISCOVER_MS   1500
#define MULTICAST_TTL 2
#define LIFETIME_S    3600

/* Of AddPortMapping: the router has no leases that end (WANIPConnection:1, table 2-20). */
#define ONLY_PERMANENT 725

#define WHAT "weft"

/** A router that was found, and our address as it sees us. */
struct igd {
    struct UPNPUrls urls;
    struct IGDdatas data;
    char lan[64];
};

/* Has found one that is connected to something. */
static bool find_igd(struct igd *ret)
{
    int error = 0;
    struct UPNPDev *devices =
        upnpDiscover(DISCOVER_MS, NULL, NULL, UPNP_LOCAL_PORT_ANY, 0, MULTICAST_TTL, &error);
    int r;

    if (!devices)
        return false;
    memset(ret, 0, sizeof(*ret));
    r = UPNP_GetValidIGD(devices, &ret->urls, &ret->data, ret->lan, sizeof(ret->lan));
    freeUPNPDevlist(devices);
    if (r > 1) /* It is a device, but no gateway that works. */
        FreeUPNPUrls(&ret->urls);
    return r == 1;
}

static int add(const struct igd *igd, uint16_t internal, uint16_t external, unsigned lifetime_s)
{
    char in_port[8];
    char out_port[8];
    char lease[16];

    (void)snprintf(in_port, sizeof(in_port), "%u", internal);
    (void)snprintf(out_port, sizeof(out_port), "%u", external);
    (void)snprintf(lease, sizeof(lease), "%u", lifetime_s);
    return UPNP_AddPortMapping(igd->urls.controlURL, igd->data.first.servicetype, out_port, in_port,
        igd->lan, WHAT, "UDP", NULL, lease);
}

/* Ports that are taken are passed over: the next ones are as good. */
static int add_some(const struct igd *igd, struct port_mapping *pm, uint16_t wanted)
{
    int r = UPNPCOMMAND_UNKNOWN_ERROR;

    for (unsigned i = 0; r != UPNPCOMMAND_SUCCESS && i < 4 && wanted + i <= UINT16_MAX; i++) {
        pm->external.port = (uint16_t)(wanted + i);
        pm->lifetime = LIFETIME_S * NSEC_PER_SEC;
        r = add(igd, pm->internal_port, pm->external.port, LIFETIME_S);
        if (r == ONLY_PERMANENT) {
            pm->lifetime = NSEC_NEVER;
            r = add(igd, pm->internal_port, pm->external.port, 0);
        }
    }
    return r;
}

static bool find_address(const struct igd *igd, struct ip_addr *ret)
{
    char text[64] = "";

    return UPNP_GetExternalIPAddress(igd->urls.controlURL, igd->data.first.servicetype, text) ==
               UPNPCOMMAND_SUCCESS &&
           ip_addr_parse(ret, text, NULL) == 0 && ip_addr_is_v4(ret);
}

int port_mapping__upnp_ask(struct port_mapping *ret, uint16_t internal, uint16_t wanted)
{
    struct port_mapping pm = {.kind = PORT_MAPPING_UPNP, .internal_port = internal};
    struct igd igd;
    bool granted;

    if (!find_igd(&igd))
        return PORT_MAPPING_E_REFUSED;
    granted =
        find_address(&igd, &pm.external.addr) && add_some(&igd, &pm, wanted) == UPNPCOMMAND_SUCCESS;
    FreeUPNPUrls(&igd.urls);
    if (!granted)
        return PORT_MAPPING_E_REFUSED;
    *ret = pm;
    return 0;
}

void port_mapping__upnp_remove(const struct port_mapping *pm)
{
    struct igd igd;
    char port[8];

    if (!find_igd(&igd))
        return;
    (void)snprintf(port, sizeof(port), "%u", pm->external.port);
    (void)UPNP_DeletePortMapping(
        igd.urls.controlURL, igd.data.first.servicetype, port, "UDP", NULL);
    FreeUPNPUrls(&igd.urls);
}
