-- help/pytorch.lua: what PyTorch calls otherwise than Tide, and what of it Tide has not, for the errors of
-- names that are not there and for help. tests/lua/show/test_pytorch_names.lua walks all of PyTorch's names.
local tide = ...
local pytorch = {}

-- Names that Python, NumPy or habit give, as Tide writes them.
local WRITTEN = {
    __version__ = "tide.version", __doc__ = "?name at the prompt", __file__ = "?name at the prompt", __dict__ = "pairs(tide)", __all__ = "?tide",
    __name__ = "a string of your own", __class__ = "getmetatable(model), tide.is_tensor(x)", __len__ = "#x", __init__ = "function Net:init()",
    __path__ = "package.path", __call__ = "x(...)", __getitem__ = "x[k]", __repr__ = "tostring(x)", __str__ = "tostring(x)",
    ["Tensor.S"] = "a result by itself: U, S, Vh = tide.linalg.svd(x)", ["Tensor.U"] = "a result by itself: U, S, Vh = tide.linalg.svd(x)",
    ["Tensor.Vh"] = "a result by itself: U, S, Vh = tide.linalg.svd(x)", ["Tensor.V"] = "a result by itself: U, S, Vh = tide.linalg.svd(x)",
    ["Tensor.Q"] = "a result by itself: Q, R = tide.linalg.qr(x)", ["Tensor.R"] = "a result by itself: Q, R = tide.linalg.qr(x)",
    ["Tensor.P"] = "a result by itself: P, L, U = tide.linalg.lu(x)", ["Tensor.L"] = "a result by itself: P, L, U = tide.linalg.lu(x)",
    ["Tensor.eigenvalues"] = "a result by itself: values, vectors = tide.linalg.eigh(x)",
    ["Tensor.eigenvectors"] = "a result by itself: values, vectors = tide.linalg.eigh(x)",
    ["Tensor.logabsdet"] = "a result by itself: sign, logabsdet = tide.linalg.slogdet(x)",
    ["Tensor.LU"] = "a result by itself: LU, pivots = tide.linalg.lu_factor(x)", ["Tensor.pivots"] = "a result by itself: LU, pivots = tide.linalg.lu_factor(x)",
    ["Tensor.solution"] = "the first result: tide.linalg.lstsq(x, y)", ["Tensor.residuals"] = "a result by itself: solution, residuals = tide.linalg.lstsq(x, y)",
    ["Tensor.inverse_indices"] = "a result by itself: values, inverse = tide.unique(x, {return_inverse = true})",
    ["Tensor.counts"] = "a result by itself: values, counts = tide.unique(x, {return_counts = true})",
    ["Tensor.mantissa"] = "a result by itself: mantissa, exponent = tide.frexp(x)", ["Tensor.exponent"] = "a result by itself: mantissa, exponent = tide.frexp(x)",
    ["Tensor.len"] = "#x", ["Tensor.length"] = "#x", ["Tensor.get"] = "x[1], x[{1, 2}]", ["Tensor.set"] = "x[1] = value", ["Tensor.at"] = "x[1]",
    ["Tensor.copy"] = "x:clone()", ["Tensor.astype"] = "x:to(tide.float64)", ["Tensor.map"] = "operators over all of x, x:exp(); of numbers a loop over x:tolist()",
    ["Tensor.apply"] = "operators over all of x, x:exp(); of numbers a loop over x:tolist()", ["Tensor.fill"] = "x:fill_(value)", ["Tensor.append"] = "tide.cat{x, y}",
    ["Tensor.push"] = "tide.cat{x, y}", ["Tensor.value"] = "x:item()", ["Tensor.tonumber"] = "x:item()", ["Tensor.totable"] = "x:tolist()", ["Tensor.print"] = "print(x)",
    ["Tensor.concat"] = "tide.cat{x, y}", ["Tensor.concatenate"] = "tide.cat{x, y}", ["Tensor.rank"] = "x.ndim", ["Tensor.plot"] = "tide.plot.line(x)",
    ["Tensor.show"] = "print(x), tide.plot.image(x)", ["Tensor.array"] = "x:tolist()", ["Tensor.values_"] = "x:tolist()", ["Tensor.head"] = 'x["1:5"]',
    deepcopy = "model:clone(), x:clone()", ["copy.deepcopy"] = "model:clone(), x:clone()",
    confusion_matrix = "tide.plot.confusion(targets, predictions)", make_grid = "tide.plot.image(batch), which lays a batch out, with {nrow = 8} so many in a row",
    save_image = "tide.plot.image(x):save(path)", array = "tide.tensor{...}", concatenate = "tide.cat{x, y}", ndarray = "tide.tensor{...}",
    set_seed = "tide.manual_seed(n)", seed_everything = "tide.manual_seed(n)", random_seed = "tide.manual_seed(n)",
    bce = "tide.nn.functional.binary_cross_entropy(x, target)", BCE = "tide.nn.BCELoss()", bce_loss = "tide.nn.functional.binary_cross_entropy(x, target)",
    bce_with_logits = "tide.nn.functional.binary_cross_entropy_with_logits(x, target)", BCEWithLogits = "tide.nn.BCEWithLogitsLoss()",
    ce_loss = "tide.nn.functional.cross_entropy(x, target)", cross_entropy_loss = "tide.nn.functional.cross_entropy(x, target)",
    accuracy = "predictions:eq(targets):float():mean():item()",
}

