/* lost.c - see lost.h. */
#include "train/job/lost.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_ask.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "measure/order.h"
#include "mesh/object/fields.h"
#include "os/clock.h"
#include "os/child.h"
#include "os/interrupt.h"
#include "train/job/node.h"
#include "train/job/run.h"
#include "train/names/members.h"

#define LOOK_EACH_MS     3000
#define LOOK_A_NODE_MS   40
#define LOOK_EACH_MAX_MS 12000

/* While nothing else is done, it is looked more often. */
#define HURRY 6

/* Longest wait, while the hub answers, for a word of each other node, or for it to be missed; the
 * hub misses one after three looks and six seconds. */
#define ASSESS_MAX (60 * NSEC_PER_SEC)

/* While the hub is away, it is tried for so long to tell it that the command has ended. */
#define END_MAX (60 * NSEC_PER_SEC)

/* So many looks in a row have to show it. */
#define LOOKS 2

bool lost_is_watched(const struct run *run)
{
    return run->can_begin_again && !run->is_elastic && run->command_id[0] != '\0';
}

bool lost_is_said(const struct run *run)
{
    return run->rendezvous.id[0] != '\0' && !run->is_elastic && run->command_id[0] != '\0';
}

unsigned lost_each_ms(const struct run *run)
{
    unsigned ms = run->min_nodes * LOOK_A_NODE_MS;

    if (ms < LOOK_EACH_MS)
        return LOOK_EACH_MS;
    return ms < LOOK_EACH_MAX_MS ? ms : LOOK_EACH_MAX_MS;
}

/* False: a person does not want to wait. */
static bool pause_a_little(const struct run *run, struct interrupt *i)
{
    return !interrupt_wait(i, lost_each_ms(run) / HURRY);
}

enum rendezvous_state lost_say(const struct run *run, bool ended, struct rendezvous_presence *ret)
{
    if (lost_is_said(run))
        return rendezvous_say(run->socket_path, run->job, &run->rendezvous, run->command_id,
            lost_each_ms(run) / 1000, ended, ret);
    *ret = (struct rendezvous_presence){0};
    return rendezvous_look(run->socket_path, run->job, &run->rendezvous);
}

bool lost_is_own(
    const struct run *run, const struct rendezvous_presence *presence, struct lost_looks *looks)
{
    bool is_named = false;

    for (unsigned i = 0; i < presence->lost.n; i++)
        is_named = is_named || strcmp(presence->lost.names[i], run->node.name) == 0;
    looks->n_own = is_named ? looks->n_own + 1 : 0;
    if (looks->n_own == LOOKS)
        (void)fprintf(stderr,
            "weft run: an earlier command of this node was lost with the run %s of the job\n",
            run->rendezvous.id);
    return looks->n_own >= LOOKS;
}

/* The others have ended, so this node would wait for them without a word. */
static void tell_ended_without(const struct run *run, const struct rendezvous_presence *p)
{
    _cleanup_(str_deinit) struct str names = STR_NULL;

    if (p->ended_without.n_all == 0)
        return;
    rendezvous_format_nodes(&names, &p->ended_without);
    (void)fprintf(stderr,
        "weft run: note: this node was lost, and the run %s of the job has ended without it, on "
        "%s: the job begins when the same command is started there, too\n",
        p->run_without[0] != '\0' ? p->run_without : run->rendezvous.id, str_text(&names));
}

bool lost_is_before(const struct run *run)
{
    struct rendezvous_presence presence;
    struct lost_looks looks = {0};

    if (!lost_is_watched(run))
        return false;
    while (lost_say(run, false, &presence) == RENDEZVOUS_STATE_SAME) {
        if (lost_is_own(run, &presence, &looks))
            return true;
        if (looks.n_own == 0) {
            tell_ended_without(run, &presence);
            return false;
        }
        (void)poll(NULL, 0, (int)lost_each_ms(run));
    }
    return false;
}

static void tell_lost(const struct run *run, const struct rendezvous_presence *p)
{
    _cleanup_(str_deinit) struct str names = STR_NULL;

    rendezvous_format_nodes(&names, &p->lost);
    (void)fprintf(stderr,
        "weft run: lost of the job %s: %s, whose command has not ended and is not heard any more\n",
        run->rendezvous.id, str_text(&names));
}

