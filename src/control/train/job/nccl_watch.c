/* nccl_watch.c - see nccl_watch.h. */
#include "train/job/nccl_watch.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/file.h"

/*
 * A log of ours that has grown beyond this is emptied, once it was read; a job that makes
 * communicators again and again could otherwise fill the disk.
 */
#define LOG_BYTES_MAX (64ll << 20)

/* Read at one look, of each file; and how much of a line is looked at. */
#define LOOK_BYTES_MAX (8u << 20)
#define LINE_MAX_LEN   8192

/* Appends a text in which no character means anything to glob(). */
static void add_literal(struct str *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (strchr("*?[]\\", text[i]))
            str_add(out, "\\");
        str_add_bytes(out, &text[i], 1);
    }
}

/* The files that NCCL_DEBUG_FILE means: %h is the host's name up to its first dot, %p a number. */
static void make_pattern(struct nccl_watch *w, const char *file)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    char host[HOST_NAME_MAX + 1] = "";

    (void)gethostname(host, sizeof(host) - 1);
    for (const char *at = file; *at != '\0'; at++) {
        if (at[0] == '%' && at[1] == 'h')
            add_literal(&out, host, strcspn(host, "."));
        else if (at[0] == '%' && at[1] == 'p')
            str_add(&out, "*");
        else {
            add_literal(&out, at, 1);
            continue;
        }
        at++;
    }
    if (out.failed ||
        snprintf(w->pattern, sizeof(w->pattern), "%s", str_text(&out)) >= (int)sizeof(w->pattern))
        w->pattern[0] = '\0';
}

void nccl_watch_init(struct nccl_watch *w, const char *file)
{
    w->since = clock_wall_s();
    make_pattern(w, file);
}

void nccl_watch_deinit(struct nccl_watch *w)
{
    for (size_t i = 0; i < w->n_files; i++)
        free(w->files[i].path);
    w->n_files = 0;
}

/* ---- files ---------------------------------------------------------------------------------- */

static bool has_file(const struct nccl_watch *w, const char *path)
{
    for (size_t i = 0; i < w->n_files; i++)
        if (strcmp(w->files[i].path, path) == 0)
            return true;
    return false;
}

static void find_files(struct nccl_watch *w)
{
    glob_t found;
    struct stat st;

    if (w->pattern[0] == '\0' || glob(w->pattern, GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc && w->n_files < NCCL_WATCH_FILES_MAX; i++) {
        const char *path = found.gl_pathv[i];
        char *copy;

        if (has_file(w, path) || stat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
            st.st_mtime < w->since)
            continue;
        copy = strdup(path);
        if (copy)
            w->files[w->n_files++] = (struct nccl_watch_file){.path = copy};
    }
    globfree(&found);
}

static void take_line(
    struct nccl_watch *w, struct nccl_watch_file *file, const char *line, size_t len)
{
    enum nccl_fault_kind kind;

    if (!file->is_done)
        file->is_done = !nccl_log_take(&file->log, line, len);
    (void)nccl_faults_take(&w->faults, line, len, &kind);
}

/* Takes in the lines that begin in @buf. Return: bytes of it that are done with. The last line may
 * still be being written; of one that is longer than the buffer the beginning counts. */
static size_t take_lines(
    struct nccl_watch *w, struct nccl_watch_file *file, const char *buf, size_t len, size_t cap)
{
    size_t done = 0;
    const char *end;

    while ((end = memchr(buf + done, '\n', len - done))) {
        take_line(w, file, buf + done, (size_t)(end - buf) - done);
        done = (size_t)(end - buf) + 1;
    }
    if (done > 0 || len < cap)
        return done;
    take_line(w, file, buf, len);
    return len;
}

/* Takes in what is new. */
static void read_lines(struct nccl_watch *w, struct nccl_watch_file *file)
{
    _cleanup_(closep) int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char buf[LINE_MAX_LEN];
    size_t all = 0;

    while (fd >= 0 && all < LOOK_BYTES_MAX) {
        ssize_t n = pread(fd, buf, sizeof(buf), (off_t)file->offset);
        size_t done = n > 0 ? take_lines(w, file, buf, (size_t)n, sizeof(buf)) : 0;

        if (done == 0)
            return;
        file->offset += done;
        all += done;
    }
}

/* NCCL goes on writing where it was: what was emptied stays a hole, of no blocks. */
static void empty(struct nccl_watch_file *file)
{
    struct stat st;

    if (stat(file->path, &st) < 0 || (long long)st.st_blocks * 512 <= LOG_BYTES_MAX)
        return;
    file->offset = (uint64_t)st.st_size;
    if (truncate(file->path, 0) < 0)
        (void)unlink(file->path);
}

/* ---- what they say -------------------------------------------------------------------------- */

/* Judges a log whose network is known. Return: NOTHING when the sentence was the last one, too. */
static enum nccl_watch_event assess(struct nccl_watch *w, const struct nccl_log *log)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    enum nccl_log_verdict verdict =
        nccl_log_assess(log, w->wanted, w->n_devices, w->interface, &out);
    bool is_new = strncmp(str_text(&out), w->said, sizeof(w->said) - 1) != 0;

    (void)snprintf(w->said, sizeof(w->said), "%s", str_text(&out));
    w->is_other |= verdict == NCCL_LOG_OTHER;
    if (is_new && verdict == NCCL_LOG_OTHER)
        nccl_faults_note(&w->faults, NCCL_FAULT_NETWORK, w->said);
    w->verdict = verdict;
    memcpy(w->network, log->network, sizeof(w->network));
    if (!is_new)
        return NCCL_WATCH_NOTHING;
    return verdict == NCCL_LOG_WANTED ? NCCL_WATCH_WANTED : NCCL_WATCH_OTHER;
}

/* Is there a kind of fault that was not said yet? The first such is in @fault then. Which network
 * NCCL uses is said as that. */
static bool has_new_fault(struct nccl_watch *w)
{
    for (unsigned i = NCCL_FAULT_NETWORK + 1; i < NCCL_FAULT_N; i++)
        if (w->faults.kinds[i].n > 0 && !(w->said_faults & (1u << i))) {
            w->said_faults |= 1u << i;
            memcpy(w->fault, w->faults.kinds[i].text, sizeof(w->fault));
            return true;
        }
    return false;
}

enum nccl_watch_event nccl_watch_look(struct nccl_watch *w)
{
    enum nccl_watch_event event = NCCL_WATCH_NOTHING;

    find_files(w);
    for (size_t i = 0; i < w->n_files && event == NCCL_WATCH_NOTHING; i++) {
        struct nccl_watch_file *file = &w->files[i];
        bool was_done = file->is_done;

        read_lines(w, file);
        if (!was_done && file->log.network[0] != '\0')
            event = assess(w, &file->log);
        if (w->is_ours && file->is_done)
            empty(file);
    }
    if (event == NCCL_WATCH_NOTHING && has_new_fault(w))
        event = NCCL_WATCH_FAULT;
    return event;
}

bool nccl_watch_has_verdict(const struct nccl_watch *w)
{
    for (size_t i = 0; i < w->n_files; i++)
        if (w->files[i].log.network[0] != '\0')
            return true;
    return false;
}

bool nccl_watch_explain_failure(struct nccl_watch *w)
{
    if (nccl_watch_has_verdict(w))
        return false;
    for (size_t i = 0; i < w->n_files; i++)
        if (w->files[i].log.cause[0] != '\0') {
            (void)assess(w, &w->files[i].log);
            return true;
        }
    return false;
}