-- PyTorch's name = how Tide says it: by its path without "torch.", or, without a dot, wherever it stands.
local ELSEWHERE = {
    ["utils.benchmark"] = "tide.benchmark", ["utils.bottleneck"] = "tide --bottleneck FILE",
    ["utils.checkpoint.checkpoint"] = "tide.utils.checkpoint", ["utils.collect_env"] = "tide --info",
    ["cuda.amp"] = "tide.amp", ["cpu.amp"] = "tide.amp", ["cuda.profiler"] = "tide.profiler", ["cuda.memory"] = "tide.cuda",
    ["cuda.random"] = "tide.manual_seed, tide.get_rng_state and tide.Generator", ["cuda.streams"] = "tide.cuda",
    ["autograd.profiler"] = "tide.profiler", ["profiler.profiler"] = "tide.profiler", ["autograd.grad_mode"] = "tide.no_grad and its kin",
    ["nn.modules"] = "tide.nn", ["nn.utils.init"] = "tide.nn.init", ["nn.parameter"] = "tide.nn.Parameter",
    ["nn.utils.clip_grad"] = "tide.nn.utils.clip_grad_norm_", ["nn.utils.rnn.PackedSequence"] = "what tide.nn.utils.rnn.pack_padded_sequence gives",
    ["nn.attention"] = "tide.nn.functional.scaled_dot_product_attention", ["nn.utils.parametrize.Parameter"] = "tide.nn.Parameter",
    ["signal"] = "tide.hann_window and its kin", ["signal.windows"] = "tide.hann_window and its kin", windows = "tide.hann_window and its kin",
    ["version"] = "tide.version, tide --info", torch_version = "tide.version, tide --info",
    record_function = "tide.profiler.record(name, fn)", emit_nvtx = "profile{fn, nvtx = true}",
    export_memory_timeline =
        "p:table({sort = \"memory\"}) of profile{fn, profile_memory = true}",
    ProfilerActivity = "tide.profiler.profile, which records the CPU and the device alike", ProfilerAction =
        "\"none\", \"warmup\", \"record\" or \"save\", which tide.profiler.schedule's function says",
    ["profiler.supported_activities"] = "tide --info",
    numpy = "tide.save(x, \"x.npy\") for NumPy, x:tolist() for Lua", from_numpy = "tide.load(\"x.npy\")", asarray = "tide.tensor",
    frombuffer = "tide.tensor of a list, tide.load of a file", from_file = "tide.load", to_numpy = "tide.save(x, \"x.npy\")",
    ToTensor = "not needed: images are tensors of uint8, and Normalize makes floats of them, or ConvertImageDtype(tide.float32)",
    PILToTensor = "not needed: images are tensors", ToImage = "not needed: images are tensors", ToPILImage = "tide.io.write_png(x, path), tide.plot.image(x)",
    ToDtype = "tide.data.transforms.ConvertImageDtype(tide.float32)", Lambda = "a function: Compose takes any",
    ["data.transforms.functional"] = "tide.data.transforms itself: resize(x, 224) beside Resize(224)",
    ["data.transforms.v2"] = "tide.data.transforms", InterpolationMode = "the option interpolation = \"bilinear\"",
    MixUp = "tide.data.transforms.mixup(x, y, classes)", CutMix = "tide.data.transforms.cutmix(x, y, classes)",
    set_default_tensor_type = "tide.set_default_dtype", set_default_device = "tide.set_default_device",
    get_default_device = "tide.get_default_device", get_device = "x.device", get_device_module = "tide.cuda",
    device = "its name, \"cpu\" or \"cuda:1\"", dtype = "x.dtype; ?dtype lists them", Tensor = "tide.tensor{...}", Size = "x.shape",
    is_cuda = "x.device", is_cpu = "x.device", is_meta = "x.device", layout = "x.is_sparse", memory_format = "the strings \"channels_last\" and its kin",
    legacy_contiguous_format = "\"contiguous_format\"", type = "x:type_as(y), x:to(dtype), x.dtype", typename = "x.dtype, tostring(x.dtype)",
    new = "x:new_empty(...)",
    adjoint = "x:transpose(-2, -1): there are no complex numbers", pi = "math.pi", e = "math.exp(1)",
    inf = "math.huge", nan = "0/0", numel = "x:numel()", ["Size.numel"] = "x:numel()", ["Size.count"] = "a loop over x.shape",
    ["Size.index"] = "a loop over x.shape", range = "tide.arange, which leaves its end out", is_nonzero = "x:item() ~= 0", rand_like_ = "x:uniform_()",
    clip_grad_norm = "tide.nn.utils.clip_grad_norm_", upsample_bilinear = "tide.nn.functional.interpolate(x, {mode = \"bilinear\", align_corners = true})",
    upsample_nearest = "tide.nn.functional.interpolate(x, {mode = \"nearest\"})", NLLLoss2d = "tide.nn.NLLLoss", conv_tbc = "tide.conv1d of x:permute(2, 3, 1)",
    multi_head_attention_forward = "tide.nn.MultiheadAttention, tide.nn.functional.scaled_dot_product_attention", linear_cross_entropy =
        "tide.nn.functional.cross_entropy(tide.nn.functional.linear(x, weight), target)", LinearCrossEntropyLoss = "tide.nn.Linear and tide.nn.CrossEntropyLoss",
    native_channel_shuffle = "tide.nn.functional.channel_shuffle", feature_dropout = "tide.nn.functional.dropout2d", ["nn.functional.grad"] = "tide.autograd.grad",
    ["nn.grad"] = "tide.autograd.grad", Buffer = "module:register_buffer(name, tensor)", functional_call = "module:load_state_dict, or your own function of the parameters",
    ["nn.utils.stateless"] = "module:load_state_dict, or your own function of the parameters", register_backward_hook = "register_full_backward_hook", dropout_ = "tide.nn.functional.dropout",
    SyncBatchNorm = "tide.nn.BatchNorm2d", Container = "tide.nn.ModuleDict", RNNBase = "tide.nn.RNN, tide.nn.LSTM, tide.nn.GRU", RNNCellBase = "tide.nn.RNNCell and its kin",
    ["nn.utils.init"] = "tide.nn.init", ["nn.utils.memory_format"] = "model:to({memory_format = \"channels_last\"})", convert_conv2d_weight_memory_format =
        "model:to({memory_format = \"channels_last\"})", convert_conv3d_weight_memory_format = "model:to({memory_format = \"channels_last_3d\"})",
    convert_parameters = "tide.nn.utils.parameters_to_vector", ["nn.utils.fusion"] = "tide.nn.utils.fuse_conv_bn_eval", fuse_conv_bn_weights = "tide.nn.utils.fuse_conv_bn_eval",
    fuse_linear_bn_weights = "tide.nn.utils.fuse_linear_bn_eval", skip_init = "tide.nn layers, which are made with their first values",
    set_submodule = "an assignment: model.part = module", get_extra_state = "register_buffer, which state_dict keeps", set_extra_state = "register_buffer, which state_dict keeps",
    ["optim.Optimizer"] = "tide.optim.class(\"Lion\", {lr = 1e-4}), a class of your own, and what tide.optim.SGD and its kin give", ["optim.lr_scheduler.LRScheduler"] = "what tide.optim.lr_scheduler.StepLR and its kin give",
    ["optim.lr_scheduler.LRScheduler.get_lr"] = "scheduler:get_last_lr()", ["optim.lr_scheduler.Optimizer"] = "what tide.optim.SGD and its kin give",
    ["optim.functional"] = "tide.optim",
    ["autograd.Variable"] = "a tensor: tide.tensor(data, {requires_grad = true})", Variable = "a tensor: tide.tensor(data, {requires_grad = true})",
    ["autograd.function"] = "tide.autograd.Function", ["autograd.anomaly_mode"] = "tide.autograd.detect_anomaly", save_on_cpu =
        "tide.autograd.graph.saved_tensors_hooks(function(x) return x:cpu() end, function(x) return x:to(device) end, fn)",
    allow_mutation_on_saved_tensors = "x:clone() of what is written", register_multi_grad_hook = "x:register_hook(fn) of each", get_gradient_edge = "x.grad_fn",
    ["autograd.graph.Node"] = "x.grad_fn", RemovableHandle = "what register_hook gives: hook:remove()", is_anomaly_enabled = "tide.autograd.is_anomaly_enabled",
    set_anomaly_enabled = "tide.autograd.set_detect_anomaly", is_anomaly_check_nan_enabled = "tide.autograd.is_anomaly_enabled", forward_ad = "tide.autograd.functional.jvp",
    ["func"] = "tide.autograd.functional", functional = "tide.nn.functional; tide.einsum and its kin in tide", grad_and_value = "tide.autograd.grad", jacrev = "tide.autograd.functional.jacobian",
    jacfwd = "tide.autograd.functional.jacobian", linearize = "tide.autograd.functional.jvp", ["func.hessian"] = "tide.autograd.functional.hessian",
    vmap = "the batch dim that operators have: tide.bmm, broadcasting", ["random"] = "tide.manual_seed, tide.get_rng_state", fork_rng = "tide.get_rng_state and tide.set_rng_state",
    ["random.seed"] = "tide.seed", initial_seed = "tide.initial_seed", default_generator = "tide.manual_seed, tide.get_rng_state", seed_all = "tide.seed", manual_seed_all = "tide.manual_seed",
    get_rng_state_all = "tide.get_rng_state", set_rng_state_all = "tide.set_rng_state", clone_state = "tide.Generator and its get_state, set_state", quasirandom = "tide.rand",
    ["serialization"] = "tide.save and tide.load", ["hub"] = "tide.load of a file", model_zoo = "tide.load of a file", map_location = "tide.load(path, {device = ...})",
    cholesky = "tide.linalg.cholesky", qr = "tide.linalg.qr", svd = "tide.linalg.svd", solve = "tide.linalg.solve", symeig = "tide.linalg.eigh", lstsq = "tide.linalg.lstsq",
    matrix_rank = "tide.linalg.matrix_rank", triangular_solve = "tide.linalg.solve_triangular", chain_multiply = "tide.linalg.multi_dot", nuclear_norm =
        "tide.linalg.norm(x, \"nuc\")", frobenius_norm = "tide.linalg.norm(x, \"fro\")", norm_except_dim = "tide.linalg.vector_norm", ["linalg.matmul"] = "tide.matmul", pdist = "tide.nn.functional.pdist",
    ["linalg.solve_ex"] = "tide.linalg.solve", LinAlgError = "an error that pcall catches", matrix_sqrth = "tide.linalg.eigh, with values:sqrt() between its vectors",
    ["linalg.polar"] = "tide.linalg.svd: U:matmul(Vh)", lobpcg = "tide.linalg.eigh", pca_lowrank = "tide.linalg.svd of x - x:mean(1)", svd_lowrank = "tide.linalg.svd",
    lu = "tide.linalg.solve, inv and det, which make it within", lu_factor = "tide.linalg.solve, inv and det, which make it within", lu_factor_ex = "tide.linalg.solve", lu_solve = "tide.linalg.solve",
    lu_unpack = "tide.linalg.solve", ldl_factor = "tide.linalg.cholesky or solve", ldl_factor_ex = "tide.linalg.cholesky or solve", ldl_solve = "tide.linalg.solve", householder_product = "tide.linalg.qr",
    orgqr = "tide.linalg.qr", ormqr = "tide.linalg.qr", geqrf = "tide.linalg.qr", histogram = "tide.histc, tide.bucketize", histogramdd = "tide.histc, tide.bucketize", unravel_index =
        "index // n and index % n", frexp = "x:abs():log2():floor()", ldexp_ = "tide.ldexp", gradient = "tide.diff", nonzero_static = "tide.nonzero", binomial = "tide.bernoulli, summed",
    segment_reduce = "tide.scatter_reduce, tide.index_add", cond = "an if", while_loop = "a loop: while ... do ... end", ["as_strided_scatter"] = "as_strided of a clone, written in place", apply_ =
        "an operator on the whole tensor, or tide.tensor of x:tolist()", map_ = "an operator on the whole tensors", map2_ = "an operator on the whole tensors",
    share_memory = "save and load", share_memory_ = "tide.save and tide.load", storage = "x:data_ptr(), x:storage_offset(), x.nbytes", untyped_storage = "x:data_ptr(), x.nbytes",
    retains_grad = "x:retain_grad()", name = "a Lua variable", volatile = "tide.no_grad", dim_order = "x:stride()", is_distributed = "false", is_shared = "false", is_inference = "x:is_inference()",
    is_signed = "tide.iinfo(x.dtype).min < 0", is_same_size = "tide.equal of shapes: tostring(x.shape) == tostring(y.shape)", is_set_to = "x:data_ptr() == y:data_ptr()", resize_ =
        "x:view, x:reshape, or tide.empty for more elements", resize_as_ = "tide.empty_like", resize = "x:reshape", resize_as = "x:reshape_as", set_ = "x.data:copy_(y)", record_stream = "nothing: Tide notes streams itself",
    reinforce = "tide.distributions and log_prob", index = "x[{...}]", to_sparse_coo = "x:to_sparse()", is_complex = "false: there are no complex numbers", is_conj = "false", is_neg = "false", real = "x itself", conj =
        "x itself: there are no complex numbers", conj_physical = "x itself", conj_physical_ = "x itself", resolve_conj = "x itself", resolve_neg = "x itself", const_data_ptr = "x:data_ptr()", module_load = "x:copy_(y)", alias_copy = "x:clone()",
    constant_pad_nd = "tide.nn.functional.pad", native_layer_norm = "tide.nn.functional.layer_norm", native_group_norm = "tide.nn.functional.group_norm", native_batch_norm = "tide.nn.functional.batch_norm", native_dropout =
        "tide.nn.functional.dropout", native_norm = "tide.linalg.norm", grid_sampler = "tide.nn.functional.grid_sample", grid_sampler_2d = "tide.nn.functional.grid_sample", grid_sampler_3d = "tide.nn.functional.grid_sample",
    affine_grid_generator = "tide.nn.functional.affine_grid", convolution = "tide.conv2d and its kin", embedding_renorm_ = "tide.nn.Embedding{..., max_norm = 1}", empty_permuted = "tide.empty(...):permute(...)",
    get_num_interop_threads = "tide.get_num_threads", set_num_interop_threads = "tide.set_num_threads", init_num_threads = "tide.set_num_threads", set_deterministic_debug_mode =
        "tide.use_deterministic_algorithms", get_deterministic_debug_mode = "tide.are_deterministic_algorithms_enabled", set_autocast_enabled = "tide.autocast", set_autocast_dtype = "tide.autocast(device, fn, {dtype = ...})",
    set_autocast_cache_enabled = "tide.autocast(device, fn, {cache = ...})", clear_autocast_cache = "the end of tide.autocast's region", is_autocast_available = "tide.is_autocast_enabled", get_autocast_cpu_dtype =
        "tide.get_autocast_dtype(\"cpu\")", get_autocast_gpu_dtype = "tide.get_autocast_dtype(\"cuda\")", is_autocast_cpu_enabled = "tide.is_autocast_enabled(\"cpu\")", set_autocast_cpu_enabled = "tide.autocast", set_autocast_cpu_dtype = "tide.autocast", set_autocast_gpu_dtype =
        "tide.autocast", autocast_increment_nesting = "tide.autocast", autocast_decrement_nesting = "tide.autocast", autocast_mode = "tide.autocast", grad_scaler = "tide.amp.GradScaler", set_warn_always = "warn(\"@on\")", is_warn_always_enabled = "warn(\"@on\")",
    sparse = "tide.sparse_coo_tensor, x:to_sparse()", spmm = "tide.mm of a sparse tensor", smm = "tide.mm of a sparse tensor", dsmm = "tide.mm of a sparse tensor", hsmm = "tide.mm of a sparse tensor", hspmm = "tide.mm of a sparse tensor",
    saddmm = "tide.addmm of a sparse tensor", sspaddmm = "tide.addmm of a sparse tensor", ["sparse.mm"] = "tide.mm of a sparse tensor", ["sparse.addmm"] = "tide.addmm of a sparse tensor", ["sparse.sum"] = "x:to_dense():sum()",
    ["sparse.softmax"] = "tide.softmax of x:to_dense()", ["sparse.log_softmax"] = "tide.log_softmax of x:to_dense()", OutOfMemoryError = "an error that pcall catches", AcceleratorError = "an error that pcall catches",
    accelerator = "tide.cuda", ["cuda.graphs"] = "tide.cuda.graph", CUDAGraph = "what tide.cuda.graph gives", make_graphed_callables = "tide.cuda.graph", StreamContext = "tide.cuda.stream", set_stream = "tide.cuda.stream", ExternalStream = "tide.cuda.Stream",
    max_memory_cached = "tide.cuda.memory_reserved", max_memory_reserved = "tide.cuda.memory_stats", memory_cached = "tide.cuda.memory_reserved", memory_snapshot = "tide.cuda.memory_stats", memory_stats_as_nested_dict = "tide.cuda.memory_stats",
    memory_usage = "tide.cuda.mem_get_info", device_memory_used = "tide.cuda.mem_get_info", reset_max_memory_allocated = "tide.cuda.reset_peak_memory_stats", reset_max_memory_cached = "tide.cuda.reset_peak_memory_stats",
    reset_accumulated_memory_stats = "tide.cuda.reset_peak_memory_stats", get_memory_info = "tide.cuda.mem_get_info", is_bf16_supported = "tide --info", is_initialized = "tide.cuda.is_available()", is_tf32_supported = "tide --info", set_sync_debug_mode =
        "tide.cuda.set_sync_warnings", get_sync_debug_mode = "tide.cuda.set_sync_warnings", get_arch_list = "tide.cuda.get_device_capability()", current_device_index = "tide.cuda.current_device", set_device_index = "tide.cuda.set_device", current_device_idx =
        "tide.cuda.current_device", set_device_idx = "tide.cuda.set_device", device_index = "tide.cuda.set_device", current_accelerator = "\"cuda\" where tide.cuda.is_available()", ["cuda.init"] = "the first use of the device", ["cuda.device"] = "tide.cuda.set_device",
    device_of = "x.device", ["cuda.nvtx.range"] = "tide.cuda.nvtx.range_push and range_pop", range_start = "tide.cuda.nvtx.range_push", range_end = "tide.cuda.nvtx.range_pop", ["backends.cuda.is_built"] = "tide --info", ["backends.cuda.sdp_kernel"] =
        "tide.nn.functional.scaled_dot_product_attention, which takes the quickest", is_available = "tide --info", ["types"] = "Lua's types: type(x), math.type(x)", Storage = "x:data_ptr()", assert_allclose = "tide.testing.assert_close",
    ["distributed.init_process_group"] = "tide.distributed.init()", ["distributed.destroy_process_group"] = "tide.distributed.shutdown()",
    ["distributed.get_rank"] = "tide.distributed.rank()", ["distributed.get_world_size"] = "tide.distributed.size()", ["distributed.get_node_local_rank"] =
        "tide.distributed.local_rank()", ["distributed.get_backend"] = "tide.distributed.backend()", ["distributed.monitored_barrier"] =
        "tide.distributed.barrier(), which says who is missing", ["distributed.ReduceOp"] = "a word: tide.distributed.all_reduce(x, \"sum\"), mean, max, min, product",
    ["distributed.all_gather_into_tensor"] = "tide.distributed.all_gather", ["distributed.reduce_scatter_tensor"] = "tide.distributed.reduce_scatter",
    ["distributed.all_to_all_single"] = "tide.distributed.all_to_all", ["distributed.fsdp"] = "tide.distributed.optim, which shards an optimizer's state",
    DistributedDataParallel = "tide.distributed.DistributedDataParallel", ["nn.parallel"] = "tide.distributed.DistributedDataParallel and tide.nn.DataParallel", ["nn.parallel.DataParallel"] = "tide.nn.DataParallel",
    ["ao.quantization"] = "tide.quantization", ["ao.nn.quantized"] = "tide.nn.quantized", ["ao.nn.qat"] = "tide.nn.qat", ["ao.nn"] = "tide.nn.quantized and tide.nn.qat",
    ["ao"] = "tide.quantization, tide.nn.quantized and tide.nn.qat", get_default_qat_qconfig = "tide.quantization.prepare_qat(model), which knows its own",
    prepare_fx = "tide.quantization.prepare(model, {qconfig = mapping})", prepare_qat_fx = "tide.quantization.prepare_qat(model, {qconfig = mapping})",
    convert_fx = "tide.quantization.convert(model)", fuse_fx = "tide.quantization.fuse_modules(model)",
    fake_quantize_per_tensor_affine = "tide.quantization.fake_quantize_per_tensor_affine",
    fake_quantize_per_channel_affine = "tide.quantization.fake_quantize_per_channel_affine", default_qconfig = "tide.quantization.get_default_qconfig()",
    quantize_per_tensor_dynamic = "tide.quantization.quantize_dynamic of a model, or tide.quantize_per_tensor with a scale of x:aminmax()",
    ["hub.load"] = "tide.hub.package(name):load(file), of a package with weights; networks are in notebooks/networks and notebooks/models",
    models = "a file of notebooks/networks or notebooks/models; weights come by tide.hub.package(name)", vision = "tide.data, tide.data.transforms and tide.io",
    torchvision = "tide.data, tide.data.transforms and tide.io", torchaudio = "tide.io.read_audio, tide.display.audio",
    ["onnx.dynamo_export"] = "tide.onnx.export",
    ["distributed.isend"] = "tide.distributed.send(x, dst, {async = true})", ["distributed.irecv"] = "tide.distributed.recv(x, src, {async = true})",
    ["distributed.reduce"] = "tide.distributed.all_reduce", make_tensor = "tide.rand, tide.randn, tide.randint", ["nn.parallel.data_parallel"] = "tide.nn.DataParallel(model)(x)", ["Optimizer"] = "what tide.optim.SGD and its kin give", ["masked"] = "x[mask], tide.where, x:masked_fill(mask, value)",
    masked_tensor = "x[mask], tide.where", flop_counter = "tide.profiler.profile{fn, with_flops = true}", ["utils.hooks"] = "x:register_hook, module:register_forward_hook", ["utils.deterministic"] = "tide.use_deterministic_algorithms", FlopCounterMode =
        "tide.profiler.profile{fn, with_flops = true}", ["library"] = "tide.autograd.Function", custom_op = "tide.autograd.Function", ["cuda.graph"] = "tide.cuda.graph", ["utils.data"] = "tide.data", ["utils.data.dataloader"] = "tide.data", ["utils.data.dataset"] = "tide.data", ["utils.data.sampler"] = "tide.data", ["utils.data.distributed"] = "tide.data",
    DataLoader = "tide.data.DataLoader", Dataset = "any table with get(self, i) and len(self): tide.data.DataLoader(dataset)", IterableDataset = "any table with iter(self), which gives a function: tide.data.DataLoader(dataset)",
    Sampler = "any table with iter(self) and len(self): option sampler of tide.data.DataLoader", get_worker_info = "not needed: of an iterable dataset each element comes once, whatever the number of workers",
    default_convert = "tide.tensor", collate_fn = "option collate of tide.data.DataLoader", tqdm = "tide.progress", ["distributions.kl"] = "tide.distributions.kl_divergence", max_pool1d_with_indices =
        "tide.nn.functional.max_pool1d(x, size, {return_indices = true})", is_storage = "tide.is_tensor", narrow_copy = "x:narrow(...):clone()", is_scripting = "false", is_compiling = "false", is_tracing = "false", CallgrindStats = "what timer:collect_callgrind() gives",
    Language = "Lua", ["utils.benchmark.timer"] = "tide.time", Measurement = "what timer:timeit() gives", TaskSpec = "the options of tide.benchmark.Timer", autorange = "timer:blocked_autorange()", typed_storage = "x:data_ptr()",
    GradScaler = "tide.amp.GradScaler", adaptive_max_pool1d_with_indices = "tide.nn.functional.adaptive_max_pool1d(x, size, {return_indices = true})",
    adaptive_max_pool2d_with_indices = "tide.nn.functional.adaptive_max_pool2d(x, size, {return_indices = true})", adaptive_max_pool3d_with_indices =
        "tide.nn.functional.adaptive_max_pool3d(x, size, {return_indices = true})", fractional_max_pool2d_with_indices =
        "tide.nn.functional.fractional_max_pool2d(x, size, {return_indices = true})", fractional_max_pool3d_with_indices =
        "tide.nn.functional.fractional_max_pool3d(x, size, {return_indices = true})", max_pool2d_with_indices = "tide.nn.functional.max_pool2d(x, size, {return_indices = true})",
    max_pool3d_with_indices = "tide.nn.functional.max_pool3d(x, size, {return_indices = true})", _foreach_clone = "a loop of x:clone()", _foreach_max = "a loop of x:max()",
    _foreach_mm = "tide.bmm of tide.stack(list)", _foreach_powsum = "tide.foreach.norm",
    constant = "tide.nn.init.constant_", dirac = "tide.nn.init.dirac_", eye_ = "tide.nn.init.eye_", kaiming_normal = "tide.nn.init.kaiming_normal_", kaiming_uniform = "tide.nn.init.kaiming_uniform_", ["nn.init.normal"] = "tide.nn.init.normal_", ["nn.init.eye"] =
        "tide.nn.init.eye_", orthogonal = "tide.nn.init.orthogonal_", ["nn.init.sparse"] = "tide.nn.init.sparse_", ["nn.init.uniform"] = "tide.nn.init.uniform_", xavier_normal = "tide.nn.init.xavier_normal_", xavier_uniform = "tide.nn.init.xavier_uniform_",
}

