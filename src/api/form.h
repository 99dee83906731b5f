/*
 * form.h - application/x-www-form-urlencoded, as in a query or in a body.
 *
 * Decoded in place into names and values. Pure.
 */
#pragma once

#include <stddef.h>

/** Most fields of a form. */
#define FORM_FIELDS_MAX 32

struct form_field {
    const char *name;  /* decoded; in the text that was parsed */
    const char *value; /* likewise; "" without a '=' */
};

struct form {
    struct form_field fields[FORM_FIELDS_MAX]; /* in their order */
    size_t n;                                  /* how many */
};

/**
 * form_parse() - add the fields of a text to @form
 * @text:	@len bytes and a zero; decoded in place, and borrowed for as long as @form is used
 *
 * A '+' is a space, '%' and two hex digits are a byte. No field may hold a zero byte or anything
 * but UTF-8, since all values are text.
 *
 * Return: 0; -EINVAL: not of this form, or too many fields.
 */
int form_parse(struct form *form, char *text, size_t len);

/** form_add() - one more field, which is decoded already; borrowed. 0, or -EINVAL: too many. */
int form_add(struct form *form, const char *name, const char *value);

/** form_find() - the value of the first field of that name; NULL if there is none. */
const char *form_find(const struct form *form, const char *name);
