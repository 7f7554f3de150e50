/* SPDX-License-Identifier: MIT */
/*
** works.c - operations under way: the memory they use, the wait for them, and
** the userdata that the caller of an asynchronous operation gets.
**
** A tensor that is not dense takes part as a dense copy, on the device where it
** lies; if that cannot carry it to the other ranks, as a copy on the host.  The
** copy of one that is written to goes back when the operation is done.
*/
#include <stdlib.h>

#include "bindings/distributed/distributed.h"
#include "bindings/calls/functions.h"
#include "bindings/state.h"
#include "core/accelerator.h"
#include "core/ops.h"

#define WORK "nacre.work"

/*
** Memory that outlives its owner: a work that nobody waited for was collected,
** or a wait failed.  MPI may still read and write there.
*/
typedef struct Orphan {
  Flight f;
  struct Orphan *next;
} Orphan;

static Orphan *orphans;

static void release_tensors(Flight *f) {
  nc_release(f->in);
  nc_release(f->out);
  nc_release(f->target);
  f->in = f->out = f->target = NULL;
}

/* Frees what is not in use any more. */
static void free_orphans(const Transport *t) {
  for (Orphan **p = &orphans; *p;) {
    Orphan *o = *p;
    int done = 0;
    if (t->test(o->f.w, &done), !done) {
      p = &o->next;
      continue;
    }
    *p = o->next;
    t->freework(o->f.w);
    release_tensors(&o->f);
    free(o);
  }
}

void nl_drop_flight(Flight *f) {
  const Transport *t = nc_open_transport();
  Orphan *o;
  int done = 1;
  if (f->d) nc_open_accelerator()->freework(f->d);
  f->d = NULL;
  if (f->w && t) t->test(f->w, &done);
  if (f->w == NULL || (t && done)) {
    if (f->w) t->freework(f->w);
    release_tensors(f);
  } else if ((o = malloc(sizeof *o)) != NULL) {
    o->f = *f;
    o->next = orphans;
    orphans = o;
  } /* without memory it stays for ever */
  *f = (Flight){ .w = NULL };
}

/*
** The tensors
*/

/* The device of t if it may carry t to other processes, else the host. */
static const Device *carrier(const Tensor *t) {
  const Accelerator *a = nc_open_accelerator();
  const Device *d = nc_device(t);
  const int i = d->ordinal;
  return a && i >= 0 && i < a->count && d == a->device[i] ? d : nc_host();
}

/* *y = a dense tensor of d in the shape of t, with its elements unless it is
   only written to. */
static int dense_copy(Tensor **y, Tensor *t, const Device *d, Use use) {
  Tensor *there;
  int r;
  if (use == USE_WRITE) return nc_newdense(y, d, t->dtype, t);
  if (d != nc_host()) return nc_dense(y, t);
  TRY(nc_readable(&there, t));
  r = nc_dense(y, there);
  nc_release(there);
  return r;
}

int nl_flight_tensor(Flight *f, Tensor *t, Use use) {
  Tensor **to = use == USE_READ ? &f->in : &f->out;
  const Device *d = carrier(t);
  int r;
  if (use != USE_READ) TRY(nc_check_writable(t));
  if (use != USE_READ) f->use = use;
  if (nc_device(t) == d && nc_isdense(t)) {
    Tensor *same;
    if (d != nc_host()) return nc_alias(to, t);
    TRY(nc_readable(&same, t)); /* not in a dry run */
    r = nc_alias(to, same);     /* set_ and resize_ leave it its memory */
    nc_release(same);
    return r;
  }
  nc_context->no_grad++;
  r = dense_copy(to, t, d, use);
  nc_context->no_grad--;
  if (r == NC_OK && use != USE_READ) nc_retain(f->target = t);
  return r;
}

/* Puts a copy on the host in place of *t, which is on a device. */
static int move_to_host(Tensor **t, Use use) {
  Tensor *there = *t;
  int r;
  nc_context->no_grad++;
  r = dense_copy(t, there, nc_host(), use);
  nc_context->no_grad--;
  if (r != NC_OK) *t = there;
  return r;
}

