/*
 * door_jobs.c - a member's jobs: where their processes find each other (jobs.h); and all of a
 * network's, for who administers it.
 */
#include "base/err.h"
#include "base/parse.h"
#include "hub/doors.h"
#include "hub/hub_internal.h"

/* The job's name out of the path, checked; NULL: @rs says 400. */
static const char *name_of(const struct request *rq, struct response *rs)
{
    struct err e = ERR_NULL;

    if (parse_name(rq->params[0], "job", &e) == 0)
        return rq->params[0];
    response_fail(rs, &e);
    return NULL;
}

static const char *run_of(const json_t *job)
{
    const char *run = json_string_value(json_object_get(job, "run"));

    return run ? run : "";
}

/* @job: taken. */
static void answer_join(
    struct hub *hub, const struct model_node *node, struct response *rs, json_t *job)
{
    if (job)
        arrivals_add(&hub->arrivals, node->net->pub.spec.meta.name,
            json_string_value(json_object_get(job, "job")), run_of(job), node->pub.spec.meta.name);
    response_json(rs, 200, job);
}

void door_jobs_join(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct model_node *node = door_member(hub, rq, rs);
    const char *name = node ? name_of(rq, rs) : NULL;
    struct job *job;
    struct err e = ERR_NULL;
    int r;

    if (!name)
        return;
    r = jobs_join(hub->jobs, node->net, name, rq->now, &job, &e);
    if (r == JOBS_E_FULL)
        response_refuse(rs, 507, "%s", err_text(&e));
    else if (r == JOBS_E_PACE)
        response_refuse(rs, 429, "%s", err_text(&e));
    else if (r != 0)
        response_fail(rs, &e);
    else
        answer_join(hub, node, rs, job_json(job));
}

void door_jobs_list(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct model_node *node = door_member(hub, rq, rs);

    if (node)
        response_text(rs, 200, jobs_list(hub->jobs, node->net), "application/json");
}

void door_network_jobs(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct model_network *net = door_find_network(hub, rq, rs);

    if (net)
        response_text(rs, 200, jobs_list(hub->jobs, net), "application/json");
}

/* The job of the path in the member's network, and who asks; NULL: @rs says why. */
static struct job *find_job(struct hub *hub, const struct request *rq, struct response *rs,
    const struct model_node **ret_node)
{
    struct model_node *node = door_member(hub, rq, rs);
    const char *name = node ? name_of(rq, rs) : NULL;
    struct job *job = name ? jobs_find(hub->jobs, node->net, name) : NULL;

    *ret_node = node;
    if (name && !job)
        response_refuse(
            rs, 404, "network \"%s\" has no job \"%s\"", node->net->pub.spec.meta.name, name);
    return job;
}

void door_jobs_get(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    const struct model_node *node;
    struct job *job = find_job(hub, rq, rs, &node);
    json_t *json = job ? job_json(job) : NULL;

    if (!job)
        return;
    if (json)
        (void)json_object_set_new(json, "members",
            arrivals_list(
                &hub->arrivals, node->net->pub.spec.meta.name, rq->params[0], run_of(json)));
    response_json(rs, 200, json);
}

void door_jobs_end(void *ctx, const struct request *rq, struct response *rs)
{
    const struct model_node *node;
    struct job *job = find_job(ctx, rq, rs, &node);
    struct err e = ERR_NULL;
    int r;

    if (!job)
        return;
    r = jobs_end(job, &rq->from.addr, &e);
    if (r == JOBS_E_BUSY)
        response_refuse(rs, 409, "%s", err_text(&e));
    else if (r == JOBS_E_PACE)
        response_refuse(rs, 429, "%s", err_text(&e));
    else if (r != 0)
        response_fail(rs, &e);
    else
        response_empty(rs);
}
