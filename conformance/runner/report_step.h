/* From a log to reports, and `vaecheck merge`. SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_REPORT_STEP_H
#define VAEPROOF_REPORT_STEP_H

/* Writes what was asked (either may be NULL); returns `code`, or that of the report. */
int vc_report_step(const char *log, const char *dir, const char *junit, int code);
int vc_merge_command(int argc, char **argv);

#endif
