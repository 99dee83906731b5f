/* sweep_nccl.c - see sweep_nccl.h. */
#include "train/survey/sweep_nccl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "os/capture.h"
#include "os/fd_cleanup.h"
#include "train/job/run.h"
#include "train/names/members.h"
#include "train/survey/nccl_tests.h"
#include "train/survey/sweep.h"

#define PROGRAM       "all_reduce_perf"
#define TIMEOUT_MS    (15 * 60 * 1000)
#define OUTPUT_MAX    (16u << 20) /* NCCL's log of some hundred ranks lies between the lines */
#define WORDS_MAX     32          /* of the person's command */
#define ARGUMENTS_MAX (2 * ENV_ROOM + WORDS_MAX + 32)

/* The words of the command that is run. */
struct arguments {
    const char *items[ARGUMENTS_MAX + 1];
    size_t n;
};

static void add(struct arguments *a, const char *word)
{
    if (a->n < ARGUMENTS_MAX)
        a->items[a->n++] = word;
}

/* Is it in a directory of PATH? */
static bool is_in_path(const char *name)
{
    const char *at = getenv("PATH");

    while (at && *at != '\0') {
        size_t len = strcspn(at, ":");
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%.*s/%s", (int)len, at, name) < (int)sizeof(path) &&
            access(path, X_OK) == 0)
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

const char *sweep_nccl_find(void)
{
    static const char *const places[] = {"/opt/nccl-tests/build/" PROGRAM,
        "/usr/local/nccl-tests/build/" PROGRAM, "/root/nccl-tests/build/" PROGRAM};

    if (is_in_path(PROGRAM))
        return PROGRAM;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

/*
 * Sets the job's variables, as weft run does for mpirun, and has mpirun hand NCCL's on to the other
 * machines. NCCL's log is wanted, to see which network it takes.
 */
static void add_variables(struct arguments *a, const struct run *run)
{
    for (size_t i = 0; i < run->plan.n; i++) {
        const struct env_entry *entry = &run->plan.entries[i];

        if (entry->verdict == ENV_VERDICT_SET)
            (void)setenv(entry->name, entry->value, 1);
        if (strncmp(entry->name, "NCCL_", 5) == 0 && getenv(entry->name)) {
            add(a, "-x");
            add(a, entry->name);
        }
    }
    (void)setenv("NCCL_DEBUG", "INFO", 1);
    add(a, "-x");
    add(a, "NCCL_DEBUG");
    if (getenv("LD_LIBRARY_PATH")) {
        add(a, "-x");
        add(a, "LD_LIBRARY_PATH");
    }
}

static void add_mpirun(
    struct arguments *a, const struct run *run, const char *hostfile, const char *slots)
{
    const char *const words[] = {
        "mpirun", "--hostfile", hostfile, "-np", slots, "--bind-to", "none"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        add(a, words[i]);
    /* Open MPI refuses to run as root otherwise. */
    if (geteuid() == 0)
        add(a, "--allow-run-as-root");
    add_variables(a, run);
}

/* Splits the person's command at its blanks. @copy: its words lie there. */
static int add_command(struct arguments *a, char *copy, struct err *e)
{
    char *rest = NULL;
    size_t n = 0;

    for (char *word = strtok_r(copy, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (n++ == WORDS_MAX)
            return err_set(e, -E2BIG, "the command has more than %d words", WORDS_MAX);
        add(a, word);
    }
    return n > 0 ? 0 : err_set(e, -EINVAL, "the command is empty");
}

static int run_it(
    const struct arguments *a, struct sweep *ret, struct nccl_tests *tests, struct err *e)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    const struct capture_wish wish = {
        .argv = a->items, .timeout_ms = TIMEOUT_MS, .max = OUTPUT_MAX, .takes_errors = true};
    int status = 0;
    int r = capture_run(&wish, &out, &status, e);

    if (r != 0)
        return r;
    nccl_tests_take_all(tests, str_text(&out));
    if (tests->n_sizes == 0) {
        const char *last = str_text(&out);

        for (const char *line = last; (line = strchr(line, '\n')) && *++line != '\0';)
            last = line;
        return err_set(e, -EIO,
            "%s has printed no size, and ended with status %d; its last line: "
            "%.*s",
            a->items[0], status, (int)strcspn(last, "\n"), last);
    }
    memcpy(ret->sizes, tests->sizes, sizeof(ret->sizes));
    ret->n_sizes = tests->n_sizes;
    ret->is_done = true;
    ret->by_nccl = true;
    (void)snprintf(ret->network, sizeof(ret->network), "%s", tests->log.network);
    ret->is_wrong = tests->is_wrong;
    /* Wrong sums end it with a status, too. */
    if (!tests->is_wrong && status != 0)
        (void)snprintf(ret->why, sizeof(ret->why), "it ended with status %d", status);
    return 0;
}

/*
 * Writes the hosts into a file without a name. mpirun opens it by the path of this process'
 * descriptor below /proc, so nothing is left behind, however this process ends. Return: the
 * descriptor; or negative errno with words.
 */
static int open_hostfile(const struct str *hosts, struct err *e)
{
    int fd = memfd_create("weft-hostfile", MFD_CLOEXEC);
    size_t off = 0;

    if (fd < 0)
        return err_set(e, -errno, "no memory for the hostfile: %s", strerror(errno));
    while (off < hosts->len) {
        ssize_t n = write(fd, str_text(hosts) + off, hosts->len - off);

        if (n < 0) {
            int r = err_set(e, -errno, "the hostfile cannot be written: %s", strerror(errno));

            (void)close(fd);
            return r;
        }
        off += (size_t)n;
    }
    return fd;
}

static int run_with(const struct sweep_nccl *what, const struct run *run, struct sweep *ret,
    struct nccl_tests *tests, struct err *e)
{
    static const char *const options[] = {"-b", "8", "-e", "1G", "-f", "2", "-g"};
    const char *command = what->command ? what->command : sweep_nccl_find();
    _cleanup_(freep) char *copy = strdup(command ? command : PROGRAM);
    _cleanup_(str_deinit) struct str hosts = STR_NULL;
    unsigned n_slots = members_hostfile(what->members, &hosts);
    struct arguments a = {.n = 0};
    _cleanup_(closep) int fd = open_hostfile(&hosts, e);
    char hostfile[48];
    char slots[16];
    int r;

    if (fd < 0 || !copy)
        return fd < 0 ? fd : err_set(e, -ENOMEM, "no memory for the command");
    (void)snprintf(hostfile, sizeof(hostfile), "/proc/%d/fd/%d", (int)getpid(), fd);
    (void)snprintf(slots, sizeof(slots), "%u", n_slots);
    add_mpirun(&a, run, hostfile, slots);
    r = add_command(&a, copy, e);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        add(&a, options[i]);
    add(&a, "1");
    return run_it(&a, ret, tests, e);
}

int sweep_nccl_run(
    const struct sweep_nccl *what, struct sweep *ret, struct nccl_tests *tests, struct err *e)
{
    static struct run run; /* large */
    char *words[] = {(char *)"mpirun", NULL};
    const struct run_wish wish = {.socket_path = what->socket_path, .words = words};
    int r = run_prepare(&run, &wish, e);

    if (r != 0)
        return r;
    ret->crosses = !run.uses_fabric;
    return run_with(what, &run, ret, tests, e);
}
