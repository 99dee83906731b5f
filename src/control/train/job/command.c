/* command.c - see command.h. */
#include "train/job/command.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

/* Longest path of a script behind a wrapper, with its zero. */
#define SCRIPT_NAME_MAX 1024

static const char *const kind_names[] = {
    [COMMAND_KIND_PLAIN] = "command",
    [COMMAND_KIND_TORCHRUN] = "torchrun",
    [COMMAND_KIND_ACCELERATE] = "accelerate",
    [COMMAND_KIND_DEEPSPEED] = "deepspeed",
    [COMMAND_KIND_MPI] = "mpirun",
};
_Static_assert(sizeof(kind_names) / sizeof(*kind_names) == COMMAND_KIND_N, "a name for each kind");

/* The launchers, by the name of the program or of the module that `python -m` runs. */
static const struct {
    const char *name;
    enum command_kind kind;
} launchers[] = {
    {"torchrun", COMMAND_KIND_TORCHRUN},
    {"torch.distributed.run", COMMAND_KIND_TORCHRUN},
    {"torch.distributed.launch", COMMAND_KIND_TORCHRUN},
    {"accelerate", COMMAND_KIND_ACCELERATE},
    {"accelerate-launch", COMMAND_KIND_ACCELERATE},
    {"accelerate.commands.launch", COMMAND_KIND_ACCELERATE},
    {"deepspeed", COMMAND_KIND_DEEPSPEED},
    {"deepspeed.launcher.runner", COMMAND_KIND_DEEPSPEED},
    {"mpirun", COMMAND_KIND_MPI},
    {"mpiexec", COMMAND_KIND_MPI},
    {"orterun", COMMAND_KIND_MPI},
    {"prterun", COMMAND_KIND_MPI},
    {"mpirun.openmpi", COMMAND_KIND_MPI},
    {"mpiexec.openmpi", COMMAND_KIND_MPI},
    {"mpirun.mpich", COMMAND_KIND_MPI},
    {"mpiexec.mpich", COMMAND_KIND_MPI},
    {"mpiexec.hydra", COMMAND_KIND_MPI},
};

/* The options of torchrun that take no value. All its other options take one. */
static const char *const torchrun_flags[] = {"standalone", "m", "module", "no_python", "run_path",
    "use_env", "h", "help", "virtual_local_rank", "signals_to_handle_all"};

/* Those that take one, of torch 1.13 to 2.9 (torch/distributed/run.py, get_args_parser). Another
 * word that begins with a dash may be an abbreviation, or of a later torch. */
static const char *const torchrun_values[] = {"nnodes", "nproc_per_node", "rdzv_backend",
    "rdzv_endpoint", "rdzv_id", "rdzv_conf", "max_restarts", "monitor_interval", "start_method",
    "event_log_handler", "role", "log_dir", "r", "redirects", "t", "tee", "local_ranks_filter",
    "duplicate_stdout_filters", "duplicate_stderr_filters", "node_rank", "master_addr",
    "master_port", "local_addr", "logs_specs", "numa_binding", "signals_to_handle"};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static enum command_kind kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof(launchers) / sizeof(*launchers); i++)
        if (strcmp(name, launchers[i].name) == 0)
            return launchers[i].kind;
    return COMMAND_KIND_PLAIN;
}

/* Is it python, python3, python3.11 or the like? */
static bool is_python(const char *name)
{
    return strncmp(name, "python", 6) == 0 && strspn(name + 6, "0123456789.") == strlen(name + 6);
}

static bool is_python_file(const char *word)
{
    size_t len = word ? strlen(word) : 0;

    return len > 3 && word[0] != '-' && strcmp(word + len - 3, ".py") == 0;
}

/* What python's own options say it runs. */
struct python {
    char *const *rest;  /* the words after them, and after -m and its module */
    const char *module; /* of -m; NULL: none */
    const char *code;   /* of -c; NULL: none */
};

/* Takes one word of short options, as in "-u", "-um MODULE" or "-Xdev". */
static void take_python_option(struct python *p, const char *word)
{
    const char *letter = word + 1 + strcspn(word + 1, "mcXW");
    const char *value;

    if (word[1] == '-') {
        if (strcmp(word, "--check-hash-based-pycs") == 0 && *p->rest)
            p->rest++;
        return;
    }
    if (*letter == '\0')
        return;
    value = letter[1] != '\0' ? letter + 1 : *p->rest;
    if (letter[1] == '\0' && *p->rest)
        p->rest++;
    if (*letter == 'm')
        p->module = value;
    if (*letter == 'c')
        p->code = value;
}

static struct python read_python(char *const *words)
{
    struct python p = {.rest = words};

