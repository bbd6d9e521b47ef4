-- _examples_objects.lua: examples of methods of modules, optimizers, schedules, scalers and generators; _examples.lua says
-- how they stand here.
return [==[
## Generator.get_state
> g = tide.Generator(7)
> state = g:get_state()
> a = tide.rand(2, {generator = g})
> g:set_state(state);
> tide.rand(2, {generator = g}):equal(a)
true

## Generator.initial_seed
> tide.Generator(7):initial_seed()
7

## Generator.manual_seed
> g = tide.Generator()
> g:manual_seed(7);
> g:initial_seed()
7

## Generator.seed
> tide.Generator():seed() >= 0
true

## Generator.set_state
> a, b = tide.Generator(7), tide.Generator(8)
> b:set_state(a:get_state());
> tide.rand(2, {generator = a}):equal(tide.rand(2, {generator = b}))
true

## GradScaler.get_backoff_factor
> tide.amp.GradScaler():get_backoff_factor()
0.5

## GradScaler.get_growth_factor
> tide.amp.GradScaler():get_growth_factor()
2

## GradScaler.get_growth_interval
> tide.amp.GradScaler():get_growth_interval()
2000

## GradScaler.get_scale
> tide.amp.GradScaler{init_scale = 8}:get_scale()
8.0

## GradScaler.is_enabled
> tide.amp.GradScaler{enabled = false}:is_enabled()
false

## GradScaler.load_state_dict
> a, b = tide.amp.GradScaler{init_scale = 8}, tide.amp.GradScaler()
> b:load_state_dict(a:state_dict())
> b:get_scale()
8.0

## GradScaler.scale
> tide.amp.GradScaler{init_scale = 8}:scale(tide.tensor(0.5))
4  float32 () cpu

## GradScaler.set_backoff_factor
> scaler = tide.amp.GradScaler()
> scaler:set_backoff_factor(0.25)
> scaler:get_backoff_factor()
0.25

## GradScaler.set_growth_factor
> scaler = tide.amp.GradScaler()
> scaler:set_growth_factor(3)
> scaler:get_growth_factor()
3

## GradScaler.set_growth_interval
> scaler = tide.amp.GradScaler()
> scaler:set_growth_interval(100)
> scaler:get_growth_interval()
100

## GradScaler.state_dict
> tide.amp.GradScaler{init_scale = 8}:state_dict().scale
8.0

## GradScaler.step
> w = tide.tensor{1.0}:requires_grad_()
> opt, scaler = tide.optim.SGD({w}, {lr = 0.5}), tide.amp.GradScaler()
> scaler:scale((w * w):sum()):backward()
> scaler:step(opt)
> scaler:update()
> w.data
[0.]
float32 (1) cpu

## GradScaler.unscale_
> w = tide.tensor{1.0}:requires_grad_()
> opt, scaler = tide.optim.SGD({w}), tide.amp.GradScaler()
> scaler:scale((w * w):sum()):backward()
> scaler:unscale_(opt)
> w.grad
[2.]
float32 (1) cpu

## GradScaler.update
> w = tide.tensor{1.0}:requires_grad_()
> opt, scaler = tide.optim.SGD({w}), tide.amp.GradScaler{init_scale = 8}
> scaler:scale(w * (1/0)):backward()
> scaler:step(opt)
> scaler:update()
> scaler:get_scale()
4.0

## Module.add_module
> model = tide.nn.Sequential()
> model:add_module("first", tide.nn.ReLU())
> model
Sequential(
  (first): ReLU()
)

## Module.apply
> model = tide.nn.Sequential(tide.nn.Linear(2, 2))
> model:apply(function(m) if m.bias then tide.nn.init.zeros_(m.bias) end end);
> model[1].bias
[0., 0.]
float32 (2) cpu requires_grad

## Module.bfloat16
> tide.nn.Linear(2, 1):bfloat16().weight.dtype
tide.bfloat16

## Module.buffers
> #tide.nn.BatchNorm1d(3):buffers()
3

## Module.children
> #tide.nn.Sequential(tide.nn.Linear(2, 2), tide.nn.ReLU()):children()
2

## Module.clone
> model = tide.nn.Linear(2, 1)
> copy = model:clone()
> tide.nn.init.zeros_(copy.weight);
> model.weight:equal(copy.weight)
false

## Module.cpu
> tide.nn.Linear(2, 1):cpu().weight.device
"cpu"

## Module.double
> tide.nn.Linear(2, 1):double().weight.dtype
tide.float64

## Module.eval
> layer = tide.nn.Dropout(0.5)
> layer:eval()(tide.tensor{1.0, 2})
[1., 2.]
float32 (2) cpu

## Module.float
> tide.nn.Linear(2, 1):half():float().weight.dtype
tide.float32

## Module.get_buffer
> tide.nn.BatchNorm1d(2):get_buffer("running_var")
[1., 1.]
float32 (2) cpu

## Module.get_parameter
> model = tide.nn.Sequential(tide.nn.Linear(2, 3))
> model:get_parameter("1.bias").shape
(3)

## Module.get_submodule
> model = tide.nn.Sequential(tide.nn.Linear(2, 3))
> model:get_submodule("1")
Linear(in_features=2, out_features=3, bias=true)

## Module.half
> tide.nn.Linear(2, 1):half().weight.dtype
tide.float16

## Module.load_state_dict
> a, b = tide.nn.Linear(2, 1), tide.nn.Linear(2, 1)
> b:load_state_dict(a:state_dict());
> a.weight:equal(b.weight)
true

## Module.modules
> #tide.nn.Sequential(tide.nn.Linear(2, 2), tide.nn.ReLU()):modules()
3

## Module.named_buffers
> for name, b in tide.nn.BatchNorm1d(3):named_buffers() do print(name, b.shape) end
running_mean	(3)
running_var	(3)
num_batches_tracked	()

## Module.named_children
> for name, m in tide.nn.Sequential(tide.nn.ReLU()):named_children() do print(name, m) end
1	ReLU()

## Module.named_modules
> for name, m in tide.nn.Sequential(tide.nn.ReLU()):named_modules() do print(name == "" and "itself" or name) end
itself
1

## Module.named_parameters
> for name, p in tide.nn.Linear(2, 3):named_parameters() do print(name, p.shape) end
weight	(3, 2)
bias	(3)

## Module.parameters
> #tide.nn.Linear(2, 3):parameters()
2

## Module.register_buffer
> layer = tide.nn.Identity()
> layer:register_buffer("steps", tide.zeros(1))
> #layer:buffers()
1

## Module.register_forward_hook
> layer = tide.nn.ReLU()
> hook = layer:register_forward_hook(function(m, inputs, output) print(output.shape) end)
> layer(tide.tensor{-1.0, 2})
(2)
[0., 2.]
float32 (2) cpu

## Module.register_forward_pre_hook
> layer = tide.nn.ReLU()
> hook = layer:register_forward_pre_hook(function(m, inputs) print("called") end)
> layer(tide.tensor{-1.0, 2})
called
[0., 2.]
float32 (2) cpu

## Module.register_full_backward_hook
> layer = tide.nn.Linear(2, 1)
> hook = layer:register_full_backward_hook(function(m, grad_in, grad_out) print(grad_out[1]) end)
> layer(tide.ones(1, 2, {requires_grad = true})):sum():backward()
[[1.]]
float32 (1, 1) cpu

## Module.register_full_backward_pre_hook
> layer = tide.nn.Linear(2, 1)
> hook = layer:register_full_backward_pre_hook(function(m, grad_out) print(grad_out[1]) end)
> layer(tide.ones(1, 2, {requires_grad = true})):sum():backward()
[[1.]]
float32 (1, 1) cpu

## Module.register_module
> model = tide.nn.Sequential()
> model:register_module("first", tide.nn.ReLU())
> model
Sequential(
  (first): ReLU()
)

## Module.register_parameter
> layer = tide.nn.Identity()
> layer:register_parameter("scale", tide.nn.Parameter(tide.ones(2)))
> #layer:parameters()
1

## Module.requires_grad_
> model = tide.nn.Linear(2, 1):requires_grad_(false)
> model.weight.requires_grad
false

## Module.state_dict
> tide.nn.BatchNorm1d(1):state_dict().running_mean
[0.]
float32 (1) cpu

## Module.summary
> print(tide.nn.Sequential(tide.nn.Linear(2, 3), tide.nn.ReLU()):summary(tide.ones(1, 2)))
Module         Output shape  Parameters  Output memory
------------------------------------------------------
Sequential     (1, 3)                 -              -
  (1): Linear  (1, 3)                 9           12 B
  (2): ReLU    (1, 3)                 -           12 B
------------------------------------------------------
Parameters: 9 (9 to learn), 36 B; buffers: 0 B
Outputs of all layers: 24 B

## Module.to
> tide.nn.Linear(2, 1):to(tide.float64).weight.dtype
tide.float64

## Module.train
> layer = tide.nn.Dropout(0.5):eval()
> layer:train().training
true

## Module.zero_grad
> model = tide.nn.Linear(2, 1)
> model(tide.ones(1, 2)):sum():backward()
> model:zero_grad()
> model.weight.grad == nil
true

## Optimizer.add_param_group
> a, b = tide.ones(1, {requires_grad = true}), tide.ones(1, {requires_grad = true})
> opt = tide.optim.SGD({a}, {lr = 0.1})
> opt:add_param_group{params = {b}, lr = 0.01}
> opt.param_groups[2].lr
0.01

## Optimizer.load_state_dict
> w = tide.tensor{1.0}:requires_grad_()
> opt, old = tide.optim.Adam({w}), tide.optim.Adam({w}, {lr = 0.5})
> opt:load_state_dict(old:state_dict())
> opt.param_groups[1].lr
0.5

## Optimizer.state_dict
> w = tide.tensor{1.0}:requires_grad_()
> opt = tide.optim.Adam({w}, {lr = 0.1})
> opt:state_dict().param_groups[1].lr
0.1

## Optimizer.step
> w = tide.tensor{1.0}:requires_grad_()
> opt = tide.optim.SGD({w}, {lr = 0.5})
> (w * w):sum():backward()
> opt:step()
> w.data
[0.]
float32 (1) cpu

## Optimizer.zero_grad
> w = tide.tensor{1.0}:requires_grad_()
> opt = tide.optim.SGD({w})
> (w * w):sum():backward()
> opt:zero_grad()
> w.grad == nil
true

## Scheduler.get_last_lr
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.StepLR(opt, 1, 0.5)
> sch:get_last_lr()
{1}

## Scheduler.load_state_dict
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> a, b = tide.optim.lr_scheduler.StepLR(opt, 1), tide.optim.lr_scheduler.StepLR(opt, 1)
> opt:step() a:step()
> b:load_state_dict(a:state_dict())
> b:state_dict().last_epoch
1

## Scheduler.state_dict
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.StepLR(opt, 1)
> sch:state_dict().last_epoch
0

## Scheduler.step
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.StepLR(opt, 1, 0.5)
> opt:step() sch:step()
> opt.param_groups[1].lr
0.5

## Tensor.bfloat16
> tide.tensor{1, 2}:bfloat16()
[1., 2.]
bfloat16 (2) cpu

## Tensor.bool
> tide.tensor{0, 2}:bool()
[false,  true]
bool (2) cpu

## Tensor.byte
> tide.tensor{1.5, 2}:byte()
[1, 2]
uint8 (2) cpu

## Tensor.char
> tide.tensor{1.5, -2}:char()
[ 1, -2]
int8 (2) cpu

## Tensor.double
> tide.tensor{1, 2}:double()
[1., 2.]
float64 (2) cpu

## Tensor.float
> tide.tensor{1, 2}:float()
[1., 2.]
float32 (2) cpu

## Tensor.half
> tide.tensor{1, 2}:half()
[1., 2.]
float16 (2) cpu

## Tensor.int
> tide.tensor{1.5, -2}:int()
[ 1, -2]
int32 (2) cpu

## Tensor.long
> tide.tensor{1.5, -2}:long()
[ 1, -2]
int64 (2) cpu

## Tensor.short
> tide.tensor{1.5, -2}:short()
[ 1, -2]
int16 (2) cpu
]==]
