/*
 * metadata_fetch.c - metadata_fetch() of metadata.h: asks the metadata service.
 *
 * The address is link-local and answers on no network but a cloud's own. Nothing is asked unless
 * the machine's DMI texts name that cloud (metadata_cloud_of()).
 */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "fabric/metadata.h"
#include "os/clock.h"

#define SERVICE "http://169.254.169.254"

/* Bytes of a header with a token; an answer may be half as long. */
#define METADATA_TOKEN_MAX 1024

/* One request. */
struct asking {
    struct str answer;
    struct curl_slist *headers; /* owns */
    long deadline_ms;           /* monotonic */
};

static long now_ms(void)
{
    return (long)(clock_now() / NSEC_PER_MSEC);
}

static size_t on_answer(char *bytes, size_t size, size_t n, void *ctx)
{
    struct asking *a = ctx;
    size_t len = size * n;

    if (a->answer.len + len >= METADATA_TOKEN_MAX / 2)
        return 0;
    str_add_bytes(&a->answer, bytes, len);
    return a->answer.failed ? 0 : len;
}

static void set_options(CURL *easy, struct asking *a, const char *url, const char *method)
{
    long left = a->deadline_ms - now_ms();

    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, a->headers);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, left > 1 ? left : 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, a);
}

/* Asks with the headers of @a. Return: 0; -ENOENT, the service does not know it; -EIO. */
static int ask(struct asking *a, const char *method, const char *path, struct err *e)
{
    CURL *easy = curl_easy_init();
    char url[256];
    long status = 0;
    CURLcode code;

    if (!easy)
        return err_set(e, -ENOMEM, "no memory to ask the metadata service");
    str_deinit(&a->answer);
    (void)snprintf(url, sizeof(url), SERVICE "%s", path);
    set_options(easy, a, url, method);
    code = curl_easy_perform(easy);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(easy);
    if (code == CURLE_OK)
        return 0;
    return err_set(e, status == 404 ? -ENOENT : -EIO, "asking the metadata service for %s: %s",
        path, status != 0 ? "it does not say" : curl_easy_strerror(code));
}

static int add_header(struct asking *a, const char *line, struct err *e)
{
    struct curl_slist *longer = curl_slist_append(a->headers, line);

    if (!longer)
        return err_set(e, -ENOMEM, "no memory to ask the metadata service");
    a->headers = longer;
    return 0;
}

/* AWS answers only those who have asked for a token first (IMDSv2). */
static int add_token(struct asking *a, struct err *e)
{
    char header[METADATA_TOKEN_MAX];
    int r = add_header(a, "X-aws-ec2-metadata-token-ttl-seconds: 60", e);

    if (r == 0)
        r = ask(a, "PUT", "/latest/api/token", e);
    if (r != 0)
        return r;
    curl_slist_free_all(a->headers);
    a->headers = NULL;
    if (snprintf(header, sizeof(header), "X-aws-ec2-metadata-token: %s", str_text(&a->answer)) >=
            (int)sizeof(header) ||
        strpbrk(header, "\r\n"))
        return err_set(e, -EPROTO, "the metadata service's token is no token");
    return add_header(a, header, e);
}

static int prepare(struct asking *a, enum metadata_cloud cloud, struct err *e)
{
    switch (cloud) {
    case METADATA_CLOUD_AWS:
        return add_token(a, e);
    case METADATA_CLOUD_GCE:
        return add_header(a, "Metadata-Flavor: Google", e);
    case METADATA_CLOUD_AZURE:
        return add_header(a, "Metadata: true", e);
    case METADATA_CLOUD_NONE:
    case METADATA_CLOUD_N:
        break;
    }
    return err_set(e, -ENOTSUP, "this machine is of no cloud that says where it runs");
}

/* Appends "NAME VALUE". An answer of several lines is cut at the first one. */
static int ask_one(struct asking *a, struct metadata_answers *ret,
    const struct metadata_question *q, struct err *e)
{
    size_t len = strlen(ret->text);
    int r = ask(a, "GET", q->path, e);

    if (r != 0)
        return r == -ENOENT ? 0 : r;
    (void)snprintf(ret->text + len, sizeof(ret->text) - len, "%s %.*s\n", q->name,
        (int)strcspn(str_text(&a->answer), "\r\n"), str_text(&a->answer));
    return 0;
}

int metadata_fetch(
    struct metadata_answers *ret, enum metadata_cloud cloud, unsigned timeout_ms, struct err *e)
{
    struct asking a = {.answer = STR_NULL, .deadline_ms = now_ms() + (long)timeout_ms};
    size_t n;
    const struct metadata_question *q = metadata_questions(cloud, &n);
    int r = prepare(&a, cloud, e);

    *ret = (struct metadata_answers){.cloud = cloud};
    for (size_t i = 0; r == 0 && i < n; i++)
        r = ask_one(&a, ret, &q[i], e);
    str_deinit(&a.answer);
    curl_slist_free_all(a.headers);
    return r;
}
