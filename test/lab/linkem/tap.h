/*
 * tap.h - a TAP device: the end of an emulated link, an interface whose frames we carry.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The largest frame that a TAP device gives: the largest MTU plus header and VLAN tag. */
#define TAP_FRAME_MAX (65535 + 18)

/**
 * tap_open() - create a TAP device in our network namespace.
 * @name:	interface name, at most IFNAMSIZ - 1 characters
 * @ret_fd:	non-blocking; it stays good when the interface is moved to another namespace
 *
 * No offload is asked for, so each frame read is one packet with its checksum filled in.
 * The device is gone when @ret_fd is closed.
 *
 * Return: 0, or a negative errno (-EBUSY: the name is taken).
 */
int tap_open(const char *name, int *ret_fd);

/**
 * tap_read() - the next frame that the interface sent.
 *
 * Return: its length; 0 if there is none now; a negative errno if the device is gone.
 */
ssize_t tap_read(int fd, uint8_t *buf, size_t cap);

/**
 * tap_write() - let the interface receive a frame.
 *
 * Return: false if it did not take it: it is down, or gone.
 */
bool tap_write(int fd, const uint8_t *bytes, size_t len);
