/* SPDX-License-Identifier: MIT */
/*
** collectives.c - the collective operations whose operands are tensors, and
** messages from one rank to another.  Those with lists of tensors are written
** in Lua over these (bindings/lib/distributed).
*/
#include <string.h>

#include "bindings/distributed/distributed.h"
#include "bindings/calls/functions.h"

/* What the arguments of an operation say. */
typedef struct Request {
  const char *op;
  Coll c;
  Flight f;
  int async;
  int result;     /* index of the value it gives; 0: true */
  double seconds; /* the limit of the wait; 0: that of the settings */
} Request;

/*
** Folds
*/
static const struct {
  const char *name;
  CollFold fold;
  int mean;
} folds[] = { { "sum", FOLD_sum, 0 },      { "mean", FOLD_sum, 1 },
              { "avg", FOLD_sum, 1 },      { "prod", FOLD_prod, 0 },
              { "product", FOLD_prod, 0 }, { "min", FOLD_min, 0 },
              { "max", FOLD_max, 0 },      { "band", FOLD_band, 0 },
              { "bor", FOLD_bor, 0 },      { "bxor", FOLD_bxor, 0 } };
enum { NFOLDS = sizeof folds / sizeof *folds };

/* Reads the fold at index i for elements of this type. [-0, +0, e] */
static void read_fold(lua_State *L, Request *r, int i, DType type) {
  const char *name = luaL_optstring(L, i, "sum");
  int k = 0;
  /* the reader of arguments has seen that it is one of them */
  while (k < NFOLDS - 1 && strcmp(folds[k].name, name) != 0) k++;
  if (nc_is_storage(type))
    nl_error(L, r->op, "%s does not compute with %s, which is a storage dtype",
             name, nc_dtypename(type));
  if (folds[k].mean && nc_is_exact(type))
    nl_error(L, r->op, "mean needs a float tensor, not %s", nc_dtypename(type));
  if (folds[k].fold >= FOLD_band && !nc_is_exact(type))
    nl_error(L, r->op, "%s needs integers or bool, not %s", name,
             nc_dtypename(type));
  if (nc_is_complex(type) && folds[k].fold > FOLD_prod)
    nl_error(L, r->op, "%s does not take complex tensors: they have no order",
             name);
  r->c.fold = folds[k].fold;
  r->f.mean = folds[k].mean; /* until the number of ranks is known */
}

/*
** Arguments
*/
/* The rank in the group of an operation: that of the world at index i, or of
   the group at index of_group, which has the name group_...; `usual' is one of
   the world.  [-0, +0, e] */
static int read_root(lua_State *L, const Request *r, int i, const char *name,
                     int of_group, lua_Integer usual) {
  int rank, size;
  if (lua_isnoneornil(L, of_group))
    return nl_teamrank(L, r->c.team, luaL_optinteger(L, i, usual), r->op);
  if (!lua_isnoneornil(L, i))
    nl_error(L, r->op, "%s and group_%s exclude each other", name, name);
  const int64_t at = luaL_optinteger(L, of_group, 0);
  nc_open_transport()->place(r->c.team, &rank, &size);
  if (at < 0 || at >= size)
    nl_error(L, r->op, "the group has no rank %lld: it has 0 to %d",
             (long long)at, size - 1);
  return (int)at;
}

/* Reads the group at index `group' and async_op at the next one; sets the root
   to the rank given at index root (0: none), or behind async_op.
   [-0, +0, e] */
static void read_group(lua_State *L, Request *r, int root, const char *name,
                       int group) {
  r->c.team = nl_team(L, group, r->op);
  r->c.async = r->async = lua_toboolean(L, group + 1);
  if (root) r->c.root = read_root(L, r, root, name, group + 2, 0);
}

/* The shape that messages show is that of t. */
static void show(Request *r, const Tensor *t) {
  r->c.type = t->dtype;
  r->c.nd = t->nd;
  r->c.size = t->size;
  r->c.n = nc_numel(t);
}

