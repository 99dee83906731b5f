/* client_upgrade.c - see client_upgrade.h. libcurl makes the connection, with its proxy and TLS. */
#include "api/client/client_upgrade.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/client/client_exchange.h"
#include "api/content/body.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/secret.h"
#include "os/clock.h"

/* How often is_unwanted() is asked while this waits. */
#define ASK_EACH_MS 100

/* Room for the head of an answer; the sentence of a refusal has to fit behind it. */
#define HEAD_MAX 8192

/* How long bytes may be unacknowledged before the kernel ends the connection. */
#define TCP_GIVE_UP_MS 15000

/* Most unsent bytes that the kernel takes: more would delay everything behind them. */
#define UNSENT_MAX (256 << 10)

struct client_upgrade {
    struct client_exchange x; /* owns the connection */
    int fd;                   /* libcurl's */
    char head[HEAD_MAX + 1];  /* the answer's first bytes, zero-terminated */
    size_t len;               /* how many bytes of @head there are */
    size_t taken;             /* how many of them are used: the head, and what was read already */
};

/* ---- bytes ---------------------------------------------------------------------------------- */

static ssize_t read_bytes(struct client_upgrade *u, void *buf, size_t cap)
{
    size_t n = 0;
    CURLcode code = curl_easy_recv(u->x.easy, buf, cap, &n);

    if (code == CURLE_OK)
        return (ssize_t)n;
    return code == CURLE_AGAIN ? -EAGAIN : -ECONNRESET;
}

ssize_t client_upgrade_read(struct client_upgrade *u, void *buf, size_t cap)
{
    size_t early = u->len - u->taken; /* came together with the answer's head */

    if (early == 0)
        return read_bytes(u, buf, cap);
    if (early > cap)
        early = cap;
    memcpy(buf, u->head + u->taken, early);
    u->taken += early;
    return (ssize_t)early;
}

ssize_t client_upgrade_write(struct client_upgrade *u, const void *buf, size_t len)
{
    size_t n = 0;
    CURLcode code = curl_easy_send(u->x.easy, buf, len, &n);

    if (code == CURLE_OK)
        return (ssize_t)n;
    return code == CURLE_AGAIN ? -EAGAIN : -ECONNRESET;
}

int client_upgrade_fd(const struct client_upgrade *u)
{
    return u->fd;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* libcurl asks while it connects; not 0 makes it stop. */
static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct client_upgrade_wish *wish = ctx;

    return wish->is_unwanted(wish->ctx) ? 1 : 0;
}

static int connect_it(
    struct client_upgrade *u, const struct client_upgrade_wish *wish, struct err *e)
{
    struct client_answer none = CLIENT_ANSWER_NULL;
    curl_socket_t fd = CURL_SOCKET_BAD;
    int give_up = TCP_GIVE_UP_MS;
    int unsent = UNSENT_MAX;
    CURLcode code;

