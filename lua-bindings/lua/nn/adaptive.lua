-- nn/adaptive.lua: nn.AdaptiveLogSoftmaxWithLoss: a softmax over many classes, of which the frequent ones come
-- first: these are told apart at once, the others within clusters, by matrices the smaller the rarer they are.
local tide = ...
local fail, declare, layer = tide._fail, tide._function, tide._require("nn.layer").layer

local NAME = "AdaptiveLogSoftmaxWithLoss"

local function check_cutoffs(cutoffs, classes)
    local before = 0
    for k, cutoff in ipairs(cutoffs) do
        if math.type(cutoff) ~= "integer" or cutoff <= before or cutoff >= classes then
            fail("%s: cutoff %d: integers that rise from 1 to below n_classes (%d) expected, got %s", NAME, k, classes,
                tide._describe(cutoff))
        end
        before = cutoff
    end
    if #cutoffs == 0 then
        fail("%s: at least one cutoff expected", NAME)
    end
end

local function make(self, nn)
    local cutoffs = table.move(self.cutoffs, 1, #self.cutoffs, 1, {})
    check_cutoffs(cutoffs, self.n_classes)
    cutoffs[#cutoffs + 1] = self.n_classes
    rawset(self, "cutoffs", cutoffs)
    rawset(self, "shortlist_size", cutoffs[1])
    rawset(self, "n_clusters", #cutoffs - 1)
    self.head = nn.Linear(self.in_features, cutoffs[1] + self.n_clusters, self.head_bias)
    local tail = {}
    for k = 1, self.n_clusters do
        local hidden = math.floor(self.in_features // self.div_value ^ k)
        if hidden < 1 then
            fail("%s: cluster %d would have no features left: in_features %d is too few for div_value %s", NAME, k,
                self.in_features, tide._number(self.div_value))
        end
        tail[k] = nn.Sequential(nn.Linear(self.in_features, hidden, false),
            nn.Linear(hidden, cutoffs[k + 1] - cutoffs[k], false))
    end
    self.tail = nn.ModuleList(tail)
end

local function check_input(self, what, input, target)
    if input:dim() > 2 or input:dim() < 1 or input:size(-1) ~= self.in_features then
        fail("%s: %s: an input of shape (N, %d) or (%d) expected, got %s", NAME, what, self.in_features,
            self.in_features, tostring(input.shape))
    elseif target and (target:dim() ~= input:dim() - 1 or target:dim() == 1 and target:size(1) ~= input:size(1)) then
        fail("%s: %s: a target for each line of the input expected, got shapes %s and %s", NAME, what,
            tostring(target.shape), tostring(input.shape))
    end
end

local function rows_where(mask) return mask:nonzero():squeeze(2) end

local function check_classes(self, target)
    local wrong = rows_where(target:lt(1):logical_or(target:gt(self.n_classes)))
    if wrong:numel() > 0 then
        fail("%s: classes from 1 to %d expected, got %d", NAME, self.n_classes, target[wrong[1]:item()]:item())
    end
end

-- Log probability of each line's target, and minus their mean.
local function forward(self, input, target)
    check_input(self, "forward", input, target)
    if input:dim() == 1 then
        local output, loss = forward(self, input:unsqueeze(1), target:unsqueeze(1))
        return output:squeeze(1), loss
    end
    check_classes(self, target)
    local place, within = target:clone(), nil
    for k = 1, self.n_clusters do
        local low, high = self.cutoffs[k], self.cutoffs[k + 1]
        local rows = rows_where(target:gt(low):logical_and(target:le(high)))
        if rows:numel() > 0 then
            local scores = self.tail[k](input:index_select(1, rows)):log_softmax(2)
            local picked = scores:gather(2, (target:index_select(1, rows) - low):unsqueeze(2)):squeeze(2)
            within = (within or tide.zeros(target.shape, { dtype = picked.dtype, device = picked.device }))
                :index_add(1, rows, picked)
            place:index_fill_(1, rows, self.cutoffs[1] + k)
        end
    end
    local output = self.head(input):log_softmax(2):gather(2, place:unsqueeze(2)):squeeze(2)
    output = within and output + within or output
    return output, -output:mean()
end

local function log_prob(self, input)
    local head = self.head(input):log_softmax(-1)
    local parts = { head:narrow(-1, 1, self.shortlist_size) }
    for k = 1, self.n_clusters do
        parts[k + 1] = self.tail[k](input):log_softmax(-1) + head:narrow(-1, self.shortlist_size + k, 1)
    end
    return tide.cat(parts, -1)
end

-- The cluster that a line most likely lies in is looked through only where that is one.
local function predict(self, input)
    local best = self.head(input):argmax(-1)
    local beyond = best:gt(self.shortlist_size)
    if not beyond:any():item() then
        return best
    end
    return tide.where(beyond, log_prob(self, input):argmax(-1), best)
end

return function(nn)
    layer(nn, NAME .. "(int(1..) in_features, int(2..) n_classes, list cutoffs, number(1..) div_value=4, "
        .. "bool head_bias=false)",
        "Log probabilities of targets among many classes, the frequent ones first, and their mean as a loss; "
        .. "log_prob(input), predict(input).", "input (N?, in_features), target (N?) -> (N?), ()", {
        make = function(self) make(self, nn) end,
        forward = forward,
        reset_parameters = declare("reset_parameters(Module self)", "Start anew: its Linear layers do.", function(self)
            for _, layer_of in ipairs(self:modules()) do
                if nn.is(layer_of, nn.Linear) then
                    layer_of:reset_parameters()
                end
            end
        end),
    })
    local class = nn[NAME]
    class.log_prob = declare("log_prob(Module self, Tensor input) -> Tensor", "Log probabilities of all classes.",
        function(self, input)
            check_input(self, "log_prob", input)
            return log_prob(self, input)
        end)
    class.predict = declare("predict(Module self, Tensor input) -> Tensor", "The most likely class of each line.",
        function(self, input)
            check_input(self, "predict", input)
            return predict(self, input)
        end)
    nn.functional.pdist = declare("pdist(Tensor input, number(0..) p=2) -> Tensor",
        "The distances between all pairs of lines, (1, 2), (1, 3), ..., (2, 3), ...", function(input, p)
            if input:dim() ~= 2 then
                fail("pdist: a matrix expected, got shape %s", tostring(input.shape))
            end
            local n = input:size(1)
            local pairs_ = tide.triu_indices(n, n, 1, { device = input.device })
            return tide.norm(input:index_select(1, pairs_[1]) - input:index_select(1, pairs_[2]), p, 2)
        end, "input (n, m) -> (n*(n - 1)//2)")
end