bool lost_is_idle(const struct run *run, const struct rendezvous_presence *presence, bool is_idle,
    struct lost_looks *looks)
{
    bool waits = is_idle && presence->lost.n > 0 && run->wait_lost > 0;

    looks->n_idle = waits ? looks->n_idle + 1 : 0;
    if (looks->n_idle == LOOKS)
        tell_lost(run, presence);
    return looks->n_idle >= LOOKS;
}

static bool was_drained(const struct lost_looks *looks, const char *name)
{
    for (unsigned i = 0; i < looks->n_drained; i++)
        if (strcmp(looks->drained[i], name) == 0)
            return true;
    return false;
}

void lost_tell_drained(
    const struct run *run, const struct rendezvous_presence *presence, struct lost_looks *looks)
{
    /* A hub that was not reached has not said that nobody is. */
    if (!presence->is_known)
        return;
    for (unsigned i = 0; i < presence->n_drained; i++)
        if (!was_drained(looks, presence->drained[i].name))
            (void)fprintf(stderr,
                "weft run: note: node %s of the job %s fails its health check, and is drained: it "
                "gets no new work, and the job goes on: %s\n",
                presence->drained[i].name, run->rendezvous.id, presence->drained[i].why);
    looks->n_drained = presence->n_drained;
    for (unsigned i = 0; i < presence->n_drained; i++)
        memcpy(looks->drained[i], presence->drained[i].name, sizeof(looks->drained[0]));
}

int lost_assess(const struct run *run, struct interrupt *i)
{
    nsec_t begun_at = clock_now();
    nsec_t waited;
    nsec_t max;
    enum rendezvous_state state;
    struct rendezvous_presence p;
    char time[32];

    if (!lost_is_watched(run) || run->wait_lost == 0)
        return 0;
    do {
        state = lost_say(run, false, &p);
        waited = clock_now() - begun_at;
        if (state == RENDEZVOUS_STATE_BROKEN || state == RENDEZVOUS_STATE_MOVED)
            return RUN_E_CUT_OFF;
        if (state == RENDEZVOUS_STATE_SAME && p.lost.n > 0) {
            tell_lost(run, &p);
            return RUN_E_LOST;
        }
        if (state == RENDEZVOUS_STATE_SAME && (!p.is_known || p.silent_for < waited))
            return 0;
        max = state == RENDEZVOUS_STATE_UNKNOWN ? nsec_max(ASSESS_MAX, run->wait_lost) : ASSESS_MAX;
    } while (waited < max && pause_a_little(run, i));
    if (i->signal == 0)
        (void)fprintf(stderr,
            "weft run: the hub has not said for %s whether another node of the job %s was lost\n",
            format_duration(waited / NSEC_PER_SEC * NSEC_PER_SEC, time), run->rendezvous.id);
    return 0;
}

int lost_await(const struct run *run, nsec_t deadline, struct interrupt *i, struct err *e)
{
    nsec_t report_at = clock_now() + MISSING_FIRST_MS * NSEC_PER_MSEC;
    _cleanup_(str_deinit) struct str names = STR_NULL;
    struct rendezvous_presence p;
    enum rendezvous_state state;

    if (!lost_is_watched(run))
        return 0;
    do {
        state = lost_say(run, false, &p);
        if (state == RENDEZVOUS_STATE_BROKEN || state == RENDEZVOUS_STATE_MOVED)
            return LOST_E_AGAIN;
        if (state == RENDEZVOUS_STATE_SAME && (!p.is_known || p.n_present >= run->min_nodes))
            return 0;
        /* Another node has ended its command while all wait: it will not be there. */
        if (state == RENDEZVOUS_STATE_SAME && p.ended.n_all > 0) {
            rendezvous_format_nodes(&names, &p.ended);
            return err_set(e, LOST_E_ENDED, "the command of the job %s has ended on %s",
                run->rendezvous.id, str_text(&names));
        }
        if (clock_now() >= deadline)
            return err_set(e, LOST_E_ALONE, "%u of the %u nodes of the job %s are there",
                p.n_present, run->min_nodes, run->rendezvous.id);
        if (clock_now() >= report_at) {
            unsigned ms = missing_report(run);

            report_at = ms > 0 ? clock_now() + ms * NSEC_PER_MSEC : NSEC_NEVER;
        }
    } while (pause_a_little(run, i));
    return LOST_E_INTERRUPTED;
}

