/* SPDX-License-Identifier: MIT */
/*
** mpi_raw.c - all_reduce of float32 by MPI itself, blocking and not, for
** comparison with mpi_bench.lua:
**
**   mpicc -O2 mpi_raw.c -o mpi_raw && mpirun -n 2 ./mpi_raw
*/
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void one_call(float *x, int n, int blocking) {
  MPI_Request req;
  int done = 0;
  if (blocking) {
    MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return;
  }
  MPI_Iallreduce(MPI_IN_PLACE, x, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &req);
  while (!done) MPI_Test(&req, &done, MPI_STATUS_IGNORE);
}

/* The least and the median time of `batches' of `calls' calls. */
static void measure(int n, int calls, int batches, int blocking) {
  double *t = malloc(sizeof *t * (size_t)batches);
  float *x = calloc((size_t)n, sizeof *x);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int b = -1; b < batches; b++) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < calls; i++) one_call(x, n, blocking);
    if (b >= 0) t[b] = (MPI_Wtime() - begin) / calls;
  }
  qsort(t, (size_t)batches, sizeof *t, ascending);
  if (rank == 0)
    printf("%9d B  %-12s  least %10.2f us  median %10.2f us\n", 4 * n,
           blocking ? "blocking" : "non-blocking", 1e6 * t[0],
           1e6 * t[batches / 2]);
  free(t);
  free(x);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  for (int blocking = 1; blocking >= 0; blocking--) {
    measure(2, 1000, 50, blocking);
    measure(1 << 18, 10, 20, blocking);
    measure(1 << 24, 1, 10, blocking);
  }
  MPI_Finalize();
  return 0;
}
