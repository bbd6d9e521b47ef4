-- plot/pdf.lua: a figure as a page of PDF 1.4: Helvetica for Latin letters, Symbol for Greek ones.
local tide = ...
local pdf = {}

local function number(v) return (string.gsub(string.gsub(string.gsub(string.format("%.2f", v), ",", "."), "%.?0+$", ""), "^%-0$", "0")) end

local Pen = {}
Pen.__index = Pen

function Pen:add(form, ...) self.content[#self.content + 1] = string.format(form, ...) end

local function rgb(colour)
    local function part(k) return number(tonumber(string.sub(colour, k, k + 1), 16) / 255) end
    return string.format("%s %s %s", part(2), part(4), part(6))
end

-- The name of a state of graphics with that opacity.
function Pen:opacity(opacity)
    local name = string.format("G%d", math.floor((opacity or 1) * 100 + 0.5))
    self.states[name] = opacity or 1
    return name
end

-- What follows is drawn in that style; finish draws it.
function Pen:begin(style)
    self:add("q /%s gs", self:opacity(style.opacity))
    if style.stroke then
        self:add("%s RG %s w 1 j [%s] 0 d", rgb(style.stroke), number(style.width or 1), style.dash
            and number(style.dash[1]) .. " " .. number(style.dash[2]) or "")
    end
    if style.fill then
        self:add("%s rg", rgb(style.fill))
    end
end

function Pen:finish(style) self:add("%s%s Q", style.closed and "h " or "", style.fill and "f" or "S") end

function Pen:path(points, style)
    self:begin(style)
    for k = 1, #points, 2 do
        self:add("%s %s %s", number(points[k]), number(points[k + 1]), k == 1 and "m" or "l")
    end
    self:finish(style)
end

function Pen:rect(x, y, w, h, style)
    self:begin(style)
    self:add("%s %s %s %s re", number(x), number(y), number(w), number(h))
    self:finish(style)
end

-- Four curves of Bézier.
function Pen:circle(x, y, r, style)
    local k = r * 0.5523
    self:begin(style)
    self:add("%s %s m", number(x + r), number(y))
    for _, c in ipairs { { r, k, k, r, 0, r }, { -k, r, -r, k, -r, 0 }, { -r, -k, -k, -r, 0, -r }, { k, -r, r, -k, r, 0 } } do
        self:add("%s %s %s %s %s %s c", number(x + c[1]), number(y + c[2]), number(x + c[3]), number(y + c[4]), number(x + c[5]),
            number(y + c[6]))
    end
    self:finish(style)
end

-- ---- texts ----

-- Widths of Helvetica's letters from the space to "~", in thousandths of its size; bold ones are 7 % wider.
local WIDTHS = { 278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722,
    667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833,
    556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584 }

-- Symbol's letters for Greek ones, from alpha on and from Alpha on.
local SMALL, CAPITAL = "abgdezhqiklmnxoprVstufcyw", "ABGDEZHQIKLMNXOPR STUFCYW"
local WINDOWS = { [0x2013] = 0x96, [0x2014] = 0x97, [0x2018] = 0x91, [0x2019] = 0x92, [0x201c] = 0x93, [0x201d] = 0x94, [0x2026] = 0x85,
    [0x20ac] = 0x80, [0x2212] = 0x2d }

-- The font ("F" or "S") and the byte in it.
local function letter(code)
    if code >= 0x3b1 and code <= 0x3c9 then
        return "S", string.byte(SMALL, code - 0x3b0)
    elseif code >= 0x391 and code <= 0x3a9 then
        return "S", string.byte(CAPITAL, code - 0x390)
    elseif code >= 32 and code < 127 or code >= 0xa0 and code < 0x100 then
        return "F", code
    end
    return "F", WINDOWS[code] or string.byte("?")
end

-- Runs of letters of one font, and the width of all.
local function runs_of(text, style)
    local runs, width = {}, 0
    for _, code in utf8.codes(text) do
        local font, byte = letter(code)
        local run = runs[#runs]
        if not run or run.font ~= font then
            run = { font = font }
            runs[#runs + 1] = run
        end
        run[#run + 1] = string.format("%02x", byte)
        width = width + (font == "F" and WIDTHS[byte - 31] or 556) / 1000 * style.size * (style.bold and 1.07 or 1)
    end
    return runs, width
end

function Pen:text(x, y, text, style)
    local runs, width = runs_of(text, style)
    x = style.anchor == "start" and x or style.anchor == "end" and x - width or x - width / 2
    self:add("BT %s rg /G100 gs 1 0 0 -1 %s %s Tm", rgb(style.fill), number(x), number(y))
    self:opacity(1)
    for _, run in ipairs(runs) do
        self:add("/%s %s Tf <%s> Tj", run.font == "S" and "S" or style.bold and "B" or "F", number(style.size), table.concat(run))
    end
    self:add("ET")
end

function Pen:image(x, y, w, h, pixels)
    local channels = pixels.shape[3]
    if channels % 2 == 0 then -- over white
        local alpha = pixels:narrow(3, channels, 1):to(tide.float32) / 255
        pixels = (pixels:narrow(3, 1, channels - 1):to(tide.float32) * alpha + (1 - alpha) * 255 + 0.5):floor():to(tide.uint8)
    end
    local bytes = {}
    for k, v in ipairs(pixels:contiguous():reshape(-1):tolist()) do
        bytes[k] = string.format("%02x", v)
    end
    table.insert(self.images, string.format("<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /%s /BitsPerComponent 8 "
        .. "/Filter /ASCIIHexDecode /Length %d >>\nstream\n%s>\nendstream", pixels.shape[2], pixels.shape[1],
        pixels.shape[3] == 1 and "DeviceGray" or "DeviceRGB", 2 * #bytes + 1, table.concat(bytes)))
    self:add("q %s 0 0 %s %s %s cm /I%d Do Q", number(w), number(-h), number(x), number(y + h), #self.images)
end

function Pen:move(x, y) self:add("q 1 0 0 1 %s %s cm", number(x), number(y)) end

function Pen:clip(x, y, w, h) self:add("q %s %s %s %s re W n", number(x), number(y), number(w), number(h)) end

function Pen:pop() self:add("Q") end

-- ---- the file ----

local function font(name, encoding)
    return string.format("<< /Type /Font /Subtype /Type1 /BaseFont /%s%s >>", name, encoding and " /Encoding /" .. encoding or "")
end

-- Objects by their number, then the places of all.
local function file_of(objects)
    local parts, at, places = { "%PDF-1.4\n" }, 9, {}
    for k, object in ipairs(objects) do
        places[k] = string.format("%010d 00000 n \n", at)
        parts[#parts + 1] = string.format("%d 0 obj\n%s\nendobj\n", k, object)
        at = at + #parts[#parts]
    end
    parts[#parts + 1] = string.format("xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n",
        #objects + 1, table.concat(places), #objects + 1, at)
    return table.concat(parts)
end

--- draw(fig): the bytes of the file.
function pdf.draw(fig)
    local pen = setmetatable({ content = {}, states = {}, images = {} }, Pen)
    pen:add("1 0 0 -1 0 %d cm", fig.height) -- downwards, as all pens draw
    tide._require("plot.page").draw(pen, fig)
    local content = table.concat(pen.content, "\n")
    local states, images = {}, {}
    for name, opacity in pairs(pen.states) do
        states[#states + 1] = string.format("/%s << /ca %s /CA %s >>", name, number(opacity), number(opacity))
    end
    table.sort(states)
    local objects = { "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", "",
        string.format("<< /Length %d >>\nstream\n%s\nendstream", #content, content), font("Helvetica", "WinAnsiEncoding"),
        font("Helvetica-Bold", "WinAnsiEncoding"), font("Symbol") }
    for k, image in ipairs(pen.images) do
        objects[#objects + 1] = image
        images[k] = string.format("/I%d %d 0 R", k, #objects)
    end
    objects[3] = string.format("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Contents 4 0 R /Resources << /Font << /F 5 0 R /B 6 0 R /S 7 0 R >> "
        .. "/ExtGState << %s >> /XObject << %s >> >> >>", fig.width, fig.height, table.concat(states, " "),
        table.concat(images, " "))
    return file_of(objects)
end

return pdf
