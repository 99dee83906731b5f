/* rendezvous.c - see rendezvous.h. */
#include "train/job/rendezvous.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/client.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "net/socket/unix_socket.h"
#include "os/clock.h"
#include "os/interrupt.h"

#define STATUS_OK        200
#define STATUS_BAD       400
#define STATUS_NOT_FOUND 404
#define STATUS_NO_METHOD 405

/* HTTP status of the agent's answer when the hub does not answer the agent. */
#define STATUS_HUB_AWAY 502

/* HTTP status of a hub that does not serve the network's jobs, while no other one does either. */
#define STATUS_NOT_SERVED 421

#define ASK_TIMEOUT_MS  10000
#define TAKE_OVER_MS    20000 /* another hub takes the jobs over within about 8 s */
#define END_TIMEOUT_MS  2000
#define LOOK_TIMEOUT_MS 3000
#define LOOK_PAUSE_MS   500

/* Copies a text field. The text is empty when the field is missing. False when it is too long. */
static bool take_text(const json_t *obj, const char *field, char *buf, size_t cap)
{
    const char *text = json_string_value(json_object_get(obj, field));

    return snprintf(buf, cap, "%s", text ? text : "") < (int)cap;
}

/* The name of a run, which people see and programs get. */
static bool take_run(const json_t *obj, char *buf, size_t cap)
{
    return take_text(obj, "run", buf, cap) &&
           buf[strspn(buf, "abcdefghijklmnopqrstuvwxyz0123456789-.")] == '\0';
}

/* @what: of the job. @body: taken; NULL: none. */
static int call(const char *socket_path, const char *job, const char *what, const char *method,
    json_t *body, unsigned timeout_ms, struct client_answer *answer, struct err *e)
{
    char users[UNIX_SOCKET_CHOICE_CAP];
    struct client_target target = {
        .access = CLIENT_ACCESS_UNIX, .address = unix_socket_choose(socket_path, users)};
    json_auto_t *owned = body;
    char path[NAME_MAX_LEN + 32];

    (void)snprintf(path, sizeof(path), "/v1/jobs/%.*s/%s", NAME_MAX_LEN, job, what);
    return client_call(&target, method, path, owned, timeout_ms, answer, e);
}

/* About where the job meets. @body: as call() has it. */
static int ask(const char *socket_path, const char *job, const char *method, json_t *body,
    unsigned timeout_ms, struct client_answer *answer, struct err *e)
{
    return call(socket_path, job, "rendezvous", method, body, timeout_ms, answer, e);
}

static int arrive(const char *socket_path, const char *job, struct rendezvous_arrival *a,
    struct client_answer *answer, struct err *e)
{
    json_t *dry = a->is_dry_run ? json_true() : NULL;
    json_t *body =
        json_pack("{s:s*, s:s*, s:o*}", "brokenRun", a->broken, "nnodes", a->nnodes, "dryRun", dry);
    int r = ask(socket_path, job, "POST", body, ASK_TIMEOUT_MS, answer, e);

    if (r != CLIENT_E_REFUSED || answer->status != STATUS_BAD || (!a->nnodes && !a->is_dry_run))
        return r;
    /* A hub of before knows neither a number of nodes nor a dry run; a job that is there it shows.
     */
    client_answer_deinit(answer);
    if (a->is_dry_run)
        return ask(socket_path, job, "GET", NULL, ASK_TIMEOUT_MS, answer, e);
    a->nnodes = NULL;
    return arrive(socket_path, job, a, answer, e);
}

/* Asks for the meeting. While no hub serves the jobs, asks again until another one does. */
static int ask_meeting(const char *socket_path, const char *job, struct rendezvous_arrival a,
    struct client_answer *answer, struct err *e)
{
    nsec_t deadline = clock_now() + (nsec_t)TAKE_OVER_MS * NSEC_PER_MSEC;
    int r = arrive(socket_path, job, &a, answer, e);