static int size_of(const Request *r) {
  int rank, size;
  nc_open_transport()->place(r->c.team, &rank, &size);
  return size;
}

/* Raises an error unless `many' has a block like `one' for each rank.
   [-0, +0, e] */
static void check_blocks(lua_State *L, const Request *r, const Tensor *one,
                         const Tensor *many) {
  const int size = size_of(r);
  if (one->dtype != many->dtype)
    nl_error(L, r->op, "the tensors are %s and %s", nc_dtypename(one->dtype),
             nc_dtypename(many->dtype));
  if (nc_numel(many) != size * nc_numel(one))
    nl_error(L, r->op,
             "a tensor of %lld elements must have %lld for each of %d ranks",
             (long long)nc_numel(many), (long long)nc_numel(one), size);
}

/*
** Starting and waiting
*/

/* Raises the error of the status, after the memory was given up. [-0, +0, e] */
static void check(lua_State *L, Request *r, int status) {
  if (status == NC_OK) return;
  nl_drop_flight(&r->f);
  nl_check_as(L, status, r->op);
}

/* Gives the tensors to the operation, of which either may be NULL, and runs
   it; an asynchronous one gives a work. [-0, +1, e] */
static int run(lua_State *L, Request *r, Tensor *in, Tensor *out, Use use) {
  int status = in ? nl_flight_tensor(&r->f, in, USE_READ) : NC_OK;
  if (status == NC_OK && out) status = nl_flight_tensor(&r->f, out, use);
  check(L, r, status);
  if (r->f.mean) r->f.mean = size_of(r);
  check(L, r, nl_start_flight(&r->f, &r->c));
  if (r->async) {
    Flight *f = nl_push_work(L, r->result);
    *f = r->f;
    return 1;
  }
  check(L, r, nl_finish_flight(&r->f, r->seconds, NULL));
  if (r->result) lua_pushvalue(L, r->result);
  else lua_pushboolean(L, 1);
  return 1;
}

/* barrier(group, async_op, device_ids, timeout) */
static int barrier(lua_State *L) {
  Request r = { .op = "barrier", .c = { .kind = COLL_barrier } };
  read_group(L, &r, 0, NULL, 1);
  r.seconds = luaL_optnumber(L, 4, 0);
  return run(L, &r, NULL, NULL, USE_READ);
}

static int all_reduce(lua_State *L) {
  Request r = { .op = "all_reduce",
                .c = { .kind = COLL_all_reduce },
                .result = 1 };
  Tensor *t = nl_checktensor(L, 1);
  read_fold(L, &r, 2, t->dtype);
  read_group(L, &r, 0, NULL, 3);
  show(&r, t);
  return run(L, &r, NULL, t, USE_CHANGE);
}

static int broadcast(lua_State *L) {
  Request r = { .op = "broadcast",
                .c = { .kind = COLL_broadcast },
                .result = 1 };
  Tensor *t = nl_checktensor(L, 1);
  read_group(L, &r, 2, "src", 3);
  show(&r, t);
  return run(L, &r, NULL, t, USE_CHANGE);
}

static int reduce(lua_State *L) {
  Request r = { .op = "reduce", .c = { .kind = COLL_reduce }, .result = 1 };
  Tensor *t = nl_checktensor(L, 1);
  int rank, size;
  read_fold(L, &r, 3, t->dtype);
  read_group(L, &r, 2, "dst", 4);
  show(&r, t);
  nc_open_transport()->place(r.c.team, &rank, &size);
  if (rank == r.c.root) return run(L, &r, NULL, t, USE_CHANGE);
  r.f.mean = 0;
  return run(L, &r, t, NULL, USE_READ);
}

