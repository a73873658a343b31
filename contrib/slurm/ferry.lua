-- Shares of a card by ferry's advice: what job_submit.lua and cli_filter.lua have in common.
-- A job with the comment ferry:FINGERPRINT, or ferry:FINGERPRINT@PPM, that asks for one card gets as
-- many shards of it as the advice says. Nothing is solved here, and whatever goes wrong leaves the job
-- as it was asked for.
local ferry = {}

local MIB = 1024 * 1024
local answers, kept, silent_until = {}, 0, 0

-- The fingerprint of a comment, or nil, and the slowdown that stands behind it, in millionths. Both go
-- into a shell command: nothing else may pass.
function ferry.asked (comment)
  if type (comment) ~= "string" then return nil end
  local print, ppm = comment:match ("^ferry:([%w_][%w._-]*)(@?%d*)$")
  if not print or #print > 64 then return nil end
  if ppm == "" then return print end
  ppm = ppm:match ("^@(%d+)$")
  if not ppm or #ppm > 9 or ppm:match ("^0.") then return nil end
  return print, tonumber (ppm)
end

local function command (site, limit_s, path)
  local server, socket = site.server, ""
  if server:sub (1, 5) == "unix:" then
    server, socket = "http://localhost", "--unix-socket '" .. server:sub (6) .. "' "
  end
  local header = site.header_file and "-H '@" .. site.header_file .. "' " or ""
  return string.format ("exec timeout -s KILL %.3f curl -s --noproxy '*' -w '\n%%{http_code}' %s%s'%s%s' 2>/dev/null",
                        limit_s, socket, header, server, path)
end

local function read_advice (text)
  local advice = {
    fits = text:match ('"fits":true') ~= nil,
    card_bytes = tonumber (text:match ('"card_bytes":(%d+)')), -- what the process itself takes of the card counts too
    host_bytes = tonumber (text:match ('"pinned_host_bytes":(%d+)')),
    reason = text:match ('"reason":"([^"\\]*)"') or "it does not fit",
  }
  if text:match ('"fits":false') then -- where no budget is fast enough there are no bytes to tell of
    advice.card_bytes, advice.host_bytes = advice.card_bytes or 0, advice.host_bytes or 0
  end
  return advice.card_bytes and advice.host_bytes and advice or nil
end

-- Advice, or nil and why not. An advisor that did not answer is left alone for a while: of many
-- submissions that meet a frozen one, the first alone waits.
function ferry.advice (site, print, slowdown_ppm, limit_s)
  local key = string.format ("%s@%.0f", print, slowdown_ppm)
  local now, known = os.time (), answers[key]
  if known and now < known.until_s then return known.advice, known.why end
  if now < silent_until then return nil, "the advisor does not answer" end
  local path = string.format ("/v1/advice?fingerprint=%s&gpu_memory_bytes=%.0f&max_slowdown_ppm=%.0f",
                              print, site.card_bytes, slowdown_ppm)
  local pipe = io.popen (command (site, limit_s, path))
  local text = pipe and pipe:read ("*a") or ""
  if pipe then pipe:close () end
  local status = text:match ("\n(%d+)$")
  local advice = status == "200" and read_advice (text) or nil
  local why = not advice and "nothing is known of " .. print .. ": record three steps, then ferry submit" or nil
  if not advice and status ~= "404" then
    silent_until = now + site.silence_s
    return nil, "the advisor does not answer"
  end
  if kept >= 1000 then answers, kept = {}, 0 end
  if not known then kept = kept + 1 end
  answers[key] = { advice = advice, why = why, until_s = now + (advice and site.keep_s or 5) }
  return advice, why
end

-- "gres:gpu:fake:1" is prefix, name, type and count; nil for lists and what else is not one thing.
local function read_gres (text)
  if type (text) ~= "string" or text:find (",", 1, true) then return nil end
  local prefix, rest = text:match ("^(gres[:/])(.*)$")
  if not prefix then prefix, rest = "", text end
  local name, kind, count = rest:match ("^(%a+):([%w._-]+):(%d+)$")
  if not name then name, count = rest:match ("^(%a+):(%d+)$") end
  if not name then name, kind = rest:match ("^(%a+):([%w._-]+)$") end
  if not name then name = rest:match ("^(%a+)$") end
  return name and { prefix = prefix, name = name, kind = kind, count = tonumber (count or 1) } or nil
end

local function shards_text (gres, shards)
  return string.format ("%sshard:%.0f", gres.prefix, shards)
end

-- More shards than a card has are never free: such a job would wait for ever, others behind it.
local function clamp (gres, most)
  if gres.count <= most then return {} end
  return { gres = shards_text (gres, most),
           say = string.format ("ferry: a card has %.0f shards; %.0f were asked for", most, gres.count) }
end

-- What becomes of a request: gres, host_mib to add, say (a line for the user), refuse. All may be
-- nil. asked: comment and gres.
function ferry.rewrite (site, asked, limit_s)
  local print, slowdown_ppm = ferry.asked (asked.comment)
  local gres = read_gres (asked.gres)
  if not print or not gres then return {} end
  local most = math.floor (site.card_bytes / site.shard_bytes)
  if gres.name == "shard" then return clamp (gres, most) end
  if gres.name ~= "gpu" or gres.count ~= 1 then return {} end
  if site.card_type and gres.kind and gres.kind ~= site.card_type then return {} end
  local advice, why = ferry.advice (site, print, slowdown_ppm or site.slowdown_ppm, limit_s)
  if not advice then return { say = "ferry: " .. why .. "; the job keeps its card" } end
  local shards = math.ceil (advice.card_bytes / site.shard_bytes)
  if not advice.fits or shards > most then
    if site.refuse then return { refuse = "ferry: " .. advice.reason } end
    return { say = "ferry: " .. advice.reason .. "; the job keeps its card" }
  end
  local host_mib = math.ceil (advice.host_bytes / MIB)
  return { gres = shards_text (gres, shards), host_mib = host_mib,
           say = string.format ("ferry: %.0f of a card's %.0f shards, and %.0f MB of pinned host memory",
                                shards, most, host_mib) }
end

return ferry
