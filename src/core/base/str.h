/*
 * str.h - text that grows.
 *
 * A failed allocation is remembered, not returned: the caller adds everything
 * and asks once, when it takes the text. Memory that is given back is wiped,
 * because configurations with keys are built here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct str {
    char *text;  /* owns; @len bytes and a zero; NULL while empty */
    size_t len;  /* without the zero */
    size_t cap;  /* with the zero */
    bool failed; /* there was no memory: everything after is ignored */
};

#define STR_NULL                                                                                   \
    {                                                                                              \
        0                                                                                          \
    }

/** str_deinit() - wipe and release; idempotent. */
void str_deinit(struct str *s);

/** str_add() - append @text. */
void str_add(struct str *s, const char *text);

/** str_add_bytes() - append @len bytes; a zero among them is kept. */
void str_add_bytes(struct str *s, const char *bytes, size_t len);

/** str_addf() - append formatted text. */
void str_addf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** str_text() - borrowed until the next change; "" while empty. */
const char *str_text(const struct str *s);

/**
 * str_take() - the text; @s is empty afterwards
 * @ret_len:	its bytes, without the zero; may be NULL
 *
 * Return: gives it, free() it; NULL when some allocation had failed.
 */
char *str_take(struct str *s, size_t *ret_len);
