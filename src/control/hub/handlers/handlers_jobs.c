/*
 * handlers_jobs.c - a member's jobs: where their processes find each other (jobs.h); and all of a
 * network's, for who administers it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "health/job_sample.h"
#include "hub/handlers/handlers.h"
#include "hub/handlers/reply.h"
#include "hub/jobs/job.h"
#include "hub/jobs/job_runs.h"
#include "hub/jobs/jobs.h"
#include "hub/model/model.h"
#include "hub/owner/owners.h"
#include "hub/record/request.h"
#include "hub/traffic/spending.h"
#include "hub/watch/job_rules.h"
#include "store/store.h"

/* The job's name out of the path, checked; NULL: @rs says 400. */
static const char *name_of(const struct request *rq, struct response *rs)
{
    struct err e = ERR_NULL;

    if (parse_name(rq->params[0], "job", &e) == 0)
        return rq->params[0];
    response_fail(rs, &e);
    return NULL;
}

/* Does this hub serve the network's jobs? If another one does, @rs names it. */
static bool is_served_here(
    const struct handlers *h, const struct model_network *net, struct response *rs)
{
    const char *name = net->spec.meta.name;
    const struct owners_network *owner = owners_find(h->owners, name);

    if (!owner || net->served->jobs.served)
        return true;
    if (owner->record.hub[0])
        response_refuse(rs, 421, "hub \"%s\" serves the rendezvous of network \"%s\": ask that one",
            owner->record.hub, name);
    else
        response_refuse(rs, 421,
            "no hub serves the rendezvous of network \"%s\" at the moment: try again", name);
    if (owner->record.hub[0] && rs->body)
        (void)json_object_set_new(rs->body, "hub", json_string(owner->record.hub));
    return false;
}

/* A member's request about a job, which may have to wait until the job is on the disk. */
struct job_call {
    struct reply reply;
    char network[NAME_MAX_LEN + 1];
    char member[NAME_MAX_LEN + 1];
    char job[NAME_MAX_LEN + 1];
    struct job_request said;
};

static void begin_call(struct handlers *h, const struct request *rq, struct response *rs,
    const struct model_node *node, const char *job, const struct job_request *said, reply_fn begin)
{
    struct job_call *call = reply_new(h, rq, rs, sizeof(*call), begin);

    if (!call)
        return;
    (void)snprintf(
        call->network, sizeof(call->network), "%.*s", NAME_MAX_LEN, node->net->spec.meta.name);
    (void)snprintf(call->member, sizeof(call->member), "%.*s", NAME_MAX_LEN, node->spec.meta.name);
    (void)snprintf(call->job, sizeof(call->job), "%s", job);
    call->said = *said;
    reply_begin(&call->reply, rq, rs);
}

/* The member, if it still is one; NULL: @rs says that it is not. */
static const struct model_node *caller_of(const struct job_call *call, struct response *rs)
{
    const struct model_node *node =
        model_find_node(model_find_network(call->reply.h->model, call->network), call->member);

    if (!node)
        response_refuse(
            rs, 403, "network \"%s\" has no node \"%s\" any more", call->network, call->member);
    return node;
}

/* The job's record was stored, or not. If it was, the request begins again, and now succeeds. */
static void on_job_saved(void *ctx, int r, const struct err *e)
{
    reply_store(ctx, &(struct store_answer){.r = r == 0 ? STORE_E_CONFLICT : r, .e = e});
}

static void answer(struct reply *l, int r, struct response *rs, const struct err *e)
{
    static const int statuses[] = {
        [JOBS_E_FULL] = 507,
        [JOBS_E_BUSY] = 409,
        [JOBS_E_PACE] = 429,
        [JOBS_E_STRANGER] = 403,
    };

    if (r == JOBS_E_AGAIN)
        l->is_waiting = true;
    else
        handlers_refuse(rs, r, e, statuses);
}

static const char *broken_of(const struct job_call *call)
{
    return call->said.broken_run[0] ? call->said.broken_run : NULL;
}

/* Another number of nodes than that of who is there already: such a job never meets. */
static bool is_other_size(const struct job_call *call, const struct model_node *node,
    const struct request *rq, struct response *rs)
{
    struct job *job = jobs_find(&node->net->served->jobs, call->job);
    const struct job_members *m = job ? &job->members : NULL;

    if (!m || call->said.nnodes[0] == '\0' || m->nnodes[0] == '\0' ||
        strcmp(m->nnodes, call->said.nnodes) == 0 ||
        !jobs_has_others(job, call->member, &rq->from.addr, rq->now))
        return false;
    response_refuse(rs, 409,
        "the job \"%s\" runs with %s nodes, as \"%s\" has begun it, and here --nnodes is %s: give "
        "the same number on all nodes, or another --job",
        call->job, m->nnodes, m->nnodes_by, call->said.nnodes);
    return true;
}

