/* descendants.c - see descendants.h. */
#include "os/descendants.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* A line of a memory map: addresses, rights and numbers before the file's path. */
#define LINE_MAX_BYTES (PATH_MAX + 128)

/* The processes that were found, of which the first @n_visited were visited. */
struct found {
    int pids[DESCENDANTS_MAX];
    size_t n;
    size_t n_visited;
};

static void add_children(struct found *f, int pid, const char *thread)
{
    char path[64];
    FILE *file;
    int child;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", pid, thread);
    file = fopen(path, "re");
    if (!file)
        return;
    while (f->n < DESCENDANTS_MAX && fscanf(file, "%d", &child) == 1)
        f->pids[f->n++] = child;
    (void)fclose(file);
}

static void add_all_children(struct found *f, int pid)
{
    char path[32];
    const struct dirent *entry;
    DIR *threads;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
    threads = opendir(path);
    if (!threads)
        return;
    while ((entry = readdir(threads)) != NULL)
        if (entry->d_name[0] != '.')
            add_children(f, pid, entry->d_name);
    (void)closedir(threads);
}

void descendants_walk(int pid, descendants_fn fn, void *ctx)
{
    _cleanup_(freep) struct found *f = malloc(sizeof(*f));

    if (!f)
        return;
    f->n = 0;
    f->n_visited = 0;
    add_all_children(f, pid);
    while (f->n_visited < f->n) {
        int next = f->pids[f->n_visited++];

        if (!fn(ctx, next))
            return;
        add_all_children(f, next);
    }
}

const char *descendants_name(int pid, char buf[static 16])
{
    char path[32];
    FILE *f;

    buf[0] = '\0';
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    f = fopen(path, "re");
    if (!f)
        return buf;
    if (fgets(buf, 16, f))
        buf[strcspn(buf, "\n")] = '\0';
    (void)fclose(f);
    return buf;
}

bool descendants_maps(int pid, const char *prefix)
{
    char path[32];
    char line[LINE_MAX_BYTES];
    bool found = false;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    f = fopen(path, "re");
    if (!f)
        return false;
    while (!found && fgets(line, sizeof(line), f)) {
        const char *name = strrchr(line, '/');

        found = name && strncmp(name + 1, prefix, strlen(prefix)) == 0;
    }
    (void)fclose(f);
    return found;
}
