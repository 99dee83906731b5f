/*
 * html.h - the parts of an HTML document with tables. Whatever text is handed in is escaped.
 *
 * Pure; appends to a struct str.
 */
#pragma once

struct str;

/** html_text() - @text, such that it is text in an element and in an attribute. Control characters
 * and bytes that are no UTF-8 become U+FFFD. */
void html_text(struct str *out, const char *text);

/** html_begin() - up to the body. @style: as it is, and @hash: base64 of its SHA-256. */
void html_begin(struct str *out, const char *title, const char *style, const char *hash);

/** html_end() - the body's end, and the document's. */
void html_end(struct str *out);

/** html_table() - a title, and a table with these heads up to NULL; "+NAME" is one of numbers. */
void html_table(struct str *out, const char *title, const char *const *heads);

/** html_table_end() - its end. */
void html_table_end(struct str *out);

/** html_cell() - a cell with @text. */
void html_cell(struct str *out, const char *text);

/** html_number() - a cell with a number, as printf() makes it; at most 127 bytes. */
void html_number(struct str *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
