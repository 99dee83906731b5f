/* options.c - see options.h. */
#include "options.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "cmd/cmd.h"
#include "net/socket/unix_socket.h"
#include "os/log.h"

/* Most rows of a table; store() asserts it. */
#define OPTIONS_MAX 64

/* Where the help's second column starts. */
#define HELP_COLUMN 28
#define HELP_WIDTH  80

void option_list_deinit(struct option_list *l)
{
    free(l->items);
    *l = (struct option_list){0};
}

void options_scrub(const char *word)
{
    /* The words of argv may be written (C11 5.1.2.2.1); options only borrow them as const. */
    if (word)
        memset((char *)(uintptr_t)word, 'x', strlen(word));
}

static bool is_positional(const struct option *o)
{
    return o->name[0] != '-';
}

static int refuse_empty(const struct option *o, struct err *e)
{
    return err_set(
        e, -EINVAL, "%s is empty%s%s", o->name, o->arg ? ": it takes " : "", o->arg ? o->arg : "");
}

/* An empty one is most often a variable of a script that was not set. */
int option_text(const struct option *o, const char *text, struct err *e)
{
    if (text[0] == '\0')
        return refuse_empty(o, e);
    *(const char **)o->field = text;
    return 0;
}

int option_socket(const struct option *o, const char *text, struct err *e)
{
    size_t max = o->max > 0 ? o->max : UNIX_SOCKET_PAIR_PATH_MAX;

    if (strlen(text) > max)
        return err_set(e, -EINVAL, "%s \"%.20s...\" is too long: %zu bytes, and %zu are allowed",
            o->name, text, strlen(text), max);
    return option_text(o, text, e);
}

int option_name(const struct option *o, const char *text, struct err *e)
{
    int r = parse_name(text, o->name, e);

    if (r == 0)
        *(const char **)o->field = text;
    return r;
}

int option_word(const struct option *o, const char *text, struct err *e)
{
    size_t len = strlen(text);

    for (const char *word = o->words; *word; word += strspn(word, ", ")) {
        size_t n = strcspn(word, ", ");

        if (n == len && memcmp(word, text, n) == 0) {
            *(const char **)o->field = text;
            return 0;
        }
        word += n;
    }
    return err_set(e, -EINVAL, "%s \"%.40s\" is none of %s", o->name, text, o->words);
}

int option_log_level(const struct option *o, const char *text, struct err *e)
{
    enum log_level level = log_level_parse(text);

    if (level == LOG_LEVEL_N)
        return err_set(
            e, -EINVAL, "%s \"%.40s\" is none of error, warning, info, debug", o->name, text);
    *(enum log_level *)o->field = level;
    return 0;
}

int option_flag(const struct option *o, const char *text, struct err *e)
{
    *(bool *)o->field = true;
    return 0;
}

int option_u64(const struct option *o, const char *text, struct err *e)
{
    return parse_u64(o->field, text, o->min, o->max ? o->max : UINT64_MAX, o->name, e);
}

int option_duration(const struct option *o, const char *text, struct err *e)
{
    return parse_duration(
        o->field, text, (nsec_t)o->min, o->max ? (nsec_t)o->max : INT64_MAX, o->name, e);
}

int option_rate(const struct option *o, const char *text, struct err *e)
{
    return parse_rate(o->field, text, o->name, e);
}

int option_append(const struct option *o, const char *text, struct err *e)
{
    struct option_list *l = o->field;
    const char **items;

    /* A command may have empty words. */
    if (text[0] == '\0' && !is_positional(o))
        return refuse_empty(o, e);
    items = realloc(l->items, (l->n + 1) * sizeof(*items));
    if (!items)
        return err_set(e, -ENOMEM, "no memory for %s", o->name);
    l->items = items;
    l->items[l->n++] = text;
    return 0;
}

/* The state of one reading: which rows of the table have been given. */
struct reading {
    const struct option *table; /* borrowed */
    bool given[OPTIONS_MAX];    /* row by row */
};

static int store(struct reading *rd, const struct option *o, const char *text, struct err *e)
{
    size_t row = (size_t)(o - rd->table);

    assert(row < OPTIONS_MAX);
    if (rd->given[row] && !o->many)
        return err_set(e, -EINVAL, "%s is given twice", o->name);
    rd->given[row] = true;
    if (o->given)
        *o->given = o->name;
    return o->parse(o, text, e);
}

/* The row of "--name" or "--name=value"; NULL if there is none. */
static const struct option *find_option(const struct option *table, const char *word)
{
    size_t len = strcspn(word, "=");

    for (const struct option *o = table; o->name; o++)
        if (!is_positional(o) && strlen(o->name) == len && memcmp(o->name, word, len) == 0)
            return o;
    return NULL;
}

static const struct option *next_positional(const struct reading *rd)
{
    for (const struct option *o = rd->table; o->name; o++)
        if (is_positional(o) && (o->many || !rd->given[o - rd->table]))
            return o;
    return NULL;
}

/* The longest word that is compared with the name of a command or an option. */
#define MEANT_MAX 24

