/* From a log to reports, and `vaecheck merge`. SPDX-License-Identifier: MIT */
#include "runner/report_step.h"

#include <stdio.h>

int vc_report_step(const char *log, const char *dir, const char *junit, int code)
{
    (void)log; (void)dir; (void)junit;
    return code;
}

int vc_merge_command(int argc, char **argv)
{
    (void)argc; (void)argv;
    return 2;
}
