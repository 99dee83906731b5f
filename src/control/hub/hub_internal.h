/*
 * hub_internal.h - the hub as its own files see it: hub.c, networks.c, the doors, the metrics.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "api/identity.h"
#include "api/server.h"
#include "hub/access.h"
#include "hub/arrivals.h"
#include "hub/admin_tokens.h"
#include "hub/audit.h"
#include "hub/audit_read.h"
#include "base/rng.h"
#include "base/str.h"
#include "hub/enrol.h"
#include "hub/hub.h"
#include "hub/model.h"
#include "hub/jobs.h"
#include "hub/publics.h"
#include "hub/reports.h"
#include "hub/streams.h"
#include "hub/stun_port.h"
#include "hub/watch.h"
#include "store/store.h"

/** The name of the hub's own node in each network. */
#define HUB__SELF "hub"

struct hub {
    struct hub_config config;   /* borrows its texts */
    struct hub_hooks hooks;     /* all NULL without a data half */
    bool has_hooks;             /* a data half is plugged in */
    uv_loop_t *loop;            /* pins */
    struct rng rng;             /* the kernel's */
    struct store *store;        /* owns */
    struct publics publics;     /* where nodes reach it */
    struct model model;         /* what is in the store */
    struct reports reports;     /* what nodes report */
    struct watcher watcher;     /* who listens */
    struct enrol enrol;         /* who comes in */
    struct streams streams;     /* members whose UDP is blocked */
    struct identity identity;   /* TLS */
    struct audit audit;         /* who changed what */
    struct admin_tokens admins; /* who administers from afar */
    struct jobs *jobs;          /* owns */
    struct arrivals arrivals;   /* who has come to the jobs' present runs */
    struct server *server;      /* owns */
    uint16_t api_port;          /* of the public door, and of the overlay's */
    struct stun_port *stun;     /* owns; NULL: the UDP port is taken */
    uv_timer_t tick;            /* each second */
    uv_timer_t bury;            /* when removed nodes have been told for long enough */
    uv_poll_t answers;          /* of the store */
    nsec_t kept;                /* when the leases of ephemeral nodes were last looked at */
    bool is_rotating;           /* the token in STATE/admin.token is being replaced */
    bool is_announcing;         /* STATE/move.json is being written */
    json_t *held_keys;          /* owns: names of removed networks; NULL: no copy is being made */
    char adding[NAME_MAX_LEN + 1]; /* the network that is being made; "": none */
    struct err refresh_failure;    /* of what networks_refresh() has begun; 0: of nothing */
    bool is_running;               /* the networks are up: hooks are called */
    bool has_handles;              /* @tick, @bury and @answers are in the loop */
};

/** hub__changes() - who is told when the model changes; its ctx is the hub. */
struct model_listener hub__changes(struct hub *hub);

/** hub__bring_up() - let the data half make the network; is_up says whether it could. */
void hub__bring_up(struct hub *hub, struct model_network *net);

/**
 * hub__take_down() - close its doors, forget those who wait to be forgotten, end its data half
 *
 * A network that has been removed is freed.
 */
void hub__take_down(struct hub *hub, struct model_network *net);

/** hub__start_loop() - the handles that a hub has in its loop. */
void hub__start_loop(struct hub *hub);

/** hub__path() - "STATE/" and the printf-like rest; into @buf; returns @buf. */
const char *hub__path(const struct hub *hub, char buf[static 512], const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** hub__metrics() - all of them as Prometheus' text; free(). NULL: no memory. */
char *hub__metrics(struct hub *hub);

/** hub__wall() - seconds since 1970. */
int64_t hub__wall(void);

/** The table of all routes; its handlers' ctx is the hub. */
extern const struct route hub__routes[];
