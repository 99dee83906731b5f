/* pmtu_driver.c - see pmtu_driver.h. */
#include "agent/paths/edge/pmtu_driver.h"

#include <stdlib.h>

#include "wire/ip.h"
#include "wire/wg.h"

#define UDP_HEADER 8

struct pmtu_driver *pmtu_driver_new(void)
{
    return calloc(1, sizeof(struct pmtu_driver));
}

struct pmtu_driver *pmtu_driver_free(struct pmtu_driver *pd)
{
    free(pd);
    return NULL;
}

/* Bytes of the IP and UDP headers. */
static uint16_t headers(const struct endpoint *remote)
{
    return UDP_HEADER + (ip_addr_is_v4(&remote->addr) ? IP_V4_HEADER_MIN : IP_V6_HEADER);
}

static uint16_t clamp(unsigned v, uint16_t least, uint16_t most)
{
    return (uint16_t)(v < least ? least : v > most ? most : v);
}

/* It begins with what every path carries, whatever was used before on another one; the most is what
 * the machine's links carry, or, where that is not known, what gives the network's MTU. */
static struct pmtu_bounds bounds_of(
    const struct pmtu_driver_limits *limits, const struct endpoint *remote)
{
    unsigned usual = limits->network_mtu + WG_DATA_OVERHEAD + headers(remote);
    unsigned link = limits->link_mtu + WG_DATA_OVERHEAD + UDP_HEADER + IP_V4_HEADER_MIN;
    struct pmtu_bounds b = {.floor = PMTU_FLOOR, .assumed = PMTU_FLOOR};

    b.ceiling = clamp(limits->link_mtu == 0 ? usual : link, PMTU_FLOOR, UINT16_MAX);
    return b;
}

bool pmtu_driver_on_path(struct pmtu_driver *pd, const struct endpoint *remote,
    const struct pmtu_driver_limits *limits, nsec_t now)
{
    struct pmtu_bounds bounds;

    if (endpoint_equal(&pd->remote, remote))
        return false;
    bounds = bounds_of(limits, remote);
    pd->remote = *remote;
    pmtu_on_path(&pd->pmtu, &bounds, now);
    return true;
}

void pmtu_driver_set_limits(
    struct pmtu_driver *pd, const struct pmtu_driver_limits *limits, nsec_t now)
{
    struct pmtu_bounds bounds = bounds_of(limits, &pd->remote);

    if (!endpoint_is_none(&pd->remote))
        pmtu_set_ceiling(&pd->pmtu, bounds.ceiling, now);
}

void pmtu_driver_on_path_lost(struct pmtu_driver *pd)
{
    pmtu_on_path_lost(&pd->pmtu);
    pd->remote = (struct endpoint){.port = 0};
    pd->mtu = 0;
}

void pmtu_driver_on_data(struct pmtu_driver *pd, bool sent, bool heard, nsec_t now)
{
    pmtu_on_data(&pd->pmtu, sent, heard, now);
}

bool pmtu_driver_on_fits(struct pmtu_driver *pd, uint64_t id, bool is_whole, nsec_t now)
{
    for (unsigned i = 0; i < PMTU_DRIVER_PROBES; i++) {
        struct pmtu_probe probe = pd->probes[i].probe;

        if (probe.size == 0 || pd->probes[i].id != id)
            continue;
        pd->probes[i].probe.size = 0;
        pd->is_both = is_whole;
        pmtu_on_answer(&pd->pmtu, &probe, now);
        return true;
    }
    return false;
}

uint16_t pmtu_driver_both(const struct pmtu_driver *pd)
{
    return pd->is_both && pd->pmtu.is_measured ? pd->mtu : 0;
}

enum pmtu_driver_wish pmtu_driver_next(
    struct pmtu_driver *pd, struct pmtu_probe *ret, uint16_t *ret_payload, nsec_t now)
{
    struct pmtu_action action;

    if (!pmtu_next(&pd->pmtu, now, &action))
        return PMTU_DRIVER_NONE;
    if (action.kind == PMTU_ACTION_PROBE) {
        *ret = action.probe;
        *ret_payload = (uint16_t)(action.probe.size - headers(&pd->remote));
        return PMTU_DRIVER_PROBE;
    }
    pd->mtu = (uint16_t)(action.probe.size - headers(&pd->remote) - WG_DATA_OVERHEAD);
    return PMTU_DRIVER_USE;
}

void pmtu_driver_on_sent(struct pmtu_driver *pd, const struct pmtu_probe *probe, uint64_t id)
{
    pd->probes[pd->next_probe] = (struct pmtu_driver_probe){.id = id, .probe = *probe};
    pd->next_probe = (pd->next_probe + 1) % PMTU_DRIVER_PROBES;
}

uint16_t pmtu_driver_settled(struct pmtu_driver *pd)
{
    if (pd->pmtu.state != PMTU_STATE_SETTLED || pd->pmtu.size == pd->said)
        return 0;
    pd->said = pd->pmtu.size;
    return pd->said;
}

nsec_t pmtu_driver_due(const struct pmtu_driver *pd)
{
    return pmtu_due(&pd->pmtu);
}
