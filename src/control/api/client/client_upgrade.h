/*
 * client_upgrade.h - a connection to a hub that stops being HTTP and becomes bytes both ways.
 *
 * The hub's side is struct upgrade in server.h.
 *
 * For a thread of its own: opening blocks. Once open, reading and writing do
 * not, and the descriptor tells when to try. Nothing but the pin is trusted, as
 * in client.h.
 *
 * Threads: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "api/client/client.h"

struct client_upgrade;
struct err;

/** What is asked for. Borrowed for the call. */
struct client_upgrade_wish {
    const struct client_target *target;   /* HTTPS */
    const char *path;                     /* "/v1/..." */
    const char *protocol;                 /* of the Upgrade header */
    const char *authorization;            /* that header; NULL: none */
    unsigned timeout_ms;                  /* for all of it */
    bool (*is_unwanted)(const void *ctx); /* asked each 100 ms: give up? */
    const void *ctx;
};

/**
 * client_upgrade_open() - connect, through a proxy if the target has one, and ask
 *
 * Return: 0; CLIENT_E_REFUSED, CLIENT_E_UNREACHABLE or CLIENT_E_UNTRUSTED with words; negative
 * errno with words.
 */
int client_upgrade_open(
    struct client_upgrade **ret, const struct client_upgrade_wish *wish, struct err *e);

/** client_upgrade_close() - NULL is fine. Always NULL. */
struct client_upgrade *client_upgrade_close(struct client_upgrade *u);

/** client_upgrade_fd() - to be polled; lent. */
int client_upgrade_fd(const struct client_upgrade *u);

/** client_upgrade_read() - how many bytes; 0: the other end has closed; -EAGAIN; other negative
 * errno. */
ssize_t client_upgrade_read(struct client_upgrade *u, void *buf, size_t cap);

/** client_upgrade_write() - how many bytes; -EAGAIN: call it with the same bytes later; other
 * negative errno. */
ssize_t client_upgrade_write(struct client_upgrade *u, const void *buf, size_t len);
