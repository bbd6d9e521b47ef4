-- onnx/windows.lua: ONNX's operators that slide windows over images, and those that change images' sizes.
local tide = ...
local common, tensors = tide._require "onnx.common", tide._require "onnx.tensors"
local wrong = tensors.wrong
local F = tide.nn.functional
local operators = {}

-- ---- geometry ----

local function filled(list, n, value)
    local all = {}
    for k = 1, n do
        all[k] = list and list[k] or value
    end
    return all
end

-- Elements before and behind each spatial dim, by pads or auto_pad.
local function margins(call, sizes, kernel, strides, dilations)
    local a, n = call.attributes, #kernel
    local before, behind = filled(nil, n, 0), filled(nil, n, 0)
    local auto = a.auto_pad or "NOTSET"
    if auto == "SAME_UPPER" or auto == "SAME_LOWER" then
        for k = 1, n do
            local reach = (kernel[k] - 1) * dilations[k] + 1
            local all = math.max(0, (-(-sizes[k] // strides[k]) - 1) * strides[k] + reach - sizes[k])
            local less = all // 2
            before[k] = auto == "SAME_UPPER" and less or all - less
            behind[k] = all - before[k]
        end
    elseif auto == "NOTSET" and a.pads then
        for k = 1, n do
            before[k], behind[k] = a.pads[k], a.pads[n + k]
        end
    end
    return before, behind
end

local function same(a, b)
    for k, value in ipairs(a) do
        if value ~= b[k] then
            return false
        end
    end
    return true
end

-- x with so many elements of a value around its spatial dims.
local function widened(x, before, behind, value)
    local list = {}
    for k = #before, 1, -1 do
        list[#list + 1], list[#list + 2] = before[k], behind[k]
    end
    return F.pad(x, list, "constant", value)
end

local function spatial(x)
    local sizes = common.sizes(x)
    return table.move(sizes, 3, #sizes, 1, {})
end

-- ---- convolutions ----

local CONV <const> = { "conv1d", "conv2d", "conv3d" }
local TURNED <const> = { "conv_transpose1d", "conv_transpose2d", "conv_transpose3d" }

local function convolve(call, x, weight, bias)
    local a, kernel = call.attributes, spatial(weight)
    local n = #kernel
    local strides, dilations = filled(a.strides, n, 1), filled(a.dilations, n, 1)
    local before, behind = margins(call, spatial(x), kernel, strides, dilations)
    local padding = before
    if not same(before, behind) then
        x, padding = widened(x, before, behind, 0), filled(nil, n, 0)
    end
    if not CONV[n] then
        wrong("a convolution over %d dims", n)
    end
    return F[CONV[n]](x, weight, bias, { stride = strides, padding = padding, dilation = dilations, groups = a.group or 1 })
end
function operators.Conv(call, x, weight, bias) return convolve(call, x, weight, bias) end

function operators.ConvTranspose(call, x, weight, bias)
    local a, kernel = call.attributes, spatial(weight)
    local n, sizes = #kernel, spatial(x)
    local strides, dilations, extra = filled(a.strides, n, 1), filled(a.dilations, n, 1), filled(a.output_padding, n, 0)
    local before, behind = filled(nil, n, 0), filled(nil, n, 0)
    local whole = {}
    for k = 1, n do
        whole[k] = (sizes[k] - 1) * strides[k] + (kernel[k] - 1) * dilations[k] + 1 + extra[k]
        local auto = a.auto_pad or "NOTSET"
        if a.output_shape or auto == "SAME_UPPER" or auto == "SAME_LOWER" then
            local wanted = a.output_shape and a.output_shape[#a.output_shape - n + k] or sizes[k] * strides[k]
            whole[k] = math.max(whole[k], wanted) -- more than the kernel reaches is empty
            local all = whole[k] - wanted
            local less = all // 2
            before[k] = auto == "SAME_UPPER" and less or all - less
            behind[k] = all - before[k]
        elseif auto == "NOTSET" and a.pads then
            before[k], behind[k] = a.pads[k], a.pads[n + k]
        end
    end
    if not TURNED[n] then
        wrong("a convolution over %d dims", n)
    end
    local y = F[TURNED[n]](x, weight, bias, { stride = strides, dilation = dilations, groups = a.group or 1 })
    local far = {}
    for k = 1, n do
        far[k] = whole[k] - y:size(k + 2)
        if far[k] > 0 then -- nothing but the bias reaches there
            local padding = filled(nil, 2 * n, 0)
            padding[2 * (n - k) + 2] = far[k]
            local edge = F.pad(y - (bias and bias:view(filled({ 1, bias:numel() }, n + 2, 1)) or 0), padding)
            y = bias and edge + bias:view(filled({ 1, bias:numel() }, n + 2, 1)) or edge
        end
        y = y:narrow(k + 2, before[k] + 1, whole[k] - before[k] - behind[k])
    end
    return y
end

-- Integers less their zero points, exact in float64.
function operators.ConvInteger(call, x, weight, x_zero, w_zero)
    local function less(y, zero)
        y = y:double()
        if not zero then
            return y
        end
        return y - (zero:numel() == 1 and zero:flatten():double() or zero:double():view(filled({ -1 }, y:dim(), 1)))
    end
    return convolve(call, less(x, x_zero), less(weight, w_zero)):to(tide.int32)
end

-- ---- pools ----

-- How many windows: with ceil_mode one more where one begins within what is there.
local function windows_of(call, sizes, kernel, strides, dilations, before, behind)
    local counts = {}
    for k = 1, #kernel do
        local over = sizes[k] + before[k] + behind[k] - ((kernel[k] - 1) * dilations[k] + 1)
        local count = over // strides[k] + 1
        if call.attributes.ceil_mode == 1 then
            count = -(-over // strides[k]) + 1
            if (count - 1) * strides[k] >= sizes[k] + before[k] then
                count = count - 1
            end
        end
        counts[k] = count
    end
    return counts
end

-- x as its windows: (n, c, counts..., kernel...).
local function unfolded(x, kernel, strides, dilations, counts)
    local n = #kernel
    for k = 1, n do
        local reach = (kernel[k] - 1) * dilations[k] + 1
        local needed = (counts[k] - 1) * strides[k] + reach
        x = x:narrow(k + 2, 1, needed):unfold(k + 2, reach, strides[k])
        if dilations[k] > 1 then
            x = x:index_select(x:dim(), tide.arange(1, reach + 1, dilations[k]))
        end
    end
    return x
end

local function pool_geometry(call, x)
    local a = call.attributes
    local kernel = a.kernel_shape or wrong("it has no kernel_shape")
    local n = #kernel
    local strides, dilations = filled(a.strides, n, 1), filled(a.dilations, n, 1)
    local sizes = spatial(x)
    local before, behind = margins(call, sizes, kernel, strides, dilations)
    local counts = windows_of(call, sizes, kernel, strides, dilations, before, behind)
    local far = {} -- so that every window is whole
    for k = 1, n do
        local needed = (counts[k] - 1) * strides[k] + (kernel[k] - 1) * dilations[k] + 1
        far[k] = math.max(behind[k], needed - sizes[k] - before[k])
    end
    return { kernel = kernel, strides = strides, dilations = dilations, before = before, behind = behind, far = far, counts = counts,
        sizes = sizes }
end

local function last_dims(x, n)
    local dims = {}
    for k = 1, n do
        dims[k] = x:dim() - n + k
    end
    return dims
end

local LOWEST <const> = { [tide.uint8] = 0, [tide.int8] = -128 }

-- Paddings that Tide's own pooling takes: the same on both sides, and no more than half a window.
local function is_even(g, behind)
    for k, pad in ipairs(g.before) do
        if pad ~= behind[k] or 2 * pad > g.kernel[k] then
            return false
        end
    end
    return true
end

function operators.MaxPool(call, x)
    local g = pool_geometry(call, x)
    local n, lowest = #g.kernel, LOWEST[x.dtype] or -math.huge
    if call.outputs < 2 and n <= 3 and x:is_floating_point() then
        local even = is_even(g, g.far)
        return (F[string.format("max_pool%dd", n)](even and x or widened(x, g.before, g.far, lowest), g.kernel,
            { stride = g.strides, padding = even and g.before or 0, dilation = g.dilations }))
    end
    local windows = unfolded(widened(x, g.before, g.far, lowest), g.kernel, g.strides, g.dilations, g.counts)
    local best = windows:amax(last_dims(windows, n))
    if call.outputs < 2 then
        return best
    end
    -- Where it came from, in the whole tensor.
    local place = tide.arange(common.product(g.sizes)):view(g.sizes)
    if call.attributes.storage_order == 1 then
        local turned, dims = {}, {}
        for k = 1, n do
            turned[k], dims[k] = g.sizes[n - k + 1], n - k + 1
        end
        place = tide.arange(common.product(g.sizes)):view(turned):permute(dims)
    end
    local at = unfolded(widened(place:unsqueeze(1):unsqueeze(1), g.before, g.far, -1), g.kernel, g.strides, g.dilations, g.counts)
    local first = windows:flatten(-n):argmax(-1, { keepdim = true })
    local sizes = common.sizes(first)
    local from = at:flatten(-n):expand(sizes[1], sizes[2], table.unpack(common.sizes(at:flatten(-n)), 3)):gather(first:dim(), first):squeeze(-1)
    local each = common.product(g.sizes)
    local base = (tide.arange(sizes[1] * sizes[2]) * each):view(filled({ sizes[1], sizes[2] }, n + 2, 1))
    return best, from + base
end

function operators.AveragePool(call, x)
    local g = pool_geometry(call, x)
    local n, pads = #g.kernel, call.attributes.count_include_pad == 1
    if n <= 3 and x:is_floating_point() and is_even(g, g.far) and same(g.far, g.behind) and same(g.dilations, filled(nil, n, 1)) then
        return F[string.format("avg_pool%dd", n)](x, g.kernel, { stride = g.strides, padding = g.before, count_include_pad = pads })
    end
    local windows = unfolded(widened(x, g.before, g.far, 0), g.kernel, g.strides, g.dilations, g.counts)
    local sum = windows:sum(last_dims(windows, n))
    -- How many elements of a window count: with count_include_pad those around as well.
    local ones = tide.ones(filled(nil, n + 2, 1), { dtype = x.dtype }):expand(1, 1, table.unpack(g.sizes))
    local counted = widened(ones, g.before, g.behind, pads and 1 or 0)
    local rest = {}
    for k = 1, n do
        rest[k] = g.far[k] - g.behind[k]
    end
    counted = widened(counted, filled(nil, n, 0), rest, 0)
    local many = unfolded(counted, g.kernel, g.strides, g.dilations, g.counts)
    return sum / many:sum(last_dims(many, n))
end

function operators.GlobalAveragePool(_, x) return x:mean(last_dims(x, x:dim() - 2), { keepdim = true }) end
function operators.GlobalMaxPool(_, x) return x:amax(last_dims(x, x:dim() - 2), { keepdim = true }) end

function operators.LpPool(call, x)
    local g = pool_geometry(call, x)
    local windows = unfolded(widened(x, g.before, g.far, 0), g.kernel, g.strides, g.dilations, g.counts)
    local p = call.attributes.p or 2
    return windows:abs():pow(p):sum(last_dims(windows, #g.kernel)):pow(1 / p)
end
function operators.GlobalLpPool(call, x)
    local p = call.attributes.p or 2
    return x:abs():pow(p):sum(last_dims(x, x:dim() - 2), { keepdim = true }):pow(1 / p)
end

function operators.MaxUnpool(call, x, places, shape)
    local a, n = call.attributes, #call.attributes.kernel_shape
    local own = common.sizes(x)
    local whole = { own[1], own[2] }
    for k = 1, n do
        local pads = a.pads and a.pads[k] + a.pads[n + k] or 0
        whole[k + 2] = (own[k + 2] - 1) * (a.strides and a.strides[k] or 1) - pads + a.kernel_shape[k]
    end
    local sizes = shape and common.list(shape) or whole
    -- Places are in the tensor that the kernel makes; with a shape of its own they are places of that line by line.
    local flat = tide.zeros(common.product(sizes), { dtype = x.dtype })
    local at = places:flatten()
    if shape then
        local inner, base = 0, at
        local parts, d = {}, #whole
        while d >= 1 do
            parts[d], base = base % whole[d], tide.div(base, whole[d], { rounding_mode = "floor" })
            d = d - 1
        end
        for k = 1, #sizes do
            inner = inner * sizes[k] + parts[k]
        end
        at = inner
    end
    return flat:scatter(1, at + 1, x:flatten()):view(sizes)
end

function operators.LRN(call, x)
    local a, n = call.attributes, x:size(2)
    local before = (a.size - 1) // 2
    local squares = x * x
    local list = {}
    for k = 1, 2 * (x:dim() - 2) do
        list[k] = 0
    end
    list[#list + 1], list[#list + 2] = before, a.size - 1 - before
    local sums = F.pad(squares, list):unfold(2, a.size, 1):sum(-1)
    return x / (sums * ((a.alpha or 1e-4) / a.size) + (a.bias or 1)):pow(a.beta or 0.75), n
end

-- ---- other sizes ----

-- Where in the old line an element of the new one is.
local function old_place(call, k, scale, size, new, roi_first, roi_last)
    local mode = call.attributes.coordinate_transformation_mode or "half_pixel"
    if call.opset < 11 or mode == "asymmetric" then
        return k / scale
    elseif mode == "align_corners" then
        local long = scale * size -- no whole number, where scales are given
        return long == 1 and 0 or k * (size - 1) / (long - 1)
    elseif mode == "pytorch_half_pixel" then
        return new > 1 and (k + 0.5) / scale - 0.5 or 0
    elseif mode == "tf_half_pixel_for_nn" then
        return (k + 0.5) / scale
    elseif mode == "tf_crop_and_resize" then
        return new > 1 and roi_first * (size - 1) + k * (roi_last - roi_first) * (size - 1) / (new - 1)
            or 0.5 * (roi_first + roi_last) * (size - 1)
    elseif mode == "half_pixel_symmetric" then
        local adjusted = new / (scale * size)
        return size / 2 * (1 - adjusted) + (k + 0.5) / scale - 0.5
    end
    return (k + 0.5) / scale - 0.5
end

local function nearest(call, at)
    local mode = call.opset < 11 and "floor" or call.attributes.nearest_mode or "round_prefer_floor"
    if mode == "floor" then
        return math.floor(at)
    elseif mode == "ceil" then
        return math.ceil(at)
    elseif mode == "round_prefer_ceil" then
        return math.floor(at + 0.5)
    end
    return math.ceil(at - 0.5)
end

-- Weights of the elements around a place: {place, weight}.
local function around(call, at, scale)
    local mode = call.attributes.mode or "nearest"
    local low = math.floor(at)
    local list = {}
    local shrink = (call.attributes.antialias == 1 and scale < 1) and scale or 1
    if mode == "nearest" then
        return { { nearest(call, at), 1 } }
    elseif mode == "linear" or mode == "bilinear" then
        local reach = math.ceil(1 / shrink)
        for place = low - reach + 1, low + reach do
            local weight = 1 - math.abs(at - place) * shrink
            if weight > 0 then
                list[#list + 1] = { place, weight }
            end
        end
    elseif mode == "cubic" then
        local a, reach = call.attributes.cubic_coeff_a or -0.75, math.ceil(2 / shrink)
        for place = low - reach + 1, low + reach do
            local t = math.abs(at - place) * shrink
            local weight = t <= 1 and ((a + 2) * t - (a + 3)) * t * t + 1 or t < 2 and ((a * t - 5 * a) * t + 8 * a) * t - 4 * a or 0
            list[#list + 1] = { place, weight }
        end
    else
        wrong("its mode is '%s'", tensors.shown(mode))
    end
    return list
end

-- A matrix (new, size) that makes a new line of an old one, and for each new element whether it lies outside.
local function line_matrix(call, size, new, scale, first, last)
    local rows, outside, any = {}, {}, false
    for k = 0, new - 1 do
        local at, row, sum = old_place(call, k, scale, size, new, first, last), {}, 0
        for j = 1, size do
            row[j] = 0.0
        end
        local list = around(call, at, scale)
        local crop = call.attributes.coordinate_transformation_mode == "tf_crop_and_resize"
        outside[k + 1] = crop and (at < 0 or at > size - 1) or false
        any = any or outside[k + 1]
        for _, pair in ipairs(list) do
            local inside = pair[1] >= 0 and pair[1] < size
            if inside or call.attributes.exclude_outside ~= 1 then
                local place = math.max(0, math.min(size - 1, pair[1]))
                row[place + 1], sum = row[place + 1] + pair[2], sum + pair[2]
            end
        end
        for j = 1, size do
            row[j] = row[j] / sum
        end
        rows[k + 1] = row
    end
    return tide.tensor(rows, { dtype = tide.float64 }), any and tide.tensor(outside)
end

local function resize(call, x, sizes, scales, roi)
    local own, dtype, n = common.sizes(x), x.dtype, x:dim()
    local new, factors, crop = {}, {}, {}
    local dims = common.axes(call.attributes.axes, x)
    for k = 1, n do
        new[k], factors[k] = own[k], 1
    end
    for k = 1, dims and #dims or n do
        local dim = dims and dims[k] or k
        if sizes and #sizes > 0 then
            new[dim], factors[dim] = sizes[k], sizes[k] / own[dim]
        else
            factors[dim] = scales[k]
            new[dim] = math.floor(own[dim] * scales[k])
        end
        crop[dim] = roi and #roi > 0 and { roi[k], roi[k + #roi // 2] } or { 0, 1 }
    end
    local policy = call.attributes.keep_aspect_ratio_policy
    if sizes and #sizes > 0 and policy and policy ~= "stretch" then
        local best
        for k = 1, dims and #dims or n do
            local factor = factors[dims and dims[k] or k]
            best = not best and factor or policy == "not_larger" and math.min(best, factor) or policy == "not_smaller" and math.max(best, factor) or best
        end
        for k = 1, dims and #dims or n do
            local dim = dims and dims[k] or k
            factors[dim], new[dim] = best, math.floor(own[dim] * best + 0.5)
        end
    end
    local y, outside = x:double(), nil
    for k = 1, n do
        if new[k] ~= own[k] or factors[k] ~= 1 or call.attributes.coordinate_transformation_mode == "tf_crop_and_resize" then
            local matrix, out = line_matrix(call, own[k], new[k], factors[k], crop[k] and crop[k][1] or 0, crop[k] and crop[k][2] or 1)
            y = y:movedim(k, -1):matmul(matrix:transpose(1, 2)):movedim(-1, k)
            if out then
                local shape = filled(nil, n, 1)
                shape[k] = new[k]
                outside = outside and outside | out:view(shape) or out:view(shape)
            end
        end
    end
    if outside then
        y = y:masked_fill(outside, call.attributes.extrapolation_value or 0)
    end
    return common.is_float(x) and y:to(dtype) or y:round():to(dtype)
end

function operators.Resize(call, x, roi, scales, sizes)
    if call.opset < 11 then
        return resize(call, x, nil, common.list(roi))
    end
    return resize(call, x, common.list(sizes), common.list(scales), common.list(roi))
end
function operators.Upsample(call, x, scales) return resize(call, x, nil, common.list(scales) or call.attributes.scales) end

local GRID_MODES <const> = { linear = "bilinear", cubic = "bicubic", bilinear = "bilinear", bicubic = "bicubic", nearest = "nearest" }

function operators.GridSample(call, x, grid)
    local a = call.attributes
    return F.grid_sample(x, grid, { mode = GRID_MODES[a.mode or "bilinear"], padding_mode = a.padding_mode or "zeros",
        align_corners = a.align_corners == 1 })
end

function operators.AffineGrid(call, theta, size)
    return F.affine_grid(theta, common.list(size), { align_corners = call.attributes.align_corners == 1 })
end

-- Mean (or maximum) of points in the parts of boxes.
function operators.RoiAlign(call, x, rois, batch)
    local a = call.attributes
    local scale, rows, columns = a.spatial_scale or 1, a.output_height or 1, a.output_width or 1
    local half = (call.opset >= 16 and (a.coordinate_transformation_mode or "half_pixel") == "half_pixel") and 0.5 or 0
    local height, width, boxes, which = x:size(3), x:size(4), rois:tolist(), batch:tolist()
    -- Two places and weights along a line, or nil outside.
    local function between(at, size)
        if at < -1 or at > size then
            return nil
        end
        at = math.max(0, at)
        local low = math.min(math.floor(at), size - 1)
        local high = math.min(low + 1, size - 1)
        local part = low == size - 1 and 0 or at - low
        return low, high, part
    end
    local results = {}
    for r, box in ipairs(boxes) do
        local x1, y1, x2, y2 = box[1] * scale - half, box[2] * scale - half, box[3] * scale - half, box[4] * scale - half
        local w, h = x2 - x1, y2 - y1
        if half == 0 then
            w, h = math.max(w, 1), math.max(h, 1)
        end
        local image = x[which[r] + 1]
        local ny = (a.sampling_ratio or 0) > 0 and a.sampling_ratio or math.ceil(h / rows)
        local nx = (a.sampling_ratio or 0) > 0 and a.sampling_ratio or math.ceil(w / columns)
        local out = {}
        for i = 0, rows - 1 do
            for j = 0, columns - 1 do
                local sum
                for p = 0, ny - 1 do
                    for q = 0, nx - 1 do
                        local t, b, down = between(y1 + (i + (p + 0.5) / ny) * h / rows, height)
                        local l, e, right = between(x1 + (j + (q + 0.5) / nx) * w / columns, width)
                        local parts = tide.zeros(4, x:size(2), { dtype = x.dtype })
                        if t and l then
                            parts = tide.stack { image[{ {}, t + 1, l + 1 }] * ((1 - down) * (1 - right)), image[{ {}, t + 1, e + 1 }] * ((1 - down) * right),
                                image[{ {}, b + 1, l + 1 }] * (down * (1 - right)), image[{ {}, b + 1, e + 1 }] * (down * right) }
                        end
                        local point = a.mode == "max" and parts:amax(1) or parts:sum(1)
                        sum = not sum and point or a.mode == "max" and tide.maximum(sum, point) or sum + point
                    end
                end
                out[#out + 1] = a.mode == "max" and sum or sum / (ny * nx)
            end
        end
        results[r] = tide.stack(out, 2):view(x:size(2), rows, columns)
    end
    return tide.stack(results)
end

return operators
