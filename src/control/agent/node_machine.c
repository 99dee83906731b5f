/* node_machine.c - see node_machine.h. */
#include "agent/node_machine.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/state/state.h"
#include "base/containers.h"
#include "base/text.h"
#include "fabric/fabric.h"
#include "fabric/machine_sample.h"
#include "health/gpu.h"
#include "mesh/object/node_status.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/log.h"
#include "os/machine.h"
#include "os/process.h"
#include "os/thread.h"
#include "os/worker.h"

/* A clock that differs from the hub's by more than this is named. */
#define CLOCK_OFF_S 10

/* ---- its clock ------------------------------------------------------------------------------ */

/* A clock that is kept right goes back, too, by much less. */
#define SLACK (10 * NSEC_PER_SEC)

/* A difference is over at this one, so that one near the limit is not told each minute. */
#define SETTLED_S 8

void node_clock_init(struct node_clock *nc, const char *state_dir)
{
    nsec_t kept;

    *nc = (struct node_clock){.before = 0};
    (void)state_timestamp_path(nc->path, state_dir);
    /* The file is ahead of the clock. Whoever writes it names what is wrong with it. */
    if (timestamp_file_read(&kept, nc->path, NULL) == 0)
        nc->before = nsec_max(kept - TIMESTAMP_FILE_BACK, 0);
}

void node_clock_look(struct node_clock *nc, bool is_kernel, nsec_t wall, nsec_t now)
{
    nsec_t back = nc->before - wall;
    bool is_new;

    if (!is_kernel || nc->path[0] == '\0') {
        timestamp_file_end(&nc->file, wall, now);
        nc->lockout[0] = '\0';
        return;
    }
    if (nc->file.path[0] == '\0')
        timestamp_file_open(&nc->file, nc->path, wall, now);
    (void)timestamp_file_keep(&nc->file, wall, wall, now);
    if (back > SLACK) {
        is_new = nc->lockout[0] == '\0';
        (void)snprintf(nc->lockout, sizeof(nc->lockout),
            "this machine's clock was set back, and for %lld s more peers refuse the handshakes "
            "that the kernel's WireGuard begins, since they are dated before earlier ones",
            (long long)(back / NSEC_PER_SEC));
        if (is_new)
            log_warning("%s; the userspace engine has none of that", nc->lockout);
        return;
    }
    if (nc->lockout[0] != '\0')
        log_info("this machine's clock has caught up with its earlier handshakes");
    nc->lockout[0] = '\0';
    nc->before = nsec_max(nc->before, wall);
}

void node_clock_compare(struct node_clock *nc, int64_t ahead_s)
{
    uint64_t off = ahead_s < 0 ? -(uint64_t)ahead_s : (uint64_t)ahead_s;
    bool was_off = nc->off[0] != '\0';

    if (off <= (was_off ? SETTLED_S : CLOCK_OFF_S)) {
        nc->off[0] = '\0';
        if (was_off)
            log_info("this machine's clock agrees with the hub's again");
        return;
    }
    (void)snprintf(nc->off, sizeof(nc->off),
        "this machine's clock is %llu s %s the hub's; let the one that is wrong follow a time "
        "server: \"timedatectl set-ntp true\", or chrony",
        (unsigned long long)off, ahead_s < 0 ? "behind" : "ahead of");
    if (!was_off)
        log_warning("%s", nc->off);
}

const char *node_clock_why(const struct node_clock *nc)
{
    return nc->lockout[0] != '\0' ? nc->lockout : nc->off;
}

/* ---- a copy of it --------------------------------------------------------------------------- */

/* Longest name of a machine that is told; the rest is cut. */
#define HOST_MAX 31

void node_copy_init(struct node_copy *nc, const struct state *st)
{
    char place[MACHINE_PLACE_MAX];
    struct machine_traits here;
    char host[HOST_MAX + 1] = "";

    *nc = (struct node_copy){.is_copy = false};
    machine_place(place);
    machine_traits_read(&here);
    /* Fails for a name that is too long, of which it has filled @host by then. */
    (void)gethostname(host, sizeof(host));
    host[HOST_MAX] = '\0';
    text_make_plain(host, '-');
    nc->machine = json_pack("{s:s, s:s, s:o*}", "place", place, "host", host, "joinedHere",
        st->has_machine ? json_boolean(machine_traits_agree(&here, &st->machine)) : NULL);
}

void node_copy_on_answer(struct node_copy *nc, const json_t *body)
{
    const json_t *copy = json_object_get(body, "copy");
    const char *why = json_string_value(json_object_get(copy, "why"));
    char text[NODE_COPY_TEXT_MAX] = "";

    (void)snprintf(text, sizeof(text), "%s", why ? why : "");
    text_make_plain(text, ' ');
    nc->is_copy = json_is_true(json_object_get(copy, "isCopy"));
    if (text[0] != '\0' && strcmp(text, nc->why) != 0)
        log_warning("%s", text);
    else if (text[0] == '\0' && nc->why[0] != '\0')
        log_info("no other machine uses this node's key any more");
    memcpy(nc->why, text, sizeof(text));
}

