/* port_mapping.c - see port_mapping.h: NAT-PMP, UPnP through miniupnpc, and which is asked. */
#include "net/gateway/port_mapping.h"

#include <miniupnpc/miniupnpc.h>
#include <miniupnpc/upnpcommands.h>
#include <natpmp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "os/clock.h"

/* RFC 6886 section 3.3 recommends two hours. */
#define NAT_PMP_LIFETIME_S 7200

/* Requests are repeated after 250 ms, 500 ms, ... (section 3.1): three tries. */
#define NAT_PMP_TIMEOUT (1750 * NSEC_PER_MSEC)

const char *const port_mapping_kind_names[] = {"", "NAT-PMP", "UPnP"};
_Static_assert(sizeof(port_mapping_kind_names) / sizeof(*port_mapping_kind_names) == PORT_MAPPING_N,
    "a name each");

/* The answer to the request that was sent last; 0, or a NATPMP_ERR_. */
static int nat_pmp_answer(natpmp_t *np, uint16_t type, natpmpresp_t *ret)
{
    nsec_t deadline = clock_now() + NAT_PMP_TIMEOUT;
    int r = NATPMP_TRYAGAIN;

    while (r == NATPMP_TRYAGAIN && clock_now() < deadline) {
        struct pollfd pfd = {.fd = np->s, .events = POLLIN};
        struct timeval wait;

        if (getnatpmprequesttimeout(np, &wait) < 0)
            return NATPMP_ERR_NOPENDINGREQ;
        (void)poll(&pfd, 1, (int)(wait.tv_sec * 1000 + wait.tv_usec / 1000) + 1);
        r = readnatpmpresponseorretry(np, ret);
        if (r == 0 && ret->type != type)
            r = NATPMP_TRYAGAIN;
    }
    return r;
}

static int nat_pmp_map(
    natpmp_t *np, uint16_t internal, uint16_t external, uint32_t lifetime_s, natpmpresp_t *ret)
{
    if (sendnewportmappingrequest(np, NATPMP_PROTOCOL_UDP, internal, external, lifetime_s) < 0)
        return NATPMP_ERR_SENDERR;
    return nat_pmp_answer(np, NATPMP_RESPTYPE_UDPPORTMAPPING, ret);
}

static int nat_pmp_ask(struct port_mapping *ret, uint16_t internal, uint16_t wanted)
{
    struct port_mapping pm = {.kind = PORT_MAPPING_NAT_PMP, .internal_port = internal};
    natpmpresp_t answer;
    natpmp_t np;
    int r;

    if (initnatpmp(&np, 0, 0) < 0)
        return PORT_MAPPING_E_REFUSED;
    r = sendpublicaddressrequest(&np) < 0
            ? NATPMP_ERR_SENDERR
            : nat_pmp_answer(&np, NATPMP_RESPTYPE_PUBLICADDRESS, &answer);
    if (r == 0) {
        pm.external.addr = ip_addr_v4((const uint8_t *)&answer.pnu.publicaddress.addr.s_addr);
        r = nat_pmp_map(&np, internal, wanted, NAT_PMP_LIFETIME_S, &answer);
    }
    (void)closenatpmp(&np);
    if (r != 0 || answer.pnu.newportmapping.mappedpublicport == 0)
        return PORT_MAPPING_E_REFUSED;
    pm.external.port = answer.pnu.newportmapping.mappedpublicport;
    pm.lifetime = answer.pnu.newportmapping.lifetime * NSEC_PER_SEC;
    *ret = pm;
    return 0;
}

static void nat_pmp_remove(const struct port_mapping *pm)
{
    natpmpresp_t answer;
    natpmp_t np;

    if (initnatpmp(&np, 0, 0) < 0)
        return;
    /* Section 3.4: both the external port and the lifetime are zero. */
    (void)nat_pmp_map(&np, pm->internal_port, 0, 0, &answer);
    (void)closenatpmp(&np);
}

/* ---- UPnP ---- */

#define DISCOVER_MS     1500
#define MULTICAST_TTL   2
#define UPNP_LIFETIME_S 3600

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
        pm->lifetime = UPNP_LIFETIME_S * NSEC_PER_SEC;
        r = add(igd, pm->internal_port, pm->external.port, UPNP_LIFETIME_S);
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

/* 0 or PORT_MAPPING_E_REFUSED. @wanted: external port to ask for first. */
static int upnp_ask(struct port_mapping *ret, uint16_t internal, uint16_t wanted)
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

/* Takes back what the router gave; whether it does is not told. */
static void upnp_remove(const struct port_mapping *pm)
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

/* ---- which is asked ---- */

int port_mapping_ask(struct port_mapping *ret, uint16_t internal_port,
    const struct port_mapping *before, struct err *e)
{
    enum port_mapping_kind known = before ? before->kind : PORT_MAPPING_NONE;
    uint16_t wanted = before ? before->external.port : internal_port;
    natpmp_t np;

    /* Without a default route there is no router, and miniupnpc would complain on stderr. */
    if (initnatpmp(&np, 0, 0) < 0)
        return err_set(e, PORT_MAPPING_E_REFUSED, "there is no router: no default route for IPv4");
    (void)closenatpmp(&np);
    if (known != PORT_MAPPING_UPNP && nat_pmp_ask(ret, internal_port, wanted) == 0)
        return 0;
    if (upnp_ask(ret, internal_port, wanted) == 0)
        return 0;
    return err_set(e, PORT_MAPPING_E_REFUSED, "no router grants UDP port %u by NAT-PMP or UPnP",
        internal_port);
}

void port_mapping_remove(const struct port_mapping *pm)
{
    if (pm->kind == PORT_MAPPING_NAT_PMP)
        nat_pmp_remove(pm);
    else if (pm->kind == PORT_MAPPING_UPNP)
        upnp_remove(pm);
}
