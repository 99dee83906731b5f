/*
 * body.h - JSON bodies of requests and answers, in and out.
 *
 * The one place where bytes from a connection become a json_t. What the fields
 * mean is checked by whoever takes the body, with mesh/object/fields.h.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct err;

/** Longest body of a request, bytes. */
#define BODY_MAX (64u << 10)

/** Deepest nesting of objects and arrays. No body of ours needs half of it. */
#define BODY_DEPTH_MAX 32

/**
 * body_parse() - bytes to JSON
 * @text:	@len bytes, not zero-terminated
 * @ret:	gives a reference: an object
 *
 * A key that appears twice in one object is refused, and so are a zero byte in a
 * text and what is deeper than BODY_DEPTH_MAX.
 *
 * Return: 0; -EINVAL with words; -ENOMEM.
 */
int body_parse(json_t **ret, const char *text, size_t len, struct err *e);

/** body_check_depth() - is it nested at most @max deep? 0; -EINVAL with words. */
int body_check_depth(const json_t *json, unsigned max, struct err *e);

/** body_format() - compact text; owned by the caller, free(). NULL for no memory. */
char *body_format(const json_t *json);

/** body_refusal() - {"error": @sentence}; a new reference, NULL for no memory. */
json_t *body_refusal(const char *sentence);

/** body_refusal_text() - the sentence of a refusal; borrowed; NULL if @json is none. */
const char *body_refusal_text(const json_t *json);

/** body_wipe_text() - overwrite the text of a field before its object is released. */
void body_wipe_text(json_t *json, const char *field);

/* ---- application/x-www-form-urlencoded, as in a query or in a body --------------------------- */

/*
 * Decoded in place into names and values. Pure.
 */

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
