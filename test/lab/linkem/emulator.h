/*
 * emulator.h - links between pairs of TAP devices, carried by one event loop.
 *
 * A link has two lanes (lane.h): "out" from its first end to its second, "in" back.  The names
 * are those of the lab, where the first end is a host's interface and the second a switch port.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lane.h"

#define EMULATOR_LINKS_MAX 256
#define LINK_NAME_MAX      47

enum direction { DIRECTION_OUT, DIRECTION_IN, DIRECTION_N };

/* Lane d takes the frames that end d sent and gives them to the other end. */
struct link {
    char name[LINK_NAME_MAX + 1];
    int end_fd[DIRECTION_N]; /* TAP devices; owned; -1 once the device is gone */
    struct lane lane[DIRECTION_N];
    uint64_t n_refused[DIRECTION_N]; /* frames that the receiving interface did not take */
};

/* The link that brought a frame is found again by what epoll gives back, hence the fixed table. */
struct emulator {
    int epoll_fd; /* owned */
    uint64_t seed;
    struct link *links[EMULATOR_LINKS_MAX]; /* owned */
    uint32_t n_links;
};

/**
 * emulator_open() - no links yet.
 * @seed:	random decisions follow from it, a link's name and the direction
 *
 * Return: 0, or a negative errno.
 */
int emulator_open(struct emulator *em, uint64_t seed);

/** emulator_close() - end all links; their TAP devices vanish. */
void emulator_close(struct emulator *em);

/**
 * emulator_add_link() - create two TAP devices and carry frames between them.
 * @name:	of the link; new
 * @tap_out:	interface name of the first end
 * @tap_in:	interface name of the second end
 * @params:	of its lanes
 *
 * Return: 0, or a negative errno: -EEXIST (@name is taken), -ENOSPC (too many links),
 * -ENAMETOOLONG, and those of tap_open().
 */
int emulator_add_link(struct emulator *em, const char *name, const char *tap_out,
    const char *tap_in, const struct lane_params params[DIRECTION_N]);

/** emulator_find_link() - NULL if there is none of that name. */
struct link *emulator_find_link(const struct emulator *em, const char *name);

/**
 * emulator_run() - carry frames and serve the control socket.
 * @control_fd:	a listening SOCK_SEQPACKET socket; borrowed
 * @stop_fd:	readable when it is time to stop; borrowed
 *
 * Return: 0 when stopped, or a negative errno.
 */
int emulator_run(struct emulator *em, int control_fd, int stop_fd);
