/* SPDX-License-Identifier: MIT */
/*
** foreign_formats.c - recognizes files of other programs, and what a download
** that failed leaves, by their first bytes, to say in the error what they are
** and what to do.
*/
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "core/io/archive.h"

/* clang-format off */
static const struct { int at, n; const char *bytes, *name, *hint; } known[] = {
  { 0, 9, "sys_info", "a file of torch.save before 0.1.12, a tar archive",
    "in Python: torch.save(torch.load(path, map_location='cpu'), 'x.pt')" },
  { 0, 2, "\x80\x02", "a Python pickle", "in Python: numpy.savez(path, "
                                         "**arrays)" },
  { 0, 2, "\x80\x03", "a Python pickle", "in Python: numpy.savez(path, "
                                         "**arrays)" },
  { 0, 2, "\x80\x04", "a Python pickle", "in Python: numpy.savez(path, "
                                         "**arrays)" },
  { 0, 2, "\x80\x05", "a Python pickle", "in Python: numpy.savez(path, "
                                         "**arrays)" },
  { 257, 5, "ustar", "a tar archive", "tar -xf unpacks it" },
  { 0, 4, "PAR1", "a Parquet file",
    "in Python: pandas.read_parquet(path).to_csv('x.csv', index=False)" },
  { 0, 6, "ARROW1", "an Arrow file",
    "in Python: pandas.read_feather(path).to_csv('x.csv', index=False)" },
  { 0, 10, "MATLAB 5.0", "a MATLAB file",
    "in Python: numpy.savez('x.npz', **scipy.io.loadmat(path))" },
  { 0, 15, "SQLite format 3", "an SQLite database",
    "sqlite3 -csv FILE 'select ...' writes a .csv" },
  { 0, 3, "BZh", "compressed by bzip2", "bunzip2 unpacks it" },
  { 0, 6, "\xfd" "7zXZ\0", "compressed by xz", "unxz unpacks it" },
  { 0, 4, "\x28\xb5\x2f\xfd", "compressed by zstd", "unzstd unpacks it" },
  { 0, 26, "version https://git-lfs.gi",
    "a pointer of Git LFS, not the file itself", "git lfs pull fetches it" },
  { 0, 5, "%PDF-", "a PDF document", NULL },
  { 0, 9, "SIMPLE  =", "a FITS file",
    "in Python: numpy.save(path, astropy.io.fits.getdata(path))" },
  { 0, 4, "CDF\1", "a NetCDF 3 file",
    "in Python: xarray.open_dataset(path).to_netcdf('x.h5')" },
  { 0, 4, "CDF\2", "a NetCDF 3 file",
    "in Python: xarray.open_dataset(path).to_netcdf('x.h5')" },
};
/* clang-format on */

/* Does the text begin so, whatever the case of its letters? */
static int begins(const char *head, int64_t n, const char *with) {
  while (n > 0 && *with && tolower((unsigned char)*head) == *with)
    head++, with++, n--;
  return *with == '\0';
}

/* A page instead of the file: of an error, or of a login. */
static int fail_page(const char *path, const char *head, int64_t n) {
  while (n > 0 && isspace((unsigned char)*head)) head++, n--;
  if (!begins(head, n, "<!doctype html") && !begins(head, n, "<html") &&
      !begins(head, n, "<?xml"))
    return NC_OK;
  nc_failfile(NC_EFILE, path, "this is %s, which cannot be read",
              begins(head, n, "<?xml") ? "an XML document" : "an HTML page");
  nc_hint("download the file itself: this may be the page of an error");
  return NC_EFILE;
}

static int is_text(const char *head, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const unsigned char c = (unsigned char)head[i];
    if (c == 127 || (c < ' ' && !isspace(c))) return 0;
  }
  return 1;
}

int nc_fail_other_bytes(const char *path, const char *what, const char *head,
                        int64_t n) {
  char shown[64];
  int64_t line = 0;
  if (n == 0) return nc_failfile(NC_EFILE, path, "the file is empty");
  while (line < n && head[line] == '\0') line++;
  if (line == NC_HEAD)
    return nc_failfile(NC_EFILE, path,
                       "it begins with zeros: a download or a copy of it was "
                       "not completed");
  if (!is_text(head, n)) return NC_OK;
  for (line = 0; line < n && line < 24 && head[line] != '\n';) line++;
  nc_failfile(NC_EFILE, path,
              "this is text, not a .%s file: it begins with \"%s\"", what,
              nc_printable(shown, sizeof shown, head, (size_t)line));
  if (strchr("0123456789+-.#", *head))
    nc_hint("{format=\"csv\"} reads a text of numbers");
  else nc_hint("it may be what a server said instead of sending the file");
  return NC_EFILE;
}

/* JSON, by its name and how it begins: values, but not of tensors. */
static int fail_json(const char *path, const char *head, int64_t n) {
  while (n > 0 && isspace((unsigned char)*head)) head++, n--;
  if (strcasecmp(nc_extension(path), "json") != 0 || n == 0 ||
      (*head != '{' && *head != '['))
    return NC_OK;
  nc_failfile(NC_EFILE, path, "this is JSON, which holds no tensors");
  nc_hint("nacre.json.load(path) reads it as tables");
  return NC_EFILE;
}

int nc_fail_foreign_format(const char *path, const char *head, int64_t n) {
  TRY(fail_page(path, head, n));
  TRY(fail_json(path, head, n));
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (n < known[i].at + known[i].n ||
        memcmp(head + known[i].at, known[i].bytes, (size_t)known[i].n) != 0)
      continue;
    nc_failfile(NC_EFILE, path, "this is %s, which cannot be read",
                known[i].name);
    if (known[i].hint) nc_hint("%s", known[i].hint);
    return NC_EFILE;
  }
  return NC_OK;
}
