/* SPDX-License-Identifier: MIT */
/*
** transport.c - which transport carries tensors between processes: `single',
** of one rank, unless a launcher started this process as one of several, or MPI
** is requested.
**
** NACRE_MPI in the environment may be "openmpi", "mpich", "off", or the path of
** a plug-in.  A plug-in belongs to one MPI, because their binary interfaces
** differ.
*/
#define _XOPEN_SOURCE 700 /* gethostname */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/plugin.h"
#include "core/tensor.h"
#include "core/transport.h"

static const Transport *transport;

/*
** What launchers tell the processes that they start
*/
static const struct Launcher {
  const char *size; /* a variable with the number of processes */
  const char *mpi;  /* whose launcher sets it; or several do */
  const char *with; /* a variable without which that of the size means nothing;
                       or NULL */
  const char *hint; /* if MPI sees one process */
} launchers[] = { { "OMPI_COMM_WORLD_SIZE", "openmpi", NULL, NULL },
                  { "PMI_SIZE", "mpich", NULL, NULL },
                  { "SLURM_STEP_NUM_TASKS", NULL, NULL,
                    "srun --mpi=pmix, or another that srun --mpi=list shows" },
                  { "WORLD_SIZE", NULL, "TORCHELASTIC_RUN_ID",
                    "mpirun -n N nacre SCRIPT instead of torchrun" },
                  { NULL, NULL, NULL, NULL } };

/* The launcher that started several processes, and how many; or NULL. */
static const struct Launcher *find_launcher(int *n) {
  for (const struct Launcher *l = launchers; l->size; l++) {
    const char *size = getenv(l->size);
    if (l->with && getenv(l->with) == NULL) continue;
    if (size && (*n = atoi(size)) > 1) return l;
  }
  *n = 1;
  return NULL;
}

/*
** Finding the plug-in of an MPI
*/
int nc_plugin_folder(char *path, size_t room) {
  const char *base = getenv("XDG_DATA_HOME"), *under = "";
  if (base == NULL || *base != '/')
    base = getenv("HOME"), under = "/.local/share";
  return base && snprintf(path, room, "%s%s/nacre", base, under) < (int)room;
}

/* path = the plug-in for this MPI, of the user or of the installation. */
static int find_mpi(char path[NC_MAXPATH], const char *mpi) {
  char file[64], folder[NC_MAXPATH - 64];
  snprintf(file, sizeof file, "libnacre_%s.so", mpi);
  if (nc_plugin_folder(folder, sizeof folder)) {
    snprintf(path, NC_MAXPATH, "%s/%s", folder, file);
    if (access(path, F_OK) == 0) return NC_OK;
  }
  return nc_find_plugin(path, "MPI", file);
}

static int find_any(char path[NC_MAXPATH], const char *first) {
  static const char *const known[] = { "openmpi", "mpich", "mpi" };
  if (first && find_mpi(path, first) == NC_OK) return NC_OK;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (find_mpi(path, known[i]) == NC_OK) return NC_OK;
  nc_fail(NC_EDEVICE, "no MPI plug-in was found");
  nc_hint("nacre --build-mpi builds one with the mpicc of this machine");
  return NC_EDEVICE;
}

static int choose_mpi(char path[NC_MAXPATH]) {
  const char *wish = getenv("NACRE_MPI");
  int n;
  const struct Launcher *l = find_launcher(&n);
  if (wish == NULL || *wish == '\0') return find_any(path, l ? l->mpi : NULL);
  if (strcmp(wish, "off") == 0)
    return nc_fail(NC_EDEVICE, "NACRE_MPI=off turns MPI off");
  if (strchr(wish, '/')) return nc_given_plugin(path, wish);
  if (strcmp(wish, "openmpi") == 0 || strcmp(wish, "mpich") == 0)
    return find_mpi(path, wish);
  return nc_fail(NC_EDEVICE,
                 "NACRE_MPI is '%s', not openmpi, mpich, off or the path of a "
                 "plug-in",
                 wish);
}

/* Under the launcher of another MPI every process is rank 0 of 1, and several
   programs would overwrite each other's files. */
static int check_launcher(const Transport *t) {
  int n;
  const struct Launcher *l = find_launcher(&n);
  if (l == NULL || t->size > 1) return NC_OK;
  nc_fail(NC_EDEVICE,
          "the launcher started %d processes (%s), but %s sees one: the "
          "launcher belongs to another MPI",
          n, l->size, t->library);
  if (l->hint) nc_hint("%s", l->hint);
  else
    nc_hint("use the launcher of that MPI, or nacre --build-mpi with the "
            "mpicc of the launcher's MPI");
  t->leave(0);
  return NC_EDEVICE;
}

