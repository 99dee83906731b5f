/*
 * price_table.h - the price table of --price-table: a file that somebody wrote (docs/PLAN.md).
 */
#pragma once

#include <jansson.h>

struct err;
struct prices;

/**
 * price_table_read() - read and check it
 * @ret_json:	set to the same as JSON, a new reference; NULL: not wanted
 *
 * Return: 0; or negative errno with words that name the file.
 */
int price_table_read(struct prices *ret, json_t **ret_json, const char *path, struct err *e);
