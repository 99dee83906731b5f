/* timestamp_file.c - see timestamp_file.h. */
#include "os/timestamp_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "os/file.h"

/* The number, a newline, and more, so that what is too long is found to be. */
#define FILE_MAX 64

/* Greatest time that the file may say: what is ahead of it still is a time. */
#define SECONDS_MAX ((uint64_t)(NSEC_NEVER / NSEC_PER_SEC) - 86400)

/* Room for more than a thousand initiations to each peer, where the clock is not followed. */
#define STEPS_SIZE (30 * NSEC_PER_SEC)

static nsec_t next(nsec_t t, nsec_t by)
{
    return t > NSEC_NEVER - by ? NSEC_NEVER : t + by;
}

int timestamp_file_read(nsec_t *ret, const char *path, struct err *e)
{
    _cleanup_(freep) char *text = NULL;
    uint64_t seconds;
    size_t len = 0;
    int r = statefile_read(path, FILE_MAX, &text, &len, e);

    if (r != 0)
        return r;
    if (len > 0 && text[len - 1] == '\n')
        text[--len] = '\0';
    if (strlen(text) != len || parse_u64(&seconds, text, 0, SECONDS_MAX, "the time", e) != 0)
        return err_set(e, -EBADMSG,
            "\"%s\" is damaged: it should hold one number, the seconds since 1970", path);
    *ret = (nsec_t)seconds * NSEC_PER_SEC;
    return 0;
}

/* Rounded up to whole seconds. */
static nsec_t round_up(nsec_t t)
{
    nsec_t most = (nsec_t)SECONDS_MAX * NSEC_PER_SEC;

    return t >= most ? most : (t + NSEC_PER_SEC - 1) / NSEC_PER_SEC * NSEC_PER_SEC;
}

/* Without room on the disk what is there goes on to hold. Without any file nothing can. */
static bool write_time(struct timestamp_file *f, nsec_t time, nsec_t now)
{
    struct err e = ERR_NULL;
    char text[32];
    int len = snprintf(text, sizeof(text), "%lld\n", (long long)(time / NSEC_PER_SEC));
    int r = statefile_replace(f->path, text, (size_t)len, 0600, &e);

    if (r < 0)
        log_limited(&f->limit, now, f->is_failing ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
            "the time of handshakes is not kept, so that after a restart peers may refuse them if "
            "the clock was set back: %s",
            err_text(&e));
    f->is_failing = r < 0;
    if (r == 0)
        f->kept = time;
    return r == 0;
}

void timestamp_file_open(struct timestamp_file *f, const char *path, nsec_t wall, nsec_t now)
{
    struct err e = ERR_NULL;
    int r;

    *f = (struct timestamp_file){.bounds = TAI64N_UNBOUNDED};
    if (!path || strlen(path) >= sizeof(f->path))
        return;
    (void)snprintf(f->path, sizeof(f->path), "%s", path);
    r = timestamp_file_read(&f->bounds.above, f->path, &e);
    if (r < 0)
        log_warning("what earlier handshakes were dated is not known: %s", err_text(&e));
    if (r == 0) {
        f->kept = f->bounds.above;
        f->bounds.upto = f->kept - STEPS_SIZE;
    }
    (void)timestamp_file_keep(f, 0, wall, now);
}

bool timestamp_file_keep(struct timestamp_file *f, nsec_t sent, nsec_t wall, nsec_t now)
{
    nsec_t used = nsec_max(sent, f->bounds.above);
    const nsec_t want = nsec_max(next(wall, TIMESTAMP_FILE_AHEAD), next(used, 2 * STEPS_SIZE));

    if (f->path[0] == '\0')
        return false;
    /* A clock that is ahead of what is kept shows in what is sent: it comes up to that. */
    if (f->kept != 0 && next(used, STEPS_SIZE + NSEC_PER_SEC) < f->kept)
        return false;
    if (!write_time(f, round_up(want), now))
        return false;
    f->bounds.upto = f->kept - STEPS_SIZE;
    return true;
}

void timestamp_file_warn_back(const struct timestamp_file *f, nsec_t wall)
{
    nsec_t back = f->bounds.above - wall;

    if (back > TIMESTAMP_FILE_BACK)
        log_warning("this machine's clock is %lld s behind what it was when handshakes were made "
                    "last: it was set back. They are dated after those all the same, since peers "
                    "refuse older ones",
            (long long)(back / NSEC_PER_SEC));
}

void timestamp_file_end(struct timestamp_file *f, nsec_t sent, nsec_t now)
{
    nsec_t last = round_up(nsec_max(sent, f->bounds.above));

    /* It is not made again where somebody has removed it, with all that there was. */
    if (f->path[0] != '\0' && last < f->kept && access(f->path, F_OK) == 0)
        (void)write_time(f, last, now);
    f->path[0] = '\0';
}
