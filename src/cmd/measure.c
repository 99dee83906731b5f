/* measure.c - see measure.h. */
#include "cmd/measure.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/agent_ask.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "os/clock.h"
#include "os/statefile.h"
#include "train/job/job_plan.h"

#define ASK_TIMEOUT_MS 10000

/* Each call writes over the same line, for the person who waits at a terminal. */
static void show_progress(void *ctx, const char *what)
{
    (void)fputs("\r\033[Kmeasuring: ", stderr);
    (void)cmd_write(stderr, what);
    (void)fflush(stderr);
}

static int read_members(struct measure *m, const struct measure_target *target, struct err *e)
{
    json_t *status = NULL;
    int r = agent_ask(target->socket, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, e);

    if (r == 0)
        r = members_decode(&m->members, status, target->nodes, SURVEY_NODES_MAX, e);
    json_decref(status);
    return r;
}

static int open_survey(struct measure *m, struct err *e)
{
    size_t n = m->members.n;
    int r;
    _cleanup_(freep) const char **names = calloc(n, sizeof(*names));
    _cleanup_(freep) struct ip_addr *addresses = calloc(n, sizeof(*addresses));

    if (!names || !addresses)
        return err_set(e, -ENOMEM, "no memory for %zu members", n);
    for (size_t i = 0; i < n; i++) {
        names[i] = m->members.items[i].name;
        addresses[i] = m->members.items[i].address;
    }
    r = survey_open(&m->survey, &m->plan, names, addresses, n, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        m->survey.nodes[i].is_stock = m->members.items[i].is_stock;
    return r;
}

int measure_open(struct measure *m, const char *command, const struct measure_target *target)
{
    struct err e = ERR_NULL;
    int r;

    (void)signal(SIGPIPE, SIG_IGN);
    m->started_at = clock_now();
    r = read_members(m, target, &e);
    if (r != 0)
        return cmd_fail(command, "%s", err_text(&e));
    (void)snprintf(
        m->socket_path, sizeof(m->socket_path), "%.4095s%s", target->socket, AGENT_MEASURE_SUFFIX);
    m->plan.purpose = command;
    m->plan.own = m->members.items[0].address;
    m->plan.socket_path = m->socket_path;
    m->plan.interface = m->members.interface;
    m->plan.port = PROBE_PORT;
    if (isatty(STDERR_FILENO))
        m->plan.progress = show_progress;
    r = open_survey(m, &e);
    return r == 0 ? CMD_OK : cmd_fail(command, "%s", err_text(&e));
}

void measure_keep(const char *command, const char *state_dir, const json_t *json)
{
    _cleanup_(freep) char *text = json_dumps(json, JSON_COMPACT);
    char path[PATH_MAX];
    struct err e = ERR_NULL;
    int r;

    if (!text || snprintf(path, sizeof(path), "%s/" JOB_PLAN_MEASURED, state_dir) >= PATH_MAX)
        return;
    r = statefile_replace(path, text, strlen(text), 0600, &e);
    if (r < 0 && r != -EACCES && r != -ENOENT)
        (void)cmd_fail(command, "what was measured is not kept: %s", err_text(&e));
}

void measure_close(struct measure *m)
{
    if (m->plan.progress)
        (void)fprintf(stderr, "\r\033[K");
    survey_deinit(&m->survey);
    members_deinit(&m->members);
}