    while (r == CLIENT_E_REFUSED && answer->status == STATUS_NOT_SERVED && clock_now() < deadline) {
        client_answer_deinit(answer);
        (void)poll(NULL, 0, LOOK_PAUSE_MS);
        r = arrive(socket_path, job, &a, answer, e);
    }
    return r;
}

int rendezvous_ask(const char *socket_path, const char *job, const struct rendezvous_arrival *a,
    struct env_meeting *ret, struct err *e)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    struct env_meeting m = {0};
    int r = ask_meeting(socket_path, job, *a, &answer, e);

    if (r == CLIENT_E_REFUSED && answer.status == STATUS_NOT_FOUND && a->is_dry_run)
        return err_set(
            e, r, "the hub is of a version that says only of a job that is there where it meets");
    if (r == CLIENT_E_REFUSED && answer.status == STATUS_NOT_FOUND)
        return err_set(e, r, "the hub is of a version without a rendezvous");
    if (r != 0) {
        bool is_away = r == CLIENT_E_REFUSED &&
                       (answer.status == STATUS_HUB_AWAY || answer.status == STATUS_NOT_SERVED);

        (void)err_prefix(e, "the hub does not say where the job \"%s\" meets", job);
        return is_away ? RENDEZVOUS_E_AWAY : r;
    }
    if (!take_run(answer.body, m.id, sizeof(m.id)) || m.id[0] == '\0' ||
        !take_text(json_object_get(answer.body, "c10d"), "endpoint", m.c10d, sizeof(m.c10d)) ||
        !take_text(json_object_get(answer.body, "etcdV2"), "endpoint", m.etcd, sizeof(m.etcd)))
        return err_set(e, -EPROTO, "the hub's answer about the job \"%s\" names no run of it", job);
    if (!take_text(answer.body, "epoch", m.epoch, sizeof(m.epoch)))
        m.epoch[0] = '\0';
    m.begins = json_is_true(json_object_get(answer.body, "begins"));
    *ret = m;
    return 0;
}

static enum rendezvous_state state_of(
    const struct client_answer *answer, const struct env_meeting *m)
{
    const char *epoch = json_string_value(json_object_get(answer->body, "epoch"));
    const char *run = json_string_value(json_object_get(answer->body, "run"));

    if (answer->status != STATUS_OK || !epoch || !run)
        return RENDEZVOUS_STATE_UNKNOWN;
    if (strcmp(run, m->id) != 0)
        return RENDEZVOUS_STATE_BROKEN;
    return strcmp(epoch, m->epoch) == 0 ? RENDEZVOUS_STATE_SAME : RENDEZVOUS_STATE_MOVED;
}

enum rendezvous_state rendezvous_look(
    const char *socket_path, const char *job, const struct env_meeting *m)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;

    (void)ask(socket_path, job, "GET", NULL, LOOK_TIMEOUT_MS, &answer, NULL);
    return state_of(&answer, m);
}

/* A count that the hub has said; 0 when it is none. */
static unsigned take_count(const json_t *said, const char *field)
{
    json_int_t n = json_integer_value(json_object_get(said, field));

    return n > 0 && n <= UINT_MAX ? (unsigned)n : 0;
}

