/* bottleneck.h: tide --bottleneck: a script is run three times, in processes of their own, and a
 * page says where its time and memory go. */
#ifndef TIDE_BOTTLENECK_H
#define TIDE_BOTTLENECK_H

#include "repl/session/session.h"

/* Runs argv[script] with what follows it and prints the page. The exit code is that of its first
 * run, whose output is the only one that is seen and which alone reads standard input; *interrupted
 * tells that SIGINT ended it. */
int bottleneck_run(tide_session *s, char **argv, int script, bool *interrupted);

/* What a run is told before its script: this option, the part and the file of what it saw. */
#define BOTTLENECK_PART "--bottleneck-part"

/* Before the script, and behind it. False, with a line on stderr, where that fails. */
bool bottleneck_begin(tide_session *s, const char *part);
bool bottleneck_finish(tide_session *s, const char *part, const char *path);

#endif