    curl_easy_setopt(u->x.easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(u->x.easy, CURLOPT_TIMEOUT_MS, (long)wish->timeout_ms);
    curl_easy_setopt(u->x.easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(u->x.easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(u->x.easy, CURLOPT_XFERINFODATA, (void *)(uintptr_t)wish);
    code = curl_easy_perform(u->x.easy);
    if (code != CURLE_OK)
        return client_exchange_end(&u->x, code, &none, e);
    curl_easy_setopt(u->x.easy, CURLOPT_NOPROGRESS, 1L);
    if (curl_easy_getinfo(u->x.easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd < 0)
        return err_set(e, CLIENT_E_UNREACHABLE, "\"%s\" has closed the connection", u->x.address);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up, sizeof(give_up));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    u->fd = fd;
    return 0;
}

/* Waits until the socket is ready for @events. CLIENT_E_UNREACHABLE with words at the deadline, or
 * when the connection is not wanted any more. */
static int wait_for(const struct client_upgrade *u, const struct client_upgrade_wish *wish,
    short events, nsec_t deadline, struct err *e)
{
    struct pollfd p = {.fd = u->fd, .events = events};

    while (poll(&p, 1, ASK_EACH_MS) <= 0)
        if (clock_now() >= deadline || wish->is_unwanted(wish->ctx))
            return err_set(e, CLIENT_E_UNREACHABLE, "\"%s\" does not answer in time", u->x.address);
    return 0;
}

static int send_request(struct client_upgrade *u, const struct client_upgrade_wish *wish,
    nsec_t deadline, struct err *e)
{
    char text[1024];
    int len = snprintf(text, sizeof(text),
        "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s%s%s\r\n",
        wish->path, u->x.address, wish->protocol, wish->authorization ? "Authorization: " : "",
        wish->authorization ? wish->authorization : "", wish->authorization ? "\r\n" : "");
    int sent = 0;
    int r = 0;

    if (len >= (int)sizeof(text))
        r = err_set(e, -EINVAL, "the request for \"%s\" is too long", u->x.address);
    while (r == 0 && sent < len) {
        ssize_t n = client_upgrade_write(u, text + sent, (size_t)(len - sent));

        if (n >= 0)
            sent += (int)n;
        else if (n == -EAGAIN)
            r = wait_for(u, wish, POLLOUT, deadline, e);
        else
            r = err_set(e, CLIENT_E_UNREACHABLE, "\"%s\" has closed the connection", u->x.address);
    }
    secret_wipe(text, sizeof(text));
    return r;
}

/* Reads more of the answer. 0; CLIENT_E_REFUSED, without words, when there is no more; or as
 * wait_for(). */
static int read_more(struct client_upgrade *u, const struct client_upgrade_wish *wish,
    nsec_t deadline, struct err *e)
{
    for (;;) {
        ssize_t n = read_bytes(u, u->head + u->len, HEAD_MAX - u->len);
        int r;

        if (n > 0) {
            u->len += (size_t)n;
            u->head[u->len] = '\0';
            return 0;
        }
        if (n != -EAGAIN)
            return CLIENT_E_REFUSED;
        r = wait_for(u, wish, POLLIN, deadline, e);
        if (r != 0)
            return r;
    }
}

/* The server has refused: takes its sentence from the body, which ends with the connection. */
static int describe_refusal(struct client_upgrade *u, const struct client_upgrade_wish *wish,
    nsec_t deadline, const char *body, struct err *e)
{
    struct err ignored = ERR_NULL;
    json_t *json = NULL;
    const char *sentence = NULL;
    uint64_t status = 0;
    char code[4] = "";

    while (u->len < HEAD_MAX && read_more(u, wish, deadline, &ignored) == 0)
        ;
    if (body_parse(&json, body, strlen(body), &ignored) == 0)
        sentence = body_refusal_text(json);
    if (strncmp(u->head, "HTTP/1.", 7) == 0 && strlen(u->head) > 12)
        memcpy(code, u->head + 9, 3);
    (void)parse_u64(&status, code, 100, 599, "status", NULL);
    if (sentence)
        (void)err_set(e, CLIENT_E_REFUSED, "%s", sentence);
    else
        (void)err_set(e, CLIENT_E_REFUSED, "\"%s\" answered %u", u->x.address, (unsigned)status);
    json_decref(json);
    return CLIENT_E_REFUSED;
}

static int read_answer(struct client_upgrade *u, const struct client_upgrade_wish *wish,
    nsec_t deadline, struct err *e)
{
    const char *end = NULL;

    while (!end) {
        int r = u->len < HEAD_MAX ? read_more(u, wish, deadline, e) : CLIENT_E_REFUSED;

        if (r == CLIENT_E_REFUSED)
            return err_set(
                e, CLIENT_E_UNREACHABLE, "\"%s\" does not answer as a weft does", u->x.address);
        if (r != 0)
            return r;
        end = strstr(u->head, "\r\n\r\n");
    }
    end += 4;
    if (strncmp(u->head, "HTTP/1.1 101 ", 13) != 0)
        return describe_refusal(u, wish, deadline, end, e);
    u->taken = (size_t)(end - u->head);
    return 0;
}

int client_upgrade_open(
    struct client_upgrade **ret, const struct client_upgrade_wish *wish, struct err *e)
{
    nsec_t deadline = clock_now() + (nsec_t)wish->timeout_ms * NSEC_PER_MSEC;
    struct client_upgrade *u = calloc(1, sizeof(*u));
    int r;

    if (!u)
        return err_set(e, -ENOMEM, "no memory for a connection");
    r = client_exchange_init(&u->x, wish->target, "GET", wish->path, NULL, e);
    if (r != 0) {
        free(u);
        return r;
    }
    r = connect_it(u, wish, e);
    if (r == 0)
        r = send_request(u, wish, deadline, e);
    if (r == 0)
        r = read_answer(u, wish, deadline, e);
    if (r != 0) {
        client_upgrade_close(u);
        return r;
    }
    *ret = u;
    return 0;
}

struct client_upgrade *client_upgrade_close(struct client_upgrade *u)
{
    if (u)
        client_exchange_deinit(&u->x);
    free(u);
    return NULL;
}
