/* launch.c - see launch.h. */
#include "agent/launch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent_ask.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/process.h"

#define UNIT              "weft-agent.service"
#define SYSTEMCTL_WAIT_MS 90000
#define STOP_WAIT_MS      10000
#define ASK_TIMEOUT_MS    2000
#define ASK_PAUSE_MS      50

/* What a machine that is busy, as one that boots, takes until its agent answers at all. */
#define FIRST_ANSWER_WAIT (60 * NSEC_PER_SEC)

/* After the handshake, so long the hub may take to tell who the other nodes are, and this machine's
 * resolver to say that their names are free. */
#define READY_WAIT (3 * NSEC_PER_SEC)
#define LOG_FILE   "agent.log"

/* ---- starting ------------------------------------------------------------------------------- */

/* systemctl's path, if systemd is the init of this machine and has our unit; else NULL. */
static const char *find_systemctl(void)
{
    static const char *const unit_dirs[] = {
        "/etc/systemd/system", "/usr/local/lib/systemd/system", "/lib/systemd/system"};
    static const char *const programs[] = {"/usr/bin/systemctl", "/bin/systemctl"};
    struct stat st;
    bool has_unit = false;

    if (stat("/run/systemd/system", &st) < 0)
        return NULL;
    for (unsigned i = 0; i < sizeof(unit_dirs) / sizeof(*unit_dirs); i++) {
        char path[128];

        (void)snprintf(path, sizeof(path), "%s/%s", unit_dirs[i], UNIT);
        has_unit |= stat(path, &st) == 0;
    }
    for (unsigned i = 0; has_unit && i < sizeof(programs) / sizeof(*programs); i++)
        if (access(programs[i], X_OK) == 0)
            return programs[i];
    return NULL;
}

static int start_detached(const struct launch_config *config, struct launch *ret, struct err *e)
{
    char self[PATH_MAX];
    const char *argv[LAUNCH_OPTIONS_MAX + 8] = {process_self_path(self), "agent", "--watched",
        "--state", config->state_dir, "--socket", config->socket_path};
    size_t n = 7;

    if (config->n_options > LAUNCH_OPTIONS_MAX)
        return err_set(
            e, -E2BIG, "%zu options are more than %d", config->n_options, LAUNCH_OPTIONS_MAX);
    for (size_t i = 0; i < config->n_options; i++)
        argv[n++] = config->options[i];
    /* A log file of its own has no times but those that the agent writes; see cmd_agent(). */
    (void)setenv(LAUNCH_LOG_TIME, "1", 1);
    (void)snprintf(ret->log_path, sizeof(ret->log_path), "%.*s/%s", STATE_DIR_MAX,
        config->state_dir, LOG_FILE);
    return process_detach(argv, ret->log_path, &ret->pid, e);
}

int launch_agent(const struct launch_config *config, struct launch *ret, struct err *e)
{
    bool usual = strcmp(config->state_dir, STATE_DIR_DEFAULT) == 0 &&
                 strcmp(config->socket_path, STATE_SOCKET_DEFAULT) == 0 && config->n_options == 0;
    const char *systemctl = usual ? find_systemctl() : NULL;
    const char *const argv[] = {systemctl, "enable", "--now", "--quiet", UNIT, NULL};
    int r;

    *ret = (struct launch){.by_systemd = systemctl != NULL};
    if (!systemctl)
        return start_detached(config, ret, e);
    r = process_run(argv, SYSTEMCTL_WAIT_MS, e);
    if (r != 0)
        (void)err_prefix(e, "systemd does not start %s", UNIT);
    return r;
}

/* ---- watching ------------------------------------------------------------------------------- */

/* An agent that fails in so short a time at its first start fails again: it has not joined, another
 * one runs, its socket is taken. */
#define FIRST_RUN (2 * NSEC_PER_SEC)

/* The pauses before it is started again, and how long it has to run for the shortest. */
#define PAUSE_SHORTEST (NSEC_PER_SEC / 4)
#define PAUSE_LONGEST  (30 * NSEC_PER_SEC)
#define SETTLED        (60 * NSEC_PER_SEC)

static bool may_start_again(void *ctx, const char *how, nsec_t pause)
{
    const char *state_dir = ctx;

    if (!state_is_there(state_dir)) {
        log_info(
            "the agent %s, and this machine has left its network: it is not started again", how);
        return false;
    }
    log_warning(
        "the agent %s; it is started again in %.2f s", how, (double)pause / (double)NSEC_PER_SEC);
    return true;
}

int launch_watch(char *const words[], const char *state_dir, struct err *e)
{
    const struct respawn r = {.words = words,
        .proves_itself = FIRST_RUN,
        .shortest_pause = PAUSE_SHORTEST,
        .longest_pause = PAUSE_LONGEST,
        .settled = SETTLED,
        .may_start = may_start_again,
        .ctx = (void *)state_dir};
    struct respawn_end end = {0};
    int result = respawn_run(&r, &end, e);

    return result == 0 ? end.status : result;
}