-- PyTorch's name of an option, or "function.option", = Tide's, where a function has one of that name, or a sentence.
local OPTIONS = {
    learning_rate = "lr", group_by = "group_by_shape = true",
    with_modules = "with_stack", size_average = "reduction", reduce = "reduction",
    activities = "not needed: the CPU and the device are recorded alike", use_cuda = "not needed: the CPU and the device are recorded alike",
    group_by_stack_n = "with_stack of profile, and p:export_stacks(path)", weights_only = "not needed: a file can't run code",
    inplace = "not there: of an operator the form with _ behind its name writes in place, of a model a copy is returned",
    opset_version = "not there: 18 is written, which is said in the file", dynamic_axes = "dynamic", dynamic_shapes = "dynamic",
    export_params = "not needed: a model has its weights", do_constant_folding = "not needed: what is known is worked out once",
    keep_initializers_as_inputs = "not there: weights are no inputs",
    foreach = "not needed: a step is one kernel over all parameters", fused = "not needed: a step is one kernel over all parameters",
    capturable = "not needed: tide.cuda.graph records steps as they are",
    generator = "seed",
    only_inputs = "not needed: gradients go to the inputs alone", vectorize = "not needed: the result is the same",
    ["compile.fullgraph"] = "not there: f:why() says at which lines what had gathered ran before the end", ["compile.dynamic"] =
        "not needed: each size that comes has its graph, as Lua runs each time", ["compile.mode"] =
        "not there: it is measured whether calls are faster gathered", ["compile.backend"] = "not there: there is one compiler, the engine's own",
    with_kwargs = "not needed: a table of options is among the hook's args", always_call = "not there: pcall(model, x) sees that a call failed",
    multiprocessing_context = "not needed: workers are threads with a Lua state each",
}

