/* SPDX-License-Identifier: MIT */
/*
** test_file_faults.c - files of every format: whatever call fails, whatever
** allocation fails and wherever the user interrupts, the old file stays as it
** was, no temporary file is left and no memory is lost.
*/
#define _XOPEN_SOURCE 700
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <sys/mman.h>

#include "core/io/pt/pickle.h"
#include "tests/unit/faults.h"
#include "tests/unit/save_setup.h"

static Tensor *large, *strided, *little;
static int has[3]; /* libraries, by need */

/* The linker puts it in place of mmap. */
void *__real_mmap(void *p, size_t n, int access, int flags, int fd, off_t at);
void *__wrap_mmap(void *p, size_t n, int access, int flags, int fd, off_t at);

void *__wrap_mmap(void *p, size_t n, int access, int flags, int fd, off_t at) {
  return fd >= 0 && strikes(MMAP) ? MAP_FAILED
                                  : __real_mmap(p, n, access, flags, fd, at);
}

#define FROM_MAPPED (&(Source){ .path = target, .map = 1 })

/*
** The formats
*/
static int save_npy(void) {
  return nc_save(TO_TARGET, strided);
}

/* Saves two tensors with these names, and what else is in c. */
static int save_two(FileFormat f, const char *a, const char *b,
                    FileContents c) {
  NamedTensor list[] = { { a, large }, { b, strided } };
  c.list = list;
  c.n = 2;
  return nc_savefile(TO_TARGET, f, &c);
}

static int save_npz(void) {
  return save_two(FORMAT_npz, "a", "b", (FileContents){ 0 });
}

static int save_deflated(void) {
  return save_two(FORMAT_npz, "a", "b", (FileContents){ .compressed = 1 });
}

static int save_safetensors(void) {
  static const char *const meta[] = { "format", "pt" };
  return save_two(FORMAT_safetensors, "a", "b",
                  (FileContents){ .meta = meta, .nmeta = 1 });
}

/* Appends to a pickle an entry of a dict: a name of one letter, and a matrix of
   int64 in storage `key'. */
static char *put_matrix(char *p, char name, char key, const Tensor *t) {
  static const char rebuild[] =
      "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storage"
      "ctorch\nLongStorage\nX\1\0\0\0%X\3\0\0\0cpu";
  static const char hooks[] = "\x86\x89"
                              "ccollections\nOrderedDict\n)RtR";
  const int32_t v[] = { (int32_t)nc_numel(t), 0,
                        (int32_t)t->size[0],  (int32_t)t->size[1],
                        (int32_t)t->size[1],  1 };
  memcpy(p, "X\1\0\0\0", 5);
  p[5] = name;
  memcpy(p += 6, rebuild, sizeof rebuild - 1);
  *(char *)memchr(p, '%', sizeof rebuild) = key;
  p += sizeof rebuild - 1;
  for (int i = 0; i < 6; i++) {
    *p++ = 'J';
    memcpy(p, &v[i], 4);
    p += 4;
    if (i == 0) *p++ = 't', *p++ = 'Q';
    if (i == 3) *p++ = (char)0x86;
  }
  memcpy(p, hooks, sizeof hooks - 1);
  return p + sizeof hooks - 1;
}

static int save_pt(void) {
  char pickle[1000] = "\x80\2}(", *p = pickle + 4;
  p = put_matrix(p, 'a', '0', large);
  p = put_matrix(p, 'b', '1', strided);
  *p++ = 'u';
  *p++ = '.';
  return save_two(
      FORMAT_pt, "", "",
      (FileContents){ .pickle = pickle, .picklebytes = p - pickle });
}

static int save_csv(void) {
  return nc_savetext(TO_TARGET, strided, ',', NULL);
}

/* Compares a tensor that was loaded, with this status. */
static int compare(int status, Tensor *t, const Tensor *want) {
  if (status == NC_OK) assert_equal(t, want);
  else assert_null(t);
  nc_release(t);
  return status;
}

static int load_npy(void) {
  Tensor *t;
  int status = nc_loadnpy(&t, FROM_TARGET);
  return compare(status, t, strided);
}

static int load_mapped_npy(void) {
  Tensor *t;
  int status = nc_loadnpy(&t, FROM_MAPPED);
  return compare(status, t, strided);
}

static int save_raw(void) {
  return nc_saveraw(TO_TARGET, strided, 0);
}

