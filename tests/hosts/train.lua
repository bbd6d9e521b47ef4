-- train.lua: what a program that isn't ours does with `require "tide"`: a network is trained, in which products go to
-- OpenBLAS and oneDNN, images are convolved and a matrix is decomposed. Ends with an error where any of it fails.
local tide = require "tide"
local nn = tide.nn

tide.manual_seed(1)
local x = tide.ones(100, 100)
assert(x:matmul(x)[1][1]:item() == 100)
assert(tide.ones(100, 100, { dtype = tide.float64 }):matmul(tide.ones(100, 100, { dtype = tide.float64 })):sum():item()
    == 1e6)

local model = nn.Sequential(nn.Conv2d(1, 4, 3, { padding = 1 }), nn.ReLU(), nn.Flatten(), nn.Linear(256, 64), nn.Tanh(),
    nn.Linear(64, 1))
local optimizer = tide.optim.Adam(model:parameters(), { lr = 0.01 })
local images = tide.randn(32, 1, 8, 8)
local targets = images:mean({ 2, 3, 4 }):unsqueeze(2)
local first, last
for _ = 1, 60 do
    optimizer:zero_grad()
    local loss = nn.functional.mse_loss(model(images), targets)
    loss:backward()
    optimizer:step()
    first, last = first or loss:item(), loss:item()
end
assert(last < first / 4, ("the loss went from %g to %g"):format(first, last))

local U, S, Vh = tide.linalg.svd(tide.randn(40, 40), false)
assert((U * S):matmul(Vh):isfinite():all():item())
local ok, why = pcall(tide.linalg.inv, tide.zeros(3, 3))
assert(not ok and why:find("singular"), why)
print("trained")