/* ---- its fabric ----------------------------------------------------------------------------- */

/* How long the metadata service may take. The agent waits for so long at most when it ends. */
#define METADATA_MS 1000

struct node_fabric {
    pthread_t thread;
    struct fabric_facts facts;   /* of the thread */
    struct fabric_report report; /* immutable once @is_known */
    bool is_worth_telling;       /* the same */
    atomic_bool is_known;
};

static void *fabric_run(void *ctx)
{
    struct node_fabric *nf = ctx;

    fabric_read_here(&nf->facts, FABRIC_VIEW_AGENT, METADATA_MS);
    fabric_report_make(&nf->report, &nf->facts);
    nf->is_worth_telling =
        fabric_kind_is_fast(nf->facts.kind) || nf->report.n_gpus > 0 || nf->report.n_keys > 0;
    atomic_store_explicit(&nf->is_known, true, memory_order_release);
    return NULL;
}

struct node_fabric *node_fabric_new(void)
{
    struct node_fabric *nf = calloc(1, sizeof(*nf));

    if (!nf)
        return NULL;
    if (thread_start(&nf->thread, "fabric", -1, fabric_run, nf) < 0) {
        free(nf);
        return NULL;
    }
    return nf;
}

const struct fabric_report *node_fabric_report(const struct node_fabric *nf)
{
    if (!nf || !atomic_load_explicit(&nf->is_known, memory_order_acquire) || !nf->is_worth_telling)
        return NULL;
    return &nf->report;
}

struct node_fabric *node_fabric_free(struct node_fabric *nf)
{
    if (nf)
        (void)pthread_join(nf->thread, NULL);
    free(nf);
    return NULL;
}

/* ---- what it loses and lacks ----------------------------------------------------------------- */

struct node_watch {
    struct worker *worker; /* owns */
    struct list job;       /* of the worker, while @is_reading; then so are @dir and @sample */
    char dir[PATH_MAX];
    struct machine_sample sample;
    struct machine_watch seen;
    nsec_t due_at; /* when it is read next */
    bool is_reading;
};

static void read_machine(struct list *job)
{
    struct node_watch *nw = container_of(job, struct node_watch, job);
    struct tree here = {.root = ""};

    machine_sample_read(&nw->sample, &here, nw->dir, clock_now());
}

struct node_watch *node_watch_new(const char *state_dir)
{
    struct node_watch *nw = calloc(1, sizeof(*nw));
    struct worker_config config = {.name = "machine", .max = 1, .job = read_machine};

    if (!nw || worker_start(&nw->worker, &config) < 0) {
        free(nw);
        return NULL;
    }
    list_init(&nw->job);
    (void)snprintf(nw->dir, sizeof(nw->dir), "%s", state_dir);
    return nw;
}

const struct machine_watch *node_watch_look(struct node_watch *nw, nsec_t now)
{
    if (!nw)
        return NULL;
    if (nw->is_reading && worker_collect(nw->worker)) {
        machine_watch_take(&nw->seen, &nw->sample);
        nw->is_reading = false;
    }
    if (!nw->is_reading && now >= nw->due_at && worker_put(nw->worker, &nw->job)) {
        nw->is_reading = true;
        nw->due_at = now + NODE_WATCH_EACH;
    }
    return nw->seen.now.at != 0 ? &nw->seen : NULL;
}

struct node_watch *node_watch_free(struct node_watch *nw)
{
    if (nw)
        (void)worker_stop(nw->worker);
    free(nw);
    return NULL;
}

/* ---- its GPUs ------------------------------------------------------------------------------- */

struct node_gpus {
    char program[PATH_MAX];
    struct gpu_watch seen;
    struct gpu_sample sample; /* of the process that has ended last */
    struct str said;          /* owns; what the process has said so far */
    int fd;                   /* owns; of the process; -1: it says no more */
    pid_t pid;                /* 0: none runs */
    bool is_killed;           /* it was too silent */
    nsec_t due_at;            /* when the next one is to be started */
    nsec_t began_at;          /* when the last one was */
    nsec_t heard_at;          /* when it said something last */
    nsec_t hangs_at;          /* when it is to be said that one that was killed has not ended */
};

struct node_gpus *node_gpus_new(const char *program)
{
    struct node_gpus *ng = calloc(1, sizeof(*ng));

    if (!ng)
        return NULL;
    ng->fd = -1;
    if (program)
        (void)snprintf(ng->program, sizeof(ng->program), "%s", program);
    return ng;
}