static int load_raw(const Source *from) {
  const RawFormat f = { .dtype = DT_i64 };
  Tensor *t;
  int status = nc_loadraw(&t, from, &f, 2, strided->size);
  return compare(status, t, strided);
}

static int load_whole_raw(void) {
  return load_raw(FROM_TARGET);
}

static int load_mapped_raw(void) {
  return load_raw(FROM_MAPPED);
}

static int load_from(const Source *from, FileFormat f) {
  Archive *a;
  int status = NC_OK;
  TRY(nc_openarchive(&a, from, f));
  assert_int_equal(nc_archivesize(a), 2);
  for (int64_t i = 0; i < 2 && status == NC_OK; i++) {
    Tensor *t;
    status = nc_archiveload(&t, a, i);
    compare(status, t, *nc_archivename(a, i) == 'a' ? large : strided);
  }
  nc_closearchive(a);
  return status;
}

static int load_archive(FileFormat f) {
  return load_from(FROM_TARGET, f);
}

static int load_npz(void) {
  return load_archive(FORMAT_npz);
}

static int load_mapped_pt(void) {
  return load_from(FROM_MAPPED, FORMAT_pt);
}

static int load_mapped_safetensors(void) {
  return load_from(FROM_MAPPED, FORMAT_safetensors);
}

static int load_pt(void) {
  return load_archive(FORMAT_pt);
}

static int load_safetensors(void) {
  return load_archive(FORMAT_safetensors);
}

static int save_hdf5(void) {
  static const char *const meta[] = { "made", "here" };
  return save_two(FORMAT_h5, "g/a", "g/h/b",
                  (FileContents){ .meta = meta, .nmeta = 1 });
}

static int load_hdf5(void) {
  static const char *const names[] = { "g/a", "g/h/b" };
  Archive *a;
  const Attribute *list;
  int64_t n;
  int status;
  TRY(nc_openarchive(&a, FROM_TARGET, FORMAT_h5));
  status = nc_archiveattributes(a, &list, &n);
  for (int64_t i = 0; i < 2 && status == NC_OK; i++) {
    Tensor *t;
    status = nc_archiveload(&t, a, i);
    assert_string_equal(nc_archivename(a, i), names[i]);
    compare(status, t, i == 0 ? large : strided);
  }
  nc_closearchive(a);
  return status;
}

static int load_csv(void) {
  static const TextFormat format = { .delimiter = ',' };
  Tensor *t, *names;
  int status = nc_loadtext(&t, &names, FROM_TARGET, &format, DT_NONE);
  assert_null(names);
  return compare(status, t, strided);
}

/* The columns of the matrix, one of them as float64. */
static int load_columns(void) {
  static const struct ColumnType types[] = { { NULL, 2, DT_f64 } };
  static const TextFormat format = { .delimiter = ',',
                                     .ntypes = 1,
                                     .types = types };
  TextColumns c;
  TRY(nc_loadcolumns(&c, FROM_TARGET, &format, DT_NONE));
  assert_int_equal(c.n, strided->size[1]);
  for (int64_t k = 0; k < c.n; k++)
    for (int64_t i = 0; i < strided->size[0]; i++) {
      const int64_t want = i * strided->step[0] + k * strided->step[1];
      const void *p = nc_data(c.column[k]);
      assert_int_equal(c.column[k]->dtype, k == 1 ? DT_f64 : DT_i64);
      assert_int_equal(k == 1 ? (int64_t)((const double *)p)[i]
                              : ((const int64_t *)p)[i],
                       want);
    }
  nc_freecolumns(&c);
  return NC_OK;
}

/* HDF5's library reads and writes by itself: those calls cannot be made to
   fail. */
enum { NOTHING, ZIP, HDF5 };
static const struct {
  int (*save)(void), (*load)(void);
  int needs, maps, again; /* again: it is saved as one above is */
} formats[] = {
  { save_npy, load_npy, NOTHING, 0, 0 },
  { save_safetensors, load_safetensors, NOTHING, 0, 0 },
  { save_csv, load_csv, NOTHING, 0, 0 },
  { save_csv, load_columns, NOTHING, 0, 1 },
  { save_raw, load_whole_raw, NOTHING, 0, 0 },
  { save_npz, load_npz, ZIP, 0, 0 },
  { save_deflated, load_npz, ZIP, 0, 0 },
  { save_pt, load_pt, ZIP, 0, 0 },
  { save_hdf5, load_hdf5, HDF5, 0, 0 },
  { save_npy, load_mapped_npy, NOTHING, 1, 1 },
  { save_safetensors, load_mapped_safetensors, NOTHING, 1, 1 },
  { save_raw, load_mapped_raw, NOTHING, 1, 1 },
  { save_pt, load_mapped_pt, ZIP, 1, 1 },
};

