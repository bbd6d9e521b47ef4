-- script_programs.lua: the programs that script.lua and script_sizes.lua measure: a table of them, by name.
local F = tide.nn.functional
local programs = {}

function programs.tenfold(x, y)
    for _ = 1, 10 do
        x = x * y
    end
    return x
end

function programs.gelu_mlp(x, w1, b1, w2, b2)
    local h = x:matmul(w1) + b1
    h = h * 0.5 * (1 + (0.7978845608 * (h + 0.044715 * h * h * h)):tanh())
    return h:matmul(w2) + b2
end

function programs.norm_residual(x, y, weight, bias)
    local mean = x:mean(2, { keepdim = true })
    local off = x - mean
    local spread = (off * off):mean(2, { keepdim = true })
    return off / (spread + 1e-5):sqrt() * weight + bias + y
end

function programs.norm_dropout(x, y, weight, bias)
    local h = F.layer_norm(x, { 64 }, weight, bias)
    return F.dropout(h, 0.1, true) + y
end

function programs.cross_entropy_by_hand(x, hot)
    local top = x:amax(2, { keepdim = true })
    local logs = x - top - (x - top):exp():sum(2, { keepdim = true }):log()
    return -(logs * hot):sum() / #x
end

function programs.lstm_cell(x, h, c, w, u, b)
    local all = x:matmul(w) + h:matmul(u) + b
    local i, f, g, o = table.unpack(all:chunk(4, 2))
    local new = f:sigmoid() * c + i:sigmoid() * g:tanh()
    return o:sigmoid() * new:tanh(), new
end

function programs.adam_by_hand(p, g, m, v)
    local avg = m * 0.9 + g * 0.1
    local square = v * 0.999 + g * g * 0.001
    return p - 0.001 * avg / (square:sqrt() + 1e-8), avg, square
end

-- Lists of parameters, gradients, means and squares: what they become.
function programs.adam_lists(ps, gs, ms, vs) --: Tensor[], Tensor[], Tensor[], Tensor[]
    local new, avgs, squares = {}, {}, {}
    for k = 1, #ps do
        local avg = ms[k] * 0.9 + gs[k] * 0.1
        local square = vs[k] * 0.999 + gs[k] * gs[k] * 0.001
        table.insert(new, ps[k] - 0.001 * avg / (square:sqrt() + 1e-8))
        table.insert(avgs, avg)
        table.insert(squares, square)
    end
    return new, avgs, squares
end

-- How many boxes each box covers by more than half; boxes are columns x1, y1, x2, y2.
function programs.box_iou(x1, y1, x2, y2)
    local area, total = (x2 - x1) * (y2 - y1), (x1 * 0):sum()
    for k = 1, #x1 do
        local w = (x2:minimum(x2[k]) - x1:maximum(x1[k])):clamp(0)
        local h = (y2:minimum(y2[k]) - y1:maximum(y1[k])):clamp(0)
        local both = w * h
        total = total + (both / (area + area[k] - both)):gt(0.5):sum()
    end
    return total
end

function programs.resnet_block(x, w1, g1, b1, w2, g2, b2, mean, var)
    local h = F.relu(F.batch_norm(F.conv2d(x, w1, nil, 1, 1), mean, var, g1, b1))
    h = F.batch_norm(F.conv2d(h, w2, nil, 1, 1), mean, var, g2, b2)
    return F.relu(h + x)
end

function programs.resnet_training(x, w1, g1, b1, w2, g2, b2)
    local h = F.relu(F.batch_norm(F.conv2d(x, w1, nil, 1, 1), nil, nil, g1, b1, true))
    h = F.batch_norm(F.conv2d(h, w2, nil, 1, 1), nil, nil, g2, b2, true)
    return F.relu(h + x)
end

return programs