    while (*p.rest && (*p.rest)[0] == '-' && (*p.rest)[1] != '\0' && !p.module && !p.code)
        take_python_option(&p, *p.rest++);
    return p;
}

/* ---- torchrun's options --------------------------------------------------------------------- */

/*
 * Is @word the option @name? @name has underscores, where @word may also have dashes. @ret_value:
 * set to the text after "=", or to NULL when there is no "=".
 */
static bool is_option(const char *word, const char *name, const char **ret_value)
{
    size_t dashes = strspn(word, "-");
    const char *w = word + dashes;

    *ret_value = NULL;
    if (dashes == 0 || dashes > 2)
        return false;
    for (; *name != '\0'; name++, w++)
        if (*w != *name && !(*w == '-' && *name == '_'))
            return false;
    if (*w == '=')
        *ret_value = w + 1;
    return *w == '\0' || *w == '=';
}

/* Is it one of the @n @names? */
static bool is_one_of(const char *word, const char *const names[], size_t n)
{
    const char *value;

    for (size_t i = 0; i < n; i++)
        if (is_option(word, names[i], &value))
            return true;
    return false;
}

static bool is_flag(const char *word)
{
    return is_one_of(word, torchrun_flags, sizeof(torchrun_flags) / sizeof(*torchrun_flags));
}

static bool takes_value(const char *word)
{
    return is_one_of(word, torchrun_values, sizeof(torchrun_values) / sizeof(*torchrun_values));
}

/* Options after which the script is a module, or a program that is looked for as shells do. */
static bool is_no_file(const char *word)
{
    static const char *const names[] = {"m", "module", "no_python"};

    return is_one_of(word, names, sizeof(names) / sizeof(*names));
}

/* Notes what one option of torchrun says. @next is the word after it, or NULL. */
static void take_torchrun_option(struct command *c, const char *word, const char *next)
{
    static const char *const meeting[] = {
        "rdzv_endpoint", "master_addr", "master_port", "node_rank", "standalone"};
    const char *value;

    for (size_t i = 0; i < sizeof(meeting) / sizeof(*meeting); i++)
        c->says_meeting |= is_option(word, meeting[i], &value);
    if (is_option(word, "nnodes", &value))
        c->nnodes = value ? value : next;
    if (is_option(word, "rdzv_backend", &value))
        c->backend = value ? value : next;
    if (is_option(word, "rdzv_id", &value))
        c->rdzv_id = value ? value : next;
    c->says_local_addr |= is_option(word, "local_addr", &value);
    c->says_rdzv_conf |= is_option(word, "rdzv_conf", &value);
    c->says_max_restarts |= is_option(word, "max_restarts", &value);
    c->says_streams |= is_option(word, "redirects", &value) || is_option(word, "r", &value) ||
                       is_option(word, "tee", &value) || is_option(word, "t", &value);
}

