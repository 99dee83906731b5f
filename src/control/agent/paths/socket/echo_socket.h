/*
 * echo_socket.h - pings to members, through the node's interface: ICMP echo over IPv4.
 *
 * It takes a raw socket, or one for pings where the kernel lets this group have such
 * (net.ipv4.ping_group_range). It is opened before the process gives up what it may do, so the
 * agent need not keep the right to open more. A filter in the kernel passes answers to this
 * socket's own pings alone, so that nobody else's wake the loop.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct uv_loop_s;

/** The longest ping: bytes of its IP packet. */
#define ECHO_SOCKET_LEN_MAX 9216

/** echo_socket_fn - an answer has come that is as long as its ping. From the loop. */
typedef void (*echo_socket_fn)(void *ctx, const struct ip_addr *from, uint64_t cookie);

struct echo_socket {
    int fd;      /* owns */
    bool is_raw; /* answers come with their IP header */
    uint16_t id; /* of the pings of a raw socket */
    struct uv_poll_s *poll;
    const char *interface; /* pins */
    echo_socket_fn on_answer;
    void *ctx; /* pins */
};

/** echo_socket_new() - open it; nothing is read yet. 0 or negative errno. */
int echo_socket_new(struct echo_socket **ret);

/** echo_socket_free() - after echo_socket_stop(). */
struct echo_socket *echo_socket_free(struct echo_socket *s);

/** echo_socket_start() - read answers. @interface, @ctx: pinned. 0 or negative errno. */
int echo_socket_start(struct echo_socket *s, struct uv_loop_s *loop, const char *interface,
    echo_socket_fn on_answer, void *ctx);

/** echo_socket_stop() - its handle closes in the loop's next turns. Idempotent. */
void echo_socket_stop(struct echo_socket *s);

/**
 * echo_socket_send() - one ping, whole, and as long as the interface takes, whatever its routes say
 * @len:	bytes of the IP packet, with its header; at most ECHO_SOCKET_LEN_MAX
 *
 * One that cannot be sent is lost, as it may be on its way.
 */
void echo_socket_send(const struct echo_socket *s, const struct ip_addr *from,
    const struct ip_addr *to, size_t len, uint64_t cookie);
