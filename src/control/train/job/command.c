/* command.c - see command.h. */
#include "train/job/command.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "os/file.h"
#include "train/job/rendezvous.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Longest path of a script behind a wrapper, with its zero. */
#define SCRIPT_NAME_MAX 1024

const char *const command_kind_names[] = {
    [COMMAND_KIND_PLAIN] = "command",
    [COMMAND_KIND_TORCHRUN] = "torchrun",
    [COMMAND_KIND_ACCELERATE] = "accelerate",
    [COMMAND_KIND_DEEPSPEED] = "deepspeed",
    [COMMAND_KIND_MPI] = "mpirun",
};
_Static_assert(sizeof(command_kind_names) / sizeof(*command_kind_names) == COMMAND_KIND_N,
    "a name for each kind");

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

/* Options after which the script is a module, or a program that is looked for as shells do. */
static bool is_no_file(const char *word)
{
    static const char *const names[] = {"m", "module", "no_python"};

    return is_one_of(word, names, COUNT(names));
}

/* Notes what one option of torchrun says. @next is the word after it, or NULL. */
static void take_torchrun_option(struct command *c, const char *word, const char *next)
{
    static const char *const rendezvous[] = {
        "rdzv_endpoint", "master_addr", "master_port", "node_rank", "standalone"};
    const char *value;

    for (size_t i = 0; i < sizeof(rendezvous) / sizeof(*rendezvous); i++)
        c->says_rendezvous |= is_option(word, rendezvous[i], &value);
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
        bool is_flag = is_one_of(word, torchrun_flags, COUNT(torchrun_flags));

        if (strcmp(word, "--") == 0)
            break;
        take_torchrun_option(c, word, *words);
        is_sure = is_sure && !is_no_file(word) &&
                  (is_flag || is_one_of(word, torchrun_values, COUNT(torchrun_values)));
        if (!is_flag && !strchr(word, '=') && *words)
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
        c->says_rendezvous = command_says(c, "main_process_ip");
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
    for (size_t i = 0; i < COUNT(launchers); i++)
        if (strcmp(name, launchers[i].name) == 0)
            c.kind = launchers[i].kind;
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

/* Programs that run another one: as many jobs are behind them as there are scripts. */
static bool is_wrapper(const char *name)
{
    static const char *const names[] = {"env", "nice", "ionice", "chrt", "taskset", "numactl",
        "timeout", "time", "stdbuf", "setsid", "nohup", "sudo", "sh", "bash", "dash", "zsh", "ksh",
        "uv", "poetry", "pipenv", "conda", "mamba", "micromamba", "nsys", "strace"};

    return parse_word(name, names, sizeof(names) / sizeof(*names)) < sizeof(names) / sizeof(*names);
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

/* ==== which PyTorch a command will use ======================================================= */

#define FIRST_LINE_MAX 512
#define VENV_FILE_MAX  4096

/* ---- names ---------------------------------------------------------------------------------- */

/* Gives major * 100 + minor: 311 for "3.11", 113 for "1.13.0a0". 0 when it is no version. */
static unsigned parse_version(const char *text)
{
    char *end;
    unsigned long major = strtoul(text, &end, 10);
    unsigned long minor;

    if (end == text || *end != '.' || major > 99)
        return 0;
    text = end + 1;
    minor = strtoul(text, &end, 10);
    return end == text || minor > 99 ? 0 : (unsigned)(major * 100 + minor);
}

bool torch_parse_metadata(const char *name, char ret_text[static TORCH_VERSION_MAX], unsigned *ret)
{
    static const char prefix[] = "torch-";
    const char *version = name + sizeof(prefix) - 1;
    const char *end = strstr(name, ".dist-info");
    size_t len;

    if (!end)
        end = strstr(name, ".egg-info");
    if (!end || strncmp(name, prefix, sizeof(prefix) - 1) != 0 || end <= version ||
        parse_version(version) == 0)
        return false;
    len = (size_t)(end - version);
    if (len >= TORCH_VERSION_MAX)
        len = TORCH_VERSION_MAX - 1;
    memcpy(ret_text, version, len);
    ret_text[len] = '\0';
    *ret = parse_version(version);
    return true;
}

/*
 * The minor of the NCCL 2 whose metadata directory is called @name
 *
 * torch's wheels come with NCCL as a package of its own: "nvidia_nccl_cu12-2.21.5.dist-info".
 *
 * Return: 21 for that one; 0 when it is none.
 */
static unsigned torch_parse_nccl(const char *name)
{
    const char *dash = strchr(name, '-');
    unsigned version = dash ? parse_version(dash + 1) : 0;

    if (strncmp(name, "nvidia_nccl_cu", 14) != 0 || !strstr(name, ".dist-info"))
        return 0;
    return version / 100 == 2 ? version % 100 : 0;
}

/* ---- the interpreter ------------------------------------------------------------------------ */

bool command_find_program(const char *name, char ret[static PATH_MAX])
{
    const char *path = getenv("PATH");

    if (strchr(name, '/'))
        return snprintf(ret, PATH_MAX, "%s", name) < PATH_MAX && access(ret, X_OK) == 0;
    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    while (*path != '\0') {
        size_t len = strcspn(path, ":");

        if (snprintf(ret, PATH_MAX, "%.*s/%s", (int)len, path, name) < PATH_MAX &&
            access(ret, X_OK) == 0)
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

/* Reads the first line of a file. False when it does not begin with "#!". */
static bool read_shebang(const char *path, char ret[static FIRST_LINE_MAX])
{
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, FIRST_LINE_MAX - 1);

    if (n < 2 || ret[0] != '#' || ret[1] != '!')
        return false;
    ret[n] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    return true;
}

static bool is_interpreter(const char *path)
{
    return strncmp(base_name(path), "python", 6) == 0;
}

/* Finds the path of @program if it is Python, or of the Python that a script's first line names. */
static bool find_interpreter(const char *program, char ret[static PATH_MAX])
{
    char line[FIRST_LINE_MAX];
    char path[PATH_MAX];
    char *word;
    char *rest = NULL;

    if (!command_find_program(program, path))
        return false;
    if (read_shebang(path, line)) {
        word = strtok_r(line + 2, " \t", &rest);
        if (word && strcmp(word, "/usr/bin/env") == 0)
            word = strtok_r(NULL, " \t", &rest);
        if (!word || !is_interpreter(word) || !command_find_program(word, path))
            return false;
    }
    if (!is_interpreter(path))
        return false;
    memcpy(ret, path, sizeof(path));
    return true;
}

/* ---- packages ------------------------------------------------------------------------------- */

static bool look_in(struct torch_install *t, const char *dir)
{
    DIR *d = opendir(dir);
    bool found = false;

    if (!d)
        return false;
    for (struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
        unsigned nccl = torch_parse_nccl(entry->d_name);

        found = found || torch_parse_metadata(entry->d_name, t->version, &t->torch);
        t->nccl = nccl != 0 ? nccl : t->nccl;
    }
    (void)closedir(d);
    return found;
}

static bool look_in_list(struct torch_install *t, const char *list)
{
    while (list && *list != '\0') {
        size_t len = strcspn(list, ":");
        char dir[PATH_MAX];

        if (snprintf(dir, sizeof(dir), "%.*s", (int)len, list) < (int)sizeof(dir) &&
            look_in(t, dir))
            return true;
        list += len + (list[len] == ':');
    }
    return false;
}

/* Looks for torch in the package folders below one prefix, also in Debian's. */
static bool look_below(struct torch_install *t, const char *prefix)
{
    static const char *const places[] = {"lib/python%u.%u/site-packages",
        "lib64/python%u.%u/site-packages", "local/lib/python%u.%u/dist-packages",
        "lib/python%u/dist-packages"};

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        char place[64];
        char dir[PATH_MAX];

        (void)snprintf(
            place, sizeof(place), places[i], t->python_version / 100, t->python_version % 100);
        if (snprintf(dir, sizeof(dir), "%s/%s", prefix, place) < (int)sizeof(dir) &&
            look_in(t, dir))
            return true;
    }
    return false;
}

/* Gives "/usr" for "/usr/bin/python3". False when the path has fewer than two slashes. */
static bool prefix_of(const char *python, char ret[static PATH_MAX])
{
    char *slash;

    (void)snprintf(ret, PATH_MAX, "%s", python);
    for (int i = 0; i < 2; i++) {
        slash = strrchr(ret, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return true;
}

/* Is @prefix a virtual environment? @ret_open: set to whether it also sees its base's packages. */
static bool is_venv(const char *prefix, bool *ret_open)
{
    char path[PATH_MAX];
    _cleanup_(freep) char *text = NULL;
    bool found;

    *ret_open = false;
    if (snprintf(path, sizeof(path), "%s/pyvenv.cfg", prefix) >= (int)sizeof(path))
        return false;
    found = statefile_read(path, VENV_FILE_MAX, &text, NULL, NULL) == 0;
    if (found)
        *ret_open = strstr(text, "include-system-site-packages = true") != NULL;
    return found;
}

/*
 * Looks for torch where the interpreter does. @python is the path at which the interpreter was
 * found, @real the file to which the symbolic links of that path lead.
 */
static bool find_package(struct torch_install *t, const char *python, const char *real)
{
    const char *home = getenv("HOME");
    char prefix[PATH_MAX];
    char other[PATH_MAX];
    bool sees_base;

    if (look_in_list(t, getenv("PYTHONPATH")))
        return true;
    if (!prefix_of(python, prefix))
        return false;
    if (is_venv(prefix, &sees_base) && (look_below(t, prefix) || !sees_base))
        return t->torch != 0;
    (void)snprintf(other, sizeof(other), "%.*s/.local", PATH_MAX - 8, home ? home : "");
    return look_below(t, other) || look_below(t, prefix) ||
           (prefix_of(real, other) && look_below(t, other));
}

void torch_find(struct torch_install *ret, const char *program)
{
    struct torch_install t = {0};
    char real[PATH_MAX];
    const char *base;

    if (find_interpreter(program, t.python) && realpath(t.python, real)) {
        base = strrchr(real, '/');
        t.python_version = base ? parse_version(base + strlen("/python")) : 0;
        (void)find_package(&t, t.python, real);
    }
    *ret = t;
}

/* ==== is the script there? =================================================================== */

bool script_is_missing(const struct command *c, const struct torch_install *torch)
{
    bool is_python = c->kind == COMMAND_KIND_MPI || torch->python[0] != '\0';
    /* torchrun takes these for what -m and --no_python say. */
    bool says_other =
        c->kind == COMMAND_KIND_TORCHRUN && (getenv("PET_MODULE") || getenv("PET_NO_PYTHON"));

    return c->is_file && is_python && !says_other && access(c->script, F_OK) < 0 &&
           (errno == ENOENT || errno == ENOTDIR);
}

static void say_missing(const struct command *c, struct str *out)
{
    char cwd[PATH_MAX];

    str_addf(out, "the script \"%.200s\" is not there", c->script);
    if (c->script[0] != '/' && getcwd(cwd, sizeof(cwd)))
        str_addf(out, "; it is looked for in %.200s", cwd);
}

int script_check(const struct command *c, const struct torch_install *torch, struct err *e)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;

    if (c->kind == COMMAND_KIND_MPI || c->kind == COMMAND_KIND_DEEPSPEED ||
        !script_is_missing(c, torch))
        return 0;
    say_missing(c, &out);
    return err_set(e, -ENOENT, "%s", str_text(&out));
}

void script_advise(const struct command *c, const struct torch_install *torch, struct str *out)
{
    if (!script_is_missing(c, torch))
        return;
    say_missing(c, out);
    str_add(out, "\n");
}

/* ==== the words of accelerate and deepspeed ================================================== */

#define HOST_MAX 64

void launcher_words_deinit(struct launcher_words *lw)
{
    free(lw->items);
    lw->items = NULL;
    lw->n_added = 0;
}

static void add_word(struct launcher_words *lw, const char *word)
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
    add_word(lw, word);
    add_word(lw, value);
}

/*
 * accelerate hands these to torchrun: HOST:PORT as rdzv_endpoint, unless --same_network has it take
 * them for rank 0's own address. By c10d nodes get their ranks when they meet, so the rank that it
 * wants to be told counts for nothing (accelerate/utils/launch.py, prepare_multi_gpu_env).
 */
static void add_accelerate(struct launcher_words *lw, const struct command *c,
    const struct env_rendezvous *m, const char *nnodes)
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

/* Without it deepspeed takes the first address that `hostname -I` prints on the first host, which
 * is seldom the overlay's (deepspeed/launcher/runner.py, main). */
static void add_deepspeed(struct launcher_words *lw, const struct command *c)
{
    /* Does the person have it leave out hosts of the file? The first one may be among them. */
    bool chooses_hosts = command_says(c, "include") || command_says(c, "i") ||
                         command_says(c, "exclude") || command_says(c, "e");
    char host[HOST_MAX];

    if (c->hostfile && !chooses_hosts && read_first_host(c->hostfile, host))
        add_option(lw, c, "master_addr", host);
}

int launcher_words_make(struct launcher_words *ret, char *const words[], const struct command *c,
    const struct env_rendezvous *rendezvous, const char *nnodes)
{
    size_t n = 0;
    size_t at = c->options_at;

    *ret = (struct launcher_words)LAUNCHER_WORDS_NULL;
    if (c->kind == COMMAND_KIND_ACCELERATE && at > 0)
        add_accelerate(ret, c, rendezvous, nnodes);
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
