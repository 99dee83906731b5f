/* flight_watch.c - see flight_watch.h. */
#include "train/job/flight_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "health/pickle.h"
#include "os/clock.h"
#include "os/file.h"

/* While the job stands still it is asked so often. */
#define ASK_EACH (20 * NSEC_PER_SEC)

/* The times that the kernel gives files are behind its clock by as much. */
#define TICK (20 * NSEC_PER_MSEC)

#define PIPE_SUFFIX ".pipe"

/* Digits of a rank, with a zero. */
#define RANK_TEXT_MAX 8

static void set_path(char ret[static PATH_MAX], const char *path)
{
    if (snprintf(ret, PATH_MAX, "%s", path ? path : "") >= PATH_MAX)
        ret[0] = '\0';
}

void flight_watch_begin(struct flight_watch *w, const char *records, const char *pipes)
{
    *w = (struct flight_watch){.since = clock_wall() - TICK};
    set_path(w->records, records);
    set_path(w->pipes, pipes);
}

/* ---- which there are ------------------------------------------------------------------------ */

/* NULL: there are too many. */
static struct flight_watch_rank *rank_of(struct flight_watch *w, uint32_t rank)
{
    for (unsigned i = 0; i < w->n; i++)
        if (w->ranks[i].rank == rank)
            return &w->ranks[i];
    if (w->n == FLIGHT_WATCH_RANKS_MAX)
        return NULL;
    w->ranks[w->n] = (struct flight_watch_rank){.rank = rank};
    return &w->ranks[w->n++];
}

/* The rank between the two; false: the name is not of that form. */
static bool read_name(const char *name, const char *begin, const char *end, uint32_t *ret)
{
    size_t len = strlen(name);
    char text[RANK_TEXT_MAX];
    uint64_t rank;

    if (strncmp(name, begin, strlen(begin)) != 0 || len < strlen(begin) + strlen(end) ||
        strcmp(name + len - strlen(end), end) != 0)
        return false;
    len -= strlen(begin) + strlen(end);
    if (len >= sizeof(text))
        return false;
    memcpy(text, name + strlen(begin), len);
    text[len] = '\0';
    if (parse_u64(&rank, text, 0, FLIGHT_RANK_MAX, "rank", NULL) != 0)
        return false;
    *ret = (uint32_t)rank;
    return true;
}

/* Notes the ranks that have a file of a name that begins so. */
static void scan(struct flight_watch *w, const char *begin, bool is_pipe)
{
    const char *slash = strrchr(begin, '/');
    char folder[PATH_MAX] = ".";
    DIR *d;

    if (begin[0] == '\0')
        return;
    if (slash)
        (void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - begin) + 1, begin);
    d = opendir(folder);
    for (struct dirent *entry = d ? readdir(d) : NULL; entry; entry = readdir(d)) {
        struct flight_watch_rank *one;
        uint32_t rank;

        if (!read_name(entry->d_name, slash ? slash + 1 : begin, is_pipe ? PIPE_SUFFIX : "", &rank))
            continue;
        one = rank_of(w, rank);
        if (one && is_pipe)
            one->has_pipe = true;
        else if (one)
            one->has_record = true;
    }
    if (d)
        (void)closedir(d);
}

static void scan_all(struct flight_watch *w)
{
    for (unsigned i = 0; i < w->n; i++)
        w->ranks[i].has_pipe = w->ranks[i].has_record = false;
    scan(w, w->records, false);
    scan(w, w->pipes, true);
}

bool flight_watch_has_records(struct flight_watch *w)
{
    bool has = false;

    scan_all(w);
    for (unsigned i = 0; i < w->n; i++)
        has |= w->ranks[i].has_record;
    return has;
}

/* ---- records -------------------------------------------------------------------------------- */

static void read_record(struct flight_watch *w, struct flight_watch_rank *one, nsec_t now)
{
    char path[PATH_MAX + 16];
    struct stat st;
    _cleanup_(closep) int fd = -1;
    _cleanup_(freep) char *bytes = NULL;
    int64_t changed_at;

    (void)snprintf(path, sizeof(path), "%s%u", w->records, one->rank);
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return;
    changed_at = (int64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
    if (changed_at < w->since || (changed_at == one->changed_at && st.st_size == one->size) ||
        st.st_size <= 0 || st.st_size > PICKLE_BYTES_MAX)
        return;
    one->changed_at = changed_at;
    one->size = st.st_size;
    bytes = malloc((size_t)st.st_size);
    if (!bytes || file_read_all(fd, bytes, (size_t)st.st_size) != st.st_size ||
        flight_decode(&one->said, bytes, (size_t)st.st_size, one->rank, changed_at, NULL) != 0)
        return;
    one->written_at = now - nsec_max(clock_wall() - changed_at, 0);
}

/* ---- pipes ---------------------------------------------------------------------------------- */

static void ask(const struct flight_watch *w, const struct flight_watch_rank *one)
{
    char path[PATH_MAX + 32];
    struct stat st;
    _cleanup_(closep) int fd = -1;
    ssize_t n = 0;

    (void)snprintf(path, sizeof(path), "%s%u" PIPE_SUFFIX, w->pipes, one->rank);
    /* As it is open for reading, too, no signal comes when the other end goes away. */
    fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && st.st_uid == geteuid())
        n = write(fd, "1", 1);
    (void)n; /* It is asked again. */
}

/* ---- all of it ------------------------------------------------------------------------------ */

void flight_watch_look(struct flight_watch *w, bool is_still, nsec_t now)
{
    bool asks = is_still && (w->asked_at == 0 || now - w->asked_at >= ASK_EACH);

    if (w->records[0] == '\0')
        return;
    scan_all(w);
    for (unsigned i = 0; i < w->n; i++) {
        if (w->ranks[i].has_record)
            read_record(w, &w->ranks[i], now);
        if (asks && w->ranks[i].has_pipe)
            ask(w, &w->ranks[i]);
    }
    if (asks)
        w->asked_at = now;
    else if (!is_still)
        w->asked_at = 0;
}

void flight_watch_add(
    struct flight_places *ret, const struct flight_watch *w, nsec_t since, nsec_t now)
{
    for (unsigned i = 0; i < w->n; i++)
        ret->is_known |= w->ranks[i].has_pipe || w->ranks[i].has_record;
    /* Where there are too many, each rank is told of with its first groups. */
    for (unsigned g = 0; g < FLIGHT_GROUPS_MAX; g++)
        for (unsigned i = 0; i < w->n; i++) {
            const struct flight_watch_rank *one = &w->ranks[i];
            nsec_t age = (now - one->written_at) / NSEC_PER_MSEC;

            if (one->written_at == 0 || one->written_at < since || g >= one->said.n ||
                ret->n == FLIGHT_PLACES_MAX)
                continue;
            ret->items[ret->n] = one->said.items[g];
            ret->items[ret->n++].age_ms = (uint32_t)nsec_min(age, FLIGHT_MS_MAX);
        }
}
