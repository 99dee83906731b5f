/* launcher_words.c - see launcher_words.h. */
#include "train/job/launcher_words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_MAX 64

void launcher_words_deinit(struct launcher_words *lw)
{
    free(lw->items);
    lw->items = NULL;
    lw->n_added = 0;
}

static void add(struct launcher_words *lw, const char *word)
{
    if (lw->n_added < LAUNCHER_WORDS_ADDED_MAX)
        (void)snprintf(lw->added[lw->n_added++], LAUNCHER_WORD_MAX, "%s", word);
}

/* Adds an option, unless the person has it. */
static void add_option(
    struct launcher_words *lw, const struct command *c, const char *name, const char *value)
{
    char word[LAUNCHER_WORD_MAX];

    if (command_says(c, name))
        return;
    (void)snprintf(word, sizeof(word), "--%s", name);
    add(lw, word);
    add(lw, value);
}

/*
 * accelerate hands these to torchrun: HOST:PORT as rdzv_endpoint, unless --same_network has it take
 * them for rank 0's own address. By c10d nodes get their ranks when they meet, so the rank that it
 * wants to be told counts for nothing (accelerate/utils/launch.py, prepare_multi_gpu_env).
 */
static void add_accelerate(struct launcher_words *lw, const struct command *c,
    const struct env_meeting *m, const char *nnodes)
{
    const char *colon = m ? strrchr(m->endpoint, ':') : NULL;
    char host[HOST_MAX];

    if (!colon || !nnodes || strchr(nnodes, ':') || command_says(c, "same_network"))
        return;
    (void)snprintf(host, sizeof(host), "%.*s", (int)(colon - m->endpoint), m->endpoint);
    add_option(lw, c, "num_machines", nnodes);
    add_option(lw, c, "machine_rank", "0");
    add_option(lw, c, "rdzv_backend", m->backend);
    add_option(lw, c, "main_process_ip", host);
    add_option(lw, c, "main_process_port", colon + 1);
    /* As PET_RDZV_CONF has it, which accelerate does not read: else torch looks this machine's own
     * name up, to see whether it is the host, and ends where nothing answers to that name. */
    if (strcmp(m->backend, "c10d") == 0)
        add_option(lw, c, "rdzv_conf", "is_host=false");
}

/* The first host of a hostfile, as deepspeed reads it. False: there is none, or it is too long. */
static bool read_first_host(const char *path, char ret[static HOST_MAX])
{
    char line[256];
    bool begins = true; /* a line: a long one comes in parts */
    size_t len = 0;
    FILE *f = fopen(path, "re");

    while (f && len == 0 && fgets(line, sizeof(line), f)) {
        const char *word = line + strspn(line, " \t");

        if (begins && word[0] != '#')
            len = strcspn(word, " \t\r\n");
        if (len > 0 && len < HOST_MAX)
            (void)snprintf(ret, HOST_MAX, "%.*s", (int)len, word);
        begins = strchr(line, '\n') != NULL;
    }
    if (f)
        (void)fclose(f);
    return len > 0 && len < HOST_MAX;
}

/* Does the person have it leave out hosts of the file? The first one may be among them. */
static bool chooses_hosts(const struct command *c)
{
    return command_says(c, "include") || command_says(c, "i") || command_says(c, "exclude") ||
           command_says(c, "e");
}

/* Without it deepspeed takes the first address that `hostname -I` prints on the first host, which
 * is seldom the overlay's (deepspeed/launcher/runner.py, main). */
static void add_deepspeed(struct launcher_words *lw, const struct command *c)
{
    char host[HOST_MAX];

    if (c->hostfile && !chooses_hosts(c) && read_first_host(c->hostfile, host))
        add_option(lw, c, "master_addr", host);
}

int launcher_words_make(struct launcher_words *ret, char *const words[], const struct command *c,
    const struct env_meeting *meeting, const char *nnodes)
{
    size_t n = 0;
    size_t at = c->options_at;

    *ret = (struct launcher_words)LAUNCHER_WORDS_NULL;
    if (c->kind == COMMAND_KIND_ACCELERATE && at > 0)
        add_accelerate(ret, c, meeting, nnodes);
    else if (c->kind == COMMAND_KIND_DEEPSPEED && at > 0)
        add_deepspeed(ret, c);
    while (words[n])
        n++;
    ret->items = calloc(n + ret->n_added + 1, sizeof(*ret->items));
    if (!ret->items)
        return -ENOMEM;
    memcpy(ret->items, words, at * sizeof(*words));
    for (size_t i = 0; i < ret->n_added; i++)
        ret->items[at + i] = ret->added[i];
    memcpy(ret->items + at + ret->n_added, words + at, (n - at) * sizeof(*words));
    return 0;
}
