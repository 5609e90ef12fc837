/* golden/install.c: from DIR/.part to DIR (clauses G4, G5).
 *
 * All is checked before anything moves. Then the manifest goes first and comes
 * last, each file moves by one rename, and folders are synced between, so a kill
 * or a power cut leaves a manifest that holds or none.
 *
 * SPDX-License-Identifier: MIT */
#include "golden.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what may be in the folder ------------------------------------------------------ */

static bool version_file(const char *name)
{
    static const struct {
        const char *folder, *end;
    } kinds[] = {{"cases/", ".json"}, {"pictures/", ".png"}};
    if (!strcmp(name, VG_MANIFEST) || !strcmp(name, VG_PROVENANCE))
        return true;
    for (int k = 0; k < 2; k++) {
        const size_t a = strlen(kinds[k].folder), b = strlen(kinds[k].end), n = strlen(name);
        char id[VG_ID];
        if (n <= a + b || n - a - b >= VG_ID || strncmp(name, kinds[k].folder, a) || strcmp(name + n - b, kinds[k].end))
            continue;
        snprintf(id, sizeof id, "%.*s", (int)(n - a - b), name + a);
        return vg_id_valid(id);
    }
    return false;
}

vr_status vg_check_folder(const char *dir, vr_error *err)
{
    vg_names all;
    vr_status s = vg_list(dir, &all, err);
    const bool listed = !s;
    for (int64_t i = 0; !s && i < all.count; i++)
        if (!version_file(all.item[i]))
            s = vr_fail(err, VR_E_ARGUMENT, "%s: holds '%s', which is no file of a golden version; want a new folder, "
                        "or one that regen made", dir, all.item[i]);
    if (listed)
        vg_names_free(&all);
    return s == VR_E_NOTFOUND ? VR_OK : s;
}

vr_status vg_check_frozen(const vg_case_list *l, const char *dir, vr_error *err)
{
    vg_names ids;
    vr_status s = vg_list_ids(dir, &ids, NULL);
    if (s)
        return s == VR_E_NOTFOUND ? VR_OK : vg_list_ids(dir, &ids, err);
    for (int64_t i = 0; !s && i < ids.count; i++) {
        const vg_case *c = vg_cases_find(l, ids.item[i]);
        char path[PATH_MAX];
        vg_record r;
        if (!c) {
            s = vr_fail(err, VR_E_ARGUMENT, "%s: case '%s' of %s is gone; a published case stays: put it back, or make "
                        "a new version (regen --new-version)", l->path, ids.item[i], dir);
            break;
        }
        s = vg_record_path(path, dir, c->id, err);
        s = s ? s : vg_record_read(path, &r, err);
        if (s)
            vr_fail_prefix(err, "damaged record (restore it, or remove it and run regen)");
        else if (!vg_input_equal(c, &r.input))
            s = vr_fail(err, VR_E_ARGUMENT, "%s:%d: case '%s' is not what %s froze under this id; want another id, or "
                        "a new version (regen --new-version)", l->path, c->line, c->id, dir);
    }
    vg_names_free(&ids);
    return s;
}

/* ---- planning ----------------------------------------------------------------------- */

typedef struct item {
    char name[VG_ID + 16];  /* "cases/ID.json" */
    char digest[65];
    bool move;              /* from .part; what DIR has differs */
} item;

typedef struct plan {
    const vg_case_list *l;
    const char *dir;
    char part[PATH_MAX];
    item *item;             /* files of the version, ascending */
    int64_t count, moves;
    vg_record *record;      /* of the cases that are there */
    int64_t records;
    vg_names stale;         /* pictures no longer wanted */
    vg_installed *out;
} plan;

