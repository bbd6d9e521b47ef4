-- doctor/file.lua: `tide --doctor FILE`: what a file is, by its bytes and not by its name. Only pieces are read, and
-- nothing that lies in a file is run. Formats of arrays, archives, pickles, models and JSON have files of their own.
local tide = ...

local PIECE <const>, MAX_TEXT <const>, MAX_JSON <const>, MAX_SCRIPT <const> = 1 << 18, 1 << 28, 1 << 26, 8 << 20

-- ---- bytes ----

-- {path, size, read(at, n), pieces(from, to)}; at counts from 0.
local function open_file(path, size)
    local handle, why = io.open(path, "rb")
    if not handle then
        return nil, (string.gsub(tostring(why), "^.*: ", ""))
    end
    local file = tide._require("files.zip").file(handle, size)
    file.path = path
    function file.close()
        handle:close()
    end
    function file.pieces(from, to)
        return function()
            local bytes = from < to and file.read(from, math.min(PIECE, to - from)) or ""
            from = from + #bytes
            return #bytes > 0 and bytes or nil
        end
    end
    return file
end

-- ---- texts ----

-- Numbers and quotes in the first lines of a table: its delimiter, if one parts them all alike.
local function delimiter_of(head)
    local best, most
    for _, mark in ipairs { ",", "\t", ";" } do
        local count, same, lines = nil, true, 0
        for line in string.gmatch(head, "([^\r\n]+)\r?\n") do
            local _, n = string.gsub(string.gsub(line, '"[^"]*"', ""), mark, "")
            same, count, lines = same and (count == nil or n == count), count or n, lines + 1
            if lines == 20 then
                break
            end
        end
        if lines > 0 and (count or 0) > 0 and (same or lines > 3) and (not most or (same and count > most)) then
            best, most = mark, same and count or most or 0
        end
    end
    return best
end

-- Fields of a row, or nil where a quote is open at its end.
local function count_fields(line, mark)
    local plain = string.gsub(line, '"[^"]*"', "")
    if string.find(plain, '"', 1, true) then
        return nil
    end
    local _, n = string.gsub(plain, mark, "")
    return n + 1
end

-- Rows of a table are walked once: how many, and the first that is not as wide as the others.
local function walk_rows(file, mark, visit)
    local rest, row, line, first = "", 0, 0, 1
    for bytes in file.pieces(0, math.min(file.size, MAX_TEXT)) do
        local text, at = rest .. bytes, 1
        for stop, next in string.gmatch(text, "()\r?\n()") do
            line = line + 1
            local fields = count_fields(string.sub(text, at, stop - 1), mark)
            if fields or stop - at > PIECE then
                row = row + ((fields or 1) > 0 and stop > at and 1 or 0)
                if stop > at then
                    visit(first, fields or 0, string.sub(text, at, math.min(stop - 1, at + 500)))
                end
                at, first = next, line + 1
            end
        end
        rest = string.sub(text, at)
        if #rest > 4 * PIECE then
            return row, "a quote or a line has no end", first
        end
    end
    if rest ~= "" then
        local fields = count_fields(rest, mark)
        visit(first, fields or 0, string.sub(rest, 1, 500))
        row = row + 1
        if not fields then
            return row, "a quote has no end", first
        end
    end
    return row
end

local function tell_table(file, mark, out)
    local names = { [","] = "commas", ["\t"] = "tabs", [";"] = "semicolons" }
    out.kind("a table in text (CSV)")
    local width, odd, header
    local rows, wrong, place = walk_rows(file, mark, function(line, fields, text)
        if not width then
            width, header = fields, text
        elseif fields ~= width and not odd then
            odd = { line, fields }
        end
    end)
    header = header and string.gsub(header, "^\xEF\xBB\xBF", "")
    local named = header and not string.find(string.gsub(header, mark, " "), "^[%s%d.+eE-]*$")
    out.ok("table", "%d rows (%s) of %d columns, parted by %s", rows, named and "the first names them" or "no names", width or 0, names[mark])
    if named then
        out.ok("columns", "%s", (string.sub(string.gsub(header, mark, ", "), 1, 200)))
    end
    if wrong then
        out.problem("rows", string.format("%s, from line %d on", wrong, place))
    elseif odd then
        out.problem("rows", string.format("line %d has %d columns, the first row %d", odd[1], odd[2], width))
    end
    if file.size > MAX_TEXT then
        out.note("rows", "the first %d MB were looked at", MAX_TEXT >> 20)
    end
end

