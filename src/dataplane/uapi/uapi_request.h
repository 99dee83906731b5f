/*
 * uapi_request.h - a request in progress: lines in, an answer out.
 *
 * One per connection, and one per uapi_handle() call. Every line takes effect
 * as it comes. All calls are under the port's lock.
 */
#pragma once

#include <stdbool.h>

#include "uapi/uapi_parse.h"

struct device;
struct uapi_text;

struct uapi_request {
    struct device *device;       /* pins */
    enum uapi_key command;       /* UAPI_KEY_NONE between requests */
    int error;                   /* the first failure, negative errno; later lines are ignored */
    bool in_peer;                /* past the first public_key */
    bool is_new_peer;            /* it was made by this request */
    struct x25519_public public; /* of the present one, valid while in_peer */
};

/**
 * uapi_request_line() - the next line of a request
 * @line:	without its newline; an empty one ends the request
 * @out:	where the answer is added, once the request has ended
 */
void uapi_request_line(struct uapi_request *req, const char *line, struct uapi_text *out);

/** uapi_request_break() - a line was too long: the request fails. */
void uapi_request_break(struct uapi_request *req);
