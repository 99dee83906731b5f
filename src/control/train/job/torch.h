/*
 * torch.h - finds out on disk which PyTorch a command will use.
 *
 * Importing torch would take seconds. Instead this reads the version from the
 * name of the metadata directory that every installer puts beside the package.
 * It looks where Python looks: in PYTHONPATH; in the virtual environment that
 * the interpreter belongs to; unless that environment excludes them, in the
 * person's own packages below ~/.local and in the interpreter's prefix. It is no
 * error when torch is not found: a version of 0 means "not known", and is
 * treated as the newest.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#define TORCH_VERSION_MAX 48

/** An interpreter and its torch. */
struct torch_install {
    char python[PATH_MAX];           /* path of the interpreter; "": not found */
    unsigned python_version;         /* major * 100 + minor: 311 is 3.11; 0: not known */
    char version[TORCH_VERSION_MAX]; /* "2.4.1+cu121"; "": not found */
    unsigned torch;                  /* the same as a number: 204 is 2.4; 0: not known */
    unsigned nccl;                   /* minor of the NCCL 2 beside it: 21 is 2.21; 0: not known */
};

/**
 * torch_parse_metadata() - is @name the metadata directory of an installed torch?
 * @name:	a file name such as "torch-2.4.1+cu121.dist-info"
 * @ret_text:	its version as text; untouched unless true
 * @ret:	major * 100 + minor; untouched unless true
 */
bool torch_parse_metadata(const char *name, char ret_text[static TORCH_VERSION_MAX], unsigned *ret);

/**
 * torch_parse_nccl() - the minor of the NCCL 2 whose metadata directory is called @name
 *
 * torch's wheels come with NCCL as a package of its own: "nvidia_nccl_cu12-2.21.5.dist-info".
 *
 * Return: 21 for that one; 0 when it is none.
 */
unsigned torch_parse_nccl(const char *name);

/**
 * torch_find() - find the torch that a program would import, without running anything
 * @ret:	always set; what is not found is empty or 0
 * @program:	an interpreter, or a script whose first line names one; given as a path, or as
 *		a name that is looked up in PATH
 */
void torch_find(struct torch_install *ret, const char *program);
