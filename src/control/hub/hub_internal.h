/*
 * hub_internal.h - the hub's parts, for hub.c and for tests of a whole hub.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "api/server/tls_front.h"
#include "base/secret.h"
#include "hub/audit/audit.h"
#include "hub/changes.h"
#include "hub/enrol/admin_tokens.h"
#include "hub/enrol/enrol.h"
#include "hub/handlers/handlers.h"
#include "hub/hub.h"
#include "hub/jobs/jobs.h"
#include "hub/model/model.h"
#include "hub/networks/disk_work.h"
#include "hub/networks/networks.h"
#include "hub/networks/public_addresses.h"
#include "hub/owner/owners.h"
#include "hub/resources/resources.h"
#include "hub/streams/streams.h"
#include "hub/traffic/spending.h"
#include "hub/traffic/traffic_book.h"
#include "hub/uplink/hub_uplink.h"
#include "hub/watch/reports.h"
#include "hub/watch/watch.h"
#include "hub/web/live.h"
#include "hub/web/web_access.h"
#include "mesh/object/prices.h"

struct hub {
    struct hub_config config;                 /* borrows its texts */
    uv_loop_t *loop;                          /* pins */
    struct rng rng;                           /* the kernel's */
    struct store *store;                      /* owns */
    struct disk_works disk;                   /* what waits for the disk beside the store */
    struct public_addresses public_addresses; /* where nodes reach it */
    struct model model;                       /* what is in the store */
    struct networks networks;                 /* made and removed */
    struct changes changes;      /* what each change of the model leads to; has the data half */
    struct reports reports;      /* what nodes report, and which are there */
    struct traffic_book traffic; /* what nodes have moved */
    struct spending spending;    /* what of their budgets is spent */
    struct prices prices;        /* if there is a price table */
    struct watcher watcher;      /* who listens */
    struct enrol enrol;          /* who comes in */
    struct streams streams;      /* members whose UDP is blocked */
    struct identity identity;    /* TLS */
    struct audit audit;          /* who changed what */
    struct admin_tokens admins;  /* who administers from afar */
    struct web_access web;       /* who is at the page */
    struct live live;            /* what open pages are told */
    struct owners owners;        /* which hub serves jobs */
    struct orphans orphans;      /* what removed networks have left */
    struct hub_uplink uplink;    /* what its line carries, where nobody has said it */
    struct jobs *jobs;           /* owns */
    struct handlers handlers;    /* what answers the API's calls */
    struct server *server;       /* owns */
    struct stun_port *stun;      /* owns; NULL: the UDP port is taken */
    struct resources *resources; /* owns; NULL: the store is not in Kubernetes */
    uv_timer_t tick;             /* each second */
    uv_prepare_t turn;           /* each turn of the loop: the watches are told */
    uv_timer_t pending;          /* when nodes are due that watches are to be told of */
    uv_poll_t answers;           /* of the store */
    bool has_handles;            /* @tick and @answers are in the loop */
};

/** hub__start_loop() - add the handles that a hub has in its loop. */
void hub__start_loop(struct hub *hub);

/** hub__serve() - bring up all networks, and from now on tell of changes. 0 or negative errno. */
int hub__serve(struct hub *hub, struct err *e);
