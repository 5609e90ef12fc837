/* Prints the table of variants, a line each, tab-separated: name, kind, expected status,
 * level, cases, culprit, what it stands for. For the script that tries them and for docs.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "mutants/mutants.h"

int main(void)
{
    const mutant *const list[] = {vm_ops, vm_tiles, vm_process, vm_honest};
    const int32_t count[] = {vm_ops_count, vm_tiles_count, vm_process_count, vm_honest_count};
    static const char *const kind[] = {"operation", "tiles", "process", "honest"};
    for (int k = 0; k < 4; k++)
        for (int32_t i = 0; i < count[k]; i++) {
            const mutant *m = &list[k][i];
            printf("%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m->variant.name, kind[k], m->status, m->level[0] ? m->level : "-", m->cases,
                   m->culprit ? m->culprit : "-", m->what);
        }
    return 0;
}