/* Seconds that the hub has said, as ns; 0 when it is no time, and a year at most. */
static nsec_t take_seconds(const json_t *said, const char *field)
{
    double s = json_number_value(json_object_get(said, field));
    double most = 365.0 * 86400;

    if (!(s > 0))
        return 0;
    return (nsec_t)((s < most ? s : most) * (double)NSEC_PER_SEC);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* By name, as the hub has them in the order that it has heard of them. @n_field: absent in a hub of
 * before, which names all. */
static void take_nodes(
    struct rendezvous_nodes *ret, const json_t *said, const char *field, const char *n_field)
{
    const json_t *name;
    size_t i;

    json_array_foreach(json_object_get(said, field), i, name)
        if (ret->n < RENDEZVOUS_NAMED_MAX && json_is_string(name) &&
            parse_name(json_string_value(name), "node", NULL) == 0)
            (void)snprintf(ret->names[ret->n++], sizeof(ret->names[0]), "%.*s", NAME_MAX_LEN,
                json_string_value(name));
    qsort(ret->names, ret->n, sizeof(ret->names[0]), compare_names);
    ret->n_all = take_count(said, n_field);
    if (ret->n_all < ret->n)
        ret->n_all = ret->n;
}

/* What the hub says of the commands of the run. */
static void take_presence(struct rendezvous_presence *ret, const json_t *said)
{
    ret->is_known = true;
    ret->n_present = take_count(said, "present");
    ret->silent_for = take_seconds(said, "silentSeconds");
    take_nodes(&ret->lost, said, "lost", "lostNodes");
    take_nodes(&ret->ended, said, "endedOn", "ended");
    said = json_object_get(said, "endedWithout");
    if (take_run(said, ret->run_without, sizeof(ret->run_without)))
        take_nodes(&ret->ended_without, said, "endedOn", "ended");
}

void rendezvous_format_nodes(struct str *out, const struct rendezvous_nodes *nodes)
{
    for (unsigned i = 0; i < nodes->n; i++)
        str_addf(out, "%s%s", i == 0 ? "" : ", ", nodes->names[i]);
    if (nodes->n_all > nodes->n)
        str_addf(out, "%s%u more", nodes->n > 0 ? " and " : "", nodes->n_all - nodes->n);
}

enum rendezvous_state rendezvous_say(const char *socket_path, const char *job,
    const struct env_meeting *m, const struct rendezvous_word *word,
    struct rendezvous_presence *ret)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    json_t *body = json_pack("{s:s, s:s, s:i, s:b}", "run", m->id, "command", word->command,
        "everySeconds", (int)word->every_s, "ended", (int)word->ended);
    enum rendezvous_state state;

    *ret = (struct rendezvous_presence){0};
    (void)ask(socket_path, job, "PUT", body, LOOK_TIMEOUT_MS, &answer, NULL);
    /* A hub, or an agent, of a version that does not know this call. */
    if (answer.status == STATUS_NOT_FOUND || answer.status == STATUS_NO_METHOD)
        return rendezvous_look(socket_path, job, m);
    state = state_of(&answer, m);
    if (state == RENDEZVOUS_STATE_SAME || state == RENDEZVOUS_STATE_MOVED)
        take_presence(ret, json_object_get(answer.body, "presence"));
    return state;
}

json_t *rendezvous_members(const char *socket_path, const char *job, const char *run)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    const char *present;
    json_t *members;

    (void)ask(socket_path, job, "GET", NULL, LOOK_TIMEOUT_MS, &answer, NULL);
    present = json_string_value(json_object_get(answer.body, "run"));
    members = json_object_get(answer.body, "members");
    if (!present || strcmp(present, run) != 0 || !json_is_array(members))
        return NULL;
    return json_incref(members);
}

bool rendezvous_wait(
    const char *socket_path, const char *job, unsigned patience_ms, struct interrupt *i)
{
    nsec_t deadline = clock_now() + (nsec_t)patience_ms * NSEC_PER_MSEC;

    do {
        _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;

        /* Any status from the hub counts as an answer, also 404 when it has forgotten the job. */
        (void)ask(socket_path, job, "GET", NULL, LOOK_TIMEOUT_MS, &answer, NULL);
        if (answer.status != 0 && answer.status != STATUS_HUB_AWAY &&
            answer.status != STATUS_NOT_SERVED)
            return true;
    } while (!interrupt_wait(i, LOOK_PAUSE_MS) && clock_now() < deadline);
    return false;
}

void rendezvous_say_nccl(const char *socket_path, const char *job, json_t *said)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;

    if (said)
        (void)call(socket_path, job, "nccl", "POST", said, END_TIMEOUT_MS, &answer, NULL);
}

void rendezvous_end(const char *socket_path, const char *job)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;

    /* The hub refuses this while other nodes are connected. It accepts it from the last one. */
    (void)ask(socket_path, job, "DELETE", NULL, END_TIMEOUT_MS, &answer, NULL);
}
