/*
 * line.h - reads and writes orders and answers on a connection; each is one line of JSON.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/clock.h"

struct err;

/** Bytes that were read from a connection and not taken yet. */
struct line_buffer {
    char *text; /* owns */
    size_t len;
    size_t cap;
};

#define LINE_BUFFER_NULL                                                                           \
    {                                                                                              \
        0                                                                                          \
    }

/** line_buffer_deinit() - release what was read; idempotent, safe on LINE_BUFFER_NULL. */
void line_buffer_deinit(struct line_buffer *lb);

/**
 * line_read() - wait for the next line
 * @lb:		after a time-out it keeps the part of the line that has arrived
 * @fd:		borrowed; a connected stream socket
 * @deadline:	monotonic
 * @ret:	gives a reference to a JSON object
 *
 * Return: 0; -EPIPE when the other end has closed; -ETIMEDOUT; -EINVAL when the line is no JSON or
 * longer than ORDER_LINE_MAX; or another negative errno. All but -ENOMEM with words.
 */
int line_read(struct line_buffer *lb, int fd, nsec_t deadline, json_t **ret, struct err *e);

/**
 * line_write() - send one line
 * @json:	borrowed; NULL, which an encoder returns when it has no memory, gives -ENOMEM
 * @deadline:	monotonic; the call blocks until then at most
 *
 * Return: 0 or negative errno with words.
 */
int line_write(int fd, const json_t *json, nsec_t deadline, struct err *e);

/**
 * line_take() - remove a complete line from the buffer, without reading from the socket
 * @ret:	gives a reference to a JSON object
 *
 * Return: 0; -EAGAIN when the buffer has no complete line; -EINVAL with words.
 */
int line_take(struct line_buffer *lb, json_t **ret, struct err *e);

/**
 * line_fill() - read once into the buffer, without waiting
 *
 * Return: 0; -EAGAIN when nothing has arrived; -EPIPE when the other end has closed; or another
 * negative errno. All but -EAGAIN and -ENOMEM with words.
 */
int line_fill(struct line_buffer *lb, int fd, struct err *e);

/** line_check_answer() - 0; or -EPROTO with a refusal's sentence ({"error": "..."}). */
int line_check_answer(const json_t *json, struct err *e);
