/*
 * netlink.h - one request to the kernel, and its answers.
 *
 * A socket of one netlink family is used by one thread, for one request at a
 * time. The kernel answers at once; there is a deadline nevertheless, so that
 * no fault can make a daemon hang.
 */
#pragma once

#include <libmnl/libmnl.h>
#include <stddef.h>
#include <stdint.h>

/** Room for one request, bytes; also what the kernel's answers are read into. */
#define NETLINK_MESSAGE_MAX 32768

/** A short request of ours, and its message. */
struct netlink_message {
    _Alignas(struct nlmsghdr) char buf[1024];
    struct nlmsghdr *nlh; /* borrows: @buf */
};

/** netlink_start() - gives the family's own header behind netlink's, @extra_len zero bytes. */
void *netlink_start(struct netlink_message *ret, uint16_t type, uint16_t flags, size_t extra_len);

struct netlink {
    struct mnl_socket *socket; /* owns; NULL: closed */
    uint32_t port_id;          /* ours, given by the kernel */
    uint32_t seq;              /* of the last request */
    char *buf;                 /* owns; NETLINK_MESSAGE_MAX bytes, for answers */
};

#define NETLINK_NULL {0}

/** netlink_open() - @family: NETLINK_ROUTE or NETLINK_GENERIC. 0 or negative errno. */
int netlink_open(struct netlink *ret, int family);

/** netlink_close() - idempotent, safe on NETLINK_NULL. */
void netlink_close(struct netlink *nl);

/**
 * netlink_fn - takes one message of an answer
 *
 * Return: 0, or a negative errno that netlink_request() then returns.
 */
typedef int (*netlink_fn)(const struct nlmsghdr *nlh, void *ctx);

/**
 * netlink_request() - send, and wait until it is done
 * @request:	one message; its sequence number is set here. With NLM_F_ACK or NLM_F_DUMP.
 * @fn:		called for each message but those that say how the request ended; NULL: no call
 *
 * Return: 0; what the kernel said, as negative errno; -EINTR when a dump changed
 * underneath and has to be repeated; -ETIMEDOUT; or what @fn returned.
 */
int netlink_request(struct netlink *nl, struct nlmsghdr *request, netlink_fn fn, void *ctx);

/**
 * netlink_attributes() - index the attributes of a message, or of a nested one
 * @attr:	the first; @len bytes of them
 * @ret:	@n slots by attribute type; NULL where there is none; later ones win
 */
void netlink_attributes(
    const struct nlattr *attr, size_t len, const struct nlattr *ret[], size_t n);
