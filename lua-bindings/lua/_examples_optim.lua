-- _examples_optim.lua: examples of optimizers and schedules; _examples.lua says how they stand here.
return [==[
## optim.Adadelta
> w = tide.tensor{1.0, -2}:requires_grad_()
> opt = tide.optim.Adadelta({w}, {lr = 1})
> (w * w):sum():backward()
> opt:step()
> w:detach()
[ 0.9968, -1.9968]
float32 (2) cpu

## optim.Adagrad
> w = tide.tensor{1.0, -2}:requires_grad_()
> opt = tide.optim.Adagrad({w}, {lr = 0.1})
> (w * w):sum():backward()
> opt:step()
> w:detach()
[ 0.9000, -1.9000]
float32 (2) cpu

## optim.Adam
> w = tide.tensor{1.0, -2}:requires_grad_()
> opt = tide.optim.Adam({w}, {lr = 0.1})
> (w * w):sum():backward()
> opt:step()
> w:detach()
[ 0.9000, -1.9000]
float32 (2) cpu

## optim.Adamax
> w = tide.tensor{1.0, -2}:requires_grad_()
> opt = tide.optim.Adamax({w}, {lr = 0.1})
> (w * w):sum():backward()
> opt:step()
> w:detach()
[ 0.9000, -1.9000]
float32 (2) cpu

## optim.AdamW
> w = tide.tensor{1.0, -2}:requires_grad_()
> opt = tide.optim.AdamW({w}, {lr = 0.1, weight_decay = 0.01})
> (w * w):sum():backward()
> opt:step()
> w:detach()
[ 0.8990, -1.8980]
float32 (2) cpu

## optim.LBFGS
> w = tide.tensor{1.0, -2}:requires_grad_()
> opt = tide.optim.LBFGS({w}, {line_search_fn = "strong_wolfe"})
> closure = function() opt:zero_grad() local loss = ((w - 3) ^ 2):sum() loss:backward() return loss end
> opt:step(closure)
29  float32 () cpu grad_fn=<SumBackward>
> w:detach():round{decimals = 3}
[3., 3.]
float32 (2) cpu

## optim.lr_scheduler.ChainedScheduler
> R = tide.optim.lr_scheduler
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = R.ChainedScheduler{R.ConstantLR(opt, {factor = 0.5}), R.ExponentialLR(opt, {gamma = 0.5})}
> opt:step() sch:step()
> opt.param_groups[1].lr
0.25

## optim.lr_scheduler.ConstantLR
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.ConstantLR(opt, {factor = 0.5, total_iters = 4})
> for epoch = 1, 2 do opt:step() sch:step() end
> opt.param_groups[1].lr
0.5

## optim.lr_scheduler.CosineAnnealingLR
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.CosineAnnealingLR(opt, {T_max = 4})
> for epoch = 1, 2 do opt:step() sch:step() end
> opt.param_groups[1].lr
0.5

## optim.lr_scheduler.CosineAnnealingWarmRestarts
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, {T_0 = 4})
> for epoch = 1, 2 do opt:step() sch:step() end
> opt.param_groups[1].lr
0.5

## optim.lr_scheduler.CyclicLR
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.CyclicLR(opt, {base_lr = {0.1}, max_lr = {1}, step_size_up = 4})
> for epoch = 1, 2 do opt:step() sch:step() end
> opt.param_groups[1].lr
0.55

## optim.lr_scheduler.ExponentialLR
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.ExponentialLR(opt, {gamma = 0.5})
> for epoch = 1, 2 do opt:step() sch:step() end
> opt.param_groups[1].lr
0.25

## optim.lr_scheduler.LambdaLR
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.LambdaLR(opt, {lr_lambda = function(epoch) return 0.9 ^ epoch end})
> for epoch = 1, 2 do opt:step() sch:step() end
> opt.param_groups[1].lr
0.81

## optim.lr_scheduler.LinearLR
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.LinearLR(opt, {start_factor = 0.5, total_iters = 4})
> for epoch = 1, 2 do opt:step() sch:step() end
> opt.param_groups[1].lr
0.75

## optim.lr_scheduler.MultiplicativeLR
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.MultiplicativeLR(opt, {lr_lambda = function(epoch) return 0.5 end})
> for epoch = 1, 2 do opt:step() sch:step() end
> opt.param_groups[1].lr
0.25

## optim.lr_scheduler.MultiStepLR
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.MultiStepLR(opt, {milestones = {1, 2}, gamma = 0.1})
> for epoch = 1, 2 do opt:step() sch:step() end
> opt.param_groups[1].lr
0.01

## optim.lr_scheduler.OneCycleLR
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.OneCycleLR(opt, {max_lr = {1}, total_steps = 10})
> for epoch = 1, 2 do opt:step() sch:step() end
> opt.param_groups[1].lr
1.0

## optim.lr_scheduler.PolynomialLR
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.PolynomialLR(opt, {total_iters = 4, power = 2})
> for epoch = 1, 2 do opt:step() sch:step() end
> opt.param_groups[1].lr
0.25

## optim.lr_scheduler.ReduceLROnPlateau
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.ReduceLROnPlateau(opt, {patience = 1})
> for _, loss in ipairs{3, 3, 3} do sch:step(loss) end
> opt.param_groups[1].lr
0.1

## optim.lr_scheduler.SequentialLR
> R = tide.optim.lr_scheduler
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = R.SequentialLR(opt, {R.ConstantLR(opt, {factor = 0.5}), R.ExponentialLR(opt, {gamma = 0.1})}, {milestones = {2}})
> for epoch = 1, 3 do opt:step() sch:step() end
> opt.param_groups[1].lr
0.1

## optim.lr_scheduler.StepLR
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> sch = tide.optim.lr_scheduler.StepLR(opt, {step_size = 1, gamma = 0.5})
> for epoch = 1, 2 do opt:step() sch:step() end
> opt.param_groups[1].lr
0.25

## optim.NAdam
> w = tide.tensor{1.0, -2}:requires_grad_()
> opt = tide.optim.NAdam({w}, {lr = 0.1})
> (w * w):sum():backward()
> opt:step()
> w:detach()
[ 0.8944, -1.8944]
float32 (2) cpu

## optim.RAdam
> w = tide.tensor{1.0, -2}:requires_grad_()
> opt = tide.optim.RAdam({w}, {lr = 0.1})
> (w * w):sum():backward()
> opt:step()
> w:detach()
[ 0.8000, -1.6000]
float32 (2) cpu

## optim.RMSprop
> w = tide.tensor{1.0, -2}:requires_grad_()
> opt = tide.optim.RMSprop({w}, {lr = 0.1})
> (w * w):sum():backward()
> opt:step()
> w:detach()
[ 5.9605e-08, -1.0000e+00]
float32 (2) cpu

## optim.Rprop
> w = tide.tensor{1.0, -2}:requires_grad_()
> opt = tide.optim.Rprop({w}, {lr = 0.1})
> (w * w):sum():backward()
> opt:step()
> w:detach()
[ 0.9000, -1.9000]
float32 (2) cpu

## optim.SGD
> w = tide.tensor{1.0, -2}:requires_grad_()
> opt = tide.optim.SGD({w}, {lr = 0.1, momentum = 0.9})
> (w * w):sum():backward()
> opt:step()
> w:detach()
[ 0.8000, -1.6000]
float32 (2) cpu

## optim.SparseAdam
> table_of_3 = tide.nn.Embedding(3, 2, {sparse = true})
> opt = tide.optim.SparseAdam(table_of_3:parameters(), {lr = 0.1})
> table_of_3(tide.tensor{2}):sum():backward()
> opt:step()
> table_of_3.weight.grad.is_sparse
true
]==]
