/* uapi.c - see uapi.h. */
#include "uapi/uapi.h"

#include <errno.h>
#include <string.h>

#include "base/secret.h"
#include "shared/device_state.h"
#include "shared/port_state.h"
#include "uapi/uapi_answer.h"
#include "uapi/uapi_request.h"

/* Takes @in apart into lines; the empty line that ends the request is always added. */
static void take_text(struct uapi_request *req, const char *in, size_t len, struct uapi_text *out)
{
    char line[UAPI_LINE_MAX + 1];

    for (size_t off = 0; off < len;) {
        const char *end = memchr(in + off, '\n', len - off);
        size_t n = end ? (size_t)(end - in) - off : len - off;

        if (n > UAPI_LINE_MAX || memchr(in + off, '\0', n)) {
            uapi_request_break(req);
        } else {
            memcpy(line, in + off, n);
            line[n] = '\0';
            uapi_request_line(req, line, out);
        }
        off += n + 1;
    }
    uapi_request_line(req, "", out);
    secret_wipe(line, sizeof(line));
}

int uapi_handle(struct device *d, const char *in, size_t len, char **ret_out, size_t *ret_len)
{
    struct uapi_request req = {.device = d};
    struct uapi_text out = {0};

    (void)pthread_mutex_lock(&d->port->lock);
    take_text(&req, in, len, &out);
    (void)pthread_mutex_unlock(&d->port->lock);
    /* Deadlines may have changed. */
    loop_wake(&d->port->loop);
    if (out.has_failed || !out.p) {
        uapi_text_deinit(&out);
        return -ENOMEM;
    }
    *ret_out = out.p;
    *ret_len = out.len;
    return 0;
}
