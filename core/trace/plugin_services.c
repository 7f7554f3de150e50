/* SPDX-License-Identifier: MIT */
/*
** plugin_services.c - what the core passes to plug-ins: of devices, of
** transports.  They compare ABI and sizes first.  The tables name functions of
** all floors; the base, which opens plug-ins, passes them on.
*/
#include "core/accelerator.h"
#include "core/base/plugin.h"
#include "core/files.h"
#include "core/op.h"
#include "core/ops.h"
#include "core/tensor.h"
#include "core/transport.h"

/* Of operations between devices of several processes. */
static int watch(Team *t, const Coll *c, double waited) {
  const Transport *open = nc_open_transport();
  return open ? open->watch(t, c, waited) : NC_OK;
}

static void lose(Team *t) {
  if (nc_open_transport()) nc_open_transport()->lose(t);
}

const Host nc_forplugins = { .abi = NC_ABI,
                             .host = sizeof(Host),
                             .calls = NC_REQUESTBYTES,
                             .device = sizeof(Device),
                             .accelerator = sizeof(Accelerator),
                             .version = NC_VERSION,
                             .fail = nc_fail,
                             .hint = nc_hint,
                             .ops = OP_COUNT,
                             .op = nc_opinfo,
                             .requests = NC_REQUESTS,
                             .interrupted = &nc_interrupted,
                             .error_op = nc_error_op,
                             .error_final = nc_error_final,
                             .newtensor = nc_new,
                             .release = nc_release,
                             .newdense = nc_dense,
                             .fail_index_range = nc_fail_index_range,
                             .wrong_class = nc_wrong_class,
                             .bytestext = nc_bytestext,
                             .parallel = nc_parallel,
                             .partly = nc_error_partial,
                             .writefile = nc_writefile,
                             .lasterror = nc_lasterror,
                             .watch = watch,
                             .lose = lose };

const TransportCore nc_fortransports = { .abi = NC_TRANSPORT_ABI,
                                         .core = sizeof(TransportCore),
                                         .transport = sizeof(Transport),
                                         .coll = sizeof(Coll),
                                         .settings = sizeof(TransportSettings),
                                         .version = NC_VERSION,
                                         .fail = nc_fail,
                                         .hint = nc_hint,
                                         .error_peer = nc_error_peer,
                                         .interrupted = &nc_interrupted,
                                         .fold = nc_fold_into,
                                         .idle = nc_device_progress };