static int pass_through_host(Flight *f) {
  Tensor *in = f->in, *out = f->out;
  if (in && nc_device(in) != nc_host()) {
    TRY(move_to_host(&f->in, USE_READ));
    nc_release(in);
  }
  if (out && nc_device(out) != nc_host()) {
    TRY(move_to_host(&f->out, f->use));
    if (f->target) nc_release(out);
    else f->target = out;
  }
  return NC_OK;
}

/* The device on which all operands lie; the host if they do not. */
static const Device *common_device(const Flight *f) {
  const Device *in = f->in ? nc_device(f->in) : NULL;
  const Device *out = f->out ? nc_device(f->out) : in;
  if (in == NULL) in = out;
  return in && in == out ? in : nc_host();
}

static void set_operands(const Flight *f, Coll *c) {
  c->in = f->in ? nc_data(f->in) : NULL;
  c->out = f->out ? nc_data(f->out) : NULL;
}

/* Messages have tags and may be from any rank, which only the transport
   knows. */
static int start_on_device(Flight *f, Coll *c, int *taken) {
  const Device *d = common_device(f);
  *taken = 0;
  if (d == nc_host() || c->kind >= COLL_send) return NC_OK;
  set_operands(f, c);
  return nc_start_on_device(&f->d, c, d, taken);
}

int nl_start_flight(Flight *f, Coll *c) {
  const Transport *t = nc_open_transport();
  int taken, r;
  if (orphans) free_orphans(t);
  f->kind = c->kind;
  TRY(start_on_device(f, c, &taken));
  if (taken) return NC_OK;
  if ((r = pass_through_host(f)) != NC_OK) {
    if (c->number) t->lose(c->team); /* the other ranks are in it */
    return r;
  }
  set_operands(f, c);
  return t->start(&f->w, c);
}

static int divide(Tensor *t, int n) {
  const Arg in[2] = { { .t = t }, { .s = nc_float(n) } };
  Tensor *y;
  TRY(nc_apply(&y, OP_true_divide, in, NULL, t));
  nc_release(y);
  return NC_OK;
}

/* The results are there: gives them to the user's tensors. */
static int land(Flight *f) {
  int r = NC_OK;
  nc_context->no_grad++;
  if (f->mean > 1) r = divide(f->out, f->mean);
  if (r == NC_OK && f->target) r = nc_copy(f->target, f->out);
  nc_context->no_grad--;
  if (f->out) (f->target ? f->target : f->out)->data->writes++;
  release_tensors(f);
  return r;
}

/* What the current stream does next comes after it: only with a limit of time
   does the host wait. */
static int wait_on_device(Flight *f, double seconds) {
  const Accelerator *a = nc_open_accelerator();
  TRY(seconds > 0 ? a->waitwork(f->d) : a->afterwork(f->d));
  a->freework(f->d);
  f->d = NULL;
  return NC_OK;
}

int nl_finish_flight(Flight *f, double seconds, int *sender) {
  const Transport *t = nc_open_transport();
  if (f->d) TRY(wait_on_device(f, seconds));
  if (f->w) {
    TRY(t->wait(f->w, seconds));
    if (sender) t->sender(f->w, sender);
    t->freework(f->w);
    f->w = NULL;
  }
  return land(f);
}

/*
** Works
*/
typedef struct WorkBox {
  Flight f;
  int done; /* with f.w = NULL: not yet seen by anybody */
  int failed;
} WorkBox;

enum { RESULT = 1, FINISH }; /* the user values */

/* Calls what the Lua side has to do when the operation is done. [-0, +0, e] */
static void finish(lua_State *L) {
  if (lua_getiuservalue(L, 1, FINISH) == LUA_TFUNCTION) {
    lua_pushnil(L);
    lua_setiuservalue(L, 1, FINISH);
    lua_call(L, 0, 0);
  } else lua_pop(L, 1);
}

