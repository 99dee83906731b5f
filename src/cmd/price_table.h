/*
 * price_table.h - the price table of --price-table: a file that somebody wrote (docs/PLAN.md).
 */
#pragma once

struct err;
struct prices;

/** price_table_read() - 0; or negative errno with words that name the file. */
int price_table_read(struct prices *ret, const char *path, struct err *e);
