/* job_rules.c - see job_rules.h. */
#include "hub/watch/job_rules.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/jobs/job.h"
#include "hub/jobs/jobs.h"
#include "hub/record/record.h"
#include "mesh/object/fields.h"
#include "mesh/object/rule.h"
#include "os/log.h"
#include "store/store.h"

/** The two rules of a job. */
enum job_rule {
    JOB_RULE_MEMBERS,
    JOB_RULE_HUB,
    JOB_RULE_N,
};

static const char *const heads[] = {[JOB_RULE_MEMBERS] = "job-", [JOB_RULE_HUB] = "jobhub-"};

/* Longest name of a job that has rules. */
#define JOB_NAME_MAX ((int)(NAME_MAX_LEN - sizeof("jobhub-") + 1))

static const char *name_of(enum job_rule which, const char *job, char buf[static NAME_MAX_LEN + 1])
{
    (void)snprintf(buf, NAME_MAX_LEN + 1, "%s%.*s", heads[which], JOB_NAME_MAX, job);
    return buf;
}

/* The rule of that name; NULL: there is none. */
static const struct rule *find_rule(const struct model_network *net, const char *name)
{
    const struct model_object *o = model_find_object(net, &rule_kind, name);

    return o ? rule_of(&o->object) : NULL;
}

static bool names_node(const struct rule_peer *peers, unsigned n, const struct model_node *node)
{
    return rule_is_about(peers, n, &(struct rule_end){.node = &node->spec});
}

/* ---- may it be? ----------------------------------------------------------------------------- */

int job_rules_check(
    const struct model_network *net, const char *job, const char *member, struct err *e)
{
    const struct model_node *node = model_find_node(net, member);

    if (strcmp(job, JOBS_DEFAULT) == 0)
        return err_set(e, -EINVAL,
            "the job \"" JOBS_DEFAULT "\" is for all members: name one with --job to isolate it");
    if (strlen(job) > (size_t)JOB_NAME_MAX)
        return err_set(e, -EINVAL,
            "the job's name \"%s\" is too long to isolate it: at most %d bytes", job, JOB_NAME_MAX);
    for (unsigned i = 0; i < JOB_RULE_N; i++) {
        char name[NAME_MAX_LEN + 1];
        const struct rule *r = find_rule(net, name_of((enum job_rule)i, job, name));

        if (r && strcmp(r->job, job) != 0)
            return err_set(e, -EINVAL,
                "the network has a rule \"%s\", which the job \"%s\" needs for itself: give it "
                "another name",
                name, job);
        if (r && i == JOB_RULE_MEMBERS && r->n_from >= RULE_PEERS_MAX && node &&
            !names_node(r->from, r->n_from, node))
            return err_set(e, -E2BIG, "the job \"%s\" has %d nodes, and isolated ones no more", job,
                RULE_PEERS_MAX);
    }
    return 0;
}

/* ---- what a job's rules say ----------------------------------------------------------------- */

/* The rule that is kept of this run; NULL: there is none. */
static const struct rule *rule_of_run(const struct model_network *net, const struct job *job)
{
    char name[NAME_MAX_LEN + 1];
    const struct rule *r = find_rule(net, name_of(JOB_RULE_MEMBERS, job->name, name));

    return r && strcmp(r->job, job->name) == 0 && r->run == job->record.run ? r : NULL;
}

/* Those in @names, and those that the rule has. @is_to: as its destinations. */
static json_t *encode_nodes(
    const struct model_network *net, json_t *names, const struct rule *kept, bool is_to)
{
    json_t *list = json_array();
    char text[RULE_TEXT_MAX];

    for (size_t i = 0; i < net->nodes.n && json_array_size(list) < RULE_PEERS_MAX; i++) {
        const struct model_node *node = model_node_at(net, i);
        bool is_kept = kept && (is_to ? names_node(kept->to, kept->n_to, node)
                                      : names_node(kept->from, kept->n_from, node));

        if (!is_kept && !json_object_get(names, node->spec.meta.name))
            continue;
        (void)snprintf(text, sizeof(text), "node:%s", node->spec.meta.name);
        fields_append(&list, json_string(text));
    }
    return list;
}

