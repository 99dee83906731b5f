/*
 * udp_owner.h - is a UDP port taken, and by which program?
 *
 * The kernel tells each socket's inode (/proc/net/udp, udp6), and each process its descriptors;
 * both are of this network namespace.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct err;

/** The port is taken. */
#define UDP_OWNER_E_TAKEN 1

/**
 * udp_owner_check() - can WireGuard listen on that port?
 *
 * Return: 0; UDP_OWNER_E_TAKEN with words that name EADDRINUSE, and the process where it can be
 * found; or negative errno with words.
 */
int udp_owner_check(uint16_t port, struct err *e);
