/* sweep.c - see sweep.h. */
#include "train/survey/sweep.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "fabric/fabric.h"
#include "mesh/object/node_status.h"
#include "os/process.h"
#include "os/file.h"
#include "train/job/run.h"
#include "train/names/members.h"

static const char *const verdict_names[] = {
    [VERDICT_PASS] = "pass", [VERDICT_FAIL] = "fail", [VERDICT_NONE] = "none"};

/* The highest bus bandwidth, GB/s; 0: nothing was measured. */
static double sweep_best(const struct sweep *s)
{
    double best = 0;

    for (size_t i = 0; i < s->n_sizes; i++)
        best = s->sizes[i].busbw > best ? s->sizes[i].busbw : best;
    return best;
}

void sweep_assess(struct sweep *s, const struct fabric_report *machine, double rate)
{
    struct str out = STR_NULL;

    if (s->crosses)
        machine = NULL;
    if (s->by_nccl) {
        s->has_expectation = machine && verdict_expect(&s->expected, machine);
    } else if (rate > 0) {
        s->has_expectation = true;
        s->expected = verdict_expect_plain(rate);
    }
    s->verdict = verdict_assess(s->has_expectation ? &s->expected : NULL,
        s->by_nccl ? machine : NULL, sweep_best(s), &s->log, &out);
    if (s->is_wrong) {
        s->verdict = VERDICT_FAIL;
        str_deinit(&out);
        str_add(&out, "fail: some sums were wrong");
    }
    (void)snprintf(s->text, sizeof(s->text), "%s", str_text(&out));
    str_deinit(&out);
}

json_t *sweep_encode(const struct sweep *s)
{
    json_t *sizes;

    if (!s->is_done)
        return json_null();
    sizes = json_array();
    for (size_t i = 0; i < s->n_sizes; i++)
        (void)json_array_append_new(
            sizes, json_pack("{s:I, s:f, s:f, s:f}", "bytes", (json_int_t)s->sizes[i].bytes, "us",
                       s->sizes[i].us, "algGBps", s->sizes[i].algbw, "busGBps", s->sizes[i].busbw));
    return json_pack("{s:s, s:o, s:s, s:s, s:f, s:o, s:o, s:s, s:s}", "by",
        s->by_nccl ? "nccl-tests" : "tcp", "sizes", sizes, "why", s->why, "network", s->log.network,
        "bestBusGBps", sweep_best(s), "leastBusGBps",
        s->has_expectation ? json_real(s->expected.least) : json_null(), "usualBusGBps",
        s->has_expectation ? json_real(s->expected.usual) : json_null(), "verdict",
        verdict_names[s->verdict], "text", s->text);
}

void sweep_format(const struct sweep *s, struct str *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    const size_t last = sizeof(units) / sizeof(*units) - 1;

    if (!s->is_done)
        return;
    str_addf(out, "all-reduce, by %s%s%s\n  %11s %14s %14s %14s\n",
        s->by_nccl ? "nccl-tests" : "a ring over TCP on the overlay",
        s->log.network[0] != '\0' ? ", NCCL's network " : "", s->log.network, "size", "us",
        "algbw GB/s", "busbw GB/s");
    for (size_t i = 0; i < s->n_sizes; i++) {
        uint64_t size = s->sizes[i].bytes;
        size_t unit = 0;

        for (; size >= 1024 && size % 1024 == 0 && unit < last; unit++)
            size /= 1024;
        str_addf(out, "  %7llu %-3s %14.1f %14.3f %14.3f\n", (unsigned long long)size, units[unit],
            s->sizes[i].us, s->sizes[i].algbw, s->sizes[i].busbw);
    }
    if (s->why[0] != '\0')
        str_addf(out, "  no larger size: %s\n", s->why);
    str_addf(out, "%s\n", s->text);
}

/* ==== what nccl-tests has printed ============================================================ */

#define LINE_MAX_BYTES 512
#define WORDS_MAX      16

/* Columns of one way: time, algbw, busbw, wrong. */
#define WAY_COLUMNS 4

/* Columns before these: size, count, type, redop, and in later versions root. */
#define HEAD_OLD 4
#define HEAD_NEW 5

/* The largest of figures that can be true, so that no sum of them overflows. */
#define FIGURE_MAX 1e12

