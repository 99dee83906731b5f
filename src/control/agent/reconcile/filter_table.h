/*
 * filter_table.h - a table of the packet filter that is about one interface.
 *
 * What it is for has one for each interface, WHAT_INTERFACE of the family inet. It is replaced and
 * removed whole.
 */
#pragma once

struct err;

/**
 * filter_table_replace() - have exactly these contents in the table; may be called again
 * @what:	"weft_" and a short word, such as "weft_mss"
 * @interface:	an interface's name may have characters that have a meaning in nft's syntax; one
 *		with such characters is refused
 * @body:	its chains, as for nft_replace_table()
 *
 * Return: 0; or negative errno with words.
 */
int filter_table_replace(const char *what, const char *interface, const char *body, struct err *e);

/** filter_table_remove() - one that is not there is fine. 0 or negative errno with words. */
int filter_table_remove(const char *what, const char *interface, struct err *e);