-- Compiled, never run: whether it is Lua, and where it is not.
local function tell_script(file, out)
    out.kind("a script of Lua")
    if file.size > MAX_SCRIPT then
        return out.note("script", "longer than %d MB: not looked at", MAX_SCRIPT >> 20)
    end
    local text = file.read(0, file.size)
    local _, lines = string.gsub(text, "\n", "")
    out.ok("script", "%d lines", lines + (string.find(text, "[^\n]$") and 1 or 0))
    local chunk, why = load(string.gsub(string.gsub(text, "^\xEF\xBB\xBF", ""), "^#[^\n]*", ""), "=script", "t", {})
    if not chunk then
        out.problem("syntax", (string.gsub(tostring(why), "^script:(%d+): ", "line %1: ")))
    end
end

-- Is a text more like a script than like prose? Whole ones compile; broken ones have the words of one.
local function is_script(file, head)
    if string.find(head, "^#![^\n]*lua") or string.find(head, "^#![^\n]*tide") or string.find(file.path, "%.lua$") then
        return true
    end
    return file.size <= MAX_SCRIPT and string.find(head, "[=(]")
        and load((string.gsub(file.read(0, file.size), "^#[^\n]*", "")), "=script", "t", {}) ~= nil
end

-- The bytes of a character may be cut at the end of what was read.
local function is_text(head)
    if string.find(head, "%z") then
        return false
    end
    local ok, at = utf8.len(head)
    return ok or at and at > #head - 4
end