-- What Tide has not: what there is instead, and names or patterns of paths (`*` stands for anything).
local ABSENT = {
    { "there are no complex numbers and no Fourier transforms; the nearest are tide.conv1d and pairs of real tensors", [[fft fft.* stft istft *complex*
        Tensor.imag imag angle polar real cdouble cfloat chalf bcomplex32 Complex* eig eigvals view_as_real* view_as_complex* Tensor.angle has_spectral]] },
    { "models of ONNX are read and run by tide.onnx.load, and written by tide.onnx.export", [[onnx onnx.*]] },
    { "a scripted function is kept by f:save(path), and read by tide.jit.load(path)", [[jit.save jit.ScriptFunction.save jit.ScriptModule.save]] },
    { "functions become graphs by tide.jit: trace, script, save and load", [[jit jit.* compiler compiler.* export export.* fx fx.*
        *Script* TracingState fork wait futures futures.* Future import_ir_module* parse_ir parse_schema parse_type_comment classes ops CompilationUnit LiteScriptModule
        merge_type_from_type_comment unify_type_list package package.* ExecutionPlan Graph GraphExecutorState FileCheck ThroughputBenchmark throughput_benchmark StaticModule freeze AliasDb Block Code Node Use
        Gradient ArgumentSpec CompleteArgumentSpec CallStack ErrorReport FunctionSchema Argument IODescriptor JITException OperatorInfo Capsule ConcreteModuleType* DeepCopyMemoTable *StorageContext
        LockingLogger LoggerBase NoopLogger AggregationType AVG SUM BenchmarkConfig BenchmarkExecutionStats PyTorchFile* BufferDict torch.ModuleDict torch.ParameterDict nn.Module.compile nn.Module.call_super_init
        nn.Module.dump_patches nn.Module.T_destination torch.Type *Type Value Tag DispatchKey* *DispatchKeyGuard DisableTorchFunction* Sym* sym_* library.* nn.factory_kwargs utils.mobile_optimizer* FatalError
        *traceable* *opaque* CuspyConfig]] },
    { "what there is of quantization is tide.quantize_per_tensor, quantize_per_channel, x:dequantize() and tide.quantization: observers, QConfigMapping, quantize_dynamic, fuse_modules, prepare, prepare_qat, convert, plan; layers are tide.nn.quantized's and tide.nn.qat's", [[*quant* quint* qint* QInt* QUInt* q_* qscheme per_tensor* per_channel* nn.qat nn.intrinsic int_repr fbgemm_* QuantStub *FakeQuant*
        dequantize *qat* *Observer* *observer* *QConfig* quantization.* nn.quantizable ao fake_quantize* fused_moving_avg* choose_qparams*]] },
    { "tide.distributed has jobs of several processes on MPI and NCCL, and of PyTorch's names what it needs; a device's tensors go by x:to(device)", [[distributed.* nn.parallel nn.parallel.* DataParallel RRefType multiprocessing multiprocessing.* cuda.comm cuda.comm.* cuda.nccl nccl monitor
        prepare_multiprocessing_environment AwaitType *Rank* ipc_collect]] },
    { "that device is not one of Tide's: \"cpu\" and \"cuda\" are", [[mps mps.* xpu xpu.* mtia mtia.* Tensor.ipu Tensor.xpu Tensor.mtia nn.Module.ipu nn.Module.xpu nn.Module.mtia *is_xpu is_*mtia is_mps is_ipu is_xla is_maia is_vulkan* *vulkan*
        backends.mps* backends.mha miopen* cudnn_* mkldnn_* *_ipu_* *_xla_* *privateuse1* backends.miopen backends.nnpack backends.kleidiai backends.quantized backends.cusparselt backends.python_native accelerator.* backend_registration
        is_mkldnn to_mkldnn]] },
    { "dtypes are float16, bfloat16, float32, float64, int8 to int64, uint8 and bool", [[float8_* float4_* uint16 uint32 uint64 uint1 uint2 uint3 uint4 uint5 uint6 uint7 int1 int2 int3 int4 int5 int6 int7 bit bits* *.DType]] },
    { "a tensor of a dtype is made by tide.tensor(data, {dtype = tide.float64}) or x:to(tide.float64)", [[*Tensor torch.*Tensor cuda.*Tensor sparse.*Tensor]] },
    { "a tensor shows no storage; the nearest are x:data_ptr(), x:storage_offset(), x.nbytes and tide.save", [[*Storage *Storage* storage.* storage_type is_storage]] },
    { "sparse tensors are COO: tide.sparse_coo_tensor, x:to_sparse(), x:to_dense()", [[sparse_* *sparse_csr* *sparse_csc* *sparse_bsr* *sparse_bsc* *sparse_compressed* ccol_indices* crow_indices* col_indices* row_indices* sparse.* *sparse_*
        *ampled_addmm]] },
    { "rows of unequal lengths are lists of tensors, or padded: tide.nn.utils.rnn.pad_sequence", [[nested nested.* jagged is_nested to_padded_tensor]] },
    { "layers that wait for their first input are tide.nn.LazyLinear and its kin", [[Uninitialized* *Uninitialized* nn.parameter.is_lazy *LazyModuleMixin]] },
    { "prunings of one tensor are applied one after the other: each takes of what is left", [[nn.utils.prune.PruningContainer]] },
    { "hooks of states are your own functions around state_dict and load_state_dict", [[register_*state_dict*hook]] },
    { "hooks of steps are each optimizer's: opt:register_step_pre_hook(fn), opt:register_step_post_hook(fn)", [[register_*step*hook Optimizer*Hook profile_hook_step]] },
    { "gradients run backward; forward mode is tide.autograd.functional.jvp", [[autograd.forward_ad* func.* vmap]] },
    { "special has no function of that family; the nearest are tide.special.i0, i1, i0e and i1e, and polynomials by a recurrence of your own", [[special.* airy_ai *bessel*]] },
    { "kernels are Tide's choice; what can be said is tide.use_deterministic_algorithms, tide.set_num_threads and tide.autocast", [[backends backends.* cuda.tunable nn.attention.* *blas* *solver_handle *_matmul_precision scaled_mm scaled_addmm scaled_addmm_
        scaled_grouped_mm grouped_mm ScalingType SwizzleType batch_norm_* compiled_with* has_openmp has_mkl has_lapack has_half has_magma jiterator *green_contexts GreenContext swap_in_optimizer* get_swap_module_params*]] },
    { "memory is cached by itself; the nearest are tide.cuda.empty_cache, memory_stats and mem_get_info", [[*MemPool* *mem_pool* caching_allocator_* *luggableAllocator *_allocator *allocator_backend *host_memory_stats* empty_host_cache *memory_fraction
        cuda.memory.* *peak_host_memory_stats *accumulated_host*]] },
    { "of a device there are tide.cuda.get_device_name, get_device_properties and mem_get_info", [[cuda.* cuda.random.* cuda.profiler.* cpu cpu.* Stream Event torch.Event]] },
    { "that distribution is not there; tide.distributions has normal, categorical, bernoulli, uniform, beta, gamma, dirichlet, multivariate normal and their kin", [[distributions.*]] },
    { "datasets are any tables with get(self, i) and len(self), or with iter(self): tide.data.map, filter and DataLoader take them (?loops)", [[utils.data.*]] },
    { "profiles are tide.profiler.profile{...}, p:table(), p:events(), p:export_chrome_trace(path)", [[profiler.* autograd.profiler.* autograd.profiler_* kineto_available Profiler* autograd.Profiler* profiler_* Kineto*]] },
    { "measuring is tide.benchmark.Timer, Compare and Fuzzer", [[utils.benchmark.* benchmark.*]] },
    { "what is saved again is worked out by tide.utils.checkpoint(fn, ...)", [[utils.checkpoint.* SavedTensor]] },
    { "nothing is fetched: tide.hub.package(name):load(file) reads weights of a package that is installed, tide.load(path) a file", [[hub.*]] },
    { "files are read by tide.load and written by tide.save: safetensors, NumPy's, Lua's values", [[serialization.* *dlpack* utils.model_zoo.* get_file_path]] },
    { "extensions are written in Lua: tide.autograd.Function, nn.class", [[utils.cpp_extension* overrides overrides.* handle_torch_function has_torch_function* is_tensor_like utils.backcompat utils.hooks.* utils.weak cpp_backtrace get_cpp_backtrace cpp
        utils.generate_methods* TorchDispatchMode as_subclass swap_tensors set_module utils.deterministic.*]] },
    { "flops are counted by tide.profiler.profile{fn, with_flops = true}", [[utils.flop_counter.*]] },
    { "what a build stands on tide --info says", [[utils.collect_env.* version.* cuda.is_built]] },
    { "windows are tide.hann_window, hamming_window, blackman_window, bartlett_window and kaiser_window", [[signal.windows.*]] },
    { "what is masked is x[mask], tide.where(mask, x, 0) and x:masked_fill(mask, value)", [[masked.*]] },
    { "there are gradients by tide.autograd.grad, y:backward() and x:register_hook", [[autograd.graph.* autograd.* autograd.functional.* *multithreading_enabled *view_replay* *grad_layout_policy]] },
    { "random numbers come from tide.manual_seed, tide.get_rng_state and tide.Generator(device)", [[random.* Generator.* *generator]] },
    { "settings of warnings are Lua's: warn(\"@on\"), warn(\"@off\")", [[*warn_only_enabled]] },
    { "a copy of a view is x:NAME(...):clone()", [[*_copy]] },
    { "parts are made by x:split, x:chunk and x:unbind", [[unsafe_* split_with_sizes*]] },
    { "it is one of PyTorch's inner parts; ?tide lists what there is", [[nn.common_types nn.modules.* nn.parameter.* *Mixin nn.functional.assert_int_or_pair boolean_dispatch BroadcastingList* nn.utils.rnn.* nn.utils.parametrize.* nn.utils.parametrizations.*
        nn.utils.stateless.* swa_utils.* optim.swa_utils.* types.* testing.* return_types classproperty hash_tensor grad_dtype output_nr int_repr rename_* slice_inverse LinearCrossEntropyOptions profiler_allow* torch vitals_enabled Tensor.trace
        is_deterministic* sys os warnings contextmanager utils.tensorboard.* T]] },
}

