/*
 * command.h - finds out from a command's words which launcher it uses and what its options say.
 *
 * Pure: nothing is looked up on disk. `weft run` uses this to decide which
 * variables the command needs. It sets no variable for what the person's own
 * options say already.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct env_rendezvous;
struct err;
struct str;

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
    bool says_rendezvous;   /* its own options say where to meet, or that it runs alone */
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

/** command_kind_names - "torchrun", "accelerate", ...; "command" for a plain one. */
extern const char *const command_kind_names[];

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

/*
 * Finds out on disk which PyTorch a command will use.
 *
 * Importing torch would take seconds. Instead this reads the version from the
 * name of the metadata directory that every installer puts beside the package.
 * It looks where Python looks: in PYTHONPATH; in the virtual environment that
 * the interpreter belongs to; unless that environment excludes them, in the
 * person's own packages below ~/.local and in the interpreter's prefix. It is no
 * error when torch is not found: a version of 0 means "not known", and is
 * treated as the newest.
 */

#define TORCH_VERSION_MAX 48

/** An interpreter and its torch. */
struct torch_install {
    char python[PATH_MAX];           /* path of the interpreter; "": not found */
    unsigned python_version;         /* major * 100 + minor: 311 is 3.11; 0: not known */
    char version[TORCH_VERSION_MAX]; /* "2.4.1+cu121"; "": not found */
    unsigned torch;                  /* the same as a number: 204 is 2.4; 0: not known */
    unsigned nccl;                   /* minor of the NCCL 2 beside it: 21 is 2.21; 0: not known */
};

/**
 * torch_parse_metadata() - is @name the metadata directory of an installed torch?
 * @name:	a file name such as "torch-2.4.1+cu121.dist-info"
 * @ret_text:	its version as text; untouched unless true
 * @ret:	major * 100 + minor; untouched unless true
 */
bool torch_parse_metadata(const char *name, char ret_text[static TORCH_VERSION_MAX], unsigned *ret);

/**
 * torch_find() - find the torch that a program would import, without running anything
 * @ret:	always set; what is not found is empty or 0
 * @program:	an interpreter, or a script whose first line names one; given as a path, or as
 *		a name that is looked up in PATH
 */
void torch_find(struct torch_install *ret, const char *program);

/** command_find_program() - the path of the program that execvp(3) would run for @name. False:
 * there is none. */
bool command_find_program(const char *name, char ret[static PATH_MAX]);

/*
 * Is the script of a command on this machine?
 *
 * torchrun says that a script is missing only when all nodes have met, so `weft run` looks before.
 */

/**
 * script_is_missing() - does the command name a script in ".py" that is not there?
 * @torch:	what torch_find() has found for it
 *
 * A relative path is looked for in the working directory, as Python does. Of a script that cannot
 * be looked for, and where it is not sure which word is the script, nothing is said; nor of a
 * launcher that is no Python of this machine, such as a shell script that starts a container.
 */
bool script_is_missing(const struct command *c, const struct torch_install *torch);

/**
 * script_check() - refuse a command whose script is missing
 *
 * That of mpirun and of deepspeed is not refused: they may run it on other machines alone.
 *
 * Return: 0, or -ENOENT with words.
 */
int script_check(const struct command *c, const struct torch_install *torch, struct err *e);

/** script_advise() - append a line if the script is missing. */
void script_advise(const struct command *c, const struct torch_install *torch, struct str *out);

/*
 * What accelerate and deepspeed are told in their own options, for want of a
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

#define LAUNCHER_WORDS_NULL {0}

/** launcher_words_deinit() - release. */
void launcher_words_deinit(struct launcher_words *lw);

/**
 * launcher_words_make() - the words to start
 * @ret:	not to be moved: its words point into it
 * @words:	the person's, of @c; ends with NULL
 * @rendezvous:	where the job meets; NULL: not at the hub
 * @nnodes:	how many nodes take part; NULL: not said
 *
 * Return: 0 or -ENOMEM.
 */
int launcher_words_make(struct launcher_words *ret, char *const words[], const struct command *c,
    const struct env_rendezvous *rendezvous, const char *nnodes);
