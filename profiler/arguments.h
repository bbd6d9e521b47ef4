/* arguments.h: all that an operator was called with, as words that a recording keeps. */
#ifndef TIDE_PROFILER_ARGUMENTS_H
#define TIDE_PROFILER_ARGUMENTS_H

#include "engine/core/observer.h"

#include <stddef.h>

enum { TIDE_ARGUMENT_WORDS = 65 };

/* Write the words that tide_event_arguments reads, behind one that counts them; how many these are.
 * What has no room is cut off. */
size_t tide_arguments_write(const td_event *event, int64_t words[TIDE_ARGUMENT_WORDS]);

#endif