/*
 * How many letters @a and @b differ by; two that are swapped are one. Neither is longer than
 * MEANT_MAX. @row[i][j] is that of the first i letters of @a and the first j of @b.
 */
static size_t count_differences(const char *a, const char *b)
{
    size_t row[MEANT_MAX + 1][MEANT_MAX + 1];
    size_t n_a = strlen(a);
    size_t n_b = strlen(b);

    for (size_t i = 0; i <= n_a; i++)
        row[i][0] = i;
    for (size_t j = 0; j <= n_b; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= n_a; i++)
        for (size_t j = 1; j <= n_b; j++) {
            size_t least = row[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

            if (row[i - 1][j] + 1 < least)
                least = row[i - 1][j] + 1;
            if (row[i][j - 1] + 1 < least)
                least = row[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                row[i - 2][j - 2] + 1 < least)
                least = row[i - 2][j - 2] + 1;
            row[i][j] = least;
        }
    return row[n_a][n_b];
}

/* How many letters a word of @len may differ by from the name that is meant. */
static size_t count_allowed(size_t len)
{
    return len > 5 ? 2 : len > 2 ? 1 : 0;
}

/*
 * The option that somebody means who typed @word, of which the first @len characters name it: the
 * only one that begins so, or else the one that is nearest. NULL: none, or several.
 */
static const struct option *find_meant(const struct option *table, const char *word, size_t len)
{
    size_t allowed = count_allowed(len - strspn(word, "-"));
    const struct option *nearest = NULL;
    const struct option *begun = NULL;
    char typed[MEANT_MAX + 1];
    unsigned n_nearest = 0;
    unsigned n_begun = 0;

    if (len > MEANT_MAX)
        return NULL;
    memcpy(typed, word, len);
    typed[len] = '\0';
    for (const struct option *o = table; o->name; o++) {
        size_t n;

        if (is_positional(o) || strlen(o->name) > MEANT_MAX)
            continue;
        if (len > strlen("--x") && strncmp(o->name, typed, len) == 0) {
            begun = o;
            n_begun++;
        }
        n = count_differences(typed, o->name);
        if (n > allowed)
            continue;
        n_nearest = n < allowed ? 1 : n_nearest + 1;
        nearest = o;
        allowed = n;
    }
    return n_begun == 1 ? begun : n_nearest == 1 ? nearest : NULL;
}

static int read_option(struct reading *rd, int argc, char **argv, int *i, struct err *e)
{
    const char *word = argv[*i];
    const struct option *o = find_option(rd->table, word);
    const char *value = strchr(word, '=');
    const struct option *meant;

    if (!o) {
        meant = find_meant(rd->table, word, strcspn(word, "="));
        if (!meant)
            return err_set(e, -EINVAL, "there is no option \"%.60s\"", word);
        return err_set(
            e, -EINVAL, "there is no option \"%.60s\" (did you mean \"%s\"?)", word, meant->name);
    }
    if (is_positional(o) || !o->arg)
        return value ? err_set(e, -EINVAL, "%s takes no value", o->name) : store(rd, o, NULL, e);
    if (value)
        return store(rd, o, value + 1, e);
    if (*i + 1 >= argc)
        return err_set(e, -EINVAL, "%s needs a value: %s %s", o->name, o->name, o->arg);
    *i += 1;
    return store(rd, o, argv[*i], e);
}

int options_read(const struct option_usage *usage, int argc, char **argv, struct err *e)
{
    struct reading rd = {.table = usage->options};
    bool only_positionals = false;
    int r = 0;

    for (const struct option *o = rd.table; r == 0 && o->name; o++)
        if (o->dflt)
            r = o->parse(o, o->dflt, e);
    for (int i = 1; r == 0 && i < argc; i++) {
        const struct option *o;

        if (!only_positionals && strcmp(argv[i], "--") == 0) {
            only_positionals = true;
            continue;
        }
        if (!only_positionals && strcmp(argv[i], "--help") == 0)
            return OPTIONS_E_HELP;
        if (!only_positionals && argv[i][0] == '-' && argv[i][1] != '\0') {
            r = read_option(&rd, argc, argv, &i, e);
            continue;
        }
        o = next_positional(&rd);
        if (!o)
            return err_set(e, -EINVAL, "\"%.60s\" is one argument too many", argv[i]);
        r = store(&rd, o, argv[i], e);
        only_positionals |= o->is_command;
    }
    for (const struct option *o = rd.table; r == 0 && o->name; o++)
        if (o->is_required && !rd.given[o - rd.table])
            r = err_set(e, -EINVAL, "%s is missing: %s", o->name, o->help);
    return r;
}

/* Prints @text, whose first line begins in HELP_COLUMN, broken at blanks before HELP_WIDTH. */
static void print_wrapped(const char *text)
{
    size_t space = HELP_WIDTH - HELP_COLUMN;

    while (strlen(text) > space) {
        size_t len = space;

        while (len > 0 && text[len] != ' ')
            len--;
        if (len == 0)
            len = strcspn(text, " ");
        (void)printf("%.*s\n%*s", (int)len, text, HELP_COLUMN, "");
        text += len + strspn(text + len, " ");
    }
    (void)printf("%s\n", text);
}

static void print_row(const struct option *o)
{
    char left[64];
    char right[512];
    int n =
        snprintf(left, sizeof(left), "%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");

    if (n > HELP_COLUMN - 3)
        (void)printf("  %s\n%*s", left, HELP_COLUMN, "");
    else
        (void)printf("  %-*s", HELP_COLUMN - 2, left);
    (void)snprintf(right, sizeof(right), "%s%s%s%s%s", o->help, o->dflt ? " (default " : "",
        o->dflt ? o->dflt : "", o->dflt ? ")" : "",
        o->many && !is_positional(o) ? " (may be repeated)" : "");
    print_wrapped(right);
}

/* "NAME" or "[NAME...]" for each positional argument; the words of a command come last. */
static void print_usage(const struct option_usage *usage)
{
    const struct option *command = NULL;

    (void)printf("usage: weft %s", usage->command);
    for (const struct option *o = usage->options; o->name; o++)
        if (o->is_command)
            command = o;
        else if (is_positional(o))
            (void)printf(o->is_required ? " %s%s" : " [%s%s]", o->name, o->many ? "..." : "");
    (void)printf(" [OPTION...]");
    if (command)
        (void)printf(" [--] %s...", command->name);
    (void)printf("\n\n%s\n\n", usage->summary);
}

bool options_parse(const struct option_usage *usage, int argc, char **argv, int *ret_status)
{
    struct err e = ERR_NULL;
    int r = options_read(usage, argc, argv, &e);

    if (r == 0)
        return false;
    if (r == OPTIONS_E_HELP) {
        print_usage(usage);
        for (const struct option *o = usage->options; o->name; o++)
            print_row(o);
        (void)printf("  %-*s%s\n", HELP_COLUMN - 2, "--help", "this text");
        if (usage->notes)
            (void)printf("\n%s\n", usage->notes);
        *ret_status = CMD_OK;
        return true;
    }
    (void)fprintf(stderr, "weft %s: %s; \"weft %s --help\" lists the options\n", usage->command,
        err_text(&e), usage->command);
    *ret_status = CMD_USAGE;
    return true;
}

static void print_subcommands(FILE *out, const char *word, const struct option_subcommand *table)
{
    (void)fprintf(out, "usage: weft %s COMMAND [ARGUMENT...]\n\n", word);
    for (; table->name; table++)
        (void)fprintf(out, "  %-10s %s\n", table->name, table->help);
    (void)fprintf(out, "\n\"weft %s COMMAND --help\" tells a command's own options.\n", word);
}

/* What other programs call a command by which it is known here. */
static bool is_called(const char *word, const char *name)
{
    static const struct {
        const char *elsewhere;
        const char *here;
    } words[] = {{"list", "ls"}, {"show", "ls"}, {"remove", "rm"}, {"delete", "rm"}, {"del", "rm"},
        {"create", "add"}, {"create", "new"}, {"add", "new"}, {"new", "add"}, {"start", "up"},
        {"peers", "nodes"}, {"ps", "jobs"}, {"top", "status"}, {"ping", "probe"}};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(word, words[i].elsewhere) == 0 && strcmp(name, words[i].here) == 0)
            return true;
    return false;
}