static void read_torchrun(struct command *c, char *const *words)
{
    bool is_sure = true;

    while (*words && (*words)[0] == '-') {
        const char *word = *words++;

        if (strcmp(word, "--") == 0)
            break;
        take_torchrun_option(c, word, *words);
        is_sure = is_sure && !is_no_file(word) && (is_flag(word) || takes_value(word));
        if (!is_flag(word) && !strchr(word, '=') && *words)
            words++;
    }
    c->script = *words;
    c->is_file = is_sure && is_python_file(c->script);
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* Finds the script of a command whose options are not known here: the first word in ".py". */
static char *const *find_script(char *const *words)
{
    while (*words && !is_python_file(*words))
        words++;
    return words;
}

/* Does mpirun start python with that script? */
static bool has_python_before(char *const *words, char *const *script)
{
    while (words != script && !is_python(base_name(*words)))
        words++;
    if (words == script)
        return false;
    const struct python p = read_python(words + 1);
    return !p.module && !p.code && p.rest == script;
}

/* Where the options of accelerate or deepspeed begin. @rest: behind the program, or its module. */
static size_t find_options(char *const *words, char *const *rest, const char *name)
{
    if (strcmp(name, "accelerate") != 0)
        return (size_t)(rest - words);
    for (; *rest; rest++)
        if (strcmp(*rest, "launch") == 0)
            return (size_t)(rest + 1 - words);
    return 0;
}

/* The value of an option of theirs; "" for one without; NULL: it is not there. */
static const char *find_value(const struct command *c, const char *name)
{
    const char *value;

    if (c->options_at == 0)
        return NULL;
    for (char *const *w = c->words + c->options_at; *w && *w != c->script; w++)
        if (is_option(*w, name, &value))
            return value ? value : w[1] ? w[1] : "";
    return NULL;
}

bool command_says(const struct command *c, const char *name)
{
    return find_value(c, name) != NULL;
}

/* Is the script's place that of a script, and not behind another word that may be it? */
static bool is_first_word(const struct command *c)
{
    bool follows_option = true;

    for (char *const *w = c->words + c->options_at; *w && *w != c->script; w++) {
        bool is_option_word = (*w)[0] == '-';

        if ((!is_option_word && !follows_option) || is_no_file(*w))
            return false;
        follows_option = is_option_word && !strchr(*w, '=');
    }
    return true;
}

/* What matters of the options of accelerate and deepspeed. */
static void read_theirs(struct command *c)
{
    c->is_file = c->script && c->options_at > 0 && is_first_word(c);
    if (c->kind == COMMAND_KIND_ACCELERATE) {
        c->nnodes = find_value(c, "num_machines");
        c->backend = find_value(c, "rdzv_backend");
        c->says_meeting = command_says(c, "main_process_ip");
    } else {
        c->hostfile = find_value(c, "hostfile");
        if (!c->hostfile)
            c->hostfile = find_value(c, "H");
    }
}

void command_read(struct command *ret, char *const words[])
{
    struct command c = {.program = words[0], .words = words};
    const char *name = base_name(words[0]);
    char *const *rest = words + 1;

    if (is_python(name)) {
        const struct python p = read_python(rest);

        rest = p.rest;
        c.script = p.module ? p.module : p.code ? p.code : *rest;
        c.is_file = !p.module && !p.code && is_python_file(c.script);
        name = p.module ? p.module : "";
    } else {
        c.script = words[0];
    }
    c.kind = kind_of(name);
    if (c.kind == COMMAND_KIND_TORCHRUN)
        read_torchrun(&c, rest);
    else if (c.kind != COMMAND_KIND_PLAIN)
        c.script = *find_script(rest);
    if (c.kind == COMMAND_KIND_MPI)
        c.is_file = c.script && has_python_before(rest, find_script(rest));
    if (c.kind == COMMAND_KIND_ACCELERATE || c.kind == COMMAND_KIND_DEEPSPEED) {
        c.options_at = find_options(words, rest, name);
        read_theirs(&c);
    }
    *ret = c;
}

const char *command_kind_name(enum command_kind kind)
{
    return kind_names[kind];
}

/* Programs that run another one: as many jobs are behind them as there are scripts. */
static bool is_wrapper(const char *name)
{
    static const char *const names[] = {"env", "nice", "ionice", "chrt", "taskset", "numactl",
        "timeout", "time", "stdbuf", "setsid", "nohup", "sudo", "sh", "bash", "dash", "zsh", "ksh",
        "uv", "poetry", "pipenv", "conda", "mamba", "micromamba", "nsys", "strace"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Puts the first script, in ".py" or ".sh", into @ret. A word may hold a whole line, as of `sh -c`.
 */
static bool find_wrapped(char *const *words, char ret[static SCRIPT_NAME_MAX])
{
    static const char between[] = " \t\n;&|()<>\"'`";

    for (; *words; words++)
        for (const char *at = *words; *at != '\0'; at += strspn(at, between)) {
            size_t len = strcspn(at, between);
            const char *end = at + len;

            (void)snprintf(ret, SCRIPT_NAME_MAX, "%.*s", (int)len, at);
            if (len > 3 && len < SCRIPT_NAME_MAX && at[0] != '-' && !strchr(ret, '=') &&
                (strncmp(end - 3, ".py", 3) == 0 || strncmp(end - 3, ".sh", 3) == 0))
                return true;
            at = end;
        }
    return false;
}

const char *command_job_name(const struct command *c, char buf[static 64])
{
    char wrapped[SCRIPT_NAME_MAX];
    const char *stem = c->script ? base_name(c->script) : "";
    size_t n = 0;

    if (c->kind == COMMAND_KIND_PLAIN && is_wrapper(stem) && find_wrapped(c->words + 1, wrapped))
        stem = base_name(wrapped);
    _Static_assert(NAME_MAX_LEN <= 63, "a name fits");
    for (size_t i = 0; stem[i] != '\0' && n < NAME_MAX_LEN; i++) {
        if (strcmp(stem + i, ".py") == 0)
            break;
        if (isalnum((unsigned char)stem[i]))
            buf[n++] = (char)tolower((unsigned char)stem[i]);
        else if (n > 0 && buf[n - 1] != '-')
            buf[n++] = '-';
    }
    while (n > 0 && buf[n - 1] == '-')
        n--;
    buf[n] = '\0';
    if (n == 0)
        (void)snprintf(buf, 64, "job");
    return buf;
}
