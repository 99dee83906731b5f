/*
 * sysctl.h - the kernel's settings below /proc/sys, by the names that sysctl(8) has for them.
 */
#pragma once

#include <stddef.h>

struct err;

/**
 * sysctl_read() - the value of a setting, its numbers separated by one blank
 * @name:	such as "net.ipv4.tcp_rmem"
 * @ret:	@cap bytes; set on success only
 *
 * Return: 0; or negative errno: -ENOENT where the kernel, or this network namespace, has none;
 * -EFBIG.
 */
int sysctl_read(const char *name, char *ret, size_t cap);

/**
 * sysctl_check() - may this process write that setting?
 *
 * Return: 0; or negative errno: -EROFS where /proc/sys is mounted read-only, as in a container;
 * -EACCES for who is not root, and of what is the whole machine's for root in a network namespace.
 */
int sysctl_check(const char *name);

/** sysctl_write() - set it. Return: 0 or negative errno with words. */
int sysctl_write(const char *name, const char *value, struct err *e);