static int open_mpi(const Transport **t) {
  char path[NC_MAXPATH];
  TransportEntry *entry;
  TRY(choose_mpi(path));
  TRY(nc_plugin_entry(&entry, path, NC_TRANSPORT));
  TRY(entry(&nc_fortransports, t));
  return check_launcher(*t);
}

/*
** The transport of one rank
*/
struct Team {
  int unused;
};

static Team alone;

static void no_settings(const TransportSettings *s) {
  (void)s;
}

static const char *this_host(int rank) {
  static char name[64];
  (void)rank;
  if (*name == '\0') gethostname(name, sizeof name - 1);
  return name;
}

static int split(Team **t, Team *of, int color, int key) {
  (void)of, (void)key;
  *t = color < 0 ? NULL : &alone;
  return NC_OK;
}

static void freeteam(Team *t) {
  (void)t;
}

static void deafen(Team *t) {
  (void)t;
}

static void place(const Team *t, int *rank, int *size) {
  (void)t;
  *rank = 0;
  *size = 1;
}

static int worldrank(const Team *t, int rank) {
  (void)t;
  return rank;
}

static int never_broken(const Team *t) {
  (void)t;
  return 0;
}

static int announce(Coll *c) {
  c->number = 1;
  return NC_OK;
}

static int watch(Team *t, const Coll *c, double waited) {
  (void)t, (void)c, (void)waited;
  return NC_OK;
}

static void lose(Team *t) {
  (void)t;
}

static int start(Work **w, const Coll *c) {
  *w = NULL;
  if (c->kind == COLL_send || c->kind == COLL_recv)
    return nc_fail(NC_EVALUE, "there is no other rank");
  if (c->in && c->out && c->n > 0)
    memcpy(c->out, c->in, (size_t)(c->n * nc_dtypesize(c->type)));
  return NC_OK;
}

static int test(Work *w, int *done) {
  (void)w;
  *done = 1;
  return NC_OK;
}

static int wait(Work *w, double seconds) {
  (void)w, (void)seconds;
  return NC_OK;
}

static void sender(const Work *w, int *rank) {
  (void)w;
  *rank = 0;
}

static void freework(Work *w) {
  (void)w;
}

static void tell(const char *text) {
  (void)text;
}

static int renew(Team **world) {
  *world = &alone;
  return NC_OK;
}

static void leave(int status) {
  (void)status;
}

static const Transport single = { .name = "single",
                                  .library = "one process",
                                  .size = 1,
                                  .localsize = 1,
                                  .world = &alone,
                                  .configure = no_settings,
                                  .host = this_host,
                                  .split = split,
                                  .freeteam = freeteam,
                                  .deafen = deafen,
                                  .place = place,
                                  .worldrank = worldrank,
                                  .broken = never_broken,
                                  .announce = announce,
                                  .watch = watch,
                                  .lose = lose,
                                  .start = start,
                                  .test = test,
                                  .wait = wait,
                                  .sender = sender,
                                  .freework = freework,
                                  .tell = tell,
                                  .renew = renew,
                                  .leave = leave };

/*
** The side of the program
*/
static double number(const char *variable, double usual) {
  const char *s = getenv(variable);
  char *end;
  double v;
  if (s == NULL || *s == '\0') return usual;
  v = nc_todouble(s, &end);
  return *end == '\0' && v >= 0 ? v : usual;
}

TransportSettings nc_transport_settings(void) {
  const TransportSettings s = {
    .timeout = number("NACRE_DISTRIBUTED_TIMEOUT", 1800),
    .warn = number("NACRE_DISTRIBUTED_WARN", 10),
    .check = number("NACRE_DISTRIBUTED_CHECK", 1) != 0,
    .background = number("NACRE_DISTRIBUTED_THREAD", 1) != 0,
    .spin = 1e-6 * number("NACRE_DISTRIBUTED_SPIN", 300),
    .chunk = (int64_t)number("NACRE_MPI_CHUNK", 1 << 28)
  };
  return s;
}

int nc_transport(const Transport **t, Backend b) {
  int n, r = NC_OK;
  if (transport == NULL && b != BACKEND_SINGLE &&
      (b == BACKEND_MPI || find_launcher(&n) || getenv("PMIX_RANK"))) {
    const int64_t begin = nc_now();
    r = open_mpi(t);
    nc_counters.opening += nc_now() - begin;
    if (r == NC_OK) transport = *t;
  } else if (transport == NULL) transport = &single;
  *t = transport;
  return r;
}

const Transport *nc_open_transport(void) {
  return transport;
}

void nc_leave_transport(int status) {
  const Transport *t = transport;
  if (t == NULL) return;
  transport = NULL;
  t->leave(status);
  nc_free_device_teams(NULL);
}
