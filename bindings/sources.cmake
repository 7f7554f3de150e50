set(BINDINGS_SOURCES alloc.c args.c autograd.c box.c catalog.c collect.c composed.c cuda.c dispatch.c generator.c lindex.c
  methods.c nacre.c place.c pressure.c session.c signature.c stream.c suggest.c values.c)