/* A job of fixed size that has all its nodes: one more would wait in vain, or take the place of a
 * node that is to come back. */
static bool is_full(const struct job_call *call, const struct model_node *node,
    const struct request *rq, struct response *rs)
{
    _cleanup_(str_deinit) struct str names = STR_NULL;
    struct job *job = jobs_find(&node->net->served->jobs, call->job);
    uint64_t n;

    if (!job || parse_u64(&n, call->said.nnodes, 1, UINT32_MAX, "nnodes", NULL) != 0 ||
        !jobs_is_full(job, call->member, broken_of(call), (unsigned)n, rq->now, &names))
        return false;
    response_refuse(rs, 409,
        "the job \"%s\" has its %llu nodes, %s, and this would be one more: give it another --job, "
        "or --nnodes %llu:%llu on all of them, where more may come",
        call->job, (unsigned long long)n, str_text(&names), (unsigned long long)n,
        (unsigned long long)n + 1);
    return true;
}

/* The run that is broken has ended on another node, which is named as a field, too. */
static void refuse_over(const struct job_call *call, const struct model_node *node,
    const struct request *rq, struct response *rs, const struct err *e)
{
    const struct job *job = jobs_find(&node->net->served->jobs, call->job);

    response_refuse(rs, 409, "%s", err_text(e));
    if (job && rs->body)
        (void)json_object_set_new(
            rs->body, "endedOn", json_string(job_runs_ended_on(job, rq->now)));
}

static void join(struct reply *l, const struct request *rq, struct response *rs)
{
    struct job_call *call = container_of(l, struct job_call, reply);
    const struct model_node *node = caller_of(call, rs);
    struct err e = ERR_NULL;
    struct job *job;
    json_t *json;
    int r;

    if (!node || !is_served_here(l->h, node->net, rs) || is_other_size(call, node, rq, rs) ||
        is_full(call, node, rq, rs))
        return;
    if (call->said.is_isolated && job_rules_check(node->net, call->job, call->member, &e) != 0) {
        response_refuse(rs, 409, "%s", err_text(&e));
        return;
    }
    if (call->said.is_dry_run) {
        /* Nothing is changed: neither is the member one of the job, nor does a run begin. */
        r = jobs_look(&node->net->served->jobs, call->job, rq->now, &json, &e);
        if (r == 0)
            response_json(rs, 200, json);
        else
            answer(l, r, rs, &e);
        return;
    }
    r = jobs_join(&node->net->served->jobs, call->job, call->member, broken_of(call), rq->now,
        on_job_saved, l, &job, &e);
    if (r == JOBS_E_OVER) {
        refuse_over(call, node, rq, rs, &e);
        return;
    }
    if (r != 0) {
        answer(l, r, rs, &e);
        return;
    }
    if (call->said.nnodes[0] != '\0')
        job_members_set_nnodes(&job->members, call->member, call->said.nnodes);
    if (call->said.is_isolated)
        job_members_isolate(&job->members, call->member);
    job_runs_note(job, rq->now);
    job_rules_look(node->net, rq->now);
    response_json(rs, 200, jobs_json(job, false));
}

void handlers_jobs_join(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_node *node = handlers_find_member(h, rq, rs);
    const char *name = node ? name_of(rq, rs) : NULL;
    struct job_request said;
    struct err e = ERR_NULL;

    if (!name)
        return;
    if (job_request_decode(&said, rq->body, &e) == 0)
        begin_call(h, rq, rs, node, name, &said, join);
    else
        response_fail(rs, &e);
}

void handlers_jobs_list(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_node *node = handlers_find_member(h, rq, rs);

    if (node && is_served_here(h, node->net, rs))
        response_text(rs, 200, jobs_list(&node->net->served->jobs), "application/json");
}

/* What is known of the job's budget today, which it may not have. */
static void add_budget(json_t *json, const struct spent_list *budgets, const char *job)
{
    const struct spent *s = spent_find(budgets, job);

    if (s)
        (void)json_object_set_new(json, "budget", spent_encode_one(s));
}

