/*
 * changes.h - what each change of the model leads to, in the same turn of the loop.
 *
 * It is the model's listener (model.h). A change reaches, in this order: the data half (overlay.h),
 * the jobs, the streams, and the nodes' watches. Here networks are brought up and taken down, too:
 * their data half, and the sockets on their interfaces at which members are answered.
 *
 * Theory of operation. A node or network that has been removed is out of the model's indexes at
 * once, but for 700 ms it keeps its WireGuard session with the hub (a network its interface), so
 * that the nodes can be told why. Then a timer has it forgotten. A new node that has a key or
 * address of a former one, or a network of the same interface, does not wait for the timer: the
 * former one is forgotten first.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "hub/model/model.h"

struct changes {
    /* changes_init() sets these, but for the last five, which the hub sets before it serves. */
    struct model *model;          /* pins */
    struct networks *networks;    /* pins: has the networks' keys */
    struct watcher *watcher;      /* pins */
    struct overlay *overlay;      /* pins: the data half; NULL: there is none */
    const char *interface_prefix; /* pins: of the networks' interfaces */
    struct jobs *jobs;            /* pins */
    struct server *server;        /* pins: answers members on the networks' interfaces; NULL: tests
                                     without sockets, and no interface may exist then */
    uint16_t api_port;            /* TCP port at which members are answered */
    struct edge_events *events;   /* pins: forgotten with their network; NULL: there are none */
    struct health *health;        /* pins: what is found of each; NULL: nobody looks */

    bool is_running;       /* the data half and the watches are told; false while the hub starts */
    bool has_timer;        /* @reap_timer is in the loop */
    uv_timer_t reap_timer; /* when removed nodes have been told for long enough */
};

/**
 * changes_init() - nothing is told yet
 * @overlay:	pinned; NULL: there is no data half
 * @interface_prefix: pinned
 */
void changes_init(struct changes *c, struct model *model, struct networks *networks,
    struct watcher *watcher, struct overlay *overlay, const char *interface_prefix);

/** changes_listener() - what model_init() is given; its ctx is @c. */
struct model_listener changes_listener(struct changes *c);

/** changes_start_timer() - the handle that it has in @loop. */
void changes_start_timer(struct changes *c, struct uv_loop_s *loop);

/** changes_stop() - take down all networks, and close the timer: the hub ends. Idempotent. */
void changes_stop(struct changes *c);

/**
 * changes_open_jobs() - serve the jobs of a network that is up, with a store of several hubs
 * @fence, @revision, @epoch:	see struct jobs_place
 *
 * Return: 0 or negative errno with words.
 */
int changes_open_jobs(struct changes *c, const struct model_network *net, const char *fence,
    uint64_t revision, uint64_t epoch, struct err *e);

/**
 * changes_bring_up() - let the data half make the network, and answer its members
 *
 * net->served->is_up says whether it could, else net->served->failure why not.
 */
void changes_bring_up(struct changes *c, const struct model_network *net);
