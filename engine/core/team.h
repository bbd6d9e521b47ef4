/* team.h: whether this thread may fork a team of threads now.
 *
 * OpenMP ends the process when it can't start a thread, and waits for ever when a child made by
 * fork uses the team of its parent. So whoever calls a library that forks asks here first: the
 * answer is the size wanted, or 1.
 */
#ifndef TD_CORE_TEAM_H
#define TD_CORE_TEAM_H

/* The largest team that this thread had, or was found room for. */
extern _Thread_local int td_team_ready;

int td_team_prepare(int wanted); /* the part of td_team_size that is not every call's */

static inline int td_team_size(int wanted) {
    return wanted <= td_team_ready ? wanted : td_team_prepare(wanted);
}

/* Before a call into libraries that fork teams by themselves: they use at most `most` threads, as
 * many as kernels may; one within a parallel loop, or where there can be no more. Returns how many.
 */
int td_team_enter(int most);

/* Run fn with one thread: what it calls that forks by itself does not. */
void td_run_alone(void (*fn)(void *ctx), void *ctx);

#endif