#define EACH_FORMAT(f)                     \
  for (int f = 0; f < COUNT(formats); f++) \
    if (has[formats[f].needs])
/* Each way to save: that of a format before is not tried again. */
#define EACH_SAVE(f) EACH_FORMAT(f) if (!formats[f].again)

/*
** Tests
*/
/* Removes what a program that was killed left beside the target. */
static void remove_litter(void) {
  DIR *d = opendir(folder);
  char name[400];
  assert_non_null(d);
  for (const struct dirent *e; (e = readdir(d)) != NULL;)
    if (strncmp(e->d_name, ".nacre-", 7) == 0) {
      snprintf(name, sizeof name, "%s/%s", folder, e->d_name);
      unlink(name);
    }
  closedir(d);
}

static void assert_old_file(void) {
  assert_target(little);
  assert_int_equal(count_files(), 1);
}

/* Runs a save or a load while the n-th call of a kind fails.  *struck: was
   there one? */
static int run_with_fault(int (*run)(void), int call, int n, int error,
                          int *struck) {
  const int fds = openfds();
  const int64_t live = nc_memory.live;
  fault.call = call, fault.n = n, fault.error = error;
  fault.struck = 0;
  nc_files = faulty;
  const int status = run();
  *struck = fault.struck;
  fault.n = 0;
  nc_files = real;
  nc_interrupted = 0;
  assert_int_equal(nc_memory.live, live);
  assert_int_equal(openfds(), fds);
  return status;
}

/* The same while an allocation fails, or all from then on. */
static int run_without_memory(int (*run)(void), int n, int sticky) {
  const int64_t live = nc_memory.live;
  nc_failalloc(n, sticky);
  const int status = run();
  nc_failalloc(0, 0);
  assert_int_equal(nc_memory.live, live);
  if (status != NC_OK) assert_int_equal(status, NC_ENOMEM);
  return status;
}

/* The first calls of a kind, then fewer and fewer of the many. */
#define EACH_CALL(n) for (int n = 1;; n += 1 + n / 4)

/* Lets each call of a kind fail while a file is saved; returns how many did. */
static int save_with_faults(int f, int call, int error) {
  EACH_CALL(n) {
    int struck;
    save(little);
    const int status = run_with_fault(formats[f].save, call, n, error, &struck);
    assert_int_equal(count_files(), 1);
    if (!struck) {
      ok(status);
      return n - 1;
    }
    if (status == NC_OK || strstr(nc_lasterror()->text, "saved, but")) {
      ok(formats[f].load());
      continue;
    }
    assert_old_file();
    if (error == INTERRUPT) assert_int_equal(status, NC_EINTR);
    else {
      fails(status, NC_EFILE, strerror(error));
      says("x.npy");
    }
  }
}

static void test_whole(void **state) {
  EACH_FORMAT(f) {
    ok(formats[f].save());
    ok(formats[f].load());
  }
}

static void save_with_each_fault(void) {
  static const int calls[] = {
    OPEN, CLOSE, WRITE, FCHMOD, FSYNC, RENAME, STAT
  };
  static const int errors[] = { ENOSPC, EIO, EDQUOT, EFBIG, EACCES, EROFS };
  EACH_SAVE(f) {
    for (int c = 0; c < COUNT(calls); c++)
      for (int e = 0; e < (f == 0 ? COUNT(errors) : 1); e++)
        assert_int_equal(save_with_faults(f, calls[c], errors[e]) > 0,
                         calls[c] != WRITE || formats[f].needs != HDF5);
    if (formats[f].needs == ZIP)
      assert_true(save_with_faults(f, LSEEK, EIO) > 0);
    if (formats[f].needs != HDF5)
      assert_true(save_with_faults(f, WRITE, INTERRUPT) > 0);
  }
}

static void test_save_faults(void **state) {
  for (fault.sticky = 0; fault.sticky < 2; fault.sticky++)
    save_with_each_fault();
  fault.sticky = 0;
}

