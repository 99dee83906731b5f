/* fuzz-genl-wg.c - an answer of the kernel's WireGuard, whatever is in it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/config/wg_config.h"
#include "net/netlink/genl_wg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct wg_config c = WG_CONFIG_NULL;
    struct nlmsghdr *nlh;

    if (len > NETLINK_MESSAGE_MAX)
        return 0;
    nlh = malloc(MNL_NLMSG_HDRLEN + len);
    if (!nlh)
        return 0;
    *nlh = (struct nlmsghdr){.nlmsg_len = (uint32_t)(MNL_NLMSG_HDRLEN + len)};
    memcpy((char *)nlh + MNL_NLMSG_HDRLEN, data, len);
    if (genl_wg_decode(nlh, &c) == 0)
        (void)wg_config_sort(&c, NULL);
    wg_config_deinit(&c);
    free(nlh);
    return 0;
}
