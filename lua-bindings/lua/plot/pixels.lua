-- plot/pixels.lua: tensors as pixels: which dims are rows, columns and channels, several images as one sheet, and a
-- picture in a terminal's cells.
local tide = ...
local fail = tide._fail
local pixels = {}

local GAP, SHEET = 2, 64 -- pixels between images, images on a sheet

local function shape_text(x) return tostring(x.shape) end

-- (channels, height, width), from that order or from (height, width, channels).
local function channels_first(x, name)
    if x:dim() == 2 then
        return x:unsqueeze(1)
    end
    local c, last = x.shape[1], x.shape[3]
    if c == 1 or c == 3 or c == 4 then
        return x
    elseif last == 1 or last == 3 or last == 4 then
        return x:permute(3, 1, 2)
    end
    fail("%s: shape %s is no image: (height, width), (channels, height, width) or (height, width, channels) with 1, 3 "
        .. "or 4 channels, or a batch of them (images, channels, height, width)", name, shape_text(x))
end

-- A batch side by side, `columns` images in a row (nil: as many as there are rows).
local function sheet(x, name, columns)
    local n = x.shape[1]
    if n > SHEET then
        fail("%s: %d images are more than a sheet of %d: show a part, x[\"1:%d\"]", name, n, SHEET, SHEET)
    end
    local images = {}
    for k = 1, n do
        images[k] = channels_first(x[k], name)
    end
    local c, h, w = table.unpack(images[1].shape)
    columns = math.min(columns or math.ceil(math.sqrt(n)), n)
    local rows = math.ceil(n / columns)
    local all = tide.zeros({ c, rows * (h + GAP) - GAP, columns * (w + GAP) - GAP }, { dtype = x.dtype })
    for k, image in ipairs(images) do
        local top, left = (k - 1) // columns * (h + GAP) + 1, (k - 1) % columns * (w + GAP) + 1
        all[{ {}, { top, top + h - 1 }, { left, left + w - 1 } }] = image
    end
    return all
end

-- Floats from `low` to `high` as bytes; nan is black.
local function to_bytes(x, low, high)
    if x.dtype == tide.uint8 then
        return x
    elseif x.dtype == tide.bool then
        return x:to(tide.uint8) * 255
    end
    if not x:is_floating_point() then
        x = x:to(tide.float32)
    end
    local scale = high > low and 255 / (high - low) or 0
    local y = ((x - low) * scale + 0.5):clamp(0, 255)
    return tide.nan_to_num(y, 0):floor():to(tide.uint8)
end

-- The range of an image's floats: that of colours, 0 to 1; of integers 0 to 255.
local function range_of(x, low, high)
    local default = x:is_floating_point() and 1 or 255
    return low or 0, high or default
end

--- of(x, name [, low, high, columns]): pixels (height, width, channels) of uint8; floats from low (0) to high (1); so
--- many images of a batch in a row.
function pixels.of(x, name, low, high, columns)
    if x.is_quantized then
        x = x:dequantize()
    elseif x.layout ~= "strided" then
        fail("%s: the tensor is sparse: show its to_dense()", name)
    elseif x:dim() < 2 or x:dim() > 4 then
        fail("%s: shape %s is no image: 2 to 4 dims expected", name, shape_text(x))
    elseif x:numel() == 0 then
        fail("%s: shape %s has no pixels", name, shape_text(x))
    end
    x = tide.no_grad(function()
        local y = x:detach():cpu()
        y = y:dim() == 4 and sheet(y, name, columns) or channels_first(y, name)
        low, high = range_of(y, low, high)
        return to_bytes(y, low, high):permute(2, 3, 1):contiguous()
    end)
    return x
end

--- enlarge(x, n): each pixel n by n times, so that a front end has nothing to smooth.
function pixels.enlarge(x, n)
    return n > 1 and x:repeat_interleave(n, 1):repeat_interleave(n, 2):contiguous() or x
