-- test_nn_containers.lua: parts of containers by place: counted from either end, in ranges, read and replaced.
local t = require "harness"
local nn = tide.nn

local function names_of(model)
    local list = {}
    for name, part in model:named_children() do
        list[#list + 1] = string.format("%s=%s", name, part.__name)
    end
    return table.concat(list, " ")
end

t.test("parts_count_from_both_ends", function()
    local model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    t.is_true(rawequal(model[-1], model[3]) and rawequal(model[-3], model[1]))
    t.eq(model[4], nil)
    t.error_has(function() return model[0] end, "Sequential: there is no part 0: parts count from 1, here to 3")
    t.error_has(function() return model[-4] end, "there is no part -4")
    local list = nn.ParameterList { tide.ones(1), tide.ones(2) }
    t.eq(list[-1].shape, { 2 })
end)

t.test("a_part_is_replaced_by_its_place_and_never_added_beside_it", function()
    local model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    model[-1] = nn.Linear(3, 5)
    t.eq(names_of(model), "1=Linear 2=ReLU 3=Linear")
    t.eq(model(tide.ones(4, 2)).shape, { 4, 5 })
    t.eq(#model:parameters(), 4)
    for _, place in ipairs { 0, -4, 5 } do
        t.error_has(function() model[place] = nn.Tanh() end, string.format("there is no part %d to be replaced", place))
    end
    model[#model + 1] = nn.Tanh()
    t.eq(names_of(model), "1=Linear 2=ReLU 3=Linear 4=Tanh")
    local list = nn.ModuleList()
    t.error_has(function() list[0] = nn.Tanh() end, "parts count from 1, here to 0, and 1 would be one more")
    local parameters = nn.ParameterList { tide.ones(1), tide.ones(2) }
    parameters[-1] = nn.Parameter(tide.zeros(3))
    t.eq(#parameters, 2)
    t.eq(parameters[2].shape, { 3 })
end)

t.test("parts_with_names_have_places_too", function()
    local model = nn.Sequential { { "fc", nn.Linear(2, 3) }, { "act", nn.ReLU() } }
    t.is_true(rawequal(model[1], model.fc) and rawequal(model[-1], model.act))
    t.eq(model[3], nil)
    model[1], model[-1] = nn.Linear(2, 7), nn.Tanh()
    t.eq(names_of(model), "fc=Linear act=Tanh")
    t.eq(model(tide.ones(1, 2)).shape, { 1, 7 })
    t.eq(names_of(model["1:1"]), "fc=Linear")
    local seen = 0
    for place, part in ipairs(model) do
        seen = seen + place
        t.is_true(nn.is_module(part))
    end
    t.eq(seen, 3)
end)

t.test("a_part_that_was_taken_out_leaves_its_place_to_no_other", function()
    local model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Tanh())
    model[2] = nil
    t.eq(model[2], nil)
    t.eq(#model, 2)
    t.eq(model[-2].__name, "Linear")
    model[2] = nn.ELU()
    t.eq(names_of(model), "1=Linear 2=ELU 3=Tanh")
end)

t.test("a_range_of_parts_is_a_container_that_shares_them", function()
    local model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 4), nn.Tanh())
    for range, want in pairs {
        ["1:2"] = "1=Linear 2=ReLU", ["3:"] = "1=Linear 2=Tanh", [":-2"] = "1=Linear 2=ReLU 3=Linear", [" -2 : -1 "] = "1=Linear 2=Tanh",
        [":"] = "1=Linear 2=ReLU 3=Linear 4=Tanh", ["3:2"] = "", ["4:9"] = "1=Tanh",
    } do
        t.eq(names_of(model[range]), want, range)
    end
    t.is_true(rawequal(model["3:"][1], model[3]))
    t.is_true(nn.is(nn.ModuleList { nn.ReLU(), nn.Tanh() }["2:"], nn.ModuleList))
    t.error_has(function() return model["a:b"] end, '"a:b" is no range of parts')
    t.error_has(function() model["1:2"] = nn.ReLU() end, "a range of parts can't be written at once")
    t.eq(#model, 4)
end)

t.test("a_parameter_that_is_made_frozen_is_a_parameter", function()
    local Net = nn.class("Net")
    function Net:init()
        self.places = nn.Parameter(tide.ones(3), { requires_grad = false })
        self.scale = nn.Parameter(tide.full({ 3 }, 2.0))
    end
    function Net:forward(x) return (x + self.places) * self.scale end
    local net = Net()
    for _, module in ipairs { net, net:clone(), net:clone():double() } do
        local seen = {}
        for name, p in module:named_parameters() do
            seen[#seen + 1] = name .. ":" .. tostring(p.requires_grad)
        end
        t.eq(seen, { "places:false", "scale:true" })
    end
    t.is_true(tide.equal(net:state_dict().places, tide.ones(3)))
    local opt = tide.optim.SGD(net:parameters(), { lr = 1 })
    net(tide.ones(3)):sum():backward()
    opt:step()
    t.eq({ net.places:tolist(), net.scale:tolist() }, { { 1, 1, 1 }, { 0, 0, 0 } })
    net.places = nn.Parameter(tide.zeros(3), false)
    t.eq(net(tide.ones(3)):tolist(), { 0, 0, 0 })
    t.is_false(nn.ParameterList { net.places }[1].requires_grad)
    net:requires_grad_(true)
    t.is_true(net.places.requires_grad)
end)

t.test("a_class_made_from_a_container_counts_its_parts", function()
    local Net = nn.class("Net", nn.Sequential)
    function Net:init() nn.Sequential.init(self, nn.Linear(2, 3), nn.ReLU()) end
    local net = Net()
    t.eq(#net, 2)
    t.eq(net[-1].__name, "ReLU")
    net[-1] = nn.Tanh()
    t.eq(names_of(net), "1=Linear 2=Tanh")
    t.error_has(function() net[0] = nn.Tanh() end, "Net: there is no part 0")
end)
