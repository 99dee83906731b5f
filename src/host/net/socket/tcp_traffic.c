/* tcp_traffic.c - see tcp_traffic.h. Alone, since the C library's struct tcp_info is older. */
#include "net/socket/tcp_traffic.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

bool tcp_traffic_read(int fd, struct tcp_traffic *ret)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        len < offsetof(struct tcp_info, tcpi_data_segs_in) + sizeof(info.tcpi_data_segs_in))
        return false;
    *ret = (struct tcp_traffic){.bytes = info.tcpi_bytes_received,
        .segments = info.tcpi_data_segs_in,
        .silent_for = NSEC_PER_MSEC * (info.tcpi_last_ack_recv < info.tcpi_last_data_recv
                                              ? info.tcpi_last_ack_recv
                                              : info.tcpi_last_data_recv)};
    return true;
}