end

-- ---- in a terminal ----

-- As many pixels as cells have room: means of the pixels they stand for.
local function fit(x, width, height)
    local h, w = x.shape[1], x.shape[2]
    local scale = math.min(1, width / w, height / h)
    if scale == 1 then
        return x
    end
    local small = tide.nn.functional.adaptive_avg_pool2d(x:permute(3, 1, 2):to(tide.float32),
        { math.max(1, math.floor(h * scale)), math.max(1, math.floor(w * scale)) })
    return (small + 0.5):floor():to(tide.uint8):permute(2, 3, 1)
end

-- Red, green and blue of a pixel over black.
local function colour(pixel)
    local n = #pixel
    local alpha = (n == 2 or n == 4) and pixel[n] / 255 or 1
    local r, g, b = pixel[1], pixel[n > 2 and 2 or 1], pixel[n > 2 and 3 or 1]
    return math.floor(r * alpha), math.floor(g * alpha), math.floor(b * alpha)
end

-- Two pixels to a cell: the upper half in the foreground's colour, the lower in the background's.
local function half_blocks(rows)
    local lines = {}
    for top = 1, #rows, 2 do
        local cells = {}
        for k, upper in ipairs(rows[top]) do
            local r, g, b = colour(upper)
            local lower = rows[top + 1]
            if lower then
                cells[k] = string.format("\27[38;2;%d;%d;%d;48;2;%d;%d;%dm▀", r, g, b, colour(lower[k]))
            else
                cells[k] = string.format("\27[38;2;%d;%d;%dm▀", r, g, b)
            end
        end
        lines[#lines + 1] = table.concat(cells) .. "\27[0m"
    end
    return table.concat(lines, "\n")
end

local SHADES = { " ", "░", "▒", "▓", "█" }

-- Without colours: light cells for light pixels, a cell for two pixels, since cells are twice as high as wide.
local function shades(rows)
    local lines = {}
    for top = 1, #rows, 2 do
        local cells = {}
        for k in ipairs(rows[top]) do
            local sum, n = 0, 0
            for row = top, math.min(top + 1, #rows) do
                local r, g, b = colour(rows[row][k])
                sum, n = sum + 0.299 * r + 0.587 * g + 0.114 * b, n + 1
            end
            cells[k] = SHADES[math.floor(sum / n / 256 * #SHADES) + 1]
        end
        lines[#lines + 1] = (string.gsub(table.concat(cells), "%s+$", ""))
    end
    return table.concat(lines, "\n")
end

-- Terminals that show files in the protocol of kitty say so in their environment.
local function speaks_kitty()
    local term, program = os.getenv("TERM") or "", os.getenv("TERM_PROGRAM") or ""
    return os.getenv("KITTY_WINDOW_ID") or string.find(term, "kitty", 1, true) or program == "WezTerm" or program == "ghostty"
end

local function kitty(png, columns)
    local text, parts = tide._base64(png), {}
    for from = 1, #text, 4096 do
        local last = from + 4096 > #text
        parts[#parts + 1] = string.format("\27_G%sm=%d;%s\27\\", from == 1 and string.format("a=T,f=100,c=%d,", columns) or "",
            last and 0 or 1, string.sub(text, from, from + 4095))
    end
    return table.concat(parts)
end

--- text(x, columns): pixels as lines of text, within what the terminal has; columns: beside others, in so many cells.
function pixels.text(x, columns)
    local frontend = tide._frontend and tide._frontend() or {}
    local width = columns or math.max(1, math.min((frontend.width or 80) - 2, 100))
    local terminal = frontend.color and not frontend.notebook
    if terminal and not columns and speaks_kitty() then
        return kitty(tide._png(x), math.max(1, math.min(width, math.max(x.shape[2] // 8, 20))))
    end
    local rows = fit(x, width, 60):tolist()
    return terminal and half_blocks(rows) or shades(rows)
end

return pixels
