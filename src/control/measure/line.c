/* line.c - see line.h. */
#include "measure/line.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/content/body.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "measure/order.h"
#include "net/socket/socket.h"

#define GROW 4096

void line_buffer_deinit(struct line_buffer *lb)
{
    free(lb->text);
    *lb = (struct line_buffer)LINE_BUFFER_NULL;
}

int line_take(struct line_buffer *lb, json_t **ret, struct err *e)
{
    char *end = lb->len > 0 ? memchr(lb->text, '\n', lb->len) : NULL;
    size_t len;
    int r;

    if (!end)
        return -EAGAIN;
    len = (size_t)(end - lb->text);
    r = body_parse(ret, lb->text, len, e);
    lb->len -= len + 1;
    memmove(lb->text, end + 1, lb->len);
    return r;
}

int line_fill(struct line_buffer *lb, int fd, struct err *e)
{
    ssize_t n;

    if (lb->len >= ORDER_LINE_MAX)
        return err_set(e, -EINVAL, "a line is longer than %u bytes", ORDER_LINE_MAX);
    if (lb->cap - lb->len < GROW) {
        char *text = realloc(lb->text, lb->cap + GROW + lb->cap / 2);

        if (!text)
            return -ENOMEM;
        lb->text = text;
        lb->cap += GROW + lb->cap / 2;
    }
    n = recv(fd, lb->text + lb->len, lb->cap - lb->len, MSG_DONTWAIT);
    if (n == 0)
        return err_set(e, -EPIPE, "the other end has closed the connection");
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return -EAGAIN;
    if (n < 0)
        return err_set(e, -errno, "the connection is lost: %s", strerror(errno));
    lb->len += (size_t)n;
    return 0;
}

int line_read(struct line_buffer *lb, int fd, nsec_t deadline, json_t **ret, struct err *e)
{
    for (;;) {
        int r = line_take(lb, ret, e);

        if (r != -EAGAIN)
            return r;
        r = socket_wait(fd, POLLIN, deadline);
        if (r < 0)
            return err_set(e, r, "no answer in time");
        r = line_fill(lb, fd, e);
        if (r < 0 && r != -EAGAIN)
            return r;
    }
}

int line_write(int fd, const json_t *json, nsec_t deadline, struct err *e)
{
    _cleanup_(freep) char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    size_t len;
    size_t off = 0;

    if (!text)
        return err_set(e, -ENOMEM, "no memory for a line");
    len = strlen(text);
    /* The newline takes the place of the terminating zero. */
    text[len++] = '\n';
    while (off < len) {
        ssize_t n = send(fd, text + off, len - off, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0) {
            off += (size_t)n;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return err_set(e, -errno, "the connection is lost: %s", strerror(errno));
        if (socket_wait(fd, POLLOUT, deadline) < 0)
            return err_set(e, -ETIMEDOUT, "the other end takes no data");
    }
    return 0;
}

int line_check_answer(const json_t *json, struct err *e)
{
    const char *refusal = body_refusal_text(json);

    return refusal ? err_set(e, -EPROTO, "%s", refusal) : 0;
}
