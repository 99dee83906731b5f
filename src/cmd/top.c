/* top.c - weft top: a network's nodes, pairs, jobs and findings, live in a terminal. */
#include "top/top_model.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_ask.h"
#include "agent/state/state.h"
#include "base/containers.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "os/clock.h"
#include "os/terminal.h"
#include "os/worker.h"
#include "top/top_frame.h"
#include "top/top_rates.h"
#include "top/top_view.h"

#define ASK_TIMEOUT_MS 10000

/* What costs a hub more is asked for less often: what was moved, and in a large network the pairs,
 * which take so long. */
#define COSTLY_EACH (5 * NSEC_PER_SEC)
#define COSTLY      (NSEC_PER_SEC / 4)

/* Who is asked has so many times the time that it takes for itself. */
#define REST_TIMES        3
#define COSTLY_REST_TIMES 20

/* What was answered so long ago is shown no more. */
#define OLD (15 * NSEC_PER_SEC)

/* An escape after which nothing comes for so long is a key, ms. */
#define KEY_PAUSE_MS 50

static struct {
    struct admin_target target;
    const char *network;
    const char *says_network;
    const char *agent;
    const char *says_agent;
    nsec_t interval;
    bool once;
} arg;

static const struct option options[] = {
    {"--once", NULL, option_flag, &arg.once, NULL,
        "print it once, as text; so it is where there is no terminal"},
    {"--interval", "DURATION", option_duration, &arg.interval, "1s", "how often it is asked for",
        .min = NSEC_PER_SEC / 2, .max = 3600 * NSEC_PER_SEC},
    {"--network", "NAME", option_name, &arg.network, "default", "of a hub: which network",
        .given = &arg.says_network},
    {"--agent", "PATH", option_socket, &arg.agent, STATE_SOCKET_DEFAULT,
        "the agent's socket: this node and its peers", .given = &arg.says_agent},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "top",
    .summary = "Watch nodes, pairs, jobs and findings in a terminal.",
    .options = options,
    .notes = "On a hub, and with --hub, --socket or --network, it is a network as the hub sees it; "
             "on a\nnode, and with --agent, this node and its peers. In it \"?\" tells the keys.",
};

/* ---- asking ---------------------------------------------------------------------------------- */

/* A round of questions, and what was answered. */
struct round {
    struct list job;  /* the worker's, while it asks; then so is all of it */
    bool is_of_agent; /* immutable: an agent is asked, and no hub */
    bool is_costly;   /* also what is asked for less often */
    bool wants_edges; /* also for the pairs */
    json_t *nodes;    /* owns, as the others; NULL: there is no answer */
    json_t *edges;
    json_t *findings;
    json_t *jobs;
    json_t *traffic;
    json_t *status;
    nsec_t took;
    nsec_t edges_took;
    nsec_t costly_took;
    int result; /* 0, or why the first question has no answer */
    struct err e;
};

static void forget(json_t **json)
{
    json_decref(*json);
    *json = NULL;
}

/* What is costly stays until there is a new one. */
static void begin_round(struct round *r, bool is_costly)
{
    r->is_costly = is_costly;
    r->wants_edges = is_costly || r->edges_took < COSTLY;
    forget(&r->nodes);
    forget(&r->findings);
    forget(&r->status);
    forget(&r->traffic);
    if (r->wants_edges)
        forget(&r->edges);
    if (!r->is_of_agent || is_costly)
        forget(&r->jobs);
    r->e = (struct err)ERR_NULL;
}

static void round_deinit(struct round *r)
{
    begin_round(r, true);
}

/* A hub of an earlier version, or one that does not serve the jobs, does not know all of it. */
static void ask_hub(const char *what, json_t **ret)
{
    char path[160];

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/%s", arg.network, what);
    (void)admin_ask(&arg.target, path, ret, NULL);
}

static void ask_all_of_hub(struct round *r)
{
    nsec_t begun_at;
    char path[160];

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/nodes", arg.network);
    r->result = admin_ask(&arg.target, path, &r->nodes, &r->e);
    if (r->result != 0)
        return;
    ask_hub("findings", &r->findings);
    ask_hub("jobs", &r->jobs);
    begun_at = clock_now();
    if (r->wants_edges) {
        ask_hub("edges", &r->edges);
        r->edges_took = clock_now() - begun_at;
    }
    if (r->is_costly)
        ask_hub("traffic", &r->traffic);
    r->costly_took = clock_now() - begun_at;
}

static void ask_all_of_agent(struct round *r)
{
    nsec_t begun_at;

    r->result = agent_ask(arg.agent, "GET", "/v1/status", ASK_TIMEOUT_MS, &r->status, &r->e);
    begun_at = clock_now();
    /* It asks the hub, and shows the jobs of this machine by itself. */
    if (r->result == 0 && r->is_costly)
        (void)agent_ask(arg.agent, "GET", "/v1/jobs", ASK_TIMEOUT_MS, &r->jobs, NULL);
    r->costly_took = clock_now() - begun_at;
}