/* Power may fail at any time: nothing is written after the file is synced, it
   is renamed after that, and the folder is synced last. */
static void test_order(void **state) {
  static const char want[] = { FSYNC, CLOSE, RENAME, OPEN, FSYNC, CLOSE };
  const int n = sizeof want;
  EACH_SAVE(f) {
    save(little);
    made.n = 0;
    nc_files = faulty;
    ok(formats[f].save());
    nc_files = real;
    assert_true(made.n > n && made.n < (int)sizeof made.call);
    assert_memory_equal(made.call + made.n - n, want, n);
    assert_null(memchr(made.call, FSYNC, (size_t)(made.n - n)));
    if (formats[f].needs != HDF5)
      assert_non_null(memchr(made.call, WRITE, (size_t)(made.n - n)));
  }
}

/* The program ends at each call of a save: the file is the old one or the new
   one. */
static void test_killed(void **state) {
  static const int calls[] = { OPEN, CLOSE, WRITE, FCHMOD, FSYNC, RENAME };
  EACH_SAVE(f) for (int c = 0; c < COUNT(calls); c++) EACH_CALL(n) {
    int status;
    save(little);
    const pid_t child = fork();
    if (child == 0) {
      fault.call = calls[c], fault.n = n, fault.error = KILL;
      nc_files = faulty;
      _exit(formats[f].save() == NC_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 0) break;
    assert_int_equal(WEXITSTATUS(status), KILL & 0xff);
    Tensor *t;
    if (nc_loadnpy(&t, FROM_TARGET) == NC_OK && nc_numel(t) == 4)
      assert_equal(t, little);
    else ok(formats[f].load());
    nc_release(t);
    remove_litter();
  }
}

/* No file may be longer than this. */
static void test_full(void **state) {
  const struct rlimit small = { 100000, RLIM_INFINITY };
  struct rlimit old;
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &old);
  EACH_SAVE(f) {
    const int fds = openfds();
    save(little);
    setrlimit(RLIMIT_FSIZE, &small);
    const int status = formats[f].save();
    setrlimit(RLIMIT_FSIZE, &old);
    if (status == NC_OK) { /* deflated, it is that small */
      assert_ptr_equal(formats[f].save, save_deflated);
      continue;
    }
    fails(status, NC_EFILE, "");
    assert_old_file();
    assert_int_equal(openfds(), fds);
  }
}

/* A call that a signal interrupted, or that transferred a part, is repeated. */
static void test_resumed(void **state) {
  static const int calls[] = { OPEN, READ, WRITE };
  EACH_SAVE(f)
  for (int c = 0; c < COUNT(calls); c++)
    for (int n = 1; n < 8; n++) {
      const int error = calls[c] == OPEN || n % 2 ? EINTR : 0;
      int struck;
      if (calls[c] == OPEN && n == 2) continue; /* of the folder */
      ok(run_with_fault(formats[f].save, calls[c], n, error, &struck));
      ok(run_with_fault(formats[f].load, calls[c], n, error, &struck));
    }
}

/* Lets each call of a kind fail while a file is loaded; returns how many
   did. */
static int load_with_faults(int f, int call) {
  EACH_CALL(n) {
    int struck;
    const int status = run_with_fault(formats[f].load, call, n, EIO, &struck);
    assert_int_equal(status, struck ? NC_EFILE : NC_OK);
    if (!struck) return n - 1;
    says(strerror(EIO));
  }
}

static void test_load_faults(void **state) {
  static const int calls[] = { OPEN, FSTAT, READ, LSEEK };
  for (fault.sticky = 0; fault.sticky < 2; fault.sticky++) EACH_FORMAT(f) {
      ok(formats[f].save());
      for (int c = 0; c < COUNT(calls); c++) load_with_faults(f, calls[c]);
      assert_int_equal(load_with_faults(f, MMAP) > 0, formats[f].maps);
    }
  fault.sticky = 0;
}

static void test_interrupted(void **state) {
  EACH_FORMAT(f) {
    save(little);
    nc_interrupted = 1;
    assert_int_equal(formats[f].save(), NC_EINTR);
    nc_interrupted = 0;
    assert_old_file();
    ok(formats[f].save());
    nc_interrupted = 1;
    if (!formats[f].maps) assert_int_equal(formats[f].load(), NC_EINTR);
    nc_interrupted = 0;
  }
}

