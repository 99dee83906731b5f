/*
 * json_file.h - a file of JSON that a person has named on the command line.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct err;

/**
 * json_file_read() - read it
 * @ret:	set to a new reference; untouched on failure
 * @max:	bytes that it may have
 *
 * Return: 0; or negative errno with words that name the file, and the line that is no JSON.
 */
int json_file_read(json_t **ret, const char *path, size_t max, struct err *e);
