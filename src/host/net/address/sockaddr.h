/*
 * sockaddr.h - `struct endpoint` to and from the kernel's socket addresses.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/addr.h"

/** Room for either family, without the casts that sockaddr_storage needs. */
union sockaddr_inet {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/** sockaddr_from_endpoint() - AF_INET for v4-mapped addresses, else AF_INET6; returns the length.
 */
socklen_t sockaddr_from_endpoint(union sockaddr_inet *ret, const struct endpoint *ep);

/** sockaddr_to_endpoint() - false when the family is neither. */
bool sockaddr_to_endpoint(const union sockaddr_inet *sa, struct endpoint *ret);

/** sockaddr_local() - where a socket is bound. Return: 0 or negative errno. */
int sockaddr_local(int fd, struct endpoint *ret);

/**
 * sockaddr_source() - the address that the kernel would send a datagram from
 * @mark:	of the socket, where it may be set; 0: none
 *
 * Return: 0, or negative errno when there is no way to @to.
 */
int sockaddr_source(const struct endpoint *to, uint32_t mark, struct ip_addr *ret);
