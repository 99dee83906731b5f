/*
 * coordinator.h - the coordinator's side: connections to many members, asked all at once.
 *
 * One link a member. links_ask() gives each of some members an order and waits
 * for all answers together, so that a round takes as long as its slowest pair.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/clock.h"
#include "measure/line.h"
#include "measure/order.h"

struct err;

#define LINKS_WHY_MAX 160

struct link {
    struct ip_addr address;
    int fd; /* owns; -1: not connected, or lost */
    struct line_buffer in;
    json_t *answer;          /* owns; of the last question; NULL: none came */
    char why[LINKS_WHY_MAX]; /* why there is none, or no connection; "" when there is */
};

struct links {
    struct link *items; /* owns; in the order given to links_open() */
    size_t n;
    struct session_id id;
};

#define LINKS_NULL                                                                                 \
    {                                                                                              \
        0                                                                                          \
    }

/** links_deinit() - end the session everywhere; idempotent. */
void links_deinit(struct links *l);

/**
 * links_open() - a session with all of them
 * @addresses:	@n; the one that equals @own is asked through @socket_path
 * @interface:	the overlay's; NULL: as routed
 * @o:		SESSION, with an id that nobody can guess
 *
 * A member that cannot be had keeps its link without a connection, and with words.
 *
 * Return: 0 or -ENOMEM.
 */
int links_open(struct links *l, const struct ip_addr *addresses, size_t n,
    const struct ip_addr *own, const char *socket_path, const char *interface, uint16_t port,
    const struct order *o, nsec_t deadline);

/**
 * links_ask() - give orders and wait for the answers
 * @orders:	one for each link, NULL: nothing for that one
 *
 * Afterwards each link that was asked has an answer, or words. A refusal counts
 * as none. Who does not answer in time has lost its link: its answer might come
 * later, and would be taken for another one's.
 */
void links_ask(struct links *l, const struct order *const orders[], nsec_t deadline);

/** links_has() - is member @i still connected? */
bool links_has(const struct links *l, size_t i);
