/* nccl_watch.c - see nccl_watch.h. */
#include "train/job/nccl_watch.h"

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
 * A log of ours that has grown beyond this is emptied. What is needed stands in the first lines; a
 * job that makes communicators again and again could otherwise fill the disk.
 */
#define LOG_BYTES_MAX (64ll << 20)

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

/* Takes in the whole lines that are new. The last line may still be being written. */
static void read_lines(struct nccl_watch_file *file)
{
    char line[4096];
    _cleanup_(fclosep) FILE *f = fopen(file->path, "re");

    if (!f)
        return;
    if (fseeko(f, (off_t)file->offset, SEEK_SET) == 0) {
        while (!file->is_done && fgets(line, sizeof(line), f)) {
            size_t len = strlen(line);

            if (len == 0 || (line[len - 1] != '\n' && len + 1 < sizeof(line)))
                break;
            file->offset += len;
            file->is_done = !nccl_log_take(&file->log, line, strcspn(line, "\n"));
        }
    }
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
    w->verdict = verdict;
    memcpy(w->network, log->network, sizeof(w->network));
    if (!is_new)
        return NCCL_WATCH_NOTHING;
    return verdict == NCCL_LOG_WANTED ? NCCL_WATCH_WANTED : NCCL_WATCH_OTHER;
}

enum nccl_watch_event nccl_watch_look(struct nccl_watch *w)
{
    enum nccl_watch_event event = NCCL_WATCH_NOTHING;

    find_files(w);
    for (size_t i = 0; i < w->n_files && event == NCCL_WATCH_NOTHING; i++) {
        struct nccl_watch_file *file = &w->files[i];
        struct stat st;

        if (!file->is_done) {
            read_lines(file);
            if (file->log.network[0] != '\0')
                event = assess(w, &file->log);
        } else if (w->is_ours && stat(file->path, &st) == 0 &&
                   (long long)st.st_blocks * 512 > LOG_BYTES_MAX) {
            /* NCCL goes on writing where it was: what was emptied stays a hole, of no blocks. */
            if (truncate(file->path, 0) < 0)
                (void)unlink(file->path);
        }
    }
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
