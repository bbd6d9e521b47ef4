-- dqn.lua: a network learns to balance a pole on a cart by trying (deep Q-learning with a second, slower network).
--
--     tide notebooks/networks/dqn.lua [episodes]
--
-- «Human-level control through deep reinforcement learning», Mnih and others, 2015; the cart is that of Barto, Sutton and
-- Anderson, 1983, as CartPole-v1 has it: 12 degrees, 2.4 metres, 500 steps at most.
local tide = require "tide"
local nn, F = tide.nn, tide.nn.functional

-- ---- the cart ----

local Cart = {}
Cart.__index = Cart

--- reset(): the state {place, speed, angle, turning} at the beginning, all near 0.
function Cart:reset()
    self.state, self.steps = ((tide.rand(4, { generator = self.draw }) - 0.5) * 0.1):tolist(), 0
    return self.state
end

--- step(action): the state after a push to the left (1) or the right (2), and whether the pole fell, and whether time is up.
function Cart:step(action)
    local x, speed, angle, turning = table.unpack(self.state)
    local force, cosine, sine = action == 2 and 10 or -10, math.cos(angle), math.sin(angle)
    local push = (force + 0.05 * turning ^ 2 * sine) / 1.1
    local angular = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine ^ 2 / 1.1))
    local linear = push - 0.05 * angular * cosine / 1.1
    self.state = { x + 0.02 * speed, speed + 0.02 * linear, angle + 0.02 * turning, turning + 0.02 * angular }
    self.steps = self.steps + 1
    local fell = math.abs(self.state[1]) > 2.4 or math.abs(self.state[3]) > 12 * math.pi / 180
    return self.state, fell, self.steps >= 500
end

local dqn = {}

--- cart(seed): a cart whose beginnings are drawn from a seed.
function dqn.cart(seed)
    return setmetatable({ draw = tide.Generator():manual_seed(seed) }, Cart)
end

-- ---- what was lived through, in rings of tensors ----

local Memory = {}
Memory.__index = Memory

local function memory_of(size)
    return setmetatable({ size = size, n = 0, at = 0, before = tide.zeros(size, 4), after = tide.zeros(size, 4),
        action = tide.ones(size, 1, { dtype = tide.int64 }), fell = tide.zeros(size) }, Memory)
end

function Memory:add(before, action, after, fell)
    self.at = self.at % self.size + 1
    self.n = math.max(self.n, self.at)
    self.before[self.at], self.after[self.at] = before, after
    self.action[self.at], self.fell[self.at] = action, fell and 1 or 0
end

-- ---- learning ----

--- network(): the worth of both actions (n, 2), of states (n, 4).
function dqn.network()
    return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
end

-- Every step is worth 1, and what follows 0.99 of what it is worth.
local function loss_of(net, slow, memory, rows)
    local guess = net(memory.before[rows]):gather(2, memory.action[rows]):squeeze(2)
    local worth = tide.no_grad(function() return slow(memory.after[rows]):amax(2) * (1 - memory.fell[rows]) * 0.99 + 1 end)
    return F.smooth_l1_loss(guess, worth)
end

--- train{episodes, seed, told}: a network, and how many steps the pole stood in each episode; told(episode, steps) is called.
function dqn.train(options)
    local seed = options.seed or 0
    tide.manual_seed(seed)
    local cart, memory, net, slow = dqn.cart(seed), memory_of(10000), dqn.network(), dqn.network()
    slow:load_state_dict(net:state_dict())
    local optimizer = tide.optim.Adam(net:parameters(), { lr = 1e-3 })
    local draw = { generator = tide.Generator():manual_seed(seed + 1) }
    local lengths, all = {}, 0
    for episode = 1, options.episodes do
        local state, fell, over = cart:reset(), false, false
        repeat
            all = all + 1
            local action
            if tide.rand(1, draw):item() < math.max(0.02, 1 - all / 2000) then
                action = tide.randint(1, 3, { 1 }, draw):item()
            else
                action = tide.no_grad(function() return net(tide.tensor { state }):argmax(2):item() end)
            end
            local after
            after, fell, over = cart:step(action)
            memory:add(tide.tensor(state), action, tide.tensor(after), fell)
            state = after
            if memory.n >= 128 then
                optimizer:zero_grad()
                loss_of(net, slow, memory, tide.randint(1, memory.n + 1, { 64 }, draw)):backward()
                optimizer:step()
            end
            if all % 200 == 0 then
                slow:load_state_dict(net:state_dict())
            end
        until fell or over
        lengths[episode] = cart.steps
        if options.told then
            options.told(episode, cart.steps)
        end
    end
    return net, lengths
end

if arg and arg[0] and arg[0]:find "dqn%.lua$" then
    dqn.train { episodes = tonumber(arg[1] or 150), told = function(episode, steps)
        if episode % 10 == 0 then
            print(("episode %d: %d steps"):format(episode, steps))
        end
    end }
end

return dqn
