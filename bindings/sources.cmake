set(BINDINGS_SOURCES alloc.c args.c box.c catalog.c collect.c dispatch.c lindex.c methods.c nacre.c
  session.c signature.c suggest.c values.c)
