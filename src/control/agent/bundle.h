/*
 * bundle.h - a report of this node to be sent to somebody: an archive of what weft doctor has
 * found, of the agent's status and paths, of the machine's interfaces and routes, and of the log.
 *
 * No secret is in it: no file of the state is, and what of a secret might be quoted elsewhere (a
 * key, a token, a proxy's password) is struck out.
 *
 * Threads: any; waits for answers and for programs.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/doctor.h"

struct str;

/* ---- what is struck out ---------------------------------------------------------------------- */

/** Secrets by their text. */
struct secrets {
    char **items; /* owns; each wiped at the end */
    size_t n;
};

/** secrets_deinit() - wipe and release; idempotent. */
void secrets_deinit(struct secrets *s);

/** secrets_take() - each text in @json, at any depth, whose field's name is that of a secret. */
void secrets_take(struct secrets *s, const json_t *json);

/**
 * secrets_strike() - @text without them: "[secret]" stands in their places
 *
 * And without what looks like a token of ours, a key in a WireGuard configuration, or the user and
 * password of a URL.
 *
 * @text: @len bytes, any content. @out: is appended to
 */
void secrets_strike(const struct secrets *s, const char *text, size_t len, struct str *out);

/* ---- the archive ----------------------------------------------------------------------------- */

/** Longest name of a file in an archive. */
#define TAR_NAME_MAX 99

/** tar_add() - a file of that name, mode 0600; @at: s since 1970. A ustar archive (POSIX.1-1988),
 * which tar_end() ends; both append to @tar. */
void tar_add(struct str *tar, const char *name, const char *data, size_t len, int64_t at);
void tar_end(struct str *tar);

/** bundle_make() - all of it; appends to @tar. @at: s since 1970 */
void bundle_make(
    struct str *tar, const struct doctor_options *opt, const struct doctor_report *r, int64_t at);