-- ---- finding an answer ----

local function find(path)
    local value = tide
    for name in string.gmatch(path, "[^.]+") do
        value = type(value) == "table" and rawget(value, name) or nil
    end
    return value
end

-- Is the path one of tide's functions, classes and modules? Modules are loaded for it.
local function is_here(path)
    local room = string.match(path, "^[%w_]+")
    for _, name in ipairs(tide._lazy) do
        if name == room and rawget(tide, name) == nil then
            local _ = tide[name]
        end
    end
    return find(path) ~= nil
end

local patterns

-- Each as a pattern of Lua's; `room`: it stands for whatever a room has, most of which Tide may have too.
local function compile()
    patterns = {}
    for _, row in ipairs(ABSENT) do
        for word in string.gmatch(row[2], "%S+") do
            local pattern = string.gsub(string.gsub(word, "%.", "%%."), "%*", ".*")
            patterns[#patterns + 1] = { text = row[1], pattern = "^" .. pattern .. "$", bare = not string.find(word, "%."),
                room = string.find(word, "^[%w_.]+%.%*$") ~= nil }
        end
    end
end

local function find_absent(path, name, room)
    if not patterns then
        compile()
    end
    for _, row in ipairs(patterns) do
        if row.room == room and (string.find(path, row.pattern) or row.bare and string.find(name, row.pattern)) then
            return "not in Tide: " .. row.text
        end
    end
