/*
 * options.h - one table per command: the parser, the defaults and --help.
 *
 *     static struct {
 *         const char *network;
 *         nsec_t ttl;
 *         bool json;
 *     } arg;
 *
 *     static const struct option options[] = {
 *         {"--network", "NAME", option_name, &arg.network, "default", "the network to join"},
 *         {"--ttl", "DURATION", option_duration, &arg.ttl, "1h", "how long the token lives",
 *             .min = NSEC_PER_SEC, .max = 30 * 86400 * NSEC_PER_SEC},
 *         {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
 *         OPTIONS_END,
 *     };
 *     static const struct option_usage usage = {
 *         .command = "token new", .summary = "Make a join token.", .options = options};
 *
 *     if (options_parse(&usage, argc, argv, &status))
 *         return status;
 *
 * A name that starts with "-" is an option; one that does not ("TOKEN") is a
 * positional argument, taken in the order of the table. Values come as
 * "--ttl 1h" or "--ttl=1h". "--" ends the options. Texts are borrowed from
 * argv, which outlives every command.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct option;

/** Stores @text in the option's field. 0, or negative errno with words. @text is NULL for flags. */
typedef int option_fn(const struct option *o, const char *text, struct err *e);

struct option {
    const char *name;   /* "--ttl", or "TOKEN" for a positional argument */
    const char *arg;    /* the value's word in the help; NULL for flags and positionals */
    option_fn *parse;   /* text to field */
    void *field;        /* pins: what @parse fills, see there */
    const char *dflt;   /* parsed first, and shown in the help; NULL: none */
    const char *help;   /* one clause */
    const char *words;  /* for option_word(): what is allowed, as "auto, hub, mesh" */
    uint64_t min;       /* for numbers; ns for durations */
    uint64_t max;       /* inclusive; 0: no bound. Of a socket's path: bytes; 0: as long as leaves
                           room for UNIX_SOCKET_USERS_SUFFIX */
    bool is_required;   /* its absence is an error; else the default, or the field as it was */
    const char **given; /* set to the name when the option is given; rows may share it */
    bool many;          /* may be given more than once; a positional takes all the rest */
    bool is_command;    /* positional, with @many: from its first word on nothing is ours */
};

#define OPTIONS_END {0}

/** What a command takes. */
struct option_usage {
    const char *command;          /* "token new" */
    const char *summary;          /* one sentence */
    const struct option *options; /* borrowed; ends with OPTIONS_END */
    const char *notes;            /* more text below the options; NULL: none */
};

/** Texts of an option that may be given more than once. */
struct option_list {
    const char **items; /* owns the array; borrows the texts */
    size_t n;           /* how many */
};

/** option_list_deinit() - release the array. */
void option_list_deinit(struct option_list *l);

/* Parsers, by the type of the field that they fill. */
option_fn option_text, option_socket, option_name, option_word; /* const char *; a text is not "" */
option_fn option_flag;                                          /* bool */
option_fn option_u64, option_rate;                              /* uint64_t */
option_fn option_duration;                                      /* nsec_t */
option_fn option_log_level;                                     /* enum log_level */
option_fn option_append;                                        /* struct option_list */

/**
 * options_scrub() - overwrite a secret among the words of the command line
 * @word:	from argv; NULL is fine. Copy it before
 *
 * Every user of the machine can read /proc/PID/cmdline. Until this call the
 * secret can be seen there, so a file or standard input is the better way.
 */
void options_scrub(const char *word);

/**
 * options_parse() - fill in the fields from the command line
 * @argv:	@argc texts; argv[0] is the command's last word and is not looked at
 * @ret_status:	the exit status, set when the command has to end now
 *
 * "--help" prints the usage on standard output. A mistake prints one sentence
 * and the way to the help on standard error.
 *
 * Return: true when the command must return *@ret_status.
 */
bool options_parse(const struct option_usage *usage, int argc, char **argv, int *ret_status);

/**
 * options_read() - the same without printing, for tests
 *
 * Return: 0; OPTIONS_E_HELP; or negative errno with the sentence.
 */
int options_read(const struct option_usage *usage, int argc, char **argv, struct err *e);

/** The person asked for --help. */
#define OPTIONS_E_HELP 1

/** One of several commands that share a first word: "token" has "new". */
struct option_subcommand {
    const char *name;                  /* the second word; NULL ends the table */
    int (*run)(int argc, char **argv); /* argv[0] is the second word */
    const char *help;                  /* one line; NULL: not listed */
    const struct option_usage *usage;  /* parsed before @run; NULL: @run does that itself */
};

/**
 * options_meant() - the command of @table that somebody means who typed @word
 *
 * That is one that differs by a letter or, in long words, two (left out, put in, other, or swapped
 * with the next), or one that other programs call so: "list" where there is "ls". Rows without a
 * help are never meant.
 *
 * Return: its name, borrowed from @table; NULL: none.
 */
const char *options_meant(const struct option_subcommand *table, const char *word);

/**
 * options_find() - the command of @table that is called @typed
 * @word:	the first word ("token"); "" where @typed itself is that
 *
 * Return: lent from @table; NULL, after a sentence on standard error.
 */
const struct option_subcommand *options_find(
    const char *word, const struct option_subcommand *table, const char *typed);

/**
 * options_dispatch() - run the subcommand that argv[1] names
 * @word:	the first word ("token")
 *
 * Without a second word, or with an unknown one, a message is printed.
 *
 * Return: the exit status.
 */
int options_dispatch(
    const char *word, const struct option_subcommand *table, int argc, char **argv);
