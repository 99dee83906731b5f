/* job_store.c - see job_store.h. */
#include "train/job/job_store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/remote/remote_http.h"
#include "base/err.h"
#include "train/job/env.h"

#define CONNECT_MS 3000
#define TIMEOUT_MS 10000
#define ANSWER_MAX                                                                                 \
    (8u << 20) /* bytes: 65,536 nodes of some 100, or one value in JSON's escapes                  \
                */

#define FORM "application/x-www-form-urlencoded"

int job_store_open(struct job_store *ret, const struct env_meeting *m, struct err *e)
{
    char server[sizeof(m->etcd) + 8];
    struct remote_http_config config = {
        .servers = {server}, .n_servers = 1, .connect_ms = CONNECT_MS};
    struct job_store s = {0};
    int r;

    if (m->etcd[0] == '\0')
        return err_set(e, -ENOTSUP, "the hub keeps no keys for the nodes of a job");
    (void)snprintf(server, sizeof(server), "http://%s", m->etcd);
    (void)snprintf(s.folder, sizeof(s.folder), "/v2/keys/weft/%s", m->id);
    r = remote_http_new(&s.http, &config, e);
    if (r == 0)
        *ret = s;
    return r;
}

void job_store_close(struct job_store *s)
{
    s->http = remote_http_free(s->http);
}

int job_store_ask(struct job_store *s, const char *method, const char *what, const char *form,
    json_t **ret, struct err *e)
{
    char path[JOB_STORE_PATH_MAX];
    struct remote_http_request rq = {.method = method,
        .path = path,
        .body = form,
        .body_len = form ? strlen(form) : 0,
        .content_type = FORM,
        .timeout_ms = TIMEOUT_MS,
        .max = ANSWER_MAX};
    struct remote_http_answer answer = REMOTE_HTTP_ANSWER_NULL;
    json_t *json;
    int status;

    (void)snprintf(path, sizeof(path), "%s/%s", s->folder, what);
    if (remote_http_call(s->http, &rq, &answer, e) != 0) {
        (void)err_prefix(e, "the job's store at the hub");
        return -EIO;
    }
    status = answer.status;
    json = ret ? json_loadb(answer.body, answer.len, 0, NULL) : NULL;
    if (ret)
        *ret = json_incref(json_object_get(json, "node"));
    json_decref(json);
    remote_http_answer_deinit(&answer);
    return status;
}

int job_store_refuse(int status, struct err *e)
{
    return err_set(e, -EPROTO, "the job's store at the hub answers with status %d", status);
}