void lost_end(const struct run *run, struct interrupt *i)
{
    nsec_t until = clock_now() + END_MAX;
    struct rendezvous_presence unused;
    bool is_said = false;

    while (lost_say(run, true, &unused) == RENDEZVOUS_STATE_UNKNOWN) {
        if (!i || !lost_is_watched(run) || clock_now() >= until)
            return;
        if (!is_said)
            (void)fprintf(stderr,
                "weft run: the command has ended, and the hub does not answer: trying for up to %d "
                "s to have the job's other nodes told, which would begin again without this one\n",
                (int)(END_MAX / NSEC_PER_SEC));
        is_said = true;
        if (!pause_a_little(run, i))
            return;
    }
}

void lost_give_up(const struct run *run)
{
    struct rendezvous_presence unused;

    if (run->rendezvous.id[0] != '\0')
        (void)lost_say(run, true, &unused);
}

/* ==== who is missing ========================================================================= */

/* Milliseconds between later reports; and until the next try where there was nothing to say yet. */
#define AGAIN_MS 60000
#define SOON_MS  5000

#define ASK_TIMEOUT_MS 3000

#define NAMES_MAX 8 /* at most so many nodes are named in a list */

/* Names that are put into a list, and how many there are. */
struct names {
    struct str text;
    size_t n;
};

#define NAMES_NULL                                                                                 \
    {                                                                                              \
        STR_NULL, 0                                                                                \
    }

static void add_name(struct names *to, const char *name)
{
    if (to->n < NAMES_MAX)
        str_addf(&to->text, "%s%s", to->n == 0 ? "" : ", ", name);
    else if (to->n == NAMES_MAX)
        str_add(&to->text, ", ...");
    to->n++;
}

/* The other job that a node is in, by the hub's list of all; NULL: none is known. */
static const char *other_job(const json_t *jobs, const char *own, const char *node)
{
    const json_t *job;
    size_t i;

    json_array_foreach(json_object_get(jobs, "jobs"), i, job) {
        const char *name = json_string_value(json_object_get(job, "job"));

        if (name && strcmp(name, own) != 0 && parse_name(name, "job", NULL) == 0 &&
            fields_list_has(json_object_get(job, "present"), node))
            return name;
    }
    return NULL;
}

/* The peers that have not come: in no job that is known of, and those that are in another one. */
static void list_missing(
    const struct missing_facts *f, struct names *ret_idle, struct names *ret_elsewhere)
{
    const json_t *peer;
    size_t i;

    json_array_foreach(json_object_get(f->status, "peers"), i, peer) {
        const char *name = json_string_value(json_object_get(peer, "name"));
        const char *job;
        char text[2 * NAME_MAX_LEN + sizeof(" is in the job ")];

        if (!members_peer_takes_part(peer) || fields_list_has(f->present, name))
            continue;
        job = other_job(f->jobs, f->job, name);
        if (!job) {
            add_name(ret_idle, name);
            continue;
        }
        (void)snprintf(
            text, sizeof(text), "%.*s is in the job %.*s", NAME_MAX_LEN, name, NAME_MAX_LEN, job);
        add_name(ret_elsewhere, text);
    }
}

void missing_format(const struct missing_facts *f, struct str *out)
{
    struct names idle = NAMES_NULL;
    struct names elsewhere = NAMES_NULL;

    list_missing(f, &idle, &elsewhere);
    if (idle.n > 0)
        str_addf(out, "%s: start the same command there", str_text(&idle.text));
    if (elsewhere.n > 0)
        str_addf(out, "%s%s: give all the same --job", idle.n > 0 ? "; " : "",
            str_text(&elsewhere.text));
    if (idle.n + elsewhere.n == 0)
        str_add(out, "no other node of the network: are there enough?");
    str_deinit(&idle.text);
    str_deinit(&elsewhere.text);
}