/* One of the job's rules as an object; NULL: nobody is isolated, or no memory. */
static json_t *encode_rule(
    const struct model_network *net, const struct job *job, enum job_rule which)
{
    const struct rule *kept = rule_of_run(net, job);
    json_t *from = encode_nodes(net, job->members.names, kept, false);
    json_t *to = encode_nodes(net, job->members.isolated, kept, true);
    bool is_empty = json_array_size(from) == 0 || json_array_size(to) == 0;
    char name[NAME_MAX_LEN + 1];
    char port[RULE_TEXT_MAX];
    json_t *allow;

    (void)snprintf(port, sizeof(port), "tcp/%u", job->record.port);
    if (which == JOB_RULE_HUB) {
        json_decref(to);
        to = json_pack("[s]", "hub");
        allow = json_pack("[s]", port);
    } else {
        allow = json_pack("[s, s, s]", "tcp/1024-65535", "udp/1024-65535", "icmp");
    }
    if (is_empty) {
        json_decref(from);
        json_decref(to);
        json_decref(allow);
        return NULL;
    }
    return json_pack("{s:s, s:{s:s, s:s}, s:{s:o, s:o, s:o, s:s, s:I}}", "kind", rule_kind.name,
        "metadata", "name", name_of(which, job->name, name), "network", net->spec.meta.name, "spec",
        "from", from, "to", to, "allow", allow, "job", job->name, "run",
        (json_int_t)job->record.run);
}

/* ---- in the store --------------------------------------------------------------------------- */

/* Somebody may change the record at the same time: the next look sees what is there then. */
static void write_op(const struct model_network *net, struct store_op op, nsec_t now)
{
    struct err e = ERR_NULL;
    uint64_t held = model_revision(net->model, op.key);

    op.expect = held ? held : STORE_EXPECT_ABSENT;
    if (model_store(net->model, &op, 1, now, NULL, NULL, &e) != 0)
        log_warning("the rule of a job waits for the next try: %s", err_text(&e));
}

static void write_rule(
    const struct model_network *net, const struct job *job, enum job_rule which, nsec_t now)
{
    json_auto_t *json = encode_rule(net, job, which);
    char name[NAME_MAX_LEN + 1];
    const struct model_object *before =
        model_find_object(net, &rule_kind, name_of(which, job->name, name));
    struct object rule = OBJECT_NULL;
    _cleanup_(freep) char *value = NULL;
    _cleanup_(freep) char *held = NULL;
    char key[RECORD_KEY_MAX];
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = record_object_key(key, &rule_kind, net->spec.meta.name, name)};

    /* One of that name that is no job's stays as it is. */
    if (!json || (before && strcmp(rule_of(&before->object)->job, job->name) != 0) ||
        object_decode(&rule, json, OBJECT_STRICT, NULL) != 0)
        return;
    value = record_object_encode(&rule);
    object_deinit(&rule);
    held = before ? record_object_encode(&before->object) : NULL;
    if (!value || (held && strcmp(value, held) == 0))
        return;
    op.value = value;
    write_op(net, op, now);
}

/* One whose job has ended, or has begun another run, or is not known. */
static void remove_rule(const struct model_network *net, const struct object *o, nsec_t now)
{
    const struct rule *r = rule_of(o);
    const struct job *job = jobs_find(&net->served->jobs, r->job);
    char key[RECORD_KEY_MAX];
    const struct store_op op = {.kind = STORE_OP_DELETE,
        .key = record_object_key(key, &rule_kind, net->spec.meta.name, o->meta.name)};

    if (!job || job_is_over(job, now) || job->record.run != r->run)
        write_op(net, op, now);
}

/** A look at one network. */
struct looking {
    const struct model_network *net;
    nsec_t now;
};

static void look_job(void *arg, const struct job *job)
{
    const struct looking *l = arg;

    if (job_is_over(job, l->now) || (!job->members.isolated && !rule_of_run(l->net, job)))
        return;
    /* Who knows of the job's rule has heard of the other one before. */
    write_rule(l->net, job, JOB_RULE_HUB, l->now);
    write_rule(l->net, job, JOB_RULE_MEMBERS, l->now);
}

void job_rules_look(const struct model_network *net, nsec_t now)
{
    struct looking l = {.net = net, .now = now};
    const struct object *o;
    size_t i = 0;

    if (!net->served->jobs.served)
        return;
    while ((o = model_each_object(net, &rule_kind, &i)))
        if (rule_of(o)->job[0] != '\0')
            remove_rule(net, o, now);
    jobs_each(&net->served->jobs, look_job, &l);
}

void job_rules_tick(const struct model *model, nsec_t now)
{
    for (size_t i = 0; i < model->networks.n; i++)
        job_rules_look(model_network_at(model, i), now);
}
