/* processors.h: how many processors this process may use. */
#ifndef TD_CORE_PROCESSORS_H
#define TD_CORE_PROCESSORS_H

/* Those that its affinity mask and its control group's quota of time allow, at least 1; a share of
 * a processor counts as one. */
int td_processors_allowed(void);

/* The least quota, in processors rounded up, of the control groups that `groups` (the text of
 * /proc/self/cgroup) names and of those around them, below `root` (/sys/fs/cgroup), where the
 * hierarchy of version 1 lies in `cpu`; `none` where no group has one. */
int td_processors_quota(const char *groups, const char *root, int none);

#endif