void missing_format_unmet(const struct missing_facts *f, struct str *out)
{
    struct names started = NAMES_NULL;
    struct names idle = NAMES_NULL;
    struct names elsewhere = NAMES_NULL;
    const json_t *item;
    size_t i;

    json_array_foreach(f->present, i, item)
        if (json_is_string(item) && strcmp(json_string_value(item), f->self) != 0)
            add_name(&started, json_string_value(item));
    if (json_array_size(f->present) < f->min_nodes)
        list_missing(f, &idle, &elsewhere);
    if (started.n > 0)
        str_addf(out, "%s %s started it, too, and %s not met", str_text(&started.text),
            started.n == 1 ? "has" : "have", started.n == 1 ? "was" : "were");
    if (idle.n > 0)
        str_addf(out, "%s%s %s not started it", started.n > 0 ? "; " : "", str_text(&idle.text),
            idle.n == 1 ? "has" : "have");
    if (elsewhere.n > 0)
        str_addf(out, "%s%s", started.n + idle.n > 0 ? "; " : "", str_text(&elsewhere.text));
    if (started.n + idle.n + elsewhere.n == 0)
        str_add(out, "the network has no other node");
    str_deinit(&started.text);
    str_deinit(&idle.text);
    str_deinit(&elsewhere.text);
}

/* ---- asking --------------------------------------------------------------------------------- */

/* Asks the hub and the agent; @present: borrowed. False: the agent does not answer. What jobs there
 * are is of use, and no more. */
static bool missing_gather(struct missing_facts *f, const struct run *run, json_t *present)
{
    *f = (struct missing_facts){
        .present = present, .job = run->job, .self = run->node.name, .min_nodes = run->min_nodes};
    if (agent_ask(run->socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, &f->status, NULL) != 0)
        return false;
    (void)agent_ask(run->socket_path, "GET", "/v1/jobs", ASK_TIMEOUT_MS, &f->jobs, NULL);
    return true;
}

static void missing_release(struct missing_facts *f)
{
    json_decref(f->status);
    json_decref(f->jobs);
}

static void missing_tell(const struct run *run, const struct missing_facts *f)
{
    struct names here = NAMES_NULL;
    _cleanup_(str_deinit) struct str missing = STR_NULL;
    const json_t *item;
    size_t i;

    json_array_foreach(f->present, i, item)
        add_name(&here, json_is_string(item) ? json_string_value(item) : "?");
    missing_format(f, &missing);
    (void)fprintf(stderr,
        "weft run: still waiting: %zu of %u nodes %s come to the job %s%s%s%s; not yet: %s\n",
        json_array_size(f->present), run->min_nodes, here.n == 1 ? "has" : "have",
        run->rendezvous.id, here.n > 0 ? " (" : "", str_text(&here.text), here.n > 0 ? ")" : "",
        str_text(&missing));
    str_deinit(&here.text);
}

unsigned missing_report(const struct run *run)
{
    bool answers;
    json_auto_t *present =
        rendezvous_members(run->socket_path, run->job, run->rendezvous.id, &answers);
    bool waits = present && json_array_size(present) < run->min_nodes;
    /* A hub that was started anew has forgotten this node as well, and hears of all again. */
    bool is_known = waits && fields_list_has(present, run->node.name);
    _cleanup_(missing_release) struct missing_facts f = {0};

    if (is_known && missing_gather(&f, run, present))
        missing_tell(run, &f);
    if (!answers || (waits && !is_known))
        return SOON_MS;
    return waits ? AGAIN_MS : 0;
}

bool missing_unmet(const struct run *run, struct str *out)
{
    json_auto_t *present = rendezvous_members(run->socket_path, run->job, run->rendezvous.id, NULL);
    _cleanup_(missing_release) struct missing_facts f = {0};

    if (present && missing_gather(&f, run, present))
        missing_format_unmet(&f, out);
    return present && json_array_size(present) >= run->min_nodes;
}

/* ==== has the command met another node? ====================================================== */

/* So long it is looked often: a script that trains alone has ended soon. */
#define YOUNG (60 * NSEC_PER_SEC)

#define LOOK_EACH        (250 * NSEC_PER_MSEC)
#define LOOK_EACH_THEN   (2 * NSEC_PER_SEC)
#define LIST_EACH        NSEC_PER_SEC
#define LIST_EACH_THEN   (10 * NSEC_PER_SEC)
#define ASSESS_EACH      (2 * NSEC_PER_SEC)
#define ASSESS_EACH_THEN (20 * NSEC_PER_SEC)

/* Whom it has not met is said after a minute, once two looks have shown that all have come: one may
 * have come just now. */
#define REPORT_FIRST (40 * NSEC_PER_SEC)
#define REPORT_EACH  (20 * NSEC_PER_SEC)
#define COMPLETE     2

/* Ports below belong to services of the machine, such as ssh. */
#define PORT_FIRST 1024