local function tell_plain(file, head, out)
    if string.find(head, "^version https://git%-lfs") then
        out.kind("a pointer of Git LFS")
        out.problem("content", "the file itself was not fetched", "git lfs pull")
    elseif string.find(string.lower(head), "^%s*<!doctype html") or string.find(string.lower(head), "^%s*<html") then
        out.kind("a page of HTML")
        out.note("content", "where another file was expected, its download went wrong")
    else
        out.kind("a text")
        local _, lines = string.gsub(head, "\n", "")
        out.ok("content", "%s lines%s", file.size > #head and "more than " .. lines or lines, #head > 0 and ", UTF-8" or "")
    end
end

-- ---- pictures, packed files ----

local colors = { [0] = "grey", [2] = "RGB", [3] = "palette", [4] = "grey with alpha", [6] = "RGB with alpha" }

local function tell_png(file, out)
    out.kind("a picture (PNG)")
    local at, chunks, ended = 8, 0, false
    while at + 12 <= file.size and chunks < 1000000 do
        local length, name = string.unpack(">I4c4", file.read(at, 8))
        chunks = chunks + 1
        if chunks == 1 then
            if name ~= "IHDR" or length ~= 13 or at + 25 > file.size then
                return out.problem("header", "its first chunk is no header (IHDR)")
            end
            local width, height, depth, color = string.unpack(">I4I4BB", file.read(at + 8, 10))
            out.ok("picture", "%d × %d, %s, %d bits", width, height, colors[color] or "unknown colours", depth)
        end
        at = at + 12 + length
        if name == "IEND" then
            ended = true
            break
        end
    end
    if not ended or at > file.size then
        out.problem("length", "cut off: its end (IEND) is missing", "fetch the file again")
    elseif at < file.size then
        out.note("length", "%d bytes behind its end", file.size - at)
    end
end

-- A packed text of JSON is looked at as such; of anything else, what its first bytes are.
local function tell_packed(file, out)
    out.kind("packed by gzip")
    local reader, why = tide._doctor_calls.unzip(file.path)
    if not reader then
        return out.problem("content", why)
    end
    local _close <close> = reader
    local total, broken, first = 0, nil, nil
    local function read()
        if broken or total > MAX_TEXT then
            return nil
        end
        local bytes, problem = reader:read()
        total, broken = total + #(bytes or ""), problem
        return bytes
    end
    first = read()
    if first and string.find(first, "^%s*[{%[]") then
        local pending = first
        tide._require("doctor.json").tell(function()
            local bytes = pending or read()
            pending = nil
            return bytes
        end, out, function() return broken or total > MAX_TEXT end)
    elseif first then
        out.ok("content", "%s", string.sub(first, 1, 6) == "\x93NUMPY" and "an array of NumPy" or string.sub(first, 258, 262) == "ustar" and "an archive (tar)"
            or is_text(first) and "a text" or "bytes of an unknown kind")
        repeat until not read()
    end
    if total > MAX_TEXT then
        out.note("length", "unpacks to more than %d MB: no more was looked at", MAX_TEXT >> 20)
    elseif not broken then
        out.ok("length", "%d bytes, %d unpacked", file.size, total)
    end
    if broken then
        out.problem("length", broken == "cut off" and "cut off" or "damaged: " .. string.gsub(broken, "^.*: ", ""), "fetch or write the file again")
    end
end

-- ---- which is it? ----

-- Eight bytes with a length, which letters would make longer than any file, and JSON behind them.
local function is_safetensors(file, head)
    return #head >= 10 and not string.find(head, "^[\t\n\r -~][\t\n\r -~][\t\n\r -~][\t\n\r -~][\t\n\r -~]") and string.sub(head, 9, 9) == "{" and string.find(head, '^%s*["}]', 10) ~= nil
        or string.find(file.path, "%.safetensors$") and #head >= 8 and not is_text(head)
end

local function is_json(file, head)
    return string.find(file.path, "%.json$") or string.find(file.path, "%.ipynb$") or string.find(head, "^[%s]*[{%[]%s*[%[{\"%d%-%]}tfn]") ~= nil or string.find(head, "^\xEF\xBB\xBF%s*[{%[]") ~= nil
end

local function tell_kind(file, head, out)
    if string.sub(head, 1, 6) == "\x93NUMPY" then
        tide._require("doctor.arrays").npy(file, out)
    elseif string.sub(head, 1, 4) == "PK\3\4" or string.sub(head, 1, 4) == "PK\5\6" then
        tide._require("doctor.zip").tell(file, out)
    elseif string.sub(head, 1, 8) == "\x89PNG\r\n\x1a\n" then
        tell_png(file, out)
    elseif string.sub(head, 1, 4) == "GGUF" then
        tide._require("doctor.arrays").gguf(file, out)
    elseif string.sub(head, 1, 2) == "\x1f\x8b" then
        tell_packed(file, out)
    elseif string.sub(head, 1, 4) == "\x89HDF" then
        out.kind("a file of HDF5")
        out.note("reading", "Tide has no reader of HDF5: in Python, safetensors.numpy.save_file writes what it reads")
    elseif string.sub(head, 1, 4) == "\27Lua" then
        out.kind("compiled Lua")
        out.problem("content", "Tide loads scripts as texts alone", "get the script that it was compiled of")
    elseif string.sub(head, 1, 4) == "\x7fELF" then
        out.kind("a program or a library (ELF)")
    elseif is_safetensors(file, head) then
        tide._require("doctor.arrays").safetensors(file, out)
    elseif tide._require("files.torch").is_stream(head) then
        tide._require("doctor.torch").legacy(file, out)
    elseif string.find(head, "^\x80[\1-\5]") then
        tide._require("doctor.torch").pickle(file, out)
    elseif tide._require("doctor.onnx").is_model(file) then
        tide._require("doctor.onnx").tell(file, out)
    elseif is_json(file, head) then
        local long = file.size > MAX_JSON
        tide._require("doctor.json").tell(file.pieces(0, math.min(file.size, MAX_JSON)), out, function() return long end)
        if long then
            out.note("length", "longer than %d MB: no more was looked at", MAX_JSON >> 20)
        end
        if long and not string.find(file.read(file.size - 4096, 4096), "[%]}]%s*$") then
            out.problem("length", "cut off: its last list has no end", "fetch or write the file again")
        end
    elseif not is_text(head) then
        out.kind("of a kind that Tide doesn't know")
        out.note("content", "begins with the bytes %s", (string.gsub(string.sub(head, 1, 8), ".", function(c) return string.format("%02x ", string.byte(c)) end)))
    elseif is_script(file, head) then
        tell_script(file, out)
    else
        local mark = delimiter_of(head)
        if mark then
            tell_table(file, mark, out)
        else
            tell_plain(file, head, out)
        end
    end
end

--- look(path, out): all that can be said of a file.
return function(path, out)
    local facts, why = tide._doctor_calls.stat(path)
    if not facts then
        return out.problem("file", why, string.find(why, "ermission") and "sudo chmod a+r " .. out.quoted or nil)
    elseif facts.kind ~= "file" then
        return out.problem("file", string.format("a %s, not a file", facts.kind))
    elseif not facts.readable then
        return out.problem("file", "may not be read", "chmod u+r " .. out.quoted)
    elseif facts.size == 0 then
        out.kind("an empty file")
        return out.problem("length", "0 bytes: whatever wrote it was stopped", "fetch or write the file again")
    end
    local file, problem = open_file(path, facts.size)
    if not file then
        return out.problem("file", problem)
    end
    tell_kind(file, file.read(0, 1 << 16), out)
    file.close()
end
