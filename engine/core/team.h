/* team.h: whether this thread may fork a team of threads now.
 *
 * OpenMP ends the process when it can't start a thread, and waits for ever when a child made by
 * fork uses the team of its parent. So whoever forks (core/threads.c, and libraries that do) asks
 * here first: the answer is the size wanted, or 1.
 */
#ifndef TD_CORE_TEAM_H
#define TD_CORE_TEAM_H

/* The largest team that this thread had, or was found room for. */
extern _Thread_local int td_team_ready;

int td_team_prepare(int wanted); /* the part of td_team_size that is not every call's */

static inline int td_team_size(int wanted) {
    return wanted <= td_team_ready ? wanted : td_team_prepare(wanted);
}

/* Around calls into libraries that fork teams by themselves: within, they use at most `most`
 * threads, and one where there can be no more. Returns what td_team_end must be given. */
int td_team_begin(int most, int *size);
void td_team_end(int before);

#endif