/* Wherever its opcodes begin. */
static void test_pickle_interrupted(void **state) {
  Pickle k = { .path = "x" };
  nc_interrupted = 1;
  assert_int_equal(nc_readpickle(&k, "\x80\2N.", 4), NC_EINTR);
  nc_interrupted = 0;
  nc_freepickle(&k);
}

static void test_no_memory(void **state) {
  for (int sticky = 0; sticky < 2; sticky++) EACH_FORMAT(f) {
      int n = 1;
      save(little);
      for (; run_without_memory(formats[f].save, n, sticky) != NC_OK; n++)
        assert_old_file();
      assert_true(n > 1);
      for (n = 1; run_without_memory(formats[f].load, n, sticky) != NC_OK;) n++;
      assert_true(n > 1);
    }
}

/* The index of shards, and the shard. */
static char shard[80], shard_index[80];

static int load_shards(void) {
  return load_from(&(Source){ .path = shard_index }, FORMAT_shards);
}

static void test_shards(void **state) {
  static const char text[] = "{\"weight_map\":{\"a\":\"x.safetensors\","
                             "\"b\":\"x.safetensors\"}}";
  static const int calls[] = { OPEN, FSTAT, READ, LSEEK };
  NamedTensor list[] = { { "a", large }, { "b", strided } };
  int n, struck;
  snprintf(shard, sizeof shard, "%s/x.safetensors", folder);
  snprintf(shard_index, sizeof shard_index, "%s/x.index.json", folder);
  ok(nc_savefile(&(Sink){ shard, 1, NULL }, FORMAT_safetensors,
                 &(FileContents){ .list = list, .n = 2 }));
  ok(nc_writefile(shard_index, text, sizeof text - 1));
  ok(load_shards());
  for (fault.sticky = 0; fault.sticky < 2; fault.sticky++) {
    for (int c = 0; c < COUNT(calls); c++) EACH_CALL(k) {
        const int status =
            run_with_fault(load_shards, calls[c], k, EIO, &struck);
        assert_int_equal(status, struck ? NC_EFILE : NC_OK);
        if (!struck) break;
      }
    for (n = 1; run_without_memory(load_shards, n, fault.sticky) != NC_OK;) n++;
    assert_true(n > 1);
  }
  fault.sticky = 0;
  unlink(shard_index);
  unlink(shard);
}

/* A zip archive needs a file that can be sought in. */
static void test_pipe(void **state) {
  NamedTensor list[] = { { "a", little } };
  char name[32], buf[16];
  int fd[2];
  if (!has[ZIP]) skip();
  assert_int_equal(pipe(fd), 0);
  snprintf(name, sizeof name, "/dev/fd/%d", fd[1]);
  fails(nc_savefile(&(Sink){ name, 1, NULL }, FORMAT_npz,
                    &(FileContents){ .list = list, .n = 1 }),
        NC_EFILE, "this is not a regular file");
  close(fd[1]);
  assert_int_equal(read(fd[0], buf, sizeof buf), 0);
  close(fd[0]);
}

static int begin(void **state) {
  if (make_folder(state) != 0) return -1;
  large = counting(200, 700);
  little = counting(2, 2);
  if (nc_alias(&strided, large) != NC_OK) return -1;
  strided->size[1] = 350, strided->step[1] = 2;
  NamedTensor list[] = { { "a", little } };
  const FileContents c = { .list = list, .n = 1 };
  has[NOTHING] = 1;
  has[ZIP] = nc_savefile(TO_TARGET, FORMAT_npz, &c) == NC_OK;
  if (!has[ZIP] && !strstr(nc_lasterror()->text, "libzip")) return -1;
  has[HDF5] = nc_savefile(TO_TARGET, FORMAT_h5, &c) == NC_OK;
  unlink(target);
  return has[HDF5] || strstr(nc_lasterror()->text, "HDF5 library") ? 0 : -1;
}

static int end(void **state) {
  release(strided, large, little);
  return remove_folder(state);
}

RUN_TESTS(begin, end, TEST(whole), TEST(save_faults), TEST(order), TEST(killed),
          TEST(full), TEST(resumed), TEST(load_faults), TEST(interrupted),
          TEST(no_memory), TEST(shards), TEST(pipe), TEST(pickle_interrupted))
