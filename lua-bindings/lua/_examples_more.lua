-- _examples_more.lua: examples of distributions, averages of models, event files; their format is that of _examples.lua.
return [[
## distributions.Bernoulli
> tide.distributions.Bernoulli(0.25):log_prob(1)
-1.386294  float32 () cpu

## distributions.Beta
> tide.distributions.Beta(2, 3).mean
0.4  float32 () cpu

## distributions.Categorical
> d = tide.distributions.Categorical({0.1, 0.2, 0.7})
> d:log_prob(3)
-0.3566749  float32 () cpu
> d:sample(4).shape
(4)

## distributions.Dirichlet
> tide.distributions.Dirichlet({1, 2, 3}):rsample():sum():round()
1  float32 () cpu

## distributions.Exponential
> tide.distributions.Exponential(2):cdf(1)
0.8646647  float32 () cpu

## distributions.Gamma
> tide.distributions.Gamma(2, 4).mean
0.5  float32 () cpu

## distributions.Independent
> base = tide.distributions.Normal(tide.zeros(4, 3), 1)
> tide.distributions.Independent(base, 1):log_prob(tide.zeros(4, 3)).shape
(4)

## distributions.Laplace
> tide.distributions.Laplace(0, 1):entropy()
1.693147  float32 () cpu

## distributions.LogNormal
> tide.distributions.LogNormal(0, 1):icdf(0.5)
1  float32 () cpu

## distributions.MultivariateNormal
> d = tide.distributions.MultivariateNormal({0, 0}, {{2, 0.5}, {0.5, 1}})
> d:rsample(10).shape
(10, 2)
> d:log_prob({0, 0})
-2.117685  float32 () cpu

## distributions.Normal
> loc = tide.tensor(1.0, {requires_grad = true})
> d = tide.distributions.Normal(loc, 2)
> d:log_prob(3):item()
-2.1120858192444
> d:rsample():backward()
> loc.grad
1  float32 () cpu

## distributions.Poisson
> tide.distributions.Poisson(3):log_prob(2)
-1.495923  float32 () cpu

## distributions.Uniform
> tide.distributions.Uniform(0, 4):log_prob({1, 5})
[-1.3863,    -inf]
float32 (2) cpu

## distributions.kl_divergence
> tide.distributions.kl_divergence(tide.distributions.Normal(0, 1), tide.distributions.Normal(1, 1))
0.5  float32 () cpu

## optim.lr_scheduler.SWALR
> opt = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1})
> rates = tide.optim.lr_scheduler.SWALR(opt, 0.05, {anneal_epochs = 2})
> for epoch = 1, 2 do opt:step(); rates:step() end
> rates:get_last_lr()
{0.05}

## optim.swa_utils.AveragedModel
> model = tide.nn.Linear(1, 1)
> average = tide.optim.swa_utils.AveragedModel(model)
> for _, v in ipairs{1, 3} do model.weight.data:fill_(v); average:update_parameters(model) end
> average.module.weight:item()
2.0

## optim.swa_utils.get_ema_avg_fn
> model = tide.nn.Linear(1, 1)
> average = tide.optim.swa_utils.AveragedModel(model, {avg_fn = tide.optim.swa_utils.get_ema_avg_fn(0.5)})
> for _, v in ipairs{1, 3} do model.weight.data:fill_(v); average:update_parameters(model) end
> average.module.weight:item()
2.0

## optim.swa_utils.get_ema_multi_avg_fn
> list = {tide.zeros(1)}
> tide.optim.swa_utils.get_ema_multi_avg_fn(0.75)(list, {tide.ones(1)})
> list[1]:item()
0.25

## optim.swa_utils.get_swa_avg_fn
> tide.optim.swa_utils.get_swa_avg_fn()(tide.tensor(1.0), tide.tensor(4.0), 2)
2  float32 () cpu

## optim.swa_utils.get_swa_multi_avg_fn
> list = {tide.ones(1)}
> tide.optim.swa_utils.get_swa_multi_avg_fn()(list, {tide.full({1}, 4)}, 2)
> list[1]:item()
2.0

## optim.swa_utils.update_bn
> model = tide.nn.Sequential(tide.nn.BatchNorm1d(1))
> tide.optim.swa_utils.update_bn({tide.full({4, 1}, 2.0), tide.full({4, 1}, 4.0)}, model)
> model[1].running_mean:item()
3.0

## utils.tensorboard.SummaryWriter
> writer = tide.utils.tensorboard.SummaryWriter("runs/first")
> for step = 1, 10 do writer:add_scalar("loss/train", 1 / step, step) end
> writer:add_histogram("weights", tide.randn(100), 10)
> writer:close()
]]
