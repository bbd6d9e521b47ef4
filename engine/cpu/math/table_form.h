/* table_form.h: how the tables of functions of double lie for the instruction set that a file is
 * compiled for.
 *
 * Every table that depends on it includes it, so that none is ever set for another set than its
 * readers are.
 */
#ifndef TD_CPU_MATH_TABLE_FORM_H
#define TD_CPU_MATH_TABLE_FORM_H

/* TD_TABLES_BY_ROWS: 16 numbers are looked up at once. TD_SCALES: an instruction multiplies by
 * powers of two. TD_EXP_BY_TABLE_D: exp, log, angles and their kin of double are by tables, since
 * entries are looked up sooner than a lane at a time. */
#if defined(TD_ISA_avx512)
#define TD_TABLES_BY_ROWS 1
#define TD_SCALES         1
#define TD_EXP_BY_TABLE_D 1
#else
#define TD_TABLES_BY_ROWS 0
#define TD_SCALES         0
#if defined(TD_ISA_avx2)
#define TD_EXP_BY_TABLE_D 1
#else
#define TD_EXP_BY_TABLE_D 0
#endif
#endif

#endif
