/* scan.h: what scan.c calls of scan_lines.c. */
#ifndef TD_CPU_REDUCE_SCAN_H
#define TD_CPU_REDUCE_SCAN_H

#include "engine/ops/plan/plan.h"

/* Scans that are neither sums nor products (scan_lines.c). */
td_status td_scan_lines(const td_scan_plan *plan) TD_MUST_CHECK;

#endif
