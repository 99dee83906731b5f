/* log.c - see log.h. */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/text.h"

#define LOG_LIMIT_WINDOW (10 * NSEC_PER_SEC)
#define LOG_LIMIT_LINES  5

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARNING] = "warning",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};
_Static_assert(sizeof(level_names) / sizeof(*level_names) == LOG_LEVEL_N, "a name per level");

/* syslog(3) priorities, as sd-daemon(3) wants them. */
static const int journal_priority[LOG_LEVEL_N] = {3, 4, 6, 7};

/* Set once by log_init(), before threads start. */
static struct {
    const char *area;
    enum log_level level;
    bool journal;
    nsec_t (*wall)(void); /* NULL: no time is written */
} log_conf = {.area = "weft", .level = LOG_LEVEL_INFO};

void log_init(const char *area, enum log_level level)
{
    log_conf.area = area;
    log_conf.level = level;
    log_conf.journal = getenv("JOURNAL_STREAM") != NULL;
}

void log_set_clock(nsec_t (*wall)(void))
{
    log_conf.wall = wall;
}

/* "2026-11-22T08:15:00Z ", or nothing. Returns its length. */
static size_t write_time(char *buf, size_t cap)
{
    time_t when = log_conf.wall ? (time_t)(log_conf.wall() / NSEC_PER_SEC) : 0;
    struct tm utc;

    if (when == 0 || !gmtime_r(&when, &utc))
        return 0;
    return strftime(buf, cap, "%Y-%m-%dT%H:%M:%SZ ", &utc);
}

enum log_level log_level_parse(const char *text)
{
    return (enum log_level)parse_word(text, level_names, LOG_LEVEL_N);
}

static void write_line(enum log_level level, const char *fmt, va_list ap)
{
    char line[1024];
    size_t len;
    int n;

    if (log_conf.journal)
        n = snprintf(line, sizeof(line), "<%d>%s: ", journal_priority[level], log_conf.area);
    else {
        len = write_time(line, sizeof(line));
        n = (int)len +
            snprintf(line + len, sizeof(line) - len, "%s: %s: ", level_names[level], log_conf.area);
    }
    len = (size_t)n;
    n = vsnprintf(line + len, sizeof(line) - len - 1, fmt, ap);
    if (n > 0)
        len += (size_t)n < sizeof(line) - len - 1 ? (size_t)n : sizeof(line) - len - 2;
    /* It may quote what came from outside, and whoever reads the log may have a terminal. */
    text_make_plain(line, '?');
    line[len++] = '\n';
    /* One write a line, so that threads do not interleave. A lost line is not worth dying for. */
    if (write(STDERR_FILENO, line, len) < 0)
        return;
}

void log_at(enum log_level level, const char *fmt, ...)
{
    va_list ap;

    if (level > log_conf.level)
        return;
    va_start(ap, fmt);
    write_line(level, fmt, ap);
    va_end(ap);
}

void log_limited(struct log_limit *limit, nsec_t now, enum log_level level, const char *fmt, ...)
{
    va_list ap;

    if (level > log_conf.level)
        return;
    if (limit->window_start == 0 || now - limit->window_start >= LOG_LIMIT_WINDOW) {
        limit->window_start = now;
        limit->said = 0;
        if (limit->suppressed > 0)
            log_at(level, "%u similar lines suppressed", limit->suppressed);
        limit->suppressed = 0;
    }
    if (limit->said >= LOG_LIMIT_LINES) {
        limit->suppressed++;
        return;
    }
    limit->said++;
    va_start(ap, fmt);
    write_line(level, fmt, ap);
    va_end(ap);
}
