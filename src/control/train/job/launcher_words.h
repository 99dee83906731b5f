/*
 * launcher_words.h - what accelerate and deepspeed are told in their own options, for want of a
 * variable that they would read.
 *
 * torchrun takes the meeting place from the environment. These two take it from their command line
 * only, and guess an address of their own without it. So `weft run` adds the options that the
 * person has left out. What the person has said in options is never changed. accelerate takes from
 * its configuration file only what no option says (accelerate/commands/launch.py,
 * _validate_launch_command), so what is added here goes before a place that such a file names: a
 * file that `accelerate config` has written names one always, of another network, and the job would
 * not meet on this one.
 */
#pragma once

#include <stddef.h>

#include "train/job/command.h"
#include "train/job/env.h"

/** Most words that are added. */
#define LAUNCHER_WORDS_ADDED_MAX 12

/** Bytes of an added word, with its zero. */
#define LAUNCHER_WORD_MAX 80

/** A command's words, and those that were added to it. */
struct launcher_words {
    char **items; /* owns the array; borrows the person's words; ends with NULL */
    char added[LAUNCHER_WORDS_ADDED_MAX][LAUNCHER_WORD_MAX]; /* in their order */
    size_t n_added;
};

#define LAUNCHER_WORDS_NULL                                                                        \
    {                                                                                              \
        0                                                                                          \
    }

/** launcher_words_deinit() - release. Idempotent. */
void launcher_words_deinit(struct launcher_words *lw);

/**
 * launcher_words_make() - the words to start
 * @ret:	not to be moved: its words point into it
 * @words:	the person's, of @c; ends with NULL
 * @meeting:	where the job meets; NULL: not at the hub
 * @nnodes:	how many nodes take part; NULL: not said
 *
 * Return: 0 or -ENOMEM.
 */
int launcher_words_make(struct launcher_words *ret, char *const words[], const struct command *c,
    const struct env_meeting *meeting, const char *nnodes);