static int all_gather_into_tensor(lua_State *L) {
  Request r = { .op = "all_gather_into_tensor",
                .c = { .kind = COLL_all_gather },
                .result = 1 };
  Tensor *out = nl_checktensor(L, 1);
  Tensor *in = nl_checktensor(L, 2);
  read_group(L, &r, 0, NULL, 3);
  check_blocks(L, &r, in, out);
  show(&r, in);
  return run(L, &r, in, out, USE_WRITE);
}

static int reduce_scatter_tensor(lua_State *L) {
  Request r = { .op = "reduce_scatter_tensor",
                .c = { .kind = COLL_reduce_scatter },
                .result = 1 };
  Tensor *out = nl_checktensor(L, 1);
  Tensor *in = nl_checktensor(L, 2);
  read_fold(L, &r, 3, in->dtype);
  read_group(L, &r, 0, NULL, 4);
  check_blocks(L, &r, out, in);
  show(&r, in);
  r.c.n = nc_numel(out);
  return run(L, &r, in, out, USE_WRITE);
}

/* _all_to_all(output, input, group, async): of equal blocks */
static int all_to_all_blocks(lua_State *L) {
  Request r = { .op = "all_to_all_single",
                .c = { .kind = COLL_all_to_all },
                .result = 1 };
  Tensor *out = nl_checktensor(L, 1);
  Tensor *in = nl_checktensor(L, 2);
  int size;
  read_group(L, &r, 0, NULL, 3);
  size = size_of(&r);
  if (in->dtype != out->dtype || nc_numel(in) != nc_numel(out))
    return nl_error(L, r.op, "output must have the dtype and size of input");
  if (nc_numel(in) % size != 0)
    return nl_error(L, r.op, "%lld elements cannot be cut into %d equal blocks",
                    (long long)nc_numel(in), size);
  show(&r, in);
  r.c.n = nc_numel(in) / size;
  return run(L, &r, in, out, USE_WRITE);
}

/* _gather(tensor, out, dst, group, async), _scatter(tensor, in, src, ...): the
   tensor of all blocks is nil but at one rank. */
static int gather_blocks(lua_State *L) {
  Request r = { .op = "gather", .c = { .kind = COLL_gather }, .result = 2 };
  Tensor *in = nl_checktensor(L, 1), *out = nl_totensor(L, 2);
  read_group(L, &r, 3, "dst", 4);
  if (out) check_blocks(L, &r, in, out);
  show(&r, in);
  return run(L, &r, in, out, USE_WRITE);
}

static int scatter_blocks(lua_State *L) {
  Request r = { .op = "scatter", .c = { .kind = COLL_scatter }, .result = 1 };
  Tensor *out = nl_checktensor(L, 1), *in = nl_totensor(L, 2);
  read_group(L, &r, 3, "src", 4);
  if (in) check_blocks(L, &r, out, in);
  show(&r, out);
  return run(L, &r, in, out, USE_WRITE);
}

/*
** Messages
*/
static void read_message(lua_State *L, Request *r, const Tensor *t,
                         const char *peer) {
  int rank, size;
  r->c.team = nl_team(L, 3, r->op);
  r->c.tag = (int)luaL_optinteger(L, 4, 0);
  if (r->c.tag < 0 || r->c.tag > 32767)
    nl_error(L, r->op, "tag must be from 0 to 32767, not %d", r->c.tag);
  show(r, t);
  nc_open_transport()->place(r->c.team, &rank, &size);
  r->c.root = -1;
  const int none = lua_isnoneornil(L, 2) && lua_isnoneornil(L, 5);
  if (none && r->c.kind == COLL_recv) return;
  if (none)
    nl_refuse(L, r->op, NL_MISSING(peer), "%s is missing: a rank expected",
              peer);
  r->c.root = read_root(L, r, 2, peer, 5, 0);
  if (r->c.root == rank) nl_error(L, r->op, "%s is this process itself", peer);
}

static int send_message(lua_State *L, const char *op, int async) {
  Request r = { .op = op, .c = { .kind = COLL_send }, .async = async };
  Tensor *t = nl_checktensor(L, 1);
  read_message(L, &r, t, "dst");
  r.c.async = async;
  return run(L, &r, t, NULL, USE_READ);
}

