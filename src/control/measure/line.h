/*
 * line.h - orders and answers on a connection: one line of JSON each.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/clock.h"

struct err;

/** What was read of the next line. */
struct line_buffer {
    char *text; /* owns */
    size_t len;
    size_t cap;
};

#define LINE_BUFFER_NULL                                                                           \
    {                                                                                              \
        0                                                                                          \
    }

void line_buffer_deinit(struct line_buffer *lb);

/**
 * line_read() - the next line
 * @ret:	gives a reference: an object
 *
 * Return: 0; -EPIPE when the other end has closed; -ETIMEDOUT; -EINVAL: no
 * JSON, or longer than ORDER_LINE_MAX; or another negative errno; all with words.
 */
int line_read(struct line_buffer *lb, int fd, nsec_t deadline, json_t **ret, struct err *e);

/** line_write() - 0 or negative errno with words. NULL (no memory) is -ENOMEM. */
int line_write(int fd, const json_t *json, nsec_t deadline, struct err *e);

/**
 * line_take() - a line that is complete in the buffer already, without reading
 *
 * Return: 0; -EAGAIN when there is none; -EINVAL with words.
 */
int line_take(struct line_buffer *lb, json_t **ret, struct err *e);

/** line_fill() - read what is there, once. 0, -EAGAIN, -EPIPE or another negative errno. */
int line_fill(struct line_buffer *lb, int fd, struct err *e);

/** line_check_answer() - 0, or -EPROTO with the words of a refusal ({"error": "..."}). */
int line_check_answer(const json_t *json, struct err *e);
