-- _examples_base.lua: examples of modes, files, autograd, profiler, what belongs to tide itself; _examples.lua says how they stand here.
return [==[
## amp.autocast
> a = tide.ones(2, 2)
> tide.autocast("cpu", function() return tide.mm(a, a) end).dtype
tide.bfloat16

## amp.custom_bwd
> Double = tide.autograd.Function("Double", {forward = tide.amp.custom_fwd(function(ctx, x) return x * 2 end), backward = tide.amp.custom_bwd(function(ctx, g) return g * 2 end)})
> x = tide.ones(1, {requires_grad = true})
> Double(x):backward()
> x.grad
[2.]
float32 (1) cpu

## amp.custom_fwd
> Double = tide.autograd.Function("Double", {forward = tide.amp.custom_fwd(function(ctx, x) return x * 2 end, {cast_inputs = tide.float32}), backward = tide.amp.custom_bwd(function(ctx, g) return g * 2 end)})
> tide.autocast("cpu", function() return Double(tide.ones(1)) end).dtype
tide.float32

## amp.GradScaler
> scaler = tide.amp.GradScaler{init_scale = 8}
> scaler:scale(tide.tensor(0.5))
4  float32 () cpu

## are_deterministic_algorithms_enabled
> tide.are_deterministic_algorithms_enabled()
false

## as_tensor
> tide.as_tensor({1, 2.5})
[1.0000, 2.5000]
float32 (2) cpu

## autograd.backward
> x = tide.tensor{1.0, 2}:requires_grad_()
> tide.autograd.backward((x * x):sum())
> x.grad
[2., 4.]
float32 (2) cpu

## autograd.detect_anomaly
> x = tide.tensor{0.0}:requires_grad_()
> ok, problem = pcall(tide.autograd.detect_anomaly, function() (x:sqrt() * 0):sum():backward() end)
> ok
false
> tostring(problem):find("nan", 1, true) ~= nil
true

## autograd.Function
> Double = tide.autograd.Function("Double", {forward = function(ctx, x) return x * 2 end, backward = function(ctx, g) return g * 2 end})
> x = tide.ones(2, {requires_grad = true})
> Double(x):sum():backward()
> x.grad
[2., 2.]
float32 (2) cpu

## autograd.functional.hessian
> tide.autograd.functional.hessian(function(x) return (x ^ 3):sum() end, tide.tensor{1.0, 2})
[[ 6.,  0.],
 [ 0., 12.]]
float32 (2, 2) cpu

## autograd.functional.hvp
> f = function(x) return (x ^ 3):sum() end
> y, hv = tide.autograd.functional.hvp(f, tide.tensor{1.0, 2}, tide.tensor{1.0, 0})
> hv
[6., 0.]
float32 (2) cpu

## autograd.functional.jacobian
> tide.autograd.functional.jacobian(function(x) return x ^ 2 end, tide.tensor{1.0, 2})
[[2., 0.],
 [0., 4.]]
float32 (2, 2) cpu

## autograd.functional.jvp
> y, jv = tide.autograd.functional.jvp(function(x) return x ^ 2 end, tide.tensor{1.0, 2}, tide.tensor{1.0, 1})
> jv
[2., 4.]
float32 (2) cpu

## autograd.functional.vhp
> f = function(x) return (x ^ 3):sum() end
> y, vh = tide.autograd.functional.vhp(f, tide.tensor{1.0, 2}, tide.tensor{1.0, 0})
> vh
[6., 0.]
float32 (2) cpu

## autograd.functional.vjp
> y, vj = tide.autograd.functional.vjp(function(x) return x ^ 2 end, tide.tensor{1.0, 2}, tide.tensor{1.0, 1})
> vj
[2., 4.]
float32 (2) cpu

## autograd.grad
> x = tide.tensor{1.0, 2}:requires_grad_()
> tide.autograd.grad((x ^ 3):sum(), x)[1]
[ 3., 12.]
float32 (2) cpu

## autograd.gradcheck
> x = tide.randn(3, {dtype = tide.float64, requires_grad = true})
> tide.autograd.gradcheck(tide.tanh, x)
true

## autograd.gradgradcheck
> x = tide.randn(3, {dtype = tide.float64, requires_grad = true})
> tide.autograd.gradgradcheck(tide.tanh, x)
true

## autograd.graph.saved_tensors_hooks
> x = tide.ones(2, {requires_grad = true})
> half = function(t) return t:half() end
> back = function(t) return t:float() end
> y = tide.autograd.graph.saved_tensors_hooks(half, back, function() return x:exp() end)
> y:sum():backward()
> x.grad
[2.7188, 2.7188]
float32 (2) cpu

## autograd.is_anomaly_enabled
> tide.autograd.is_anomaly_enabled()
false

## autograd.once_differentiable
> back = tide.autograd.once_differentiable(function(ctx, g) return g * 2 end)
> Double = tide.autograd.Function("Double", {forward = function(ctx, x) return x * 2 end, backward = back})
> x = tide.ones(1, {requires_grad = true})
> Double(x):backward()
> x.grad
[2.]
float32 (1) cpu

## autograd.set_detect_anomaly
> tide.autograd.set_detect_anomaly(true);
> tide.autograd.is_anomaly_enabled()
true
> tide.autograd.set_detect_anomaly(false);

## benchmark.Compare
> m = tide.benchmark.measurement({0.001, 0.002}, {label = "mine", sub_label = "sum", description = "ones"})
> tostring(tide.benchmark.Compare{m}):find("mine", 1, true) ~= nil
true

## benchmark.measurement
> m = tide.benchmark.measurement({0.001, 0.002, 0.003}, {label = "mine"})
> m.median
0.002

## benchmark.merge
> a = tide.benchmark.measurement({0.001}, {label = "mine"})
> b = tide.benchmark.measurement({0.003}, {label = "mine"})
> #tide.benchmark.merge{a, b}
1

## benchmark.Timer
> x = tide.ones(100)
> m = tide.benchmark.Timer{fn = function() return x:sum() end}:timeit(10)
> m.median > 0
true

## breakpoint
> function loss(x) if x.requires_grad then tide.breakpoint() end return x:sum() end
> loss(tide.tensor{1, 2})
3  int64 () cpu

## broadcast_shapes
> tide.broadcast_shapes({2, 1}, {3})
(2, 3)

## can_cast
> tide.can_cast(tide.float32, tide.int32)
false

## clear_output
> tide.clear_output()

## empty_cache
> tide.empty_cache()

## enable_grad
> x = tide.ones(2, {requires_grad = true})
> tide.no_grad(function() return tide.enable_grad(tide.sum, x) end).requires_grad
true

## finfo
> tide.finfo(tide.float16).max
65504.0

## Generator
> g = tide.Generator(7)
> tide.randint(1, 7, {5}, {generator = g})
[6, 5, 1, 1, 3]
int64 (5) cpu

## get_autocast_dtype
> tide.get_autocast_dtype("cpu")
tide.bfloat16

## get_default_device
> tide.get_default_device()
"cpu"

## get_default_dtype
> tide.get_default_dtype()
tide.float32

## get_float32_matmul_precision
> tide.get_float32_matmul_precision()
"highest"

## get_num_threads
> tide.get_num_threads() >= 1
true

## get_rng_state
> state = tide.get_rng_state()
> a = tide.rand(2)
> tide.set_rng_state(state)
> tide.rand(2):equal(a)
true

## iinfo
> tide.iinfo(tide.int8).max
127

## inference_mode
> model = tide.nn.Linear(2, 1)
> y = tide.inference_mode(function() return model(tide.ones(1, 2)) end)
> y.requires_grad
false

## initial_seed
> tide.manual_seed(7)
> tide.initial_seed()
7

## input
> name = tide.input{prompt = "name? "}

## interact
> tide.interact(function(lr) return lr * 2 end, {lr = {0.01, 1}})
interact: controls need a notebook; called once with lr = 0.505
1.01

## io.load_npy
> path = os.tmpname() .. ".npy"
> tide.io.save_npy(tide.tensor{1.5, 2}, path)
> tide.io.load_npy(path)
[1.5000, 2.0000]
float32 (2) cpu

## io.load_npz
> path = os.tmpname() .. ".npz"
> tide.io.save_npz({x = tide.eye(2), y = tide.tensor{1, 2}}, path)
> tide.io.load_npz(path).y
[1, 2]
int64 (2) cpu

## io.read_csv
> path = os.tmpname()
> f = io.open(path, "w") f:write("area,kind\n50,flat\n80,house\n65,flat\n") f:close();
> x, data = tide.io.read_csv(path, {header = true, classes = {"kind"}})
> x
[[50.,  1.],
 [80.,  2.],
 [65.,  1.]]
float32 (3, 2) cpu
> data.columns.kind
[1, 2, 1]
int64 (3) cpu
> data.classes.kind
{"flat", "house"}

## io.save_npy
> path = os.tmpname() .. ".npy"
> tide.io.save_npy(tide.eye(2), path)
> tide.load(path)
[[1., 0.],
 [0., 1.]]
float32 (2, 2) cpu

## io.save_npz
> path = os.tmpname() .. ".npz"
> tide.io.save_npz({weight = tide.ones(2), steps = tide.tensor(3)}, path)
> tide.load(path).weight
[1., 1.]
float32 (2) cpu

## io.write_csv
> path = os.tmpname()
> tide.io.write_csv(tide.tensor{{1, 0.5}, {2, 0.25}}, path, {header = {"step", "loss"}})
> io.open(path):read("a")
"step,loss\n1,0.5\n2,0.25\n"

## is_autocast_cache_enabled
> tide.is_autocast_cache_enabled()
true

## is_autocast_enabled
> tide.is_autocast_enabled()
false

## is_floating_point
> tide.is_floating_point(tide.tensor{1, 2})
false

## is_grad_enabled
> tide.is_grad_enabled()
true

## is_inference_mode_enabled
> tide.is_inference_mode_enabled()
false

## is_tensor
> tide.is_tensor(tide.tensor{1}), tide.is_tensor(1)
true
false

## linalg.cond
> tide.linalg.cond(tide.tensor{{2.0, 0}, {0, 4}})
2  float32 () cpu

## linalg.lstsq
> A, B = tide.tensor{{1.0, 1}, {1, 2}, {1, 3}}, tide.tensor{{1.0}, {2}, {3}}
> solution = tide.linalg.lstsq(A, B)
> solution:round{decimals = 3}
[[0.],
 [1.]]
float32 (2, 1) cpu

## linalg.matrix_norm
> tide.linalg.matrix_norm(tide.tensor{{3.0, 0}, {0, 4}})
5  float32 () cpu

## linalg.norm
> tide.linalg.norm(tide.tensor{3.0, 4})
5  float32 () cpu

## linalg.tensorinv
> tide.linalg.tensorinv(tide.eye(6):reshape(2, 3, 6), 2).shape
(6, 2, 3)

## linalg.tensorsolve
> tide.linalg.tensorsolve(tide.eye(6):reshape(2, 3, 6), tide.ones(2, 3)).shape
(6)

## linalg.vector_norm
> tide.linalg.vector_norm(tide.tensor{3.0, -4}, math.huge)
4  float32 () cpu

## load
> path = os.tmpname()
> tide.save({w = tide.ones(2), step = 7}, path)
> tide.load(path).step
7

## magic.register
> tide.magic.register("twice", function(text) print(text .. text) end)

## manual_seed
> tide.manual_seed(1)
> a = tide.rand(3)
> tide.manual_seed(1)
> tide.rand(3):equal(a)
true

## memory_allocated
> before = tide.memory_allocated()
> x = tide.zeros(1000, 1000)
> tide.memory_allocated() - before
4194304

## memory_stats
> tide.memory_stats().allocated >= 0
true

## no_grad
> x = tide.ones(2, {requires_grad = true})
> tide.no_grad(function() return x * 2 end).requires_grad
false

## profiler.load
> path = os.tmpname()
> p = tide.profiler.profile(function() return tide.ones(8):sum() end)
> p:export_chrome_trace(path)
> tide.profiler.load(path):table():find("sum", 1, true) ~= nil
true

## profiler.peak
> tide.profiler.peak() ~= nil
true

## profiler.profile
> p = tide.profiler.profile(function() return tide.randn(64, 64):matmul(tide.randn(64, 64)) end)
> #p:table() > 0
true

## profiler.record
> p = tide.profiler.profile(function() tide.profiler.record("my part", function() return tide.ones(8):sum() end) end)
> p:table():find("my part", 1, true) ~= nil
true

## profiler.schedule
> tide.profiler.schedule{wait = 1, warmup = 1, active = 3}(0)
"none"

## profiler.step
> tide.profiler.step()

## progress
> bar = tide.progress(2, "training")
> for batch = 1, 2 do bar:step("loss 0.5") end

## promote_types
> tide.promote_types(tide.int32, tide.float16)
tide.float16

## reset_peak_memory_stats
> tide.reset_peak_memory_stats()

## result_type
> tide.result_type(tide.tensor{1}, 2.5)
tide.float32

## save
> model = tide.nn.Linear(2, 1)
> path = os.tmpname()
> tide.save({model = model:state_dict(), epoch = 3}, path)
> model:load_state_dict(tide.load(path).model);
> tide.load(path).epoch
3

## seed
> tide.seed() >= 0
true

## print
> tide.print({1, 2, name = "x"}, tide.int8)
{1, 2, name = "x"}	tide.int8

## set_default_device
> tide.set_default_device("meta", function() return tide.nn.Linear(1000, 1000).weight end)
...
float32 (1000, 1000) meta requires_grad

## set_default_dtype
> tide.set_default_dtype(tide.float64)
> tide.tensor{0.5}
[0.5000]
float64 (1) cpu
> tide.set_default_dtype(tide.float32)

## set_float32_matmul_precision
> tide.set_float32_matmul_precision("high")
> tide.backends.cuda.matmul.allow_tf32
true
> tide.set_float32_matmul_precision("highest")

## set_flush_denormal
> x = tide.tensor{1e-40, 1}
> tide.set_flush_denormal(true)
true
> (x * 0.5):count_nonzero():item()
1
> tide.set_flush_denormal(false);

## set_grad_enabled
> x = tide.ones(2, {requires_grad = true})
> tide.set_grad_enabled(false, function() return x * 2 end).requires_grad
false

## set_next_input
> tide.set_next_input("model:eval()")

## set_num_threads
> n = tide.get_num_threads()
> tide.set_num_threads(1)
> tide.get_num_threads()
1
> tide.set_num_threads(n)

## set_printoptions
> tide.set_printoptions{precision = 2}
> tide.tensor{1/3}
[0.33]
float32 (1) cpu
> tide.set_printoptions("default")

## set_rng_state
> state = tide.get_rng_state()
> a = tide.randn(2)
> tide.set_rng_state(state)
> tide.randn(2):equal(a)
true

## sleep
> tide.sleep(0.01)

## synchronize
> tide.synchronize()

## tensor
> tide.tensor{{1, 2}, {3, 4}}
[[1, 2],
 [3, 4]]
int64 (2, 2) cpu
> tide.tensor({1, 2}, {dtype = tide.float32, requires_grad = true})
[1., 2.]
float32 (2) cpu requires_grad

## time
> before = tide.time()
> tide.time() >= before
true

## use_deterministic_algorithms
> tide.use_deterministic_algorithms(true)
> tide.are_deterministic_algorithms_enabled()
true
> tide.use_deterministic_algorithms(false)

## utils.checkpoint
> x = tide.ones(2, {requires_grad = true})
> y = tide.utils.checkpoint(function(x) return (x * 3):exp() end, x)
> y:sum():backward()
> x.grad
[60.2566, 60.2566]
float32 (2) cpu
]==]