static void finish_work(lua_State *L, WorkBox *b, double seconds,
                        const char *op) {
  if (b->failed) nl_error(L, op, "the operation has failed");
  if (!b->done) {
    int r;
    if (nc_open_transport() == NULL) nl_error(L, op, "the program ends");
    nl_select(L);
    r = nl_finish_flight(&b->f, seconds, NULL);
    if (r != NC_OK && r != NC_EPEER && r != NC_EINTR) {
      const CollKind kind = b->f.kind;
      nl_drop_flight(&b->f); /* there is nothing to wait for any more */
      b->f.kind = kind;
      b->failed = 1;
    }
    nl_check_op(L, r, op);
    b->done = 1;
  }
  finish(L);
}

static int wait(lua_State *L) {
  WorkBox *b = luaL_checkudata(L, 1, WORK);
  finish_work(L, b, luaL_optnumber(L, 2, 0), "wait");
  lua_getiuservalue(L, 1, RESULT);
  return 1;
}

static int is_completed(lua_State *L) {
  const Transport *t = nc_open_transport();
  WorkBox *b = luaL_checkudata(L, 1, WORK);
  int done = 1;
  if (!b->done && b->f.w && t)
    nl_check_op(L, t->test(b->f.w, &done), "is_completed");
  if (!b->done && b->f.d)
    nl_check_op(L, nc_open_accelerator()->querywork(b->f.d, &done),
                "is_completed");
  if (done) finish_work(L, b, 0, "is_completed");
  lua_pushboolean(L, done);
  return 1;
}

static int collected(lua_State *L) {
  WorkBox *b = luaL_checkudata(L, 1, WORK);
  if (!b->done) nl_drop_flight(&b->f);
  b->done = 1;
  return 0;
}

static int work_text(lua_State *L) {
#define X(name) #name,
  static const char *const names[] = { COLLECTIVES(X) };
#undef X
  const WorkBox *b = luaL_checkudata(L, 1, WORK);
  lua_pushfstring(L, "%s (%s)", names[b->f.kind],
                  b->failed                         ? "failed"
                  : b->done || (!b->f.w && !b->f.d) ? "done"
                                                    : "under way");
  return 1;
}

Flight *nl_push_work(lua_State *L, int i) {
  static const luaL_Reg events[] = { { "__gc", collected },
                                     { "__tostring", work_text },
                                     { NULL, NULL } };
  WorkBox *b;
  i = i ? lua_absindex(L, i) : 0;
  b = lua_newuserdatauv(L, sizeof *b, 2);
  *b = (WorkBox){ .done = 0 };
  if (luaL_newmetatable(L, WORK)) {
    luaL_setfuncs(L, events, 0);
    nl_push_bound_table(L, nl_work_methods);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "methods"); /* help and completion read it */
    lua_setfield(L, -2, "__index");
  }
  lua_setmetatable(L, -2);
  if (i) lua_pushvalue(L, i);
  else lua_pushboolean(L, 1);
  lua_setiuservalue(L, -2, RESULT);
  return &b->f;
}

/* after(work, result, fn): fn is called once, when the work is found to be
   done, and result is what wait gives. */
int nl_after_work(lua_State *L) {
  luaL_checkudata(L, 1, WORK);
  lua_settop(L, 3);
  lua_setiuservalue(L, 1, FINISH);
  lua_setiuservalue(L, 1, RESULT);
  return 1;
}

const Bound nl_work_methods[] = {
  { "wait", wait, "self:work, timeout:num=0 -> result",
    "waits until the operation is done, at most timeout seconds, and returns "
    "what it would return without async_op; 0 is the limit of "
    "init_process_group",
    2 },
  { "is_completed", is_completed, "self:work -> boolean",
    "is the operation done? Does not wait", 2 },
  { NULL, NULL, NULL, NULL, 0 }
};