/* Puts into the field "drained" of @json that @node is, where it is: those who wait for it know
 * why.
 * @node may be NULL. */
static void add_drained(json_t *json, const struct model_node *node)
{
    json_t *list = json_object_get(json, "drained");

    if (!node || !node->spec.drained)
        return;
    if (!list) {
        list = json_array();
        (void)json_object_set_new(json, "drained", list);
    }
    (void)json_array_append_new(
        list, json_pack("{s:s, s:s}", "node", node->spec.meta.name, "why", node->spec.drained));
}

/* Those of the nodes that are there. */
static void add_drained_present(json_t *job, const struct model_network *net)
{
    const json_t *name;
    size_t i;

    json_array_foreach(json_object_get(job, "present"), i, name)
        add_drained(job, model_find_node(net, json_string_value(name)));
}

/* Those that have come. */
static void add_drained_members(
    json_t *presence, const struct model_network *net, const struct job_members *members)
{
    for (size_t i = 0; presence && i < net->nodes.n; i++) {
        const struct model_node *node = model_node_at(net, i);

        if (node->spec.drained && json_object_get(members->names, node->spec.meta.name))
            add_drained(presence, node);
    }
}

json_t *handlers_jobs(struct handlers *h, const struct model_network *net)
{
    struct response unused = {0};
    const struct spent_list *budgets = spending_of(h->spending, net->spec.meta.name);
    char *text = is_served_here(h, net, &unused) ? jobs_list(&net->served->jobs) : NULL;
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    json_t *job;
    size_t i;

    response_deinit(&unused);
    free(text);
    json_array_foreach(json_object_get(json, "jobs"), i, job) {
        add_budget(job, budgets, json_string_value(json_object_get(job, "job")));
        add_drained_present(job, net);
    }
    if (budgets->n > 0)
        (void)json_object_set_new(json, "budgets", spent_encode(budgets));
    return json;
}

void handlers_network_jobs(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_network *net = handlers_find_network(h, rq, rs);

    if (net && is_served_here(h, net, rs))
        response_json(rs, 200, handlers_jobs(h, net));
}

/* The job of the path in the member's network, and who asks; NULL: @rs says why. */
static struct job *find_job(struct handlers *h, const struct request *rq, struct response *rs,
    const struct model_node **ret_node)
{
    const struct model_node *node = handlers_find_member(h, rq, rs);
    const char *name = node && is_served_here(h, node->net, rs) ? name_of(rq, rs) : NULL;
    struct job *job = name ? jobs_find(&node->net->served->jobs, name) : NULL;

    *ret_node = node;
    if (name && !job)
        response_refuse(
            rs, 404, "network \"%s\" has no job \"%s\"", node->net->spec.meta.name, name);
    return job;
}

void handlers_jobs_get(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_node *node;
    struct job *job = find_job(h, rq, rs, &node);
    json_t *json = job ? jobs_json(job, false) : NULL;
    const struct job_members *members;

    if (!job)
        return;
    members = &job->members;
    (void)json_object_set_new(json, "members", job_members_list(members));
    /* What others spend is no affair of any node. */
    if (job_members_may_be(members, node->spec.meta.name))
        add_budget(json, spending_of(h->spending, node->net->spec.meta.name), rq->params[0]);
    response_json(rs, 200, json);
}

