set(BINDINGS_SOURCES alias.c alloc.c args.c autograd.c box.c bytes.c catalog.c collect.c composed.c cuda.c cycles.c dispatch.c extend.c files.c load.c save.c forms.c generator.c libpng.c lindex.c
  methods.c missing.c nacre.c namefields.c place.c png.c pressure.c reshow.c session.c signature.c source.c standard.c stream.c suggest.c surplus.c tables.c values.c watch.c)
