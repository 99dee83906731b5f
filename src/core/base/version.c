/* version.c - the version of whatever is no program: see version.h. */
#include "base/version.h"

__attribute__((weak)) const char version_text[] = "0.0.0";