/* On the worker's thread. */
static void ask(struct list *job)
{
    struct round *r = container_of(job, struct round, job);
    nsec_t begun_at = clock_now();

    if (r->is_of_agent)
        ask_all_of_agent(r);
    else
        ask_all_of_hub(r);
    r->took = clock_now() - begun_at;
}

/* ---- what is shown --------------------------------------------------------------------------- */

struct top {
    struct round round;
    struct worker *worker; /* owns; NULL: nothing is asked beside */
    bool is_asking;
    nsec_t asked_at;
    nsec_t next_at;     /* when it is asked again */
    nsec_t costly_at;   /* when it is asked again for what costs more */
    nsec_t answered_at; /* 0: not yet */
    struct top_rates rates;
    struct top_model model;
    struct top_view view;
    struct top_keys keys;
    char said[sizeof(((struct err *)0)->text) + 64]; /* about who is asked; "": it answers */
};

static void show_answers(struct top *t, nsec_t now)
{
    const struct round *r = &t->round;

    if (r->is_of_agent)
        top_rates_take_status(&t->rates, r->status, now);
    else if (r->traffic)
        top_rates_take(&t->rates, json_object_get(r->traffic, "rows"), now);
    top_model_deinit(&t->model);
    top_model_make(&t->model, &(struct top_answers){.network = arg.network,
                                  .nodes = r->nodes,
                                  .edges = r->edges,
                                  .jobs = r->jobs,
                                  .findings = r->findings,
                                  .status = r->status,
                                  .rates = &t->rates});
    top_view_follow(&t->view, &t->model);
    t->answered_at = now;
    t->said[0] = '\0';
}

/* What it said last stays for a moment. */
static void show_silence(struct top *t, nsec_t now)
{
    char *why = top_plain(err_text(&t->round.e));
    char *title;

    if (t->answered_at != 0)
        (void)snprintf(t->said, sizeof(t->said), "no answer for %lld s: %s",
            (long long)((now - t->answered_at) / NSEC_PER_SEC), why ? why : "no memory");
    else
        (void)snprintf(t->said, sizeof(t->said), "%s", why ? why : "no memory");
    free(why);
    if (t->model.is_silent || (t->answered_at != 0 && now - t->answered_at < OLD))
        return;
    title = TAKE_PTR(t->model.title);
    top_model_deinit(&t->model);
    top_rates_deinit(&t->rates);
    t->model.title = title;
    t->model.is_silent = true;
}

static void on_answer(struct top *t, nsec_t now)
{
    const struct round *r = &t->round;

    t->is_asking = false;
    t->next_at = nsec_max(t->asked_at + arg.interval, now + REST_TIMES * r->took);
    if (r->is_costly)
        t->costly_at = now + nsec_max(COSTLY_EACH, COSTLY_REST_TIMES * r->costly_took);
    if (r->result == 0)
        show_answers(t, now);
    else
        show_silence(t, now);
}

static void begin_to_ask(struct top *t, nsec_t now)
{
    begin_round(&t->round, now >= t->costly_at);
    t->asked_at = now;
    t->is_asking = worker_put(t->worker, &t->round.job);
}

/* ---- once ------------------------------------------------------------------------------------ */

/* An agent's rates are the difference of two looks. */
static int show_once(struct top *t)
{
    struct str out = STR_NULL;
    int status;

    for (unsigned i = 0; i < (t->round.is_of_agent ? 2 : 1); i++) {
        if (i > 0)
            (void)poll(NULL, 0, 1000);
        begin_round(&t->round, true);
        ask(&t->round.job);
        on_answer(t, clock_now());
        if (t->round.result != 0)
            return cmd_fail("top", "%s", err_text(&t->round.e));
    }
    top_frame_format_all(&out, &t->model, t->said);
    status = cmd_print("top", str_text(&out));
    str_deinit(&out);
    return status;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static bool draw(struct top *t, bool is_new)
{
    struct str out = STR_NULL;
    bool is_shown;

    terminal_size(&t->view.n_columns, &t->view.n_lines);
    top_frame_format(&out, &t->model, &t->view, t->said);
    is_shown = terminal_draw(str_text(&out), is_new);
    str_deinit(&out);
    return is_shown;
}

/* False: it is to end. */
static bool take_key(struct top *t, int key)
{
    switch (key == TOP_KEY_NONE ? TOP_ACTION_NONE : top_view_key(&t->view, &t->model, key)) {
    case TOP_ACTION_NONE:
        break;
    case TOP_ACTION_QUIT:
        return false;
    case TOP_ACTION_ASK:
        t->next_at = 0;
        t->costly_at = 0;
        break;
    }
    return true;
}

static bool take_keys(struct top *t)
{
    char bytes[64];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
    bool goes_on = n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));

    for (ssize_t i = 0; goes_on && i < n; i++)
        goes_on = take_key(t, top_keys_take(&t->keys, bytes[i]));
    return goes_on;
}