void handlers_jobs_nccl(void *ctx, const struct request *rq, struct response *rs)
{
    const struct model_node *node;
    struct job *job = find_job(ctx, rq, rs, &node);
    struct job_members *members;
    struct nccl_request said;
    struct err e = ERR_NULL;

    if (!job)
        return;
    if (nccl_request_decode(&said, rq->body, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    members = job_is_run(job, said.run) ? &job->members : NULL;
    if (members && job_members_may_be(members, node->spec.meta.name)) {
        job_members_set_nccl(members, node->spec.meta.name, nccl_request_encode(&said));
        response_empty(rs);
        return;
    }
    response_refuse(rs, 409, "node \"%s\" is in no run \"%s\" of the job \"%s\"",
        node->spec.meta.name, said.run, rq->params[0]);
}

void handlers_jobs_presence(void *ctx, const struct request *rq, struct response *rs)
{
    const struct model_node *node;
    struct job *job = find_job(ctx, rq, rs, &node);
    struct presence_request said;
    struct job_members *members;
    struct err e = ERR_NULL;
    json_t *json;

    if (!job)
        return;
    if (presence_request_decode(&said, rq->body, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    /* A command of a run that is over is told so by the name of the present one. */
    members = job_is_run(job, said.run) ? &job->members : NULL;
    if (members && !job_members_may_be(members, node->spec.meta.name)) {
        response_refuse(rs, 403,
            "node \"%s\" has not come to the run \"%s\" of the job \"%s\", and has no command "
            "there",
            node->spec.meta.name, said.run, rq->params[0]);
        return;
    }
    if (members) {
        job_members_hear(members, node->spec.meta.name,
            &(struct job_word){said.command, said.every_seconds, said.ended}, rq->now);
        job->heard_at = rq->now;
    } else {
        (void)job_members_hear_late(&job->members, node->spec.meta.name, said.run,
            &(struct job_word){said.command, said.every_seconds, said.ended}, rq->now);
    }
    if (said.ended) {
        job_runs_note(job, rq->now);
        jobs_end_samples(job, node->spec.meta.name);
    }
    /* Each command of the job asks every few seconds. */
    json = jobs_json(job, true);
    if (json && members) {
        (void)json_object_set_new(
            json, "presence", job_members_presence(members, node->spec.meta.name, rq->now));
        add_drained_members(json_object_get(json, "presence"), node->net, members);
    }
    response_json(rs, 200, json);
}

/* Whose that address is; only those of members that may be in the run count. */
static void name_address(char ret[static NAME_MAX_LEN + 1], const struct ip_addr *address,
    const struct model_network *net, const struct job_members *members)
{
    const struct model_node *node = model_find_address(net, address);

    if (node && !node->spec.hub && job_members_may_be(members, node->spec.meta.name))
        (void)snprintf(ret, NAME_MAX_LEN + 1, "%.*s", NAME_MAX_LEN, node->spec.meta.name);
}

static void name_all(
    struct job_sample *s, const struct model_network *net, const struct job_members *members)
{
    for (unsigned i = 0; i < s->n_peers; i++)
        name_address(s->peers[i].node, &s->peers[i].address, net, members);
    for (unsigned i = 0; i < s->ras.n; i++)
        if (!ip_addr_is_none(&s->ras.items[i].address))
            name_address(s->ras.items[i].node, &s->ras.items[i].address, net, members);
}

void handlers_jobs_samples(void *ctx, const struct request *rq, struct response *rs)
{
    const struct model_node *node;
    struct job *job = find_job(ctx, rq, rs, &node);
    _cleanup_(freep) struct job_sample *s = job ? calloc(1, sizeof(*s)) : NULL;
    struct err e = ERR_NULL;

    if (!job)
        return;
    if (!s) {
        response_refuse(rs, 500, "no memory for a job's sample");
        return;
    }
    if (job_sample_decode(s, rq->body, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    if (!job_is_run(job, s->run) || !job_members_may_be(&job->members, node->spec.meta.name)) {
        response_refuse(rs, 409, "node \"%s\" is in no run \"%s\" of the job \"%s\"",
            node->spec.meta.name, s->run, rq->params[0]);
        return;
    }
    name_all(s, node->net, &job->members);
    jobs_take_sample(job, node->spec.meta.name, s, rq->now);
    response_empty(rs);
}

static void end(struct reply *l, const struct request *rq, struct response *rs)
{
    struct job_call *call = container_of(l, struct job_call, reply);
    const struct model_node *node = caller_of(call, rs);
    struct job *job = node ? jobs_find(&node->net->served->jobs, call->job) : NULL;
    struct err e = ERR_NULL;
    int r;

    if (!node)
        return;
    if (!job) {
        response_refuse(rs, 404, "network \"%s\" has no job \"%s\"", call->network, call->job);
        return;
    }
    jobs_end_samples(job, call->member);
    /* The member's command may just have said that it has ended. */
    r = job_runs_await(job, on_job_saved, l, &e);
    if (r != 0) {
        answer(l, r, rs, &e);
        return;
    }
    if (jobs_has_others(job, call->member, &rq->from.addr, rq->now)) {
        response_refuse(rs, 409, "other members of job \"%s\" are still there", call->job);
        return;
    }
    r = job_runs_end(job, &rq->from.addr, rq->now, on_job_saved, l, &e);
    if (r == 0)
        response_empty(rs);
    else
        answer(l, r, rs, &e);
}

void handlers_jobs_end(void *ctx, const struct request *rq, struct response *rs)
{
    const struct model_node *node;

    if (find_job(ctx, rq, rs, &node))
        begin_call(ctx, rq, rs, node, rq->params[0], &(struct job_request){0}, end);
}