static bool read_figure(double *ret, const char *word)
{
    char *end;
    double v = word[0] >= '0' && word[0] <= '9' ? strtod(word, &end) : -1;

    if (!(v >= 0 && v <= FIGURE_MAX) || *end != '\0')
        return false;
    *ret = v;
    return true;
}

/* Reads one way. The last column is a count of wrong values, a largest error, or N/A. */
static bool read_way(
    struct nccl_tests_size *ret, bool is_counted, char *const words[], bool *ret_wrong)
{
    double wrong = 0;

    if (!read_figure(&ret->us, words[0]) || !read_figure(&ret->algbw, words[1]) ||
        !read_figure(&ret->busbw, words[2]))
        return false;
    if (is_counted && read_figure(&wrong, words[3]) && wrong > 0)
        *ret_wrong = true;
    return true;
}

static void take_size(struct sweep *s, char *words[], size_t n)
{
    bool is_new = n == HEAD_NEW + 2 * WAY_COLUMNS;
    size_t head = is_new ? HEAD_NEW : HEAD_OLD;
    struct nccl_tests_size out = {.bytes = 0};
    struct nccl_tests_size in = {.bytes = 0};
    double bytes;

    if ((!is_new && n != HEAD_OLD + 2 * WAY_COLUMNS) || s->n_sizes == NCCL_TESTS_SIZES_MAX ||
        !read_figure(&bytes, words[0]) || bytes > 1e15 ||
        !read_way(&out, is_new, words + head, &s->is_wrong) ||
        !read_way(&in, is_new, words + head + WAY_COLUMNS, &s->is_wrong))
        return;
    if (in.busbw > out.busbw)
        out = in;
    out.bytes = (uint64_t)bytes;
    s->sizes[s->n_sizes++] = out;
}

/* Take in a line, without its newline. */
static void nccl_tests_take(struct sweep *s, const char *line, size_t len)
{
    char text[LINE_MAX_BYTES];
    char *words[WORDS_MAX];
    size_t n_words = 0;
    char *start = text;
    char *rest = NULL;
    char *tag;

    if (memmem(line, len, " NCCL ", 6)) {
        (void)nccl_log_take(&s->log, line, len);
        return;
    }
    len = len < sizeof(text) - 1 ? len : sizeof(text) - 1;
    memcpy(text, line, len);
    text[len] = '\0';
    tag = strstr(text, ">:");
    if (text[0] == '[' && tag)
        start = tag + 2;
    start += strspn(start, " \t");
    if (start[0] == '#') {
        /* "# Out of bounds values : 0 OK". */
        s->is_wrong |= strstr(start, "Out of bounds values") && strstr(start, "FAILED");
    } else if (start[0] >= '0' && start[0] <= '9') {
        for (char *word = strtok_r(start, " \t\r", &rest); word && n_words < WORDS_MAX;
             word = strtok_r(NULL, " \t\r", &rest))
            words[n_words++] = word;
        take_size(s, words, n_words);
    }
}

void nccl_tests_take_all(struct sweep *s, const char *text)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");

        nccl_tests_take(s, text, len);
        text += len + (text[len] == '\n');
    }
}

/* ==== all_reduce_perf by mpirun ============================================================== */

#define PROGRAM              "all_reduce_perf"
#define TIMEOUT_MS           (15 * 60 * 1000)
#define OUTPUT_MAX           (16u << 20) /* NCCL's log of some hundred ranks is in it */
#define SWEEP_NCCL_WORDS_MAX 32          /* of the person's command */
#define ARGUMENTS_MAX        (2 * ENV_SIZE + SWEEP_NCCL_WORDS_MAX + 32)

/* The words of the command that is run. */
struct arguments {
    const char *items[ARGUMENTS_MAX + 1];
    size_t n;
};

static void add_word(struct arguments *a, const char *word)
{
    if (a->n < ARGUMENTS_MAX)
        a->items[a->n++] = word;
}

