/*
 * torch.h - which PyTorch a command will use, read off the disk.
 *
 * Importing torch takes seconds; the metadata that every installer leaves
 * beside the package says the version in a directory's name. Found like Python
 * does it: PYTHONPATH, the person's own packages, the virtual environment or
 * prefix that the interpreter belongs to. Not found is no error: a version of 0
 * means "not known", and is treated like the newest.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#define TORCH_VERSION_MAX 48

struct torch_install {
    char python[PATH_MAX];           /* the interpreter; "": not found */
    unsigned python_version;         /* major * 100 + minor: 311 is 3.11; 0: not known */
    char version[TORCH_VERSION_MAX]; /* "2.4.1+cu121"; "": not found */
    unsigned torch;                  /* likewise 204; 0: not known */
};

/**
 * torch_parse_metadata() - is @name the metadata directory of an installed torch?
 * @name:	"torch-2.4.1+cu121.dist-info"
 * @ret_text:	its version as text; untouched unless true
 * @ret:	major * 100 + minor; untouched unless true
 */
bool torch_parse_metadata(const char *name, char ret_text[static TORCH_VERSION_MAX], unsigned *ret);

/**
 * torch_find() - find the torch that a program would import, without running anything
 * @ret:	set; what is not found stays empty
 * @program:	a path, or a name to be looked for in PATH: an interpreter, or a
 *		script whose first line names one
 */
void torch_find(struct torch_install *ret, const char *program);
