/*
 * price_table.h - the price table of --price-table: a file that somebody wrote (docs/PLAN.md).
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct err;
struct prices;

/**
 * price_table_read() - read and check it
 * @ret_json:	set to the same as JSON, a new reference; NULL: not wanted
 *
 * Return: 0; or negative errno with words that name the file.
 */
int price_table_read(struct prices *ret, json_t **ret_json, const char *path, struct err *e);

/* A file of JSON that a person has named on the command line. */

/**
 * json_file_read() - read it
 * @ret:	set to a new reference; untouched on failure
 * @max:	bytes that it may have
 *
 * Return: 0; or negative errno with words that name the file, and the line that is no JSON.
 */
int json_file_read(json_t **ret, const char *path, size_t max, struct err *e);
