/* SPDX-License-Identifier: MIT */
/*
** file_formats.h - the formats of files, a row each.
**
** ONE  (name, magic, abilities)  one tensor, without a name
** MANY (name, magic, abilities)  several tensors, by name
** PARTS(name, format)            several files of that format as one: a path
**                                that nc_format_<name> knows, no extension
** TEXT (name, delimiter)         one matrix of numbers in text
** ALSO (name, format)            another extension of that format
**
** name       the extension, and the value of {format=}
** magic      the first bytes; "": nc_format_<name> itself knows its files
** abilities  FLAT or one of NC_AS_..., with NC_METADATA, NC_SLICE, NC_COMPRESS,
**            NC_QUALITY, NC_READ_ONLY (files.h)
**
** From a row come the enumerator FORMAT_<name>, recognition, the options that
** the functions of Lua take, their errors and help, and completion.  What the
** format does is nc_format_<name>, an ArchiveFormat (io/archive.h).  If two
** formats know the same bytes, the later row has them.
*/
#ifndef core_file_formats_h
#define core_file_formats_h

/* clang-format off */
#define FILE_FORMATS(ONE, MANY, PARTS, TEXT, ALSO)                         \
  ONE  (npy,         "\x93NUMPY", FLAT)                                    \
  ONE  (idx,         "", FLAT)                                             \
  ONE  (png,         "\x89PNG", NC_IMAGE)                                  \
  ONE  (jpg,         "\xff\xd8\xff", NC_IMAGE | NC_QUALITY)                \
  ALSO (jpeg, jpg)                                                         \
  MANY (npz,         "PK\3\4", FLAT | NC_COMPRESS)                         \
  MANY (safetensors, "",       NC_AS_METADATA | NC_METADATA)               \
  PARTS(shards, safetensors)                                               \
  MANY (pt,          "",       NC_AS_VALUES)                               \
  ALSO (pth, pt)                                                           \
  MANY (h5,          "\x89HDF\r\n\x1a\n",                                  \
        NC_AS_PATHS | NC_METADATA | NC_SLICE | NC_COMPRESS)                \
  ALSO (hdf5, h5)                                                          \
  MANY (gguf,        "GGUF", NC_READ_ONLY)                                 \
  MANY (onnx,        "",     NC_READ_ONLY)                                 \
  TEXT (csv, ',')                                                          \
  TEXT (tsv, '\t')                                                         \
  TEXT (txt, ' ')
/* clang-format on */

#define NO_FORMAT(...)

/* The names, as {format=} takes them, and all extensions, between texts. */
#define BAR_AND_NAME(name, ...) "|" #name
#define FORMAT_NAMES                                                       \
  FILE_FORMATS(BAR_AND_NAME, BAR_AND_NAME, NO_FORMAT, BAR_AND_NAME, NO_FORMAT)
#define BLANK_AND_NAME(name, ...) " ." #name
#define FORMATS_OF_ONE                                                     \
  FILE_FORMATS(BLANK_AND_NAME, NO_FORMAT, NO_FORMAT, BLANK_AND_NAME, NO_FORMAT)
#define FORMATS_OF_MANY                                                    \
  FILE_FORMATS(NO_FORMAT, BLANK_AND_NAME, NO_FORMAT, NO_FORMAT, NO_FORMAT)
#define FORMATS_OF_TEXT                                                    \
  FILE_FORMATS(NO_FORMAT, NO_FORMAT, NO_FORMAT, BLANK_AND_NAME, NO_FORMAT)
#define FORMAT_EXTENSIONS                                                  \
  FILE_FORMATS(BLANK_AND_NAME, BLANK_AND_NAME, NO_FORMAT, BLANK_AND_NAME,  \
               BLANK_AND_NAME)

#endif
