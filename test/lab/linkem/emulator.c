/* emulator.c - the event loop of the link emulator; see emulator.h. */
#include "emulator.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/containers.h"
#include "control.h"
#include "os/clock.h"
#include "tap.h"

#define EVENTS_MAX 64
/* Frames taken from one TAP device before the others get their turn. */
#define BURST_MAX 64

/* What an epoll event is about: a kind in the upper half, an index or descriptor in the lower. */
enum source { SOURCE_STOP, SOURCE_LISTENER, SOURCE_CLIENT, SOURCE_TAP };

static int watch(struct emulator *em, int fd, enum source source, uint32_t number)
{
    struct epoll_event event = {
        .events = EPOLLIN,
        .data.u64 = (uint64_t)source << 32 | number,
    };

    return epoll_ctl(em->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* From the name, so that a lane's randomness does not depend on which links were added before. */
static uint64_t lane_seed(uint64_t seed, const char *link_name, uint64_t direction)
{
    return hash_u64(hash_bytes(seed, link_name, strlen(link_name)), direction);
}

/* A link without ends yet; NULL for want of memory. */
static struct link *link_new(
    uint64_t seed, const char *name, const struct lane_params params[DIRECTION_N])
{
    struct link *link = calloc(1, sizeof(*link));

    if (!link)
        return NULL;
    (void)snprintf(link->name, sizeof(link->name), "%s", name);
    for (uint64_t d = 0; d < DIRECTION_N; d++) {
        link->end_fd[d] = -1;
        lane_init(&link->lane[d], lane_seed(seed, name, d));
        link->lane[d].params = params[d];
    }
    return link;
}

static void link_free(struct link *link)
{
    for (int d = 0; d < DIRECTION_N; d++) {
        if (link->end_fd[d] >= 0)
            close(link->end_fd[d]);
        lane_deinit(&link->lane[d]);
    }
    free(link);
}

int emulator_open(struct emulator *em, uint64_t seed)
{
    *em = (struct emulator){.epoll_fd = epoll_create1(EPOLL_CLOEXEC), .seed = seed};
    return em->epoll_fd < 0 ? -errno : 0;
}

void emulator_close(struct emulator *em)
{
    for (uint32_t i = 0; i < em->n_links; i++)
        link_free(em->links[i]);
    em->n_links = 0;
    if (em->epoll_fd >= 0)
        close(em->epoll_fd);
    em->epoll_fd = -1;
}

struct link *emulator_find_link(const struct emulator *em, const char *name)
{
    for (uint32_t i = 0; i < em->n_links; i++) {
        if (strcmp(em->links[i]->name, name) == 0)
            return em->links[i];
    }
    return NULL;
}

int emulator_add_link(struct emulator *em, const char *name, const char *tap_out,
    const char *tap_in, const struct lane_params params[DIRECTION_N])
{
    const char *tap_names[DIRECTION_N] = {[DIRECTION_OUT] = tap_out, [DIRECTION_IN] = tap_in};
    struct link *link;

    if (emulator_find_link(em, name))
        return -EEXIST;
    if (em->n_links == EMULATOR_LINKS_MAX)
        return -ENOSPC;
    if (strlen(name) > LINK_NAME_MAX)
        return -ENAMETOOLONG;
    link = link_new(em->seed, name, params);
    if (!link)
        return -ENOMEM;
    for (uint32_t d = 0; d < DIRECTION_N; d++) {
        int r = tap_open(tap_names[d], &link->end_fd[d]);

        if (r == 0)
            r = watch(em, link->end_fd[d], SOURCE_TAP, em->n_links * DIRECTION_N + d);
        if (r < 0) {
            link_free(link);
            return r;
        }
    }
    em->links[em->n_links++] = link;
    return 0;
}

/* Take what one end sent into its lane. A device that is gone is no longer watched. */
static void take_frames(struct link *link, int direction, nsec_t now)
{
    static uint8_t buf[TAP_FRAME_MAX]; /* the loop has one thread */
    for (int i = 0; i < BURST_MAX; i++) {
        ssize_t len = tap_read(link->end_fd[direction], buf, sizeof(buf));
        if (len == 0)
            return;
        if (len < 0) {
            close(link->end_fd[direction]);
            link->end_fd[direction] = -1;
            return;
        }
        (void)lane_push(&link->lane[direction], now, buf, (size_t)len); /* the lane counts */
    }
}

static void give_frames(struct link *link, int direction, nsec_t now)
{
    int fd = link->end_fd[direction == DIRECTION_OUT ? DIRECTION_IN : DIRECTION_OUT];
    struct lane_frame *frame;

    while ((frame = lane_pop(&link->lane[direction], now))) {
        if (!tap_write(fd, frame->bytes, frame->len))
            link->n_refused[direction]++;
        free(frame);
    }
}

/*
 * Let out every frame that is due; return when the next one will be. O(links) per turn: a lab has
 * dozens of links, and each look is two comparisons.
 */
static nsec_t give_due_frames(struct emulator *em, nsec_t now)
{
    nsec_t next = NSEC_NEVER;

    for (uint32_t i = 0; i < em->n_links; i++) {
        for (int d = 0; d < DIRECTION_N; d++) {
            give_frames(em->links[i], d, now);
            next = nsec_min(next, lane_due(&em->links[i]->lane[d]));
        }
    }
    return next;
}

static int accept_client(struct emulator *em, int control_fd)
{
    int fd = accept4(control_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int r;

    if (fd < 0)
        return 0; /* the client went away again */
    r = watch(em, fd, SOURCE_CLIENT, (uint32_t)fd);
    if (r < 0)
        close(fd);
    return r;
}

/* Wait for something to do, at most until @next, when a frame is due. */
static int wait_for_events(
    struct emulator *em, nsec_t next, struct epoll_event events[static EVENTS_MAX])
{
    nsec_t wait = nsec_max(next - clock_now(), 0);
    struct timespec timeout = {.tv_sec = wait / NSEC_PER_SEC, .tv_nsec = wait % NSEC_PER_SEC};

    int n =
        epoll_pwait2(em->epoll_fd, events, EVENTS_MAX, next == NSEC_NEVER ? NULL : &timeout, NULL);
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    return n;
}

int emulator_run(struct emulator *em, int control_fd, int stop_fd)
{
    int r = watch(em, control_fd, SOURCE_LISTENER, 0);

    if (r == 0)
        r = watch(em, stop_fd, SOURCE_STOP, 0);

    struct epoll_event events[EVENTS_MAX];
    while (r >= 0) {
        r = wait_for_events(em, give_due_frames(em, clock_now()), events);
        nsec_t now = clock_now();
        for (int i = 0, n = r; i < n && r >= 0; i++) {
            uint32_t number = (uint32_t)events[i].data.u64;
            switch ((enum source)(events[i].data.u64 >> 32)) {
            case SOURCE_STOP:
                return 0;
            case SOURCE_LISTENER:
                r = accept_client(em, control_fd);
                break;
            case SOURCE_CLIENT:
                control_serve(em, (int)number);
                break;
            case SOURCE_TAP:
                take_frames(em->links[number / DIRECTION_N], (int)(number % DIRECTION_N), now);
                break;
            }
        }
    }
    return r;
}