end

-- Tide's own name for PyTorch's, such as "utils.benchmark" or "Tensor.numpy"; or nil.
local function find_elsewhere(path, name, room)
    local list = string.match(name, "^_foreach_(.*)$")
    local owner = room and ELSEWHERE[room]
    local stem = string.match(name, "^(.*[^_])_$")
    if ELSEWHERE[path] then
        return ELSEWHERE[path]
    elseif list and is_here("foreach." .. list) then
        return "tide.foreach." .. list
    elseif owner and string.find(owner, "^tide%.[%w_.]+$") and is_here(string.sub(owner, 6) .. "." .. name) then
        return owner .. "." .. name
    elseif ELSEWHERE[name] then
        return ELSEWHERE[name]
    elseif stem and rawget(tide._methods, name) then
        return string.format("the method, which writes in place: x:%s()", name)
    elseif not room and rawget(tide._methods, name) then
        return string.format("the method: x:%s()", name)
    end
end

local function parts(path)
    path = string.gsub(path, "^torch%.", "")
    return path, string.match(path, "[^.]+$"), string.match(path, "^(.*)%.")
end

-- named(path), absent(path), elsewhere(path): what is said of a name of PyTorch's, or nil: of one that
-- Tide calls otherwise; of one that it has not; of any in a room of which it has but some.
function pytorch.named(path)
    local name, room
    path, name, room = parts(path)
    if room == "plot" then
        return tide._require("plot.matplotlib").name(name)
    end
    local written = name and (WRITTEN[path] or WRITTEN[name])
    if written then
        return "write " .. written
    end
    local found = name and find_elsewhere(path, name, room)
    if not found and not room and (name == "imshow" or name == "imsave") then
        return tide._require("plot.matplotlib").name(name)
    end
    return found and string.format("PyTorch's %s is %s", path, found)
end

function pytorch.absent(path)
    local name
    path, name = parts(path)
    return name and find_absent(path, name, false)
end

function pytorch.elsewhere(path)
    local name
    path, name = parts(path)
    return name and find_absent(path, name, true)
end

-- text(path): whichever of these there is.
function pytorch.text(path)
    return pytorch.named(path) or pytorch.absent(path) or pytorch.elsewhere(path)
end

-- option(name): what PyTorch's option is in Tide, or nil.
function pytorch.option(name)
    return OPTIONS[name]
end

return pytorch
