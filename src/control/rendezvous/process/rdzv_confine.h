/* rdzv_confine.h - a rendezvous process gives up what it does not need, for good. */
#pragma once

struct err;

/**
 * rdzv_confine() - before the first byte of a stranger is read
 *
 * It ends with its parent, cannot be looked into, leaves no core, keeps no capability and gains
 * none, and is bounded in memory and descriptors. As root it becomes the user "nobody".
 *
 * Return: 0 or negative errno with words.
 */
int rdzv_confine(struct err *e);
