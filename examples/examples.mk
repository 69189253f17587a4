# SPDX-License-Identifier: BSD-2-Clause
#
# The examples: a transformer once with the shared marker library, once wholly static and stripped; and
# its unit tests, which need its objects instead of the tracer's.

GPT_DIR = examples/transformer
GPT_OBJS = $(patsubst $(GPT_DIR)/%.c,$(B)/transformer-obj/%.o,$(wildcard $(GPT_DIR)/*.c))
GPT_PARTS = $(filter-out %/main.o,$(GPT_OBJS))
GPT_EXACT_PARTS = $(GPT_PARTS:$(B)/transformer-obj/%=$(B)/transformer-exact-obj/%)

# The kernels are loops over numbers that are finite; everything else keeps the rules of the language.
GPT_KERNELS = $(patsubst $(GPT_DIR)/%.c,$(B)/transformer-obj/%.o,$(wildcard $(GPT_DIR)/layer_*.c) $(GPT_DIR)/adamw.c)
$(GPT_KERNELS): GPT_FLAGS = -O3 -ffast-math

$(B)/transformer-obj/%.o: $(GPT_DIR)/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(GPT_FLAGS) -c $< -o $@

$(B)/transformer: $(GPT_OBJS) $(B)/libtickmark.so
	$(CC) $(ALL_LDFLAGS) -o $@ $(GPT_OBJS) -L$(B) -ltickmark -Wl,-rpath,'$$ORIGIN' -lm -lpthread

# Sanitizers cannot be linked statically.
$(B)/transformer-static: $(GPT_OBJS) $(B)/libtickmark.a
	$(CC) $(ALL_LDFLAGS) $(if $(SAN),,-static) -s -o $@ $(GPT_OBJS) $(B)/libtickmark.a -lm -lpthread

# In double precision a finite difference proves a gradient.
$(B)/transformer-exact-obj/%.o: $(GPT_DIR)/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -DREAL_IS_DOUBLE -c $< -o $@

GPT_TEST_LINK = -Itests $< -o $@ $(filter %.o %.a,$^) $(ALL_LDFLAGS) -lcmocka -lm -lpthread

$(B)/tests/test_transformer $(B)/tests/test_transformer_device: \
$(B)/tests/%: tests/unit/%.c $(GPT_PARTS) $(B)/libtickmark.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(GPT_TEST_LINK)

$(B)/tests/test_transformer_gradients: tests/unit/test_transformer_gradients.c $(GPT_EXACT_PARTS) $(B)/libtickmark.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -DREAL_IS_DOUBLE $(GPT_TEST_LINK)
