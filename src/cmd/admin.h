/*
 * admin.h - what the administration commands share: which hub, and how to ask it.
 *
 * The hub on this machine is asked through its unix socket; one elsewhere over
 * HTTPS with its pinned key and the admin token.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "cmd/options.h"

struct client_answer;

/** Where the hub is, as the options said. */
struct admin_target {
    const char *socket;     /* of a hub on this machine */
    const char *hub;        /* HOST:PORT of one elsewhere; NULL: this machine */
    const char *token_file; /* holds the admin token */
    const char *pin;        /* base64 SHA-256 of the hub's SPKI */
};

/* The rows of an option table that fill in a struct admin_target. */
#define ADMIN_OPTIONS(t)                                                                           \
    {"--socket", "PATH", option_text, &(t).socket, "/run/weft/hub.sock",                           \
        "admin socket of the hub on this machine"},                                                \
        {"--hub", "HOST:PORT", option_text, &(t).hub, NULL, "ask a hub elsewhere, over HTTPS"},    \
        {"--admin-token-file", "FILE", option_text, &(t).token_file, NULL,                         \
            "with --hub: the file that holds its admin token"},                                    \
    {                                                                                              \
        "--pin", "SHA256", option_text, &(t).pin, NULL,                                            \
            "with --hub: base64 SHA-256 of its TLS key, as \"weft hub up\" prints it"              \
    }

/**
 * admin_call() - ask the hub, or say on standard error why that failed
 * @command:	for the message, "token new"
 * @body:	borrowed; NULL: none
 * @ret:	on success; deinit after use
 *
 * Return: CMD_OK, CMD_FAILED or CMD_USAGE.
 */
int admin_call(const struct admin_target *target, const char *command, const char *method,
    const char *path, const json_t *body, struct client_answer *ret);

/**
 * admin_print_json() - the answer's body on standard output, indented, with a newline
 *
 * Return: CMD_OK; CMD_FAILED when standard output does not take it.
 */
int admin_print_json(const json_t *body);

/** Room for admin_time(). */
#define ADMIN_TIME_MAX 32

/** admin_time() - the seconds since 1970 at obj.@name as "2026-11-22 07:30:00", UTC; "-" if none.
 */
const char *admin_time(const json_t *obj, const char *name, char buf[static ADMIN_TIME_MAX]);

/** admin_field() - the text at obj.@outer.@inner (or obj.@inner, when @outer is NULL); "" if none.
 */
const char *admin_field(const json_t *obj, const char *outer, const char *inner);