static int wait_ms(const struct top *t, nsec_t now)
{
    nsec_t left = t->is_asking ? NSEC_PER_SEC : nsec_max(t->next_at - now, 0);
    int ms = (int)(nsec_min(left, 3600 * NSEC_PER_SEC) / NSEC_PER_MSEC) + 1;

    return t->keys.n > 0 && ms > KEY_PAUSE_MS ? KEY_PAUSE_MS : ms;
}

/* Until a key or a signal ends it, or the terminal is gone. Return: the signal; 0: none. */
static int run_loop(struct top *t, struct terminal *terminal)
{
    enum { KEYS, SIGNALS, ANSWERS, N };
    struct pollfd fds[N] = {[KEYS] = {.fd = STDIN_FILENO, .events = POLLIN},
        [SIGNALS] = {.fd = terminal->signals, .events = POLLIN},
        [ANSWERS] = {.fd = worker_done_fd(t->worker), .events = POLLIN}};
    bool is_new = true;
    int signal = 0;

    for (;;) {
        nsec_t now = clock_now();

        if (!t->is_asking && now >= t->next_at)
            begin_to_ask(t, now);
        if (!draw(t, is_new))
            return 0;
        is_new = false;
        if (poll(fds, N, wait_ms(t, now)) == 0 && !take_key(t, top_keys_pause(&t->keys)))
            return 0;
        if (fds[SIGNALS].revents)
            switch (terminal_signal(terminal, &signal)) {
            case TERMINAL_EVENT_NONE:
                break;
            case TERMINAL_EVENT_REDRAW:
                is_new = true;
                break;
            case TERMINAL_EVENT_END:
                return signal;
            }
        if (fds[KEYS].revents && !take_keys(t))
            return 0;
        if (worker_collect(t->worker))
            on_answer(t, clock_now());
        for (unsigned i = 0; i < N; i++)
            fds[i].revents = 0;
    }
}

static bool wants_colours(void)
{
    const char *no = getenv("NO_COLOR");

    return !no || no[0] == '\0';
}

static int show_live(struct top *t)
{
    static const struct worker_config config = {.name = "top", .max = 1, .job = ask};
    struct terminal terminal = TERMINAL_NULL;
    struct err e = ERR_NULL;
    int signal;

    /* Before the thread, which is not to take the signals. */
    if (terminal_open(&terminal, &e) != 0)
        return cmd_fail("top", "%s", err_text(&e));
    if (worker_start(&t->worker, &config) < 0) {
        terminal_close(&terminal);
        return cmd_fail("top", "no thread for it");
    }
    t->view.has_colours = wants_colours();
    signal = run_loop(t, &terminal);
    terminal_close(&terminal);
    if (signal != 0)
        (void)raise(signal);
    return CMD_OK;
}

/* Until there is an answer. */
static void show_nothing(struct top *t)
{
    char title[96];

    (void)snprintf(title, sizeof(title), "network %.63s", arg.network);
    t->model.title = top_plain(t->round.is_of_agent ? "this node" : title);
    t->model.is_silent = true;
}

/* The whole of it, once it is known who is asked. */
static int show(struct top *t)
{
    const char *term = getenv("TERM");
    bool is_live = !arg.once && terminal_is_there() && term && strcmp(term, "dumb") != 0;
    int status;

    show_nothing(t);
    status = is_live ? show_live(t) : show_once(t);

    /* A question that is on its way may take its time, and nobody waits for it. */
    if (t->is_asking && t->worker) {
        (void)fflush(stdout);
        _exit(status);
    }
    if (t->worker)
        t->worker = worker_stop(t->worker);
    round_deinit(&t->round);
    top_model_deinit(&t->model);
    top_rates_deinit(&t->rates);
    return status;
}

int cmd_top(int argc, char **argv)
{
    struct top t = {.is_asking = false};
    struct err e = ERR_NULL;
    const char *of_hub;
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    of_hub = arg.says_network ? arg.says_network : admin_option_given(&arg.target);
    if (arg.says_agent && of_hub)
        return cmd_refuse("top", "--agent is of a node, and %s of a hub: give either", of_hub);
    /* Where nobody says so, a hub on this machine is asked, and else its agent. */
    t.round.is_of_agent = arg.says_agent || (!of_hub && access(arg.target.socket, F_OK) != 0);
    if (!t.round.is_of_agent && admin_check(&arg.target, &e) != 0)
        return cmd_refuse("top", "%s", err_text(&e));
    list_init(&t.round.job);
    t.rates.is_stepped = !t.round.is_of_agent;
    return show(&t);
}
