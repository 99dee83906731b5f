/*
 * body.h - JSON bodies of requests and answers, in and out.
 *
 * The one place where bytes from a connection become a json_t. What the fields
 * mean is checked by whoever takes the body, with mesh/object/fields.h.
 */
#pragma once

#include <jansson.h>
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
