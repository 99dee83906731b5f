/*
 * line.h - orders and answers on a connection: one line of JSON each.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/clock.h"

struct err;

/** What has been read of the next line. */
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
 * @lb:		keeps what has come of a line after a time-out
 * @fd:		borrowed; a connected stream socket
 * @deadline:	monotonic
 * @ret:	gives a reference to a JSON object
 *
 * Return: 0; -EPIPE when the other end has closed; -ETIMEDOUT; -EINVAL: no
 * JSON, or longer than ORDER_LINE_MAX; or another negative errno; all with words.
 */
int line_read(struct line_buffer *lb, int fd, nsec_t deadline, json_t **ret, struct err *e);

/**
 * line_write() - send one line
 * @json:	borrowed; NULL, as from an encoder without memory, is -ENOMEM
 * @deadline:	monotonic; blocks no longer
 *
 * Return: 0 or negative errno with words.
 */
int line_write(int fd, const json_t *json, nsec_t deadline, struct err *e);

/**
 * line_take() - take a line that is complete in the buffer, without reading from the socket
 * @ret:	gives a reference to a JSON object
 *
 * Return: 0; -EAGAIN when there is none; -EINVAL with words.
 */
int line_take(struct line_buffer *lb, json_t **ret, struct err *e);

/**
 * line_fill() - read once into the buffer, without waiting
 *
 * Return: 0; -EAGAIN when nothing is there; -EPIPE when the other end has closed; or another
 * negative errno; all but -EAGAIN with words.
 */
int line_fill(struct line_buffer *lb, int fd, struct err *e);

/** line_check_answer() - 0; or -EPROTO and the sentence of a refusal ({"error": "..."}). */
int line_check_answer(const json_t *json, struct err *e);
