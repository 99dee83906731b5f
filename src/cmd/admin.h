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
struct err;
struct str;

/** Where the hub is, as the options said. */
struct admin_target {
    const char *socket;      /* of a hub on this machine */
    const char *hub;         /* HOST or HOST:PORT of one elsewhere; NULL: this machine */
    const char *token_file;  /* holds the admin token */
    const char *pin;         /* base64 SHA-256 of the hub's SPKI */
    const char *says_socket; /* "--socket" when the person has named it; NULL: the default */
};

/** Where a hub's admin socket is. */
#define ADMIN_SOCKET_DEFAULT "/run/weft/hub.sock"

/* The row of an option table for a command that only the hub on this machine can be asked. */
#define ADMIN_SOCKET_OPTION(t)                                                                     \
    {                                                                                              \
        "--socket", "PATH", option_socket, &(t).socket, ADMIN_SOCKET_DEFAULT,                      \
            "admin socket of the hub on this machine", .given = &(t).says_socket                   \
    }

/* The rows of an option table that fill in a struct admin_target. */
#define ADMIN_OPTIONS(t)                                                                           \
    ADMIN_SOCKET_OPTION(t),                                                                        \
        {"--hub", "HOST:PORT", option_text, &(t).hub, NULL,                                        \
            "ask a hub elsewhere, over HTTPS; without a port: 8443"},                              \
        {"--admin-token-file", "FILE", option_text, &(t).token_file, NULL,                         \
            "with --hub: the file that holds its admin token"},                                    \
    {                                                                                              \
        "--pin", "SHA256", option_text, &(t).pin, NULL,                                            \
            "with --hub: base64 SHA-256 of its TLS key, as \"weft hub up\" prints it"              \
    }

/** admin_option_given() - one of ADMIN_OPTIONS that the person has given; NULL: none. */
const char *admin_option_given(const struct admin_target *t);

/** admin_check() - do the options say a hub, as far as that can be told without asking it? 0; or
 * negative errno with words. */
int admin_check(const struct admin_target *t, struct err *e);

/**
 * admin_call() - ask the hub, or say on standard error why that failed
 * @command:	for the message, as "token new"
 * @body:	borrowed; NULL: none
 * @ret:	set on success; client_answer_deinit() it
 *
 * Return: CMD_OK, CMD_FAILED or CMD_USAGE.
 */
int admin_call(const struct admin_target *target, const char *command, const char *method,
    const char *path, const json_t *body, struct client_answer *ret);

/**
 * admin_try() - admin_call(), where a refusal may be an answer
 * @may_be:	the status of that refusal, 404 or 409; 0: none
 * @ret:	then has that status, and no body
 */
int admin_try(const struct admin_target *target, const char *command, const char *method,
    const char *path, const json_t *body, int may_be, struct client_answer *ret);

/**
 * admin_ask() - GET @path, without a word on standard error
 * @ret:	gives the answer's body
 *
 * Return: as client_call(), with words. Any thread.
 */
int admin_ask(const struct admin_target *target, const char *path, json_t **ret, struct err *e);

/**
 * admin_show() - admin_call(), and print the answer's body
 * @body:	taken; NULL: none
 * @as_json:	print it as JSON; else with @print
 * @print:	prints the answer's on standard output; borrows it
 *
 * Return: CMD_OK; or CMD_FAILED or CMD_USAGE, after a sentence on standard error.
 */
int admin_show(const struct admin_target *target, const char *command, const char *method,
    const char *path, json_t *body, bool as_json, void (*print)(const json_t *body));

/**
 * admin_delete() - have the hub delete @path, and print that it is gone
 * @what, @name:	as in "token 00ff is gone"; NULL: nothing is printed
 *
 * Return: as admin_call().
 */
int admin_delete(const struct admin_target *target, const char *command, const char *path,
    const char *what, const char *name);

/** admin_put_json() - @body on standard output, with @flags of json_dumps(); what a terminal might
 * obey in escapes. False: no memory. */
bool admin_put_json(const json_t *body, size_t flags);

/**
 * admin_print_json() - the answer's body on standard output, indented, with a newline
 *
 * Return: CMD_OK; CMD_FAILED when standard output does not take it.
 */
int admin_print_json(const char *command, const json_t *body);

/**
 * admin_print() - print @json with @as_json, and else @text
 * @json:	taken
 *
 * Return: as admin_print_json().
 */
int admin_print(const char *command, bool as_json, json_t *json, const struct str *text);

/** Room for admin_time(). */
#define ADMIN_TIME_MAX 32

/**
 * admin_time() - the time at obj.@name, seconds since 1970, as "2026-11-22 07:30:00" in UTC
 *
 * Return: @buf; it is "-" when there is no such time.
 */
const char *admin_time(const json_t *obj, const char *name, char buf[static ADMIN_TIME_MAX]);

/**
 * admin_text() - @value as a terminal may have it: what is not plain (base/text.h) becomes '?', in
 * @value itself
 *
 * Return: borrowed from @value; "" when that is no text.
 */
const char *admin_text(const json_t *value);

/**
 * admin_field() - admin_text() of obj.@outer.@inner; of obj.@inner when @outer is NULL
 *
 * Return: borrowed from @obj; "" when there is no such text.
 */
const char *admin_field(const json_t *obj, const char *outer, const char *inner);
