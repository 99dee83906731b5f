/*
 * form.h - application/x-www-form-urlencoded, as in a query or in a body.
 *
 * Decoded in place into names and values. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** Most fields of a form; those behind them are not looked at. */
#define FORM_FIELDS_MAX 32

/** Room for the sentence about what is wrong with a form. */
#define FORM_WORDS_MAX 48

struct form_field {
    const char *name;  /* decoded; in the text that was parsed */
    const char *value; /* likewise, with a zero behind; "" without a '=' */
    size_t value_len;  /* bytes of it: any, also zeroes */
};

struct form {
    struct form_field fields[FORM_FIELDS_MAX]; /* in their order */
    size_t n;                                  /* how many */
};

/**
 * form_parse() - add the fields of a text to @form
 * @text:	@len bytes and a zero; decoded in place, and borrowed for as long as @form is used
 * @words:	what is wrong, as Go's net/url says it, since etcd's answers say it so; "": nothing
 *
 * A '+' is a space, '%' and two hex digits are a byte. Fields that are
 * wrong are left out, and @words is about the first of them.
 *
 * Return: 0, or -EINVAL with words.
 */
int form_parse(struct form *form, char *text, size_t len, char words[static FORM_WORDS_MAX]);

/** form_find() - the first field of that name; NULL if there is none. */
const struct form_field *form_find(const struct form *form, const char *name);

/**
 * form_type() - is a body of that Content-Type a form?
 * @type:	NULL: the request has no Content-Type
 * @words:	what is wrong with it, as Go's mime says it; "": nothing
 */
bool form_type(const char *type, char words[static FORM_WORDS_MAX]);
