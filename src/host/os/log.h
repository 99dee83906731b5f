/*
 * log.h - a daemon's log: one line for each message.
 *
 * Libraries return, programs log, once, at the edge. A line is
 *
 *     warning: hub: token of node "gpu-3" has expired
 *
 * on standard error; under systemd the level becomes a "<4>" prefix instead,
 * which the journal understands. Anything that a remote packet can trigger
 * goes through log_limited().
 *
 * Threads: all calls may run on any thread; the level and the form are set
 * before threads start.
 */
#pragma once

#include "base/clock.h"

enum log_level {
    LOG_LEVEL_ERROR,   /* something promised will not happen */
    LOG_LEVEL_WARNING, /* works, but somebody should look */
    LOG_LEVEL_INFO,    /* what a person following along wants to know */
    LOG_LEVEL_DEBUG,   /* what a developer wants to know */
    LOG_LEVEL_N,
};

/**
 * log_set_clock() - begin each line with the time, where no journal keeps it
 * @wall:	returns nanoseconds since 1970
 */
void log_set_clock(nsec_t (*wall)(void));

/** log_init() - @area: the process's word in every line ("hub", "agent", "wg"); pinned. */
void log_init(const char *area, enum log_level level);

/** log_level_parse() - "error" ... "debug" to a level; LOG_LEVEL_N if it is none of them. */
enum log_level log_level_parse(const char *text);

void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_at(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)

/** Budget of one log site that strangers can reach. Guarded by its own thread. */
struct log_limit {
    nsec_t window_start; /* when the current window began */
    unsigned said;       /* lines in this window */
    unsigned suppressed; /* lines swallowed since the last one said */
};

/**
 * log_limited() - like log_at(), at most 5 lines per 10 s for each @limit
 * @limit:	the site's budget; zero-initialised, kept by the caller
 * @now:	monotonic time
 *
 * The first line of a new window says how many were suppressed.
 */
void log_limited(struct log_limit *limit, nsec_t now, enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
