/* measure.c - see measure.h. */
#include "cmd/measure.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/agent_ask.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "os/clock.h"
#include "os/file.h"
#include "train/job/job_plan.h"

/* Most members of one survey; each pair of them takes more than a kilobyte of memory here. */
#define SURVEY_NODES_MAX 256

#define ASK_TIMEOUT_MS 10000

/* What was measured longer ago says little of where machines are now, seconds. */
#define KEPT_AGE_S (7 * 86400)

/* Bytes of it, at most; of 256 members it has about 20 million. */
#define KEPT_MAX (64ll << 20)

/* Each call writes over the same line, for the person who waits at a terminal. */
static void show_progress(const char *what)
{
    (void)fputs("\r\033[Kmeasuring: ", stderr);
    (void)cmd_write(stderr, what);
    (void)fflush(stderr);
}

/* The session and the challenges, as the agent takes them. NULL: no memory. */
static json_t *ask_for_proofs(
    const struct order *session, const struct coordinator_link *links, size_t n)
{
    json_t *body = order_encode(session);
    json_t *challenges = json_object();
    char address[IP_ADDR_TEXT_MAX];
    char text[2 * MEASURE_PROOF_CHALLENGE + 1];

    for (size_t i = 0; challenges && i < n; i++) {
        if (!links[i].has_challenge)
            continue;
        hex_encode(links[i].challenge.b, sizeof(links[i].challenge.b), text);
        (void)json_object_set_new(
            challenges, ip_addr_format(&links[i].address, address), json_string(text));
    }
    if (!body || json_object_set_new(body, "challenges", challenges) < 0)
        body = (json_decref(body), NULL);
    return body;
}

/* The agent of this machine has the node's key. */
static int prove(void *ctx, const struct order *session, const struct coordinator_link *links,
    size_t n, struct order_proof *ret, bool *ret_has, struct err *e)
{
    const struct measure *m = ctx;
    json_auto_t *body = ask_for_proofs(session, links, n);
    json_auto_t *answer = NULL;
    char address[IP_ADDR_TEXT_MAX];
    int r;

    if (!body)
        return err_set(e, -ENOMEM, "no memory for %zu members", n);
    r = agent_ask_with(
        m->agent_socket, "POST", "/v1/measure/proofs", body, ASK_TIMEOUT_MS, &answer, e);
    if (r != 0) {
        (void)err_prefix(e, "the agent of this machine proves nothing");
        return r < 0 ? r : -EIO;
    }
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_object_get(
            json_object_get(answer, "proofs"), ip_addr_format(&links[i].address, address)));

        ret_has[i] = text && hex_decode(text, ret[i].mac, sizeof(ret[i].mac));
    }
    return 0;
}

int measure_open(
    struct measure *m, const char *command, const char *agent_socket, const char *nodes)
{
    struct err e = ERR_NULL;
    json_auto_t *status = NULL;
    int r;

    (void)signal(SIGPIPE, SIG_IGN);
    m->started_at = clock_now();
    r = agent_ask(agent_socket, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, &e);
    if (r == 0)
        r = members_decode(&m->members, status, nodes, SURVEY_NODES_MAX, &e);
    if (r != 0)
        return cmd_fail(command, "%s", err_text(&e));
    (void)snprintf(
        m->socket_path, sizeof(m->socket_path), "%.4095s%s", agent_socket, AGENT_MEASURE_SUFFIX);
    if (!m->plan.purpose)
        m->plan.purpose = command;
    m->plan.reach = (struct coordinator_hooks){.own = m->members.items[0].address,
        .socket_path = m->socket_path,
        .interface = m->members.interface,
        .port = PROBE_PORT,
        .prove = prove,
        .ctx = m};
    m->agent_socket = agent_socket;
    if (isatty(STDERR_FILENO))
        m->plan.progress = show_progress;
    r = survey_open(&m->survey, &m->plan, m->members.items, m->members.n, &e);
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

json_t *measure_kept(const char *state_dir)
{
    char path[PATH_MAX];
    struct stat st;

    if (snprintf(path, sizeof(path), "%s/" JOB_PLAN_MEASURED, state_dir) >= PATH_MAX ||
        stat(path, &st) < 0 || st.st_size > KEPT_MAX || clock_wall_s() - st.st_mtime > KEPT_AGE_S)
        return NULL;
    return json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
}

void measure_close(struct measure *m)
{
    if (m->plan.progress)
        (void)fprintf(stderr, "\r\033[K");
    survey_deinit(&m->survey);
    members_deinit(&m->members);
}