/* The kernel tells of a connection's end from a thread of its own, a little later. */
#define LAST_WORDS_MS 1000

/* ---- what is seen --------------------------------------------------------------------------- */

static bool is_local(const struct met *m, const struct ip_addr *address)
{
    for (unsigned i = 0; i < m->n_locals; i++)
        if (ip_addr_equal(&m->locals[i], address))
            return true;
    return false;
}

/* A port at which a job's processes may be: neither a service's nor that of Weft's measurements. */
static bool may_be_job(uint16_t port)
{
    return port >= PORT_FIRST && port != PROBE_PORT;
}

static void add_seen(struct met *m, const struct ip_addr *address)
{
    for (unsigned i = 0; i < m->n_seen; i++)
        if (ip_addr_equal(&m->seen[i], address))
            return;
    /* So many others on the overlay, none of which is of the job: it is not known any more. */
    if (m->n_seen == MET_SEEN_MAX) {
        m->tcp.has_missed = true;
        return;
    }
    m->seen[m->n_seen++] = *address;
    m->has_new = true;
}

/* A tcp_watch_fn. */
static void met_take(void *ctx, const struct tcp_watch_pair *pair)
{
    struct met *m = ctx;

    if (!is_local(m, &pair->local.addr) || is_local(m, &pair->remote.addr))
        return;
    if (pair->remote.port != 0 && (endpoint_equal(&m->stores[0], &pair->remote) ||
                                      endpoint_equal(&m->stores[1], &pair->remote))) {
        m->has_new |= !m->uses_store;
        m->uses_store = true;
    } else if (may_be_job(pair->local.port) && may_be_job(pair->remote.port)) {
        add_seen(m, &pair->remote.addr);
    }
}

bool met_starts_elsewhere(const char *name)
{
    static const char *const names[] = {"docker", "podman", "nerdctl", "ctr", "kubectl", "ssh",
        "rsh", "pdsh", "srun", "sbatch", "mpirun", "mpiexec"};

    return parse_word(name, names, sizeof(names) / sizeof(*names)) < sizeof(names) / sizeof(*names);
}

/* A descendants_fn. */
static bool look_at_process(void *ctx, int pid)
{
    struct met *m = ctx;
    char name[16];

    m->is_elsewhere |= met_starts_elsewhere(descendants_name(pid, name));
    m->used_torch = m->used_torch || descendants_maps(pid, "libtorch");
    return !m->is_elsewhere;
}

/* ---- who it was ----------------------------------------------------------------------------- */

static bool is_text_of(const json_t *text, const struct ip_addr *address)
{
    struct ip_addr parsed;

    return json_is_string(text) && ip_addr_parse(&parsed, json_string_value(text), NULL) == 0 &&
           ip_addr_equal(&parsed, address);
}

bool met_is_of_member(const struct ip_addr *address, const json_t *status, const json_t *members,
    const struct island_lan *island)
{
    const json_t *peer;
    size_t i;

    json_array_foreach(json_object_get(status, "peers"), i, peer) {
        const char *name = json_string_value(json_object_get(peer, "name"));

        if (name && (!members || fields_list_has(members, name)) &&
            (is_text_of(json_object_get(peer, "address4"), address) ||
                is_text_of(json_object_get(peer, "address6"), address)))
            return true;
    }
    for (i = 0; island && i < island->n; i++)
        if (ip_addr_equal(&island->mates[i].lan, address) &&
            (!members || fields_list_has(members, island->mates[i].name)))
            return true;
    return false;
}

static bool is_any_of_member(const struct met *m, const json_t *members)
{
    _cleanup_(island_lan_deinit) struct island_lan island = ISLAND_LAN_NULL;
    json_auto_t *status = NULL;

    if (m->n_seen == 0 ||
        agent_ask(m->run->socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, NULL) != 0)
        return false;
    if (m->run->island_interface[0] != '\0')
        (void)island_lan_of_status(&island, status);
    for (unsigned i = 0; i < m->n_seen; i++)
        if (met_is_of_member(&m->seen[i], status, members, &island))
            return true;
    return false;
}

/* Asks the hub and the agent. @is_last: nothing more will be seen, and a hub that does not answer
 * is no reason to call the command alone. */
