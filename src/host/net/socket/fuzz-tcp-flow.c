/* fuzz-tcp-flow.c - what sock_diag(7) says of a connection, whatever is in it. */
#include <linux/sock_diag.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/socket/tcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tcp_flow flow;
    struct nlmsghdr *nlh;

    if (len > NETLINK_MESSAGE_MAX)
        return 0;
    nlh = malloc(MNL_NLMSG_HDRLEN + len);
    if (!nlh)
        return 0;
    *nlh = (struct nlmsghdr){
        .nlmsg_len = (uint32_t)(MNL_NLMSG_HDRLEN + len), .nlmsg_type = SOCK_DIAG_BY_FAMILY};
    memcpy((char *)nlh + MNL_NLMSG_HDRLEN, data, len);
    (void)tcp_flow_decode(nlh, &flow);
    free(nlh);
    return 0;
}
