/*
 * raw_udp.h - UDP datagrams from and to a port that belongs to somebody else.
 *
 * The kernel's WireGuard has its port for itself; path frames have to use that
 * very port, because a NAT keeps one mapping for it. So they are sent through
 * raw sockets, which look the same on the wire and to connection tracking, and
 * received by packet sockets, with a filter in the kernel that passes on only
 * what a frame's first bytes say is none of WireGuard's. WireGuard sees those
 * too, and ignores them.
 *
 * Needs CAP_NET_RAW. Fragments are not seen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

enum raw_udp_family { RAW_UDP_V4, RAW_UDP_V6, RAW_UDP_FAMILY_N };

struct raw_udp {
    uint16_t port;                /* ours and somebody else's, host order */
    int poll_fd;                  /* owns: readable when something has arrived; -1 closed */
    int in_fd[RAW_UDP_FAMILY_N];  /* owns; -1: the family is missing */
    int out_fd[RAW_UDP_FAMILY_N]; /* owns; -1: the family is missing */
};

#define RAW_UDP_NULL {.poll_fd = -1, .in_fd = {-1, -1}, .out_fd = {-1, -1}}

/** Nothing has arrived. */
#define RAW_UDP_E_EMPTY 1

/** raw_udp_open() - 0 or negative errno; -EPERM without CAP_NET_RAW. */
int raw_udp_open(struct raw_udp *ret, uint16_t port);

/** raw_udp_close() - idempotent, safe on RAW_UDP_NULL. */
void raw_udp_close(struct raw_udp *ru);

/** The addresses and IP header fields of a datagram. */
struct raw_udp_packet {
    struct endpoint remote; /* the other end */
    struct ip_addr local;   /* our address on it; when sending, none: the kernel chooses */
    uint32_t ifindex;       /* arrived on */
    bool dont_fragment;     /* when sending: with DF, whatever is known of the path */
    uint8_t hops;           /* when sending: IP time to live (hop limit); 0: as usual */
};

/**
 * raw_udp_send() - @len bytes, with our port as their source
 *
 * Never waits. Return: 0 or negative errno: -EMSGSIZE, -EAFNOSUPPORT, -EAGAIN, -ENETUNREACH...
 */
int raw_udp_send(
    struct raw_udp *ru, const struct raw_udp_packet *to, const uint8_t *data, size_t len);

/** Most packets of a family that one raw_udp_receive() passes over. */
#define RAW_UDP_SKIPPED_MAX 64

/**
 * raw_udp_receive() - the next one that the filter passed
 * @data:	room for @cap bytes; a longer datagram is skipped
 *
 * Lengths of all headers were checked; the UDP checksum was not.
 *
 * Return: 0 and @ret_len; RAW_UDP_E_EMPTY, also after RAW_UDP_SKIPPED_MAX packets that are
 * malformed or too long: then the descriptor stays readable, so that whoever sends them takes no
 * more than a turn; or negative errno.
 */
int raw_udp_receive(
    struct raw_udp *ru, struct raw_udp_packet *ret, uint8_t *data, size_t cap, size_t *ret_len);
