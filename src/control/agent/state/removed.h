/*
 * removed.h - removed.json in the state directory: this machine was a node until its hub removed
 * it.
 *
 * When that happens the agent ends, and all other files of the node are removed. Commands that look
 * for the node later tell from this file why there is none. The next join removes it.
 */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "base/parse.h"

struct err;

/** There is no such file. */
#define REMOVED_E_ABSENT 1

#define REMOVED_REASON_MAX 255

struct removed {
    char node[NAME_MAX_LEN + 1];
    char network[NAME_MAX_LEN + 1];
    char reason[REMOVED_REASON_MAX + 1]; /* the hub's words; "": none */
    char socket_path[PATH_MAX];          /* the socket on which its agent listened */
    int64_t at;                          /* s since 1970 */
};

/**
 * removed_set_reason() - copy the hub's words
 * @reason:	UTF-8; of a longer one, as many whole characters as there is room for
 */
void removed_set_reason(struct removed *rm, const char *reason);

/** removed_write() - write the file. 0; or negative errno with words that name the file. */
int removed_write(const struct removed *rm, const char *dir, struct err *e);

/** removed_read() - read the file. 0; REMOVED_E_ABSENT; or negative errno with words that name the
 * file. */
int removed_read(struct removed *ret, const char *dir, struct err *e);

/** removed_forget() - remove the file, if there is one. 0 or negative errno with words. */
int removed_forget(const char *dir, struct err *e);

/** Room for removed_explain(), with its zero. */
#define REMOVED_TEXT_MAX (2 * NAME_MAX_LEN + REMOVED_REASON_MAX + 160)

/** removed_explain() - what happened, a sentence without its full stop. Returns @buf. */
const char *removed_explain(const struct removed *rm, char buf[static REMOVED_TEXT_MAX]);
