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
#include "base/cleanup.h"
#include "base/err.h"
#include "os/clock.h"
#include "os/process.h"

#define UNIT              "weft-agent.service"
#define SYSTEMCTL_WAIT_MS 20000
#define STOP_WAIT_MS      10000
#define ASK_TIMEOUT_MS    2000
#define ASK_PAUSE_MS      50

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

static int start_unit(const char *systemctl, struct err *e)
{
    const char *const argv[] = {systemctl, "enable", "--now", "--quiet", UNIT, NULL};
    int r = process_run(argv, SYSTEMCTL_WAIT_MS, e);

    if (r != 0)
        (void)err_prefix(e, "systemd does not start %s", UNIT);
    return r;
}

static int start_detached(
    const char *state_dir, const char *socket_path, struct launch *ret, struct err *e)
{
    char self[PATH_MAX];
    const char *const argv[] = {
        process_self_path(self), "agent", "--state", state_dir, "--socket", socket_path, NULL};

    /* A log file of its own has no times but those that the agent writes; see cmd_agent(). */
    (void)setenv(LAUNCH_LOG_TIME, "1", 1);
    (void)snprintf(
        ret->log_path, sizeof(ret->log_path), "%.*s/%s", STATE_DIR_MAX, state_dir, LOG_FILE);
    return process_detach(argv, ret->log_path, &ret->pid, e);
}

int launch_agent(const char *state_dir, const char *socket_path, struct launch *ret, struct err *e)
{
    bool usual =
        strcmp(state_dir, STATE_DIR_DEFAULT) == 0 && strcmp(socket_path, STATE_SOCKET_DEFAULT) == 0;
    const char *systemctl = usual ? find_systemctl() : NULL;

    *ret = (struct launch){.by_systemd = systemctl != NULL};
    if (systemctl)
        return start_unit(systemctl, e);
    return start_detached(state_dir, socket_path, ret, e);
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

static bool has_handshake(const json_t *status)
{
    const json_t *hub = json_object_get(status, "hub");

    return json_is_integer(json_object_get(hub, "handshakeAgeSeconds"));
}

/* Has the hub told who the other nodes are, and do their names lead to them? */
static bool is_ready(const json_t *status)
{
    return json_is_true(json_object_get(json_object_get(status, "hub"), "reachable")) &&
           !json_is_true(json_object_get(status, "namesPending"));
}

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
    (void)err_set(e, -EIO, "the agent cannot make the interface, and keeps trying: %s", fault);
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

int launch_wait(const struct launch *launch, const char *socket_path, unsigned timeout_ms,
    json_t **ret_status, struct err *e)
{
    nsec_t deadline = clock_now() + (nsec_t)timeout_ms * NSEC_PER_MSEC;
    enum progress progress = PROGRESS_NONE;
    json_auto_t *joined = NULL; /* the status, once there was a handshake */

    while (clock_now() < deadline) {
        json_t *status = NULL;

        if (agent_ask(socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, NULL) == 0) {
            const json_t *self = json_object_get(status, "self");

            if (has_handshake(status)) {
                deadline = joined ? deadline : clock_now() + READY_WAIT;
                json_decref(joined);
                joined = json_incref(status);
            }
            progress = json_is_string(json_object_get(self, "engine")) ? PROGRESS_ENGINE
                                                                       : PROGRESS_ANSWERS;
            if (progress == PROGRESS_ANSWERS && describe_fault(self, e)) {
                json_decref(status);
                return -EIO;
            }
        }
        json_decref(status);
        if (is_ready(joined))
            break;
        if (launch->pid && process_has_ended(launch->pid))
            return err_set(e, -ECHILD, "the agent has ended; %s says why", launch->log_path);
        /* The agent's socket has no event for a handshake, so it is asked again and again. */
        (void)poll(NULL, 0, ASK_PAUSE_MS);
    }
    if (!joined)
        return describe_timeout(launch, socket_path, progress, e);
    *ret_status = json_incref(joined);
    return 0;
}