const char *sweep_nccl_find(void)
{
    static const char *const places[] = {"/opt/nccl-tests/build/" PROGRAM,
        "/usr/local/nccl-tests/build/" PROGRAM, "/root/nccl-tests/build/" PROGRAM};
    char path[PATH_MAX];

    if (command_find_program(PROGRAM, path))
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
            add_word(a, "-x");
            add_word(a, entry->name);
        }
    }
    (void)setenv("NCCL_DEBUG", "INFO", 1);
    add_word(a, "-x");
    add_word(a, "NCCL_DEBUG");
    if (getenv("LD_LIBRARY_PATH")) {
        add_word(a, "-x");
        add_word(a, "LD_LIBRARY_PATH");
    }
}

static void add_mpirun(
    struct arguments *a, const struct run *run, const char *hostfile, const char *slots)
{
    const char *const words[] = {
        "mpirun", "--hostfile", hostfile, "-np", slots, "--bind-to", "none"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        add_word(a, words[i]);
    /* Open MPI refuses to run as root otherwise. */
    if (geteuid() == 0)
        add_word(a, "--allow-run-as-root");
    add_variables(a, run);
}

/* Splits the person's command at its blanks. @copy: its words lie there. */
static int add_command(struct arguments *a, char *copy, struct err *e)
{
    char *rest = NULL;
    size_t n = 0;

    for (char *word = strtok_r(copy, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (n++ == SWEEP_NCCL_WORDS_MAX)
            return err_set(e, -E2BIG, "the command has more than %d words", SWEEP_NCCL_WORDS_MAX);
        add_word(a, word);
    }
    return n > 0 ? 0 : err_set(e, -EINVAL, "the command is empty");
}

static int run_it(const struct arguments *a, struct sweep *ret, struct err *e)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    const struct capture_options opt = {
        .argv = a->items, .timeout_ms = TIMEOUT_MS, .max = OUTPUT_MAX, .takes_errors = true};
    int status = 0;
    int r = capture_run(&opt, &out, &status, e);

    if (r != 0)
        return r;
    nccl_tests_take_all(ret, str_text(&out));
    if (ret->n_sizes == 0) {
        const char *last = str_text(&out);

        for (const char *line = last; (line = strchr(line, '\n')) && *++line != '\0';)
            last = line;
        return err_set(e, -EIO,
            "%s has printed no size, and ended with status %d; its last line: "
            "%.*s",
            a->items[0], status, (int)strcspn(last, "\n"), last);
    }
    ret->is_done = true;
    ret->by_nccl = true;
    /* Wrong sums end it with a status, too. */
    if (!ret->is_wrong && status != 0)
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

static int run_with(const char *command, const struct members *members, const struct run *run,
    struct sweep *ret, struct err *e)
{
    static const char *const options[] = {"-b", "8", "-e", "1G", "-f", "2", "-g"};
    const char *found = command ? command : sweep_nccl_find();
    _cleanup_(freep) char *copy = strdup(found ? found : PROGRAM);
    _cleanup_(str_deinit) struct str hosts = STR_NULL;
    unsigned n_slots = members_hostfile(members, &hosts);
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
        add_word(&a, options[i]);
    add_word(&a, "1");
    return run_it(&a, ret, e);
}

int sweep_nccl_run(const char *command, const char *socket_path, const struct members *members,
    struct sweep *ret, struct err *e)
{
    static struct run run; /* large */
    char *words[] = {(char *)"mpirun", NULL};
    const struct run_options opt = {.socket_path = socket_path, .words = words};
    int r = run_prepare(&run, &opt, e);

    if (r != 0)
        return r;
    ret->crosses = !run.uses_fabric;
    return run_with(command, members, &run, ret, e);
}

/* ==== is it what such a machine gives? ======================================================= */

/* Share of what a machine's ports carry together that NCCL is expected to reach at the least: the
 * 35 of 50 GB/s of the row for p4d. */
#define FABRIC_SHARE 0.7

/* Share of a plain link's measured rate that an all-reduce by a ring is expected to reach. As much
 * goes the other way at the same time, which leaves 0.9 (SYNC_DUPLEX of plan/sync.h), and members
 * wait for each other after each part; half is what nothing but a fault explains. */
#define PLAIN_USUAL 0.9
#define PLAIN_LEAST 0.5

/* Below this share of what is the least, the fabric is taken to be off: TCP of the same machine, by
 * its ENA or host NIC, gives a tenth to a quarter. */
#define OFF_SHARE 0.3

/* The bandwidth is EC2's; the share of it is what operators look for, and what users report (the
 * issue: 57 GB/s on 2, 32 on 3 and 30 on 4 p4d with an NCCL of 2021; with two machines a tree gives
 * more than the link). */
#define P4D "EC2 User Guide: 400 Gbit/s, of which nccl-tests gets 35 to 45 GB/s; nccl issue 527"
#define P5  "EC2 User Guide: 3200 Gbit/s, of which nccl-tests gets about 350 GB/s"

static const struct {
    const char *machine;
    struct verdict_expectation expected;
} rows[] = {
    {"p4d.24xlarge", {35, 45, P4D}},
    {"p4de.24xlarge", {35, 45, P4D}},
    {"p5.48xlarge", {300, 350, P5}},
    {"p5e.48xlarge", {300, 350, P5}},
    {"p5en.48xlarge", {300, 350, P5}},
};

bool verdict_expect(struct verdict_expectation *ret, const struct fabric_report *machine)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (strcmp(machine->machine, rows[i].machine) == 0) {
            *ret = rows[i].expected;
            return true;
        }
    if (machine->gbit == 0 || !fabric_kind_is_fast(fabric_kind_parse(machine->kind)))
        return false;
    *ret = (struct verdict_expectation){.least = FABRIC_SHARE * machine->gbit / 8,
        .usual = machine->gbit / 8.0,
        .source = "the rates of its ports, of which 70 % are expected, as of a p4d"};
    return true;
}

struct verdict_expectation verdict_expect_plain(double rate)
{
    return (struct verdict_expectation){.least = PLAIN_LEAST * rate / 8e9,
        .usual = PLAIN_USUAL * rate / 8e9,
        .source = "the rate that was measured between the slowest pair"};
}

/* Does it look as if NCCL used TCP instead of the fabric? @ret_is_sure: NCCL has said so. */
static bool is_off(const struct verdict_expectation *expected, const struct fabric_report *machine,
    double busbw, const struct nccl_log *log, bool *ret_is_sure)
{
    if (!machine || !fabric_kind_is_fast(fabric_kind_parse(machine->kind)))
        return false;
    *ret_is_sure = log && log->network[0] != '\0';
    if (*ret_is_sure)
        return strcmp(log->network, "Socket") == 0;
    return busbw < OFF_SHARE * expected->least;
}

static const char *fabric_word(const struct fabric_report *machine)
{
    switch (fabric_kind_parse(machine->kind)) {
    case FABRIC_EFA:
        return "EFA";
    case FABRIC_INFINIBAND:
        return "InfiniBand";
    case FABRIC_ROCE:
        return "RoCE";
    case FABRIC_GCE_RDMA:
        return "GPUDirect-RDMA";
    case FABRIC_TCPXO:
        return "GPUDirect-TCPXO";
    case FABRIC_TCPX:
        return "GPUDirect-TCPX";
    case FABRIC_GVNIC:
    case FABRIC_ETHERNET:
    case FABRIC_KIND_N:
        break;
    }
    return "the fabric";
}

enum verdict verdict_assess(const struct verdict_expectation *expected,
    const struct fabric_report *machine, double busbw, const struct nccl_log *log, struct str *out)
{
    const char *type = machine && machine->machine[0] != '\0' ? machine->machine : "this network";
    bool is_sure = false;

    if (busbw <= 0) {
        str_add(out, "no verdict: nothing was measured");
        return VERDICT_NONE;
    }
    if (!expected) {
        str_addf(out, "no verdict: %.4g GB/s of bus bandwidth, and nobody says what %s should give",
            busbw, type);
        return VERDICT_NONE;
    }
    str_addf(out, "%s: %.4g GB/s of bus bandwidth, and %s gives about %.4g, %.4g at the least (%s)",
        busbw < expected->least ? "fail" : "pass", busbw, type, expected->usual, expected->least,
        expected->source);
    if (busbw >= expected->least)
        return VERDICT_PASS;
    if (is_off(expected, machine, busbw, log, &is_sure)) {
        str_addf(
            out, "; %s %s off, this is TCP", fabric_word(machine), is_sure ? "is" : "seems to be");
        if (log && log->cause[0] != '\0')
            str_addf(out, ": %s", log->cause);
    }
    return VERDICT_FAIL;
}
