/*
 * labels.h - the labels of a node, as "--label KEY=VALUE" says them.
 */
#pragma once

struct err;
struct label;
struct option_list;

/**
 * labels_parse() - check each of @given, and split it
 * @ret:	gives an array of @given->n, free() it; not NULL for none
 *
 * Return: 0 or negative with words.
 */
int labels_parse(struct label **ret, const struct option_list *given, struct err *e);
