/*
 * refuser.c - a kernel without segmentation offloads, for a program that LD_PRELOADs this.
 *
 * Every system call does what it does, but for those that ask for one of them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/if_tun.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
    int (*call)(int, int, int, const void *, socklen_t);
    void *p = dlsym(RTLD_NEXT, "setsockopt");

    memcpy(&call, &p, sizeof(call));
    if (level == IPPROTO_UDP && (option == UDP_SEGMENT || option == UDP_GRO)) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return call(fd, level, option, value, len);
}

int ioctl(int fd, unsigned long request, ...)
{
    int (*call)(int, unsigned long, unsigned long);
    void *p = dlsym(RTLD_NEXT, "ioctl");
    unsigned long word;
    va_list ap;

    memcpy(&call, &p, sizeof(call));
    va_start(ap, request);
    word = va_arg(ap, unsigned long);
    va_end(ap);
    if (request == TUNSETOFFLOAD && word != 0) {
        errno = EINVAL;
        return -1;
    }
    return call(fd, request, word);
}