/* Adds one file; *there: it is in .part or in DIR. */
static vr_status add_file(plan *p, const char *name, bool *there, vr_error *err)
{
    char in_part[PATH_MAX], in_dir[PATH_MAX], old[65] = "";
    vr_status s = vg_join(in_part, p->part, name, err);
    s = s ? s : vg_join(in_dir, p->dir, name, err);
    if (s)
        return s;
    item *it = &p->item[p->count];
    const bool have_old = vg_exists(in_dir), have_new = vg_exists(in_part);
    *there = have_old || have_new;
    if (!*there)
        return VR_OK;
    if (have_old)
        s = vg_file_digest(in_dir, old, err);
    if (!s && have_new)
        s = vg_file_digest(in_part, it->digest, err);
    else if (!s)
        memcpy(it->digest, old, sizeof old);
    if (s)
        return s;
    snprintf(it->name, sizeof it->name, "%s", name);
    it->move = have_new && strcmp(old, it->digest) != 0;
    p->moves += it->move;
    p->count++;
    return VR_OK;
}

static void missing(plan *p, const vg_case *c)
{
    if (p->out->missing++ == 0)
        memcpy(p->out->first_missing, c->id, sizeof c->id);
}

/* A record that is already there may not become another one. */
static vr_status check_same(const plan *p, const vg_case *c, const vg_record *now, vr_error *err)
{
    char path[PATH_MAX], what[260];
    vg_record old;
    vr_status s = vg_record_path(path, p->dir, c->id, err);
    if (s || !vg_exists(path))
        return s;
    s = vg_record_read(path, &old, err);
    if (s)
        return vr_fail_prefix(err, "damaged record (restore it, or remove it and run regen)");
    if (!vg_record_compare(&old, now, what, sizeof what))
        return VR_OK;
    return vr_fail(err, VR_E_ARGUMENT, "case '%s' differs from what %s froze: %s; a change wants a new version (regen "
                   "--new-version); to see all: vaegolden diff %s %s", c->id, p->dir, what, p->dir, p->part);
}

static vr_status plan_case(plan *p, const vg_case *c, vr_error *err)
{
    char name[VG_ID + 16], path[PATH_MAX];
    bool there;
    snprintf(name, sizeof name, "cases/%s.json", c->id);
    vr_status s = add_file(p, name, &there, err);
    if (s || !there) {
        missing(p, c);
        return s;
    }
    const item *it = &p->item[p->count - 1];
    s = vg_record_path(path, it->move ? p->part : p->dir, c->id, err);
    vg_record *r = &p->record[p->records++];
    s = s ? s : vg_record_read(path, r, err);
    return s || !it->move ? s : check_same(p, c, r, err);
}

static vr_status plan_pictures(plan *p, vr_error *err)
{
    char path[PATH_MAX], name[VG_ID + 16];
    vg_names have;
    vr_status s = VR_OK;
    for (int64_t i = 0; !s && i < p->l->count; i++) {
        const vg_case *c = &p->l->item[i];
        bool there;
        if (!c->picture)
            continue;
        snprintf(name, sizeof name, "pictures/%s.png", c->id);
        s = add_file(p, name, &there, err);
        if (!s && !there && !p->out->missing)
            missing(p, c);
    }
    s = s ? s : vg_join(path, p->dir, "pictures", err);
    if (s || !vg_exists(path))
        return s;
    s = vg_list(path, &have, err);
    for (int64_t i = 0; !s && i < have.count; i++) {
        bool wanted = false;
        snprintf(name, sizeof name, "pictures/%.70s", have.item[i]);
        for (int64_t k = 0; k < p->count; k++)
            wanted |= !strcmp(p->item[k].name, name);
        if (!wanted)
            s = vg_names_add(&p->stale, name, err);
    }
    vg_names_free(&have);
    return s;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const item *)a)->name, ((const item *)b)->name);
}

/* provenance.json and the manifest, once nothing is missing. */
static vr_status plan_text(plan *p, vr_error *err)
{
    char path[PATH_MAX], *text = vg_provenance_text(p->l, p->record, p->records);
    bool there;
    vr_status s = text ? vg_join(path, p->part, VG_PROVENANCE, err) : vr_fail(err, VR_E_NOMEM, "out of memory");
    s = s ? s : vg_file_write(path, text, strlen(text), err);
    free(text);
    s = s ? s : add_file(p, VG_PROVENANCE, &there, err);
    if (s)
        return s;
    qsort(p->item, (size_t)p->count, sizeof *p->item, by_name);
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return vr_fail(err, VR_E_NOMEM, "out of memory for a manifest");
    for (int64_t i = 0; i < p->count; i++)
        fprintf(f, "%s  %s\n", p->item[i].digest, p->item[i].name);
    s = vg_close(f) ? VR_OK : vr_fail(err, VR_E_NOMEM, "out of memory for a manifest");
    s = s ? s : vg_join(path, p->part, VG_MANIFEST, err);
    s = s ? s : vg_file_write(path, text, size, err);
    free(text);
    return s ? s : add_file(p, VG_MANIFEST, &there, err);
}

