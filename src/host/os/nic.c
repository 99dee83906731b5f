/* nic.c - see nic.h. */
#include "os/nic.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "os/file.h"

/* Features that a kernel may have, in whole words; now there are some 60. */
#define FEATURES_MAX 256
#define WORDS        (FEATURES_MAX / 32)

/* Return: what ioctl() returns, or negative errno. */
static int ask(const char *device, void *command)
{
    _cleanup_(closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq rq = {.ifr_data = command};
    int r;

    if (fd < 0)
        return -errno;
    (void)snprintf(rq.ifr_name, sizeof(rq.ifr_name), "%s", device);
    r = ioctl(fd, SIOCETHTOOL, &rq);
    return r < 0 ? -errno : r;
}

/* ---- rings ----------------------------------------------------------------------------------- */

int nic_get_rings(const char *device, struct nic_rings *ret)
{
    struct ethtool_ringparam p = {.cmd = ETHTOOL_GRINGPARAM};
    int r = ask(device, &p);

    if (r < 0)
        return r;
    *ret = (struct nic_rings){.rx = p.rx_pending,
        .rx_max = p.rx_max_pending,
        .tx = p.tx_pending,
        .tx_max = p.tx_max_pending};
    return 0;
}

int nic_set_rings(const char *device, const struct nic_rings *rings)
{
    struct ethtool_ringparam p = {.cmd = ETHTOOL_GRINGPARAM};
    int r = ask(device, &p);

    if (r < 0)
        return r;
    p.cmd = ETHTOOL_SRINGPARAM;
    p.rx_pending = rings->rx;
    p.tx_pending = rings->tx;
    return ask(device, &p);
}

/* ---- features -------------------------------------------------------------------------------- */

/* How many the kernel knows; negative errno. */
static int count_features(const char *device)
{
    union {
        struct ethtool_sset_info head;
        uint32_t space[sizeof(struct ethtool_sset_info) / sizeof(uint32_t) + 1];
    } info = {.head = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_FEATURES}};
    int r = ask(device, &info);

    if (r < 0)
        return r;
    if (info.head.sset_mask == 0 || info.head.data[0] > FEATURES_MAX)
        return -EOPNOTSUPP;
    return (int)info.head.data[0];
}

/* The number of a feature; negative errno. @ret_n: how many there are. */
static int find_feature(const char *device, const char *name, uint32_t *ret_n)
{
    _cleanup_(freep) struct ethtool_gstrings *strings =
        calloc(1, sizeof(*strings) + FEATURES_MAX * ETH_GSTRING_LEN);
    int n = strings ? count_features(device) : -ENOMEM;
    int r;

    if (n < 0)
        return n;
    strings->cmd = ETHTOOL_GSTRINGS;
    strings->string_set = ETH_SS_FEATURES;
    strings->len = (uint32_t)n;
    r = ask(device, strings);
    for (int i = 0; r >= 0 && i < n; i++) {
        const char *text = (const char *)strings->data + (size_t)i * ETH_GSTRING_LEN;

        if (strncmp(text, name, ETH_GSTRING_LEN) == 0) {
            *ret_n = (uint32_t)n;
            return i;
        }
    }
    return r < 0 ? r : -EOPNOTSUPP;
}

int nic_get_feature(const char *device, const char *name, bool *ret)
{
    union {
        struct ethtool_gfeatures head;
        uint8_t space[sizeof(struct ethtool_gfeatures) +
                      WORDS * sizeof(struct ethtool_get_features_block)];
    } get = {.head = {.cmd = ETHTOOL_GFEATURES}};
    uint32_t n;
    int at = find_feature(device, name, &n);
    int r;

    if (at < 0)
        return at;
    get.head.size = (n + 31) / 32;
    r = ask(device, &get);
    if (r < 0)
        return r;
    if (!(get.head.features[at / 32].available & 1u << at % 32))
        return -EOPNOTSUPP;
    *ret = (get.head.features[at / 32].active & 1u << at % 32) != 0;
    return 0;
}

/* Is it a network card, or the end of a veth? */
static bool is_driven(const char *device)
{
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
    char path[64];

    (void)snprintf(path, sizeof(path), "/sys/class/net/%.*s/device", IFNAMSIZ - 1, device);
    if (access(path, F_OK) == 0)
        return true;
    return ask(device, &info) >= 0 && strncmp(info.driver, "veth", sizeof(info.driver)) == 0;
}

bool nic_has_gro(const char *device)
{
    bool is_on = false;

    return nic_get_feature(device, NIC_GRO, &is_on) == 0 && is_on && is_driven(device);
}

bool nic_lacks_merging(const char *device)
{
    bool is_on = true;

    return nic_get_feature(device, NIC_GRO_FORWARDING, &is_on) == 0 && !is_on &&
           nic_has_gro(device);
}

int nic_set_feature(const char *device, const char *name, bool on)
{
    union {
        struct ethtool_sfeatures head;
        uint8_t space[sizeof(struct ethtool_sfeatures) +
                      WORDS * sizeof(struct ethtool_set_features_block)];
    } set = {.head = {.cmd = ETHTOOL_SFEATURES}};
    uint32_t n;
    int at = find_feature(device, name, &n);
    int r;

    if (at < 0)
        return at;
    set.head.size = (n + 31) / 32;
    set.head.features[at / 32].valid = 1u << at % 32;
    set.head.features[at / 32].requested = on ? 1u << at % 32 : 0;
    r = ask(device, &set);
    /* A positive answer has bits that say that it was not done, or in part. */
    return r > 0 ? -EOPNOTSUPP : r;
}