void launch_stop(const struct launch *launch)
{
    const char *systemctl = launch->by_systemd ? find_systemctl() : NULL;
    const char *const argv[] = {systemctl, "disable", "--now", "--quiet", UNIT, NULL};

    if (systemctl)
        (void)process_run(argv, SYSTEMCTL_WAIT_MS, NULL);
    if (launch->pid > 0 && kill(launch->pid, SIGTERM) == 0)
        (void)process_wait_end(launch->pid, STOP_WAIT_MS);
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* How far the agent had come when the wait was over. */
enum progress {
    PROGRESS_NONE,    /* it did not answer */
    PROGRESS_ANSWERS, /* it answered, and no engine ran */
    PROGRESS_ENGINE,  /* an engine ran, and had no handshake with the hub */
};

/* Has the agent failed to make the interface? Then its reason is put into @e, and there is no more
 * to wait for. */
static bool describe_fault(const json_t *self, struct err *e)
{
    const char *fault = json_string_value(json_object_get(self, "fault"));

    if (!fault || fault[0] == '\0')
        return false;
    (void)err_set(e, -EIO, "the agent cannot make the interface: %s", fault);
    return true;
}

static int describe_timeout(
    const struct launch *launch, const char *socket_path, enum progress progress, struct err *e)
{
    const char *log = launch->by_systemd ? "journalctl -u weft-agent" : launch->log_path;

    switch (progress) {
    case PROGRESS_NONE:
        return err_set(
            e, -ETIMEDOUT, "the agent does not answer on %s; %s says why", socket_path, log);
    case PROGRESS_ANSWERS:
        return err_set(e, -ETIMEDOUT,
            "the agent cannot make the interface; %s says why, and it keeps trying", log);
    case PROGRESS_ENGINE:
        break;
    }
    return err_set(e, -ETIMEDOUT,
        "the hub does not answer on its WireGuard port, nor lets this node in by TLS; is UDP to it "
        "blocked? The agent keeps trying, and weft status tells when it succeeds");
}

int launch_wait_answer(
    const struct launch *launch, const char *socket_path, unsigned timeout_ms, struct err *e)
{
    nsec_t deadline = clock_now() + (nsec_t)timeout_ms * NSEC_PER_MSEC;

    while (agent_ask(socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, NULL, NULL) != 0) {
        if (launch->pid && process_has_ended(launch->pid))
            return err_set(e, -ECHILD, "the agent has ended; %s says why", launch->log_path);
        if (clock_now() >= deadline)
            return describe_timeout(launch, socket_path, PROGRESS_NONE, e);
        /* Nothing tells when its socket is there, so it is looked for again and again. */
        (void)poll(NULL, 0, ASK_PAUSE_MS);
    }
    return 0;
}

int launch_wait(const struct launch *launch, const char *socket_path, unsigned timeout_ms,
    json_t **ret_status, struct err *e)
{
    nsec_t timeout = (nsec_t)timeout_ms * NSEC_PER_MSEC;
    nsec_t deadline = clock_now() + nsec_max(timeout, FIRST_ANSWER_WAIT);
    enum progress progress = PROGRESS_NONE;
    bool is_faulty = false;     /* as it said last, with @e for why */
    json_auto_t *joined = NULL; /* the status, once there was a handshake */

    while (clock_now() < deadline) {
        json_t *status = NULL;

        if (agent_ask(socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, NULL) == 0) {
            const json_t *self = json_object_get(status, "self");
            const json_t *hub = json_object_get(status, "hub");

            if (progress == PROGRESS_NONE)
                deadline = clock_now() + timeout;
            if (json_is_integer(json_object_get(hub, "handshakeAgeSeconds"))) {
                deadline = joined ? deadline : clock_now() + READY_WAIT;
                json_decref(joined);
                joined = json_incref(status);
            }
            progress = json_is_string(json_object_get(self, "engine")) ? PROGRESS_ENGINE
                                                                       : PROGRESS_ANSWERS;
            is_faulty = describe_fault(self, e);
            if (progress == PROGRESS_ANSWERS && is_faulty) {
                json_decref(status);
                return -EIO;
            }
        }
        json_decref(status);
        /* Has the hub told who the other nodes are, and do their names lead to them? */
        if (json_is_true(json_object_get(json_object_get(joined, "hub"), "reachable")) &&
            !json_is_true(json_object_get(joined, "namesPending")))
            break;
        if (launch->pid && process_has_ended(launch->pid))
            return err_set(e, -ECHILD, "the agent has ended; %s says why", launch->log_path);
        /* The agent's socket has no event for a handshake, so it is asked again and again. */
        (void)poll(NULL, 0, ASK_PAUSE_MS);
    }
    if (!joined && is_faulty)
        return -EIO;
    if (!joined)
        return describe_timeout(launch, socket_path, progress, e);
    *ret_status = json_incref(joined);
    return 0;
}
