-- SPDX-License-Identifier: MIT
--
-- other_libraries.lua - names of PyTorch, NumPy, MATLAB and other libraries
-- that Nacre does not have: what to write instead, or that there is nothing
-- like it.
--
-- Each row: the names, a line of Lua, a note, and the part of the other
-- library ("nn") if the name belongs to only one. A test runs every line with
-- x and y vectors of floats and m a square matrix. A line that begins with `='
-- is the same function under another name and takes the same arguments.
-- Without a line, the note says what is missing.

local rows = {
  -- making
  {"array asarray_chkfinite asfarray ndarray", "=nacre.tensor({1, 2, 3})"},
  {"asarray asanyarray", "=nacre.as_tensor({1, 2, 3})"},
  {"ascontiguousarray require", "x:contiguous()"},
  {"identity", "=nacre.eye(3)"},
  {"fill", "x:fill_(0)", "in place; nacre.full({2, 3}, 7) makes one"},
  {"fromiter fromfunction arrayfun",
   "nacre.tensor({1, 4, 9})", "of a table that a loop fills"},
  {"genfromtxt loadtxt read_csv recfromcsv fromregex csvread readcsv",
   '=nacre.load("x.csv")'},
  {"savetxt to_csv csvwrite writecsv", 'nacre.save("x.csv", m)'},
  {"savez savez_compressed", 'nacre.save("x.npz", {x = x, m = m})'},
  {"dump dumps", 'nacre.save("x.npy", x)'},
  {"from_numpy", "=nacre.as_tensor({1, 2, 3})",
   "nacre.python().tensor(array) shares its memory"},
  {"copy deepcopy", "x:clone()"},
  {"copyto", "x:copy_(y)"},
  {"scalar_tensor", "nacre.tensor(2.5)"},
  {"empty_strided new_empty_strided", "nacre.empty(2, 3)"},
  -- random numbers
  {"random random_sample uniform", "nacre.rand(2, 3)"},
  {"standard_normal", "=nacre.randn(2, 3)"},
  {"permutation", "=nacre.randperm(5)"},
  {"shuffle", "x[nacre.randperm(#x)]"},
  {"choice", "x[nacre.randint(1, #x + 1, {5})]"},
  {"random.seed", "=nacre.manual_seed(0)"},
  {"default_rng RandomState", "nacre.manual_seed(1)"},
  -- arithmetic
  {"power", "=nacre.pow(x, 2)"},
  {"mod", "=nacre.remainder(x, 2)"},
  {"divmod", 'x:div(2, {rounding_mode = "floor"}), x:remainder(2)'},
  {"modf", "x:frac(), x:trunc()"},
  {"rint around", "=nacre.round(x)"},
  {"fabs", "=nacre.abs(x)"},
  {"cbrt", "x:sign() * x:abs():pow(1 / 3)"},
  {"invert", "=nacre.bitwise_not(x:long())"},
  {"left_shift", "=nacre.bitwise_left_shift(x:long(), 1)"},
  {"right_shift", "=nacre.bitwise_right_shift(x:long(), 1)"},
  {"degrees", "=nacre.rad2deg(x)"}, {"radians", "=nacre.deg2rad(x)"},
  {"clip_by_value", "=nacre.clamp(x, 0, 1)"},
  {"product", "=nacre.prod(x)"}, {"cumproduct", "=nacre.cumprod(x, 1)"},
  {"simps", "=nacre.simpson(x)"},
  {"cumtrapz", "=nacre.cumulative_trapezoid(y, x)"},
  {"rsub", "y - x"},
  -- special functions
  {"gammaln", "=nacre.lgamma(x)"},
  {"gamma", "x:lgamma():exp()", "of positive x"},
  {"factorial", "(x + 1):lgamma():exp()"},
  {"beta", "(x:lgamma() + y:lgamma() - (x + y):lgamma()):exp()"},
  {"comb", "((x + 1):lgamma() - (y + 1):lgamma() - (x - y + 1):lgamma())" ..
   ":exp()"},
  {"expit", "=nacre.sigmoid(x)"},
  {"betainc", nil, "there is no incomplete beta function"},
  -- reductions and statistics
  {"average", "=nacre.mean(x)"},
  {"sometrue", "=nacre.any(x)"}, {"alltrue", "=nacre.all(x)"},
  {"ptp", "x:max() - x:min()"},
  {"rms", "x:square():mean():sqrt()"},
  {"zscore standardize", "(x - x:mean()) / x:std()"},
  {"rank rankdata", "x:argsort():argsort()",
   "of elements; nacre.linalg.matrix_rank(m) is that of a matrix"},
  {"describe info", "x:summary()"},
  {"value_counts", "nacre.unique(x, {return_counts = true})"},
  {"hist", ":hist x", "nacre.histogram(x) has the numbers"},
  -- what is nan
  {"fillna", "=x:nan_to_num(0)"},
  {"isna isnull", "=nacre.isnan(x)"},
  {"notna notnull dropna", "x[x:isnan():logical_not()]"},
  {"ma masked masked_array", "x[x:gt(1)]", "masks are boolean tensors; " ..
   "there are no masked arrays"},
  -- searching and sets
  {"extract compress", "x[x:gt(1)]"},
  {"in1d", "=nacre.isin(x, y)"},
  {"partition", "nacre.sort(x)"},
  {"argpartition", "nacre.argsort(x)"},
  {"lexsort", "nacre.argsort(x, {stable = true})", "one key after the other"},
  {"take_along_axis", "=nacre.take_along_dim(m, m:argsort(2), 2)"},
  {"put_along_axis", "m:scatter(2, m:argsort(2), m)"},
  {"choose", "nacre.where(x:gt(1), x, y)"},
  {"piecewise", "nacre.where(x:gt(1), x, y)"},
  {"interp1d", "nacre.interp(x, y, y)", "points, positions, values"},
  {"place putmask", "x[x:gt(1)] = 0"},
  {"find", "x:gt(1):nonzero()"},
  -- shapes
  {"expand_dims", "=nacre.unsqueeze(x, 1)"},
  {"rollaxis", "=nacre.movedim(m, 2, 1)"},
  {"array_split", "=nacre.tensor_split(x, 2)"},
  {"array_equal array_equiv", "=nacre.equal(x, y)"},
  {"append insert block", "nacre.cat{x, y}"},
  {"bmat", "nacre.cat({m, m}, 2)"},
  {"delete", 'x[nacre.arange(1, #x + 1):ne(2)]', "all but the second"},
  {"resize", "x:reshape(3, 1)", "x:resize_(4) changes its memory"},
  {"broadcast_arrays", "=nacre.broadcast_tensors(x, y)"},
  {"strides strided", "x:stride()"},
  {"flat", "x:flatten()"},
  -- Torch7
  {"nElement", "=x:numel()"}, {"isTensor", "=nacre.is_tensor(x)"},
  {"isSameSizeAs isSize", "=x:is_same_size(y)"},
  {"cmul", "=x:mul(y)"}, {"cdiv", "=x:div(y)"}, {"cmax", "=x:maximum(y)"},
  {"cmin", "=x:minimum(y)"}, {"csub", "=x:sub(y)"},
  {"repeatTensor", "=x:tile(2, 3)"}, {"expandAs", "=x:expand_as(y)"},
  {"viewAs", "=x:view_as(y)"}, {"typename", "x.dtype"},
  {"getNumThreads", "=nacre.get_num_threads()"},
  {"setNumThreads", "=nacre.set_num_threads(1)"},
  {"tic toc", "nacre.clock()"}, {"maskedFill", "x:masked_fill(x:gt(1), 0)"},
  {"maskedSelect", "x[x:gt(1)]"},
  {"head", 'x["1:2"]'}, {"tail", 'x["-2:"]'},
  {"rolling sliding_window_view", "x:unfold(1, 2, 1):mean(2)"},
  {"vectorize frompyfunc apply_along_axis apply_over_axes apply map apply_ " ..
   "map_ map2_ applymap", "x * 2 + 1",
   "operations take whole tensors; loops are slow"},
  {"len length", "#x"},
  {"meshgrid2 mgrid ogrid", "nacre.meshgrid(x, y)"},
  {"astype", '=x:to("float64")'},
  {"item_ itemset", "x[1] = 5"},
  {"is_cpu", "not x.is_cuda"},
  {"is_leaf_ retains_grad", "x.is_leaf"},
  {"numpy", "x:tolist()", "nacre.python().array(x) for NumPy"},
  {"type", "x.dtype"},
  {"new", "x:new_zeros(3)"},
  -- products and matrices
  {"convolution", "=nacre.convolve(x, y)"},
  {"convolve2d", "nacre.nn.functional.conv2d(" ..
   "m:view(1, 1, 3, 3), m:view(1, 1, 3, 3))"},
  {"expm", "=nacre.linalg.matrix_exp(m)"},
  {"sqrtm logm funm", nil, "of functions of a matrix there is " ..
   "nacre.linalg.matrix_exp; for symmetric ones nacre.linalg.eigh"},
  {"symeig", "=nacre.linalg.eigh(m)"},
  {"triangular_solve", "nacre.linalg.solve_triangular(m, m, {upper = true})"},
  {"solve_ex inv_ex cholesky_ex lu_factor_ex ldl_factor ldl_solve " ..
   "ldl_factor_ex tensorinv tensorsolve", nil,
   "nacre.linalg has solve, inv, cholesky, lu_factor"},
  -- dtypes
  {"ulonglong uintp", '"uint64"'}, {"uint uintc", '"uint32"'},
  {"ushort", '"uint16"'},
  {"float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2", '"uint8"',
   "has their bytes; of the floats of 8 bits there are float8_e4m3fn and " ..
   "float8_e5m2"},
  {"float_ double_", '"float64"'}, {"single", '"float32"'},
  {"int_ intp longlong", '"int64"'}, {"intc", '"int32"'},
  {"bool_", '"bool"'}, {"ubyte", '"uint8"'},
  {"float128 longdouble longfloat", '"float64"', "is the widest float"},
  {"complex32 chalf csingle", '"complex64"'}, {"complex256", '"complex128"'},
  {"conjugate", "=nacre.conj(x)"}, {"iscomplex", "=nacre.is_complex(x)"},
  {"qint8 qint32 quint8 quantize_per_tensor quantization dequantize", nil,
   "there are no quantized tensors"},
  {"datetime64 timedelta64 str_ string_ object_", nil,
   "a tensor holds numbers and booleans"},
  -- asking
  {"isscalar", 'type(x) == "number"'},
  {"is_storage storage data_ptr untyped_storage", nil,
   "there is no storage object; views such as x:view(...) share memory"},
  {"set_printoptions get_printoptions printoptions", ":set precision 2"},
  {"set_default_tensor_type setdefaulttensortype",
   'nacre.set_default_dtype "float64"'},
  {"use_deterministic_algorithms", nil, "start with nacre --deterministic"},
  {"set_anomaly_enabled set_detect_anomaly detect_anomaly", ":nan trap",
   "stops where nan or inf arises, and names the operation"},
  {"accelerator current_accelerator", 'nacre.device "auto"',
   "a GPU if there is one; nacre.cuda has the rest"},
  {"isinstance", "nacre.is_tensor(x)",
   "asks; nacre.tensor({1, 2, 3}) makes one"},
  {"FloatTensor DoubleTensor", "nacre.tensor({1, 2, 3})"},
  {"LongTensor", 'nacre.tensor({1, 2, 3}, {dtype = "int64"})'},
  {"e", "math.exp(1)"},
  {"Size", "x.shape"},
  -- gradients and learning
  {"jacobian hessian jvp vjp functorch value_and_grad", nil,
   "nacre.func has grad, grad_and_value, vjp, jvp, jacrev, jacfwd, hessian"},
  {"SparseAdam Lion Lamb LARS", nil, "not among the optimizers; one of " ..
   'your own is a class: nacre.optim.Optimizer "Mine", see ?Optimizer'},
  {"get_worker_info", nil, "there are no worker processes: an " ..
   "IterableDataset gives all of its samples"},
  {"sgd adam", "nacre.optim.SGD({x:requires_grad_()}, {lr = 0.1})"},
  {"rnn_tanh rnn_relu lstm gru quantized_lstm", "nacre.nn.LSTM(3, 4)"},
  {"multi_head_attention_forward", "nacre.nn.MultiheadAttention(4, 2)"},
  {"CrossMapLRN2d", "nacre.nn.LocalResponseNorm(2)"},
  {"fractional_max_pool2d fractional_max_pool3d", nil,
   "of pooling there are max_pool, avg_pool, lp_pool and the adaptive ones"},
  {"rrelu_", "nacre.nn.functional.rrelu(x)"},
  {"upsample_bilinear upsample_nearest",
   "nacre.nn.functional.interpolate(m:view(1, 1, 3, 3), {scale_factor = 2})"},
  {"super", nil, "a class needs no super().__init__(): init is enough; " ..
   "Base.init(self, ...) calls that of the class above"},
  -- Python's words
  {"tqdm trange", nil, "for i in nacre.progress(n) do ... end shows the " ..
   "rate and the time left"},
  {"zip", nil, "for i, a in ipairs(x) do local b = y[i] ... end goes " ..
   "through two lists"},
  {"with", nil, "nacre.no_grad(function() ... end) runs a block, as does " ..
   'nacre.autocast("cuda", function() ... end)'},
  -- Torch7's nn
  {"SpatialConvolution SpatialConvolutionMM", "nacre.nn.Conv2d(3, 4, 5)",
   "{stride = 1, padding = 0} follow"},
  {"TemporalConvolution", "nacre.nn.Conv1d(3, 4, 5)",
   "of [batch x channels x length]"},
  {"VolumetricConvolution", "nacre.nn.Conv3d(3, 4, 5)"},
  {"SpatialFullConvolution", "nacre.nn.ConvTranspose2d(3, 4, 5)"},
  {"SpatialMaxPooling", "nacre.nn.MaxPool2d(2)"},
  {"SpatialAveragePooling", "nacre.nn.AvgPool2d(2)"},
  {"SpatialAdaptiveMaxPooling", "nacre.nn.AdaptiveMaxPool2d(1)"},
  {"SpatialAdaptiveAveragePooling", "nacre.nn.AdaptiveAvgPool2d(1)"},
  {"SpatialBatchNormalization", "=nacre.nn.BatchNorm2d(4)"},
  {"BatchNormalization", "=nacre.nn.BatchNorm1d(4)"},
  {"SpatialDropout", "=nacre.nn.Dropout2d(0.5)"},
  {"SpatialUpSamplingNearest", "nacre.nn.Upsample{scale_factor = 2}"},
  {"LookupTable", "=nacre.nn.Embedding(10, 3)"},
  {"ClassNLLCriterion", "=nacre.nn.NLLLoss()"},
  {"CrossEntropyCriterion", "=nacre.nn.CrossEntropyLoss()"},
  {"MSECriterion", "=nacre.nn.MSELoss()"},
  {"BCECriterion", "=nacre.nn.BCELoss()"},
  {"AbsCriterion", "=nacre.nn.L1Loss()"},
  {"SmoothL1Criterion", "=nacre.nn.SmoothL1Loss()"},
  {"CAddTable CMulTable CSubTable JoinTable SelectTable ConcatTable " ..
   "ParallelTable", nil, "a forward of your own adds, multiplies and joins: " ..
   'Net = nn.Module "Net"; function Net:forward(x) ... end'},
  {"updateOutput", nil, "net(x) computes the output"},
  {"updateGradInput accGradParameters", nil,
   "loss:backward() computes all gradients"},
  {"zeroGradParameters", nil, "net:zero_grad() does that"},
  {"updateParameters", nil, "an optimizer of nacre.optim does that: " ..
   "opt:step()"},
  {"getParameters", nil, "net:parameters() lists them; " ..
   "nn.utils.parameters_to_vector(net:parameters()) is one vector"},
  {"evaluate", nil, "net:eval() does that"},
  -- parts that are not there
  {"ifft rfft irfft fft2 fftn fftshift fftfreq", nil,
   "nacre.fft has the transforms: nacre.fft.rfft(x)"},
  {"hanning hann", "=nacre.hann_window(8, false)"},
  {"hamming", "=nacre.hamming_window(8, false)"},
  {"blackman", "=nacre.blackman_window(8, false)"},
  {"bartlett", "=nacre.bartlett_window(8, false)"},
  {"kaiser", "=nacre.kaiser_window(8, false, 14)"},
  {"sparse sparse_coo_tensor sparse_csr_tensor to_sparse to_sparse_csr " ..
   "to_sparse_coo to_dense coalesce is_sparse spmm csr_matrix coo_matrix", nil,
   "there are no sparse tensors"},
  {"jit compile script", "nacre.fuse(function(a) return (a * 2):exp() end)",
   "traces a function and runs its elementwise operations in one pass"},
  {"onnx export fx", nil, "there is no exchange of graphs; nacre.save " ..
   "writes the tensors, net:state_dict() those of a network"},
  {"DDP", nil, "nn.parallel.DistributedDataParallel(model) is that class"},
  {"nccl multiprocessing mp rpc parallel", nil,
   "nacre.distributed connects processes; nn.DataParallel uses several " ..
   'devices, x:to("cuda:1") places a tensor'},
  {"Normal Categorical Bernoulli MultivariateNormal Independent", nil,
   "nacre.distributions has the classes of torch.distributions"},
  {"hub torchvision torchaudio torchtext models transforms datasets " ..
   "vutils", nil,
   "no models or data sets are included"},
  {"profiler record_function prof ProfilerActivity", nil,
   "the command :profile shows where time goes"},
  {"next_functions", nil, "the graph has no list of next functions"},
  {"set_float32_matmul_precision get_float32_matmul_precision", nil,
   "nacre.autocast computes products in half precision"},
  {"CUDAGraph graph make_graphed_callables graph_pool_handle", nil,
   "there are no CUDA graphs", "cuda"},
  {"nvtx", nil, "there are no marks for NVIDIA's tools; the command " ..
   ":profile shows where time goes", "cuda"},
  {"utilization temperature power_draw clock_rate memory_usage", nil,
   "the command nvidia-smi shows it", "cuda"},
  {"is_bf16_supported", nil,
   "nacre.cuda.get_device_capability() is 8.0 or more where bfloat16 has " ..
   "units of its own",
   "cuda"},
  {"init", nil, "CUDA starts by itself", "cuda"},
  {"ipc_collect", nil, "no memory is shared with other processes", "cuda"},
  {"device_of", nil, "x.device is the device of x", "cuda"},
  {"memory_snapshot caching_allocator_alloc", nil,
   "nacre.cuda.memory_summary() shows the memory", "cuda"},
  {"set_per_process_memory_fraction", nil,
   "there is no limit on the memory of a GPU", "cuda"},
  {"ExternalStream", nil, "streams are made by nacre.cuda.Stream()", "cuda"},
  {"cudnn mkldnn mkl", nil,
   "chosen by Nacre; nacre.show_config() names what is used"},
  {"from_dlpack to_dlpack share_memory_", nil,
   "tensors share memory with NumPy and PyTorch in nacre.python()"},
  {"groupby", "x:unique{return_inverse = true}",
   "then index_reduce; see ?unique"},
  {"merge join_tables pivot concat_tables", nil, "there are no tables of " ..
   "records"},
  {"odeint solve_ivp quad fsolve minimize curve_fit root " ..
   "medfilt butter lfilter spline splev kdtree poly1d roots", nil,
   "not available"},
  {"hermite legendre", nil,
   "nacre.special.hermite_polynomial_h and legendre_polynomial_p are there"},
  {"jv j0 j1 y0 y1 k0 k1", nil,
   "nacre.bessel_j0(x) and its like are Bessel functions of order 0 and 1"},
  {"magic hilbert hankel toeplitz circulant packbits " ..
   "unpackbits", nil, "not available"},
  {"frexp", "x:abs():log2():floor() + 1", "is the exponent e, and " ..
   "x / 2 ^ e the mantissa"},
  {"broadcast_shapes", "nacre.broadcast_tensors(x, y)[1].shape"},
  {"testing assert_close assert_allclose assert_array_equal", "x:allclose(y)",
   "in a test t.close(x, y) shows what differs"},
  {"errstate seterr geterr", ":nan trap", "stops where nan arises"},
  {"values", "v, i = x:max(1)"},
  {"indices", "v, i = x:max(1)"},
  {"conv", "nacre.nn.functional.conv1d(x:view(1, 1, -1), y:view(1, 1, -1))",
   "conv2d and conv3d are beside it"},
}

local other_libraries = {rows = {}}

local byname = {}

for _, row in ipairs(rows) do
  local same, code = (row[2] or ""):match "^(=?)(.*)$"
  for name in row[1]:gmatch "%S+" do
    local entry = {name = name, code = code ~= "" and code or nil,
                   same = same == "=", note = row[3],
                   part = row[4]}
    byname[name] = entry
    other_libraries.rows[#other_libraries.rows + 1] = entry
  end
end

-- What is known of a name: {name =, code =, same =, note =, part =}, or nil.
function other_libraries.find(name) return byname[name] end

-- The line and the note as one text.
function other_libraries.text(entry, code, note)
  code, note = code or entry.code, note or entry.note
  if not code then return note end
  return code .. (note and "  (" .. note .. ")" or "")
end

return other_libraries
