/*
 * command.h - finds out from a command's words which launcher it uses and what its options say.
 *
 * Pure: nothing is looked up on disk. `weft run` uses this to decide which
 * variables the command needs. It sets no variable for what the person's own
 * options say already.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum command_kind {
    COMMAND_KIND_PLAIN,      /* a script, or anything not named below */
    COMMAND_KIND_TORCHRUN,   /* torchrun, python -m torch.distributed.run */
    COMMAND_KIND_ACCELERATE, /* accelerate launch */
    COMMAND_KIND_DEEPSPEED,  /* deepspeed */
    COMMAND_KIND_MPI,        /* mpirun and its other names */
    COMMAND_KIND_N,          /* the number of kinds */
};

/** What is known of a command. Texts are borrowed from the words that it was read from. */
struct command {
    enum command_kind kind;
    const char *program;    /* the first word */
    const char *script;     /* the script, program or module that trains; NULL: not found */
    bool is_file;           /* the script is a file in ".py" that Python reads under that name, in
                               the working directory; false where that is not sure */
    const char *nnodes;     /* its own --nnodes; NULL: none */
    const char *backend;    /* its own --rdzv_backend; NULL: none */
    const char *rdzv_id;    /* its own --rdzv_id; NULL: none */
    const char *hostfile;   /* deepspeed's own --hostfile; NULL: none */
    char *const *words;     /* borrowed; all of them, end with NULL */
    size_t options_at;      /* accelerate and deepspeed: index of the first word behind the
                               launcher's name, where its options begin; 0: not known */
    bool says_meeting;      /* its own options say where to meet, or that it runs alone */
    bool says_local_addr;   /* it has --local_addr */
    bool says_rdzv_conf;    /* it has --rdzv_conf */
    bool says_max_restarts; /* it has --max_restarts */
    bool says_streams;      /* it has --redirects or --tee */
};

/**
 * command_read() - find out what a command is, from its words alone
 * @ret:	always set; borrows from @words
 * @words:	the command's words, at least one; the array ends with NULL
 */
void command_read(struct command *ret, char *const words[]);

/** command_says() - does accelerate or deepspeed have that option, without its dashes, before the
 * script? */
bool command_says(const struct command *c, const char *name);

/** command_kind_name() - "torchrun", "accelerate", ...; "command" for a plain one. */
const char *command_kind_name(enum command_kind kind);

/**
 * command_job_name() - the name of a job for which no name was given
 * @buf:	set to the script's file name without ".py", in lower-case letters, digits and
 *		dashes; behind a wrapper, such as nice or sh -c, of the first script in ".py" or
 *		".sh" that its words have; set to "job" when there is no script
 *
 * The same command gives the same name on every node.
 *
 * Return: @buf.
 */
const char *command_job_name(const struct command *c, char buf[static 64]);