const char *options_meant(const struct option_subcommand *table, const char *word)
{
    const size_t len = strlen(word);
    size_t allowed = count_allowed(len);
    const char *meant = NULL;

    for (const struct option_subcommand *s = table; s->name; s++) {
        size_t n;

        if (!s->help)
            continue;
        if (is_called(word, s->name))
            return s->name;
        if (len > MEANT_MAX || strlen(s->name) > MEANT_MAX)
            continue;
        n = count_differences(word, s->name);
        if (n > allowed || (meant && n == allowed))
            continue;
        meant = s->name;
        allowed = n;
    }
    return meant;
}

const struct option_subcommand *options_find(
    const char *word, const struct option_subcommand *table, const char *typed)
{
    const char *blank = word[0] ? " " : "";
    const char *meant;

    for (const struct option_subcommand *s = table; s->name; s++)
        if (strcmp(typed, s->name) == 0)
            return s;
    meant = options_meant(table, typed);
    (void)fprintf(stderr, "weft%s%s: \"%.40s\" is not a command; ", blank, word, typed);
    if (meant)
        (void)fprintf(stderr, "did you mean \"weft%s%s %s\"?\n", blank, word, meant);
    else
        (void)fprintf(stderr, "\"weft%s%s --help\" lists them\n", blank, word);
    return NULL;
}

int options_dispatch(const char *word, const struct option_subcommand *table, int argc, char **argv)
{
    const struct option_subcommand *s;
    int status;

    if (argc < 2) {
        print_subcommands(stderr, word, table);
        return CMD_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0) {
        print_subcommands(stdout, word, table);
        return CMD_OK;
    }
    s = options_find(word, table, argv[1]);
    if (!s)
        return CMD_USAGE;
    if (s->usage && options_parse(s->usage, argc - 1, argv + 1, &status))
        return status;
    return s->run(argc - 1, argv + 1);
}
