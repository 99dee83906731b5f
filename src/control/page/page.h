/*
 * page.h - a network on one page for people: what is found wrong with it, its nodes, edges and
 * jobs, what they have moved and cost, its budgets, and what has happened lately. One HTML document
 * without a script, a form, or anything from elsewhere.
 *
 * The hub serves it (GET /v1/networks/{network}/page), and `weft page` writes the same to a file.
 * It is made of what the API answers anyway, so whoever may see the one may see the other.
 *
 * All texts are escaped, and lists are cut: of 10,000 nodes PAGE_ROWS_MAX are shown, those in
 * trouble first, and how many more there are.
 *
 * Pure: JSON in, text out.
 */
#pragma once

#include <jansson.h>

struct str;

/** Base64 of the SHA-256 of the style; test-page.c says what it has to be. */
#define PAGE_STYLE_HASH "enw9O7QdWogSaQ9pJ9dtfDEQ/9JMK7teHg8ubh+r/Lc="

/** What the answer says beside the page (CSP level 3): nothing is loaded, run, sent or framed, and
 * there is no style but the page's own. */
#define PAGE_POLICY                                                                                \
    "default-src 'none'; style-src 'sha256-" PAGE_STYLE_HASH "'; base-uri 'none'; "                \
    "form-action 'none'; frame-ancestors 'none'"

/**
 * page_format() - appends the document to @out
 * @facts:	{"network": NAME, "at": s since 1970, "version": TEXT, and as the API answers:
 *		"nodes", "edges", "jobs" (null: another hub serves them), "findings", "events";
 *		"cost": as ledger_make() has it}; borrowed
 *
 * What is missing or of another type is left out.
 */
void page_format(struct str *out, const json_t *facts);

/** page_style() - the text between <style> and </style>, of which PAGE_STYLE_HASH is. */
const char *page_style(void);

/** html_text() - @text, such that it is text in an element and in an attribute. Control characters
 * and bytes that are no UTF-8 become U+FFFD. */
void html_text(struct str *out, const char *text);