static int send(lua_State *L) {
  send_message(L, "send", 0);
  return 0;
}

static int isend(lua_State *L) {
  return send_message(L, "isend", 1);
}

static int recv(lua_State *L) {
  Request r = { .op = "recv", .c = { .kind = COLL_recv } };
  Tensor *t = nl_checktensor(L, 1);
  int sender = 0;
  read_message(L, &r, t, "src");
  check(L, &r, nl_flight_tensor(&r.f, t, USE_WRITE));
  check(L, &r, nl_start_flight(&r.f, &r.c));
  check(L, &r, nl_finish_flight(&r.f, 0, &sender));
  lua_pushinteger(L, nc_open_transport()->worldrank(r.c.team, sender));
  return 1;
}

static int irecv(lua_State *L) {
  Request r = { .op = "irecv",
                .c = { .kind = COLL_recv, .async = 1 },
                .async = 1,
                .result = 1 };
  Tensor *t = nl_checktensor(L, 1);
  read_message(L, &r, t, "src");
  return run(L, &r, NULL, t, USE_WRITE);
}

#define OP "op:sum|mean|avg|prod|product|min|max|band|bor|bxor=sum, "
#define END "group:any=nil, async_op:bool=false -> result"
#define BARRIER "group:any=nil, async_op:bool=false, device_ids:any=nil, "
#define SRC "group:any=nil, async_op:bool=false, group_src:int=nil -> result"
#define DST "group:any=nil, async_op:bool=false, group_dst:int=nil -> result"
#define TO "dst:int=nil, group:any=nil, tag:int=0, group_dst:int=nil"
#define FROM "src:int=nil, group:any=nil, tag:int=0, group_src:int=nil"

const Bound nl_collectives[] = {
  { "barrier", barrier, BARRIER "timeout:num=nil -> result",
    "waits until every process of the group has called it, at most timeout "
    "seconds",
    1 },
  { "all_reduce", all_reduce, "tensor:tensor, " OP END,
    "on every rank, tensor = its sum over all ranks; or, by op, their mean, "
    "prod, min, max, band, bor, bxor",
    1 },
  { "broadcast", broadcast, "tensor:tensor, src:int=nil, " SRC,
    "on every rank, tensor = the tensor of rank src, usually 0", 1 },
  { "reduce", reduce, "tensor:tensor, dst:int=nil, " OP DST,
    "like all_reduce, but the tensor changes only on rank dst, usually 0", 1 },
  { "all_gather_into_tensor", all_gather_into_tensor,
    "output:tensor, input:tensor, " END,
    "output = the inputs of all ranks, one after the other", 1 },
  { "reduce_scatter_tensor", reduce_scatter_tensor,
    "output:tensor, input:tensor, " OP END,
    "input has a block for each rank: output = the sum over all ranks of the "
    "block for this one",
    1 },
  { "send", send, "tensor:tensor, " TO,
    "sends the elements to rank dst; waits until they are on their way", 1 },
  { "recv", recv, "tensor:tensor, " FROM " -> src",
    "fills tensor with what rank src, or any, sends with this tag; gives the "
    "sender",
    1 },
  { "isend", isend, "tensor:tensor, " TO " -> work",
    "like send, but does not wait: tensor must stay unchanged until wait", 1 },
  { "irecv", irecv, "tensor:tensor, " FROM " -> work",
    "like recv, but does not wait: tensor is filled after wait", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};

const luaL_Reg nl_distributed_internals[] = {
  { "gather", gather_blocks },         { "scatter", scatter_blocks },
  { "all_to_all", all_to_all_blocks }, { "after", nl_after_work },
  { "deafen", nl_deafen_group },       { "tell", nl_tell_failure },
  { "world_group", nl_world_group },   { NULL, NULL }
};
