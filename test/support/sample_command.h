/*
 * sample_command.h - a command's line, taken apart as by `weft run`.
 */
#pragma once

#include "train/job/command.h"

#define SAMPLE_COMMAND_MAX 256 /* bytes of a line, with its zero */

/**
 * sample_command_read() - what command_read() says of a line
 * @line:	24 words at most, with single blanks between them
 * @buf:	the words live there
 *
 * The result borrows from @buf, and is good until the next call.
 */
struct command sample_command_read(const char *line, char buf[static SAMPLE_COMMAND_MAX]);