static void met_assess(struct met *m, bool is_last)
{
    json_auto_t *members =
        rendezvous_members(m->run->socket_path, m->run->job, m->run->rendezvous.id, NULL);

    m->has_new = false;
    if (!members && !is_last) {
        m->has_new = true;
        return;
    }
    m->has_met = (m->uses_store && (!members || json_array_size(members) > 1)) ||
                 is_any_of_member(m, members);
}

/* ---- the time ------------------------------------------------------------------------------- */

static void met_report(struct met *m, nsec_t now)
{
    _cleanup_(str_deinit) struct str others = STR_NULL;
    bool is_complete = missing_unmet(m->run, &others);

    m->n_complete = is_complete ? m->n_complete + 1 : 0;
    m->report_at = now + REPORT_EACH;
    if (m->n_complete < COMPLETE)
        return;
    m->report_at = NSEC_NEVER;
    (void)fprintf(stderr,
        "weft run: %s runs for %lld s now, and has exchanged nothing with another node of the job "
        "%s: %s\n",
        m->run->command.program, (long long)((now - m->begun_at) / NSEC_PER_SEC),
        m->run->rendezvous.id, str_text(&others));
}

void met_look(struct met *m)
{
    nsec_t now = clock_now();
    bool is_young = now - m->begun_at < YOUNG;

    if (now < m->look_at)
        return;
    tcp_watch_hear(&m->tcp, met_take, m);
    if (now >= m->list_at) {
        tcp_watch_list(&m->tcp, met_take, m);
        m->list_at = now + (is_young ? LIST_EACH : LIST_EACH_THEN);
    }
    descendants_walk(getpid(), look_at_process, m);
    /* Who uses the store alone may still be joined by others. */
    if (now >= m->assess_at && (m->has_new || m->uses_store || m->n_seen > 0)) {
        met_assess(m, false);
        m->assess_at = now + (is_young ? ASSESS_EACH : ASSESS_EACH_THEN);
    }
    if (!m->has_met && !m->is_elsewhere && now >= m->report_at)
        met_report(m, now);
    m->look_at = m->has_met || m->is_elsewhere
                     ? NSEC_NEVER
                     : clock_now() + (is_young ? LOOK_EACH : LOOK_EACH_THEN);
}

enum met_verdict met_end(struct met *m)
{
    nsec_t deadline = clock_now() + LAST_WORDS_MS * NSEC_PER_MSEC;

    if (!m->is_on || m->has_met || m->is_elsewhere)
        return MET_VERDICT_MET;
    tcp_watch_list(&m->tcp, met_take, m);
    m->has_new |= m->uses_store;
    for (;;) {
        struct pollfd updates = {.fd = m->tcp.updates_fd, .events = POLLIN};
        nsec_t left = deadline - clock_now();

        tcp_watch_hear(&m->tcp, met_take, m);
        if (m->has_new || left <= 0)
            met_assess(m, true);
        if (m->has_met || left <= 0)
            break;
        (void)poll(&updates, 1, (int)(left / NSEC_PER_MSEC) + 1);
    }
    if (m->has_met || m->tcp.has_missed)
        return MET_VERDICT_MET;
    return m->used_torch ? MET_VERDICT_STRAYED : MET_VERDICT_ALONE;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void find_locals(struct met *m)
{
    m->n_locals = train_node_locals(m->run->node.interface, m->locals, MET_LOCALS_MAX);
    if (m->run->island_interface[0] != '\0')
        m->n_locals += train_node_locals(
            m->run->island_interface, m->locals + m->n_locals, MET_LOCALS_MAX - m->n_locals);
}

void met_begin(struct met *m, const struct run *run)
{
    nsec_t now = clock_now();

    *m = (struct met){.run = run, .tcp = TCP_WATCH_NULL, .look_at = NSEC_NEVER};
    if (run->rendezvous.id[0] == '\0' || run->min_nodes < 2 || run->has_met)
        return;
    find_locals(m);
    (void)endpoint_parse(&m->stores[0], run->rendezvous.c10d, NULL);
    (void)endpoint_parse(&m->stores[1], run->rendezvous.etcd, NULL);
    m->is_on = m->n_locals > 0 && tcp_watch_open(&m->tcp) == 0;
    m->begun_at = now;
    m->report_at = now + REPORT_FIRST;
    m->look_at = m->is_on ? now + LOOK_EACH : NSEC_NEVER;
}

void met_deinit(struct met *m)
{
    tcp_watch_close(&m->tcp);
    m->is_on = false;
}
