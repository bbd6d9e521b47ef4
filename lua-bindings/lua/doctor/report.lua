-- doctor/report.lua: what `tide --doctor` prints: findings about this machine or about files, a line each: a word first (ok,
-- note, problem), the topic, what was found, and the command that mends it.
local tide = ...

tide._doctor_calls = tide._system_calls()

-- One line of a terminal: nothing that a file holds moves its cursor.
local function plain(text)
    text = string.gsub(text, "%c", "?")
    return utf8.len(text) and text or (string.gsub(text, "[\x80-\xFF]", "?"))
end

--- quoted(path): as a shell takes it.
local function quoted(path)
    if string.find(path, "^[%w%./_+,@:-]+$") and string.sub(path, 1, 1) ~= "-" then
        return path
    end
    return (string.sub(path, 1, 1) == "-" and "./" or "") .. "'" .. string.gsub(path, "'", "'\\''") .. "'"
end

-- What gathers findings: ok and note take a format and its values, problem a text and a command.
local function new_report(path)
    local report = { findings = {}, quoted = path and quoted(path), quote = quoted }
    local function add(level, topic, text, mend)
        local list = report.findings
        list[#list + 1] = { level = level, topic = topic, text = plain(text), mend = mend and plain(mend) or nil }
    end
    function report.ok(topic, ...) add("ok", topic, string.format(...)) end
    function report.note(topic, ...) add("note", topic, string.format(...)) end
    function report.mended(topic, text, mend) add("note", topic, text, mend) end
    function report.problem(topic, text, mend) add("problem", topic, text, mend) end
    function report.kind(text)
        add("ok", report.is and "holds" or "file", report.is and text or path .. ": " .. text)
        report.is = report.is or text
    end
    return report
end

local function line_of(finding)
    return string.format("%-8s %-12s %s%s", finding.level, finding.topic, finding.text,
        finding.mend and "; mend: " .. finding.mend or "")
end

local function look_at(path)
    local report = new_report(path)
    local ok, why = pcall(tide._require "doctor.file", path, report)
    if not ok then
        if not string.find(tostring(why), "memory") then
            error(why, 0)
        end
        report.problem("file", "not looked at any further: " .. tostring(why))
    end
    if not report.is then -- not even opened
        report.findings[1].text = plain(path) .. ": " .. report.findings[1].text
    end
    return report
end

local function as_json(reports, paths)
    local json, out = tide._require "files.json", {}
    for k, report in ipairs(reports) do
        out[k] = { findings = json.list(report.findings), file = paths[k] and plain(paths[k]) or nil, is = report.is }
    end
    return { json.encode(#paths == 0 and out[1] or json.list(out), "--doctor") }
end

--- _doctor(json, cpu, ...): lines for `tide --doctor`, with `code`, that of the program; json: "json" for one line of JSON;
--- cpu: what TIDE_CPU named in vain; the rest are paths: with none, the machine is looked at.
return function(form, cpu, ...)
    local paths, reports, lines, code = { ... }, {}, {}, 0
    if #paths == 0 then
        reports[1] = new_report()
        tide._require("doctor.machine")(reports[1], cpu)
    end
    for k, path in ipairs(paths) do
        reports[k] = look_at(path)
    end
    for _, report in ipairs(reports) do
        for _, finding in ipairs(report.findings) do
            lines[#lines + 1] = line_of(finding)
            code = finding.level == "problem" and 1 or code
        end
    end
    lines = form == "json" and as_json(reports, paths) or lines
    lines.code = code
    return lines
end