/* ---- moving -------------------------------------------------------------------------- */

static vr_status sync_all(const plan *p, vr_error *err)
{
    static const char *const folders[] = {"cases", "pictures", ""};
    char path[PATH_MAX];
    vr_status s = VR_OK;
    for (int i = 0; !s && i < 3; i++) {
        s = vg_join(path, p->dir, folders[i], err);
        s = s || !vg_exists(path) ? s : vg_sync_dir(path, err);
    }
    return s;
}

static vr_status move_one(const plan *p, const char *name, vr_error *err)
{
    char from[PATH_MAX], to[PATH_MAX];
    vr_status s = vg_join(from, p->part, name, err);
    s = s ? s : vg_join(to, p->dir, name, err);
    if (!s && rename(from, to))
        s = vr_fail(err, VR_E_IO, "%s: cannot put it in place: %s", to, strerror(errno));
    return s;
}

static vr_status remove_one(const plan *p, const char *name, vr_error *err)
{
    char path[PATH_MAX];
    vr_status s = vg_join(path, p->dir, name, err);
    if (!s && unlink(path) && errno != ENOENT)
        s = vr_fail(err, VR_E_IO, "%s: cannot remove it: %s", path, strerror(errno));
    return s;
}

static vr_status move_all(plan *p, bool complete, vr_error *err)
{
    char path[PATH_MAX];
    vr_status s = remove_one(p, VG_MANIFEST, err);
    s = s ? s : vg_sync_dir(p->dir, err);
    s = s ? s : vg_join(path, p->dir, "cases", err);
    s = s ? s : vg_mkdir(path, err);
    s = s ? s : vg_join(path, p->dir, "pictures", err);
    s = s ? s : vg_mkdir(path, err);
    for (int64_t i = 0; !s && i < p->count; i++)
        if (p->item[i].move && strcmp(p->item[i].name, VG_MANIFEST))
            s = move_one(p, p->item[i].name, err);
    for (int64_t i = 0; !s && i < p->stale.count; i++)
        s = remove_one(p, p->stale.item[i], err);
    s = s ? s : sync_all(p, err);
    s = s || !complete ? s : move_one(p, VG_MANIFEST, err);
    return s ? s : vg_sync_dir(p->dir, err);
}

static vr_status install(plan *p, vr_error *err)
{
    vr_status s = vg_join(p->part, p->dir, VG_PART, err);
    p->item = calloc((size_t)(2 * p->l->count + 2), sizeof *p->item);
    p->record = calloc((size_t)p->l->count, sizeof *p->record);
    if (!p->item || !p->record)
        return vr_fail(err, VR_E_NOMEM, "out of memory for a list of files");
    for (int64_t i = 0; !s && i < p->l->count; i++)
        s = plan_case(p, &p->l->item[i], err);
    s = s ? s : plan_pictures(p, err);
    const bool complete = p->out->missing == 0;
    if (!s && complete)
        s = plan_text(p, err);
    if (s)
        return s;
    p->out->changed = p->moves + p->stale.count;
    if (p->out->changed)
        s = move_all(p, complete, err);
    if (!s)
        vg_remove_tree(p->part);
    return s;
}

vr_status vg_install(const vg_case_list *l, const char *dir, vg_installed *out, vr_error *err)
{
    plan p = {.l = l, .dir = dir, .out = out};
    memset(out, 0, sizeof *out);
    vr_status s = install(&p, err);
    vg_names_free(&p.stale);
    free(p.record);
    free(p.item);
    return s;
}
