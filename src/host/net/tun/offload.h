/*
 * offload.h - which of the kernel's segmentation offloads may be used here.
 *
 * An offload is used only after a test on the spot: a kernel version says
 * little about the machine, the container or the driver below. What is off
 * carries its reason, for the log and the statistics.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;

enum offload {
    OFFLOAD_UDP_GSO, /* UDP_SEGMENT: many datagrams leave in one call */
    OFFLOAD_UDP_GRO, /* UDP_GRO: many datagrams of one sender arrive in one call */
    OFFLOAD_TSO,     /* TUN: TCP superpackets, both ways */
    OFFLOAD_USO,     /* TUN: UDP superpackets, both ways */
    OFFLOAD_N,
};

struct offloads {
    bool on[OFFLOAD_N];
    char why[OFFLOAD_N][96]; /* why it is off; "" while on */
};

/** offloads_all() - everything on, untested. */
struct offloads offloads_all(void);

/** offload_off() - turn one off, with a reason. An earlier reason stays. */
void offload_off(struct offloads *o, enum offload which, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** offload_names - "udp-gso". */
extern const char *const offload_names[];

/** offload_find() - the one of that name, of @len bytes; -1: none. */
int offload_find(const char *name, size_t len);

/** offload_parse() - turn off those in @list ("udp-gso,tso" or "all"). 0 or -EINVAL with words. */
int offload_parse(struct offloads *o, const char *list, struct err *e);

/**
 * offload_test_udp() - send a segmented batch through the loopback and compare what arrives
 *
 * Turns off in @o what fails. Where there is no loopback (a bare network
 * namespace) only the socket options are tried: a wrong guess then shows as a
 * refused send, which the sender handles.
 */
void offload_test_udp(struct offloads *o);
