/* tap.c - TAP devices; see tap.h. */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int tap_open(const char *name, int *ret_fd)
{
    struct ifreq request = {.ifr_flags = (short)(IFF_TAP | IFF_NO_PI | IFF_TUN_EXCL)};

    if (strlen(name) >= sizeof(request.ifr_name))
        return -ENAMETOOLONG;
    memcpy(request.ifr_name, name, strlen(name));

    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (ioctl(fd, TUNSETIFF, &request) < 0) {
        int r = -errno;
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

ssize_t tap_read(int fd, uint8_t *buf, size_t cap)
{
    ssize_t n = read(fd, buf, cap);

    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

bool tap_write(int fd, const uint8_t *bytes, size_t len)
{
    return write(fd, bytes, len) == (ssize_t)len;
}