static void start_process(struct node_gpus *ng, nsec_t now)
{
    char self[PATH_MAX];
    char since[32];
    const char *argv[] = {ng->program, "gpus", since, NULL};
    struct err e = ERR_NULL;
    int fds[2];

    if (ng->program[0] == '\0')
        argv[0] = process_self_path(self);
    /* The first one is not to say what was before this agent. */
    (void)snprintf(since, sizeof(since), "%" PRIu64,
        (uint64_t)((ng->began_at != 0 ? ng->began_at : now) / NSEC_PER_USEC));
    ng->due_at = now + NODE_GPUS_EACH_NEVER;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return;
    if (process_link(argv, fds[1], &ng->pid, &e) == 0) {
        ng->fd = TAKE_FD(fds[0]);
        ng->is_killed = false;
        ng->began_at = now;
        ng->heard_at = now;
        str_deinit(&ng->said);
    } else {
        log_debug("%s", err_text(&e));
        ng->pid = 0;
        closep(&fds[0]);
    }
    closep(&fds[1]);
}

/* Takes what the process has said; one that says too much is not heard any more. */
static void hear(struct node_gpus *ng, nsec_t now)
{
    char buf[4096];
    ssize_t n = 0;

    while (ng->fd >= 0 && (n = recv(ng->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
        ng->heard_at = now;
        str_add_bytes(&ng->said, buf, (size_t)n);
        if (ng->said.len > GPU_SAMPLE_MAX)
            closep(&ng->fd);
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        closep(&ng->fd);
}

/* The sample of a process that has said none. */
static void fail(struct gpu_sample *ret, enum gpu_driver driver, const char *why)
{
    *ret = (struct gpu_sample){.driver = driver};
    (void)snprintf(ret->why, sizeof(ret->why), "%s", why);
}

/* Makes a sample of what the process has said until its end. @status: as waitpid(2) says it. */
static void conclude(struct node_gpus *ng, int status)
{
    json_t *json = ng->said.failed ? NULL
                                   : json_loadb(str_text(&ng->said), ng->said.len,
                                         JSON_REJECT_DUPLICATES, NULL);

    if (json && gpu_sample_decode(&ng->sample, json, NULL) == 0)
        ; /* Whatever became of it afterwards. */
    else if (ng->is_killed)
        fail(&ng->sample, GPU_DRIVER_SILENT, "it has said nothing for 30 s");
    else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGSYS)
        fail(&ng->sample, GPU_DRIVER_SILENT, "its library crashes whoever asks it");
    else /* It may not be asked from here, or there is another program in our place. */
        fail(&ng->sample, GPU_DRIVER_FAILED, "it cannot be asked from here");
    json_decref(json);
    str_deinit(&ng->said);
    closep(&ng->fd);
}

/* Is there a new sample? */
static bool follow(struct node_gpus *ng, nsec_t now)
{
    int status = 0;

    hear(ng, now);
    if (waitpid(ng->pid, &status, WNOHANG) != 0) {
        ng->pid = 0;
        hear(ng, now);
        conclude(ng, status);
        return true;
    }
    if (now - ng->heard_at < NODE_GPUS_SILENT)
        return false;
    if (!ng->is_killed) {
        ng->is_killed = true;
        ng->hangs_at = now + NODE_GPUS_SILENT;
        (void)kill(ng->pid, SIGKILL);
    }
    /* Where the driver hangs the process may stay for long, or for good. */
    if (now < ng->hangs_at)
        return false;
    fail(&ng->sample, GPU_DRIVER_SILENT, "it hangs, and a process that has asked it cannot end");
    ng->hangs_at = now + NODE_GPUS_EACH;
    return true;
}

const struct gpu_watch *node_gpus_look(struct node_gpus *ng, nsec_t now, int64_t wall_s)
{
    if (!ng)
        return NULL;
    if (ng->pid != 0 && follow(ng, now)) {
        gpu_watch_take(&ng->seen, &ng->sample, wall_s);
        if (ng->seen.was_ok || ng->sample.driver == GPU_DRIVER_SILENT)
            ng->due_at = ng->began_at + NODE_GPUS_EACH;
    }
    if (ng->pid == 0 && now >= ng->due_at)
        start_process(ng, now);
    return node_gpus_seen(ng);
}

const struct gpu_watch *node_gpus_seen(const struct node_gpus *ng)
{
    return ng && ng->seen.at != 0 ? &ng->seen : NULL;
}

struct node_gpus *node_gpus_free(struct node_gpus *ng)
{
    if (!ng)
        return NULL;
    if (ng->pid != 0) {
        (void)kill(ng->pid, SIGKILL);
        (void)process_has_ended(ng->pid);
    }
    closep(&ng->fd);
    str_deinit(&ng->said);
    free(ng);
    return NULL;
}
