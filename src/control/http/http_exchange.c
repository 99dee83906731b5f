/* http_exchange.c - see http_exchange.h. */
#include "http/http_exchange.h"

#include <pthread.h>
#include <string.h>

#include "base/secret.h"

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
    /* Without memory the first handle cannot be had either, and that is handled. */
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

CURLM *http_exchange_multi(void)
{
    /* Unlike curl_easy_init(), curl_multi_init() does not do it by itself. */
    (void)pthread_once(&curl_once, init_curl);
    return curl_multi_init();
}

static size_t on_answer(char *p, size_t size, size_t n, void *ctx)
{
    return http_exchange_take(ctx, p, size * n) ? size * n : 0;
}

bool http_exchange_init(struct http_exchange *x, const char *method, const char *url, size_t max)
{
    (void)pthread_once(&curl_once, init_curl);
    *x = (struct http_exchange){.max = max, .easy = curl_easy_init()};
    if (!x->easy)
        return false;
    curl_easy_setopt(x->easy, CURLOPT_ERRORBUFFER, x->reason);
    curl_easy_setopt(x->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(x->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(x->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(x->easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(x->easy, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(x->easy, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(x->easy, CURLOPT_PRIVATE, x);
    /* Without "Expect: 100-continue", which takes a round trip before each longer body. */
    return curl_easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK &&
           curl_easy_setopt(x->easy, CURLOPT_URL, url) == CURLE_OK &&
           http_exchange_add_header(x, "Expect:");
}

void http_exchange_deinit(struct http_exchange *x)
{
    if (x->easy)
        curl_easy_cleanup(x->easy);
    for (struct curl_slist *h = x->headers; h; h = h->next)
        secret_wipe(h->data, strlen(h->data));
    curl_slist_free_all(x->headers);
    str_deinit(&x->got);
    *x = (struct http_exchange){0};
}

bool http_exchange_add_header(struct http_exchange *x, const char *line)
{
    struct curl_slist *longer = curl_slist_append(x->headers, line);

    if (!longer)
        return false;
    x->headers = longer;
    return curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, longer) == CURLE_OK;
}

bool http_exchange_take(struct http_exchange *x, const char *p, size_t len)
{
    x->is_too_long = len > x->max - x->got.len;
    if (!x->is_too_long)
        str_add_bytes(&x->got, p, len);
    return !x->is_too_long && !x->got.failed;
}

bool http_exchange_take_lines(
    struct http_exchange *x, const char *p, size_t len, http_exchange_line_fn fn, void *ctx)
{
    bool is_wanted = true;

    while (is_wanted && len > 0) {
        const char *end = memchr(p, '\n', len);
        size_t n = end ? (size_t)(end - p) : len;

        if (!http_exchange_take(x, p, n))
            return false;
        if (!end)
            return true;
        is_wanted = fn(ctx, x->got.text, x->got.len);
        x->got.len = 0;
        p += n + 1;
        len -= n + 1;
    }
    return is_wanted;
}

int http_exchange_status(const struct http_exchange *x)
{
    long status = 0;

    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

bool http_exchange_was_sent(const struct http_exchange *x)
{
    long sent = 0;

    curl_easy_getinfo(x->easy, CURLINFO_REQUEST_SIZE, &sent);
    return sent > 0;
}

const char *http_exchange_reason(const struct http_exchange *x, CURLcode code)
{
    if (x->got.failed)
        return "no memory for the answer";
    return x->reason[0] ? x->reason : curl_easy_strerror(code);
}
