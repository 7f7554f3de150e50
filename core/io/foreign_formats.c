/* SPDX-License-Identifier: MIT */
/*
** foreign_formats.c - recognizes files of other programs by their first bytes,
** to say in the error what they are and how to convert them.
*/
#include <string.h>

#include "core/io/archive.h"

/* clang-format off */
static const struct { int at, n; const char *bytes, *name, *hint; } known[] = {
  { 0, 14, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",
    "a file of torch.save before 1.6",
    "in Python: torch.save(torch.load(path), 'x.pt')" },
  { 0, 2, "\x80\x02", "a Python pickle", "in Python: numpy.savez(path, "
                                         "**arrays)" },
  { 0, 2, "\x80\x03", "a Python pickle", "in Python: numpy.savez(path, "
                                         "**arrays)" },
  { 0, 2, "\x80\x04", "a Python pickle", "in Python: numpy.savez(path, "
                                         "**arrays)" },
  { 0, 2, "\x80\x05", "a Python pickle", "in Python: numpy.savez(path, "
                                         "**arrays)" },
  { 257, 5, "ustar", "a tar archive", "tar -xf unpacks it" },
  { 0, 8, "\x89HDF\r\n\x1a\n", "an HDF5 file",
    "in Python: numpy.save('x.npy', h5py.File(path)[name])" },
  { 0, 4, "PAR1", "a Parquet file",
    "in Python: pandas.read_parquet(path).to_csv('x.csv', index=False)" },
  { 0, 6, "ARROW1", "an Arrow file",
    "in Python: pandas.read_feather(path).to_csv('x.csv', index=False)" },
  { 0, 10, "MATLAB 5.0", "a MATLAB file",
    "in Python: numpy.savez('x.npz', **scipy.io.loadmat(path))" },
  { 0, 4, "GGUF", "a GGUF file", NULL },
  { 0, 15, "SQLite format 3", "an SQLite database",
    "sqlite3 -csv FILE 'select ...' writes a .csv" },
  { 0, 2, "\x1f\x8b", "compressed by gzip",
    "gunzip unpacks it, or load(io.popen\"zcat FILE\", {format=\"csv\"})" },
  { 0, 3, "BZh", "compressed by bzip2", "bunzip2 unpacks it" },
  { 0, 6, "\xfd" "7zXZ\0", "compressed by xz", "unxz unpacks it" },
  { 0, 4, "\x28\xb5\x2f\xfd", "compressed by zstd", "unzstd unpacks it" },
  { 0, 4, "\x89PNG", "a PNG image", "nacre.readpng(path)" },
  { 0, 3, "\xff\xd8\xff", "a JPEG image", "convert it to PNG: nacre.readpng" },
};
/* clang-format on */

int nc_fail_foreign_format(const char *path, const char *head, int64_t n) {
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
