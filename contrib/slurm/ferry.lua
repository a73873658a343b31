-- Shares of a card by ferry's advice: what job_submit.lua and cli_filter.lua have in common.
-- A job whose comment, or another field, has the word ferry:FINGERPRINT or ferry:FINGERPRINT@PPM gets as many shards of
-- its card as the advice says. Nothing is solved here, and whatever goes wrong leaves the job
-- as it was asked for.
local ferry = {}

local MIB = 1024 * 1024
local answers, kept, silent_until = {}, 0, 0

-- The fingerprint that a word of the field names, or nil, and the slowdown that stands behind it, in millionths. Both
-- go into a shell command: nothing else may pass.
local function read_word (word)
  local print, ppm = word:match ("^ferry:([%w_][%w._-]*)(@?%d*)$")
  if not print or #print > 64 then return nil end
  if ppm == "" then return print end
  ppm = ppm:match ("^@(%d+)$")
  if not ppm or #ppm > 9 or ppm:match ("^0.") then return nil end
  return print, tonumber (ppm)
end

-- The field may say other things too: the first word of ours counts.
function ferry.asked (text)
  if type (text) ~= "string" then return nil end
  for word in text:gmatch ("[^%s,;]+") do
    if word:sub (1, 6) == "ferry:" then return read_word (word) end
  end
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
    slowdown = tonumber (text:match ('"slowdown":(%-?[%d.]+)')),
    reason = text:match ('"reason":"([^"\\]*)"') or "it does not fit",
  }
  if text:match ('"fits":false') then -- where no budget is fast enough there are no bytes to tell of
    advice.card_bytes, advice.host_bytes = advice.card_bytes or 0, advice.host_bytes or 0
  end
  return advice.card_bytes and advice.host_bytes and advice or nil
end

-- Advice, or nil and why not. An advisor that did not answer is left alone for a while: of many
-- submissions that meet a frozen one, the first alone waits.
-- With a host, for so many ranks on its cards, and their pinned memory is that of all.
function ferry.advice (site, print, slowdown_ppm, card_bytes, limit_s, host, ranks)
  local key = string.format ("%s@%.0f@%.0f@%s@%.0f", print, slowdown_ppm, card_bytes, host or "", ranks or 1)
  local now, known = os.time (), answers[key]
  if known and now < known.until_s then return known.advice, known.why end
  if now < silent_until then return nil, "the advisor does not answer" end
  local of = host and string.format ("host=%s&ranks=%.0f", host, ranks) or string.format ("gpu_memory_bytes=%.0f", card_bytes)
  local path = string.format ("/v1/advice?fingerprint=%s&%s&max_slowdown_ppm=%.0f", print, of, slowdown_ppm)
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

-- "gres:gpu:fake:1" is prefix, name, type and count; nil for what is not one thing.
local function read_gres (text)
  local prefix, rest = text:match ("^(gres[:/])(.*)$")
  if not prefix then prefix, rest = "", text end
  local name, kind, count = rest:match ("^(%a+):([%w._-]+):(%d+)$")
  if not name then name, count = rest:match ("^(%a+):(%d+)$") end
  if not name then name, kind = rest:match ("^(%a+):([%w._-]+)$") end
  if not name then name = rest:match ("^(%a+)$") end
  return name and { prefix = prefix, name = name, kind = kind, count = tonumber (count or 1) } or nil
end

-- The one of a list that is about cards, its place, and the whole list; nil where there is none, or more than one.
local function find_gres (text)
  local list, found, place = {}, nil, nil
  if type (text) ~= "string" then return nil end
  for part in text:gmatch ("[^,]+") do
    list[#list + 1] = part
    local gres = read_gres (part)
    if gres and (gres.name == "gpu" or gres.name == "shard" or gres.name == "mps") then
      if found then return nil end
      found, place = gres, #list
    end
  end
  return found, place, list
end

-- Bytes of a card: of its type, where the site has several, and else of the largest.
local function card_of (site, kind)
  if not site.cards then return { bytes = site.card_bytes } end
  if kind then return site.cards[kind] end
  local most = nil
  for _, card in pairs (site.cards) do
    if not most or card.bytes > most.bytes then most = card end
  end
  return most
end

-- Parts of a card: shards of a size, or MPS's hundredths of it.
local function parts_of (site, card, bytes)
  if site.share == "mps" then return math.ceil (100 * bytes / card.bytes) end
  return math.ceil (bytes / site.shard_bytes)
end

local function most_of (site, card)
  return site.share == "mps" and 100 or math.floor (card.bytes / site.shard_bytes)
end

local function words_of (site)
  if site.share == "mps" then return "mps", "hundredths" end
  return "shard", "shards"
end

local function with_parts (site, gres, place, list, parts)
  list[place] = string.format ("%s%s:%.0f", gres.prefix, (words_of (site)), parts)
  return table.concat (list, ",")
end

-- More parts than a card has are never free: such a job would wait for ever, others behind it.
local function clamp (site, gres, place, list)
  local most = most_of (site, card_of (site))
  local word, name = words_of (site)
  if gres.name ~= word or gres.count <= most then return {} end
  return { gres = with_parts (site, gres, place, list, most),
           say = string.format ("ferry: a card has %.0f %s; %.0f were asked for", most, name, gres.count) }
end

-- Is each of several cards a task's, and can Slurm divide it there?
local function by_task (site, asked, gres)
  return site.per_task and asked.tasks_per_node == gres.count
end

-- Why a request for cards stays as it is; nil: it need not.
local function why_not (site, asked, gres)
  if site.card_type and gres.kind and gres.kind ~= site.card_type then return "" end
  local card = card_of (site, gres.kind)
  if not card then return "ferry: site.lua knows no card " .. gres.kind .. "; the job keeps its own" end
  if site.cards and gres.kind and not card.feature then
    return "ferry: site.lua names no feature of nodes with a " .. gres.kind .. "; the job keeps its card"
  end
  if gres.count ~= 1 and not by_task (site, asked, gres) and not (card.host or site.host) then
    return not site.per_task and asked.tasks_per_node == gres.count and "ferry: site.lua has no per_task; the job keeps its cards" or
           "ferry: several cards are shared where each task has one (--ntasks-per-node); the job keeps its cards"
  end
end

-- One card is the node's; each of several is a task's, of whose parts no two lie on different cards, or stays whole.
local function shared (site, asked, gres, place, list, parts)
  if gres.count ~= 1 and not by_task (site, asked, gres) then return { whole = true } end
  if gres.count == 1 then return { gres = with_parts (site, gres, place, list, parts) } end
  local prefix = gres.prefix ~= "" and gres.prefix or "gres/" -- older versions of Slurm take "gres:" alone
  table.remove (list, place)
  return { gres = table.concat (list, ","), per_task = string.format ("%s%s:%.0f", prefix, (words_of (site)), parts) }
end

-- What becomes of a request: gres, per_task (instead of cards of a node), feature (that its nodes must have), host_mib to
-- add, say (a line for the user), refuse. All may be nil. asked: text (of the site's field), gres and tasks_per_node.
function ferry.rewrite (site, asked, limit_s)
  local print, slowdown_ppm = ferry.asked (asked.text)
  local gres, place, list = find_gres (asked.gres)
  if not print or not gres then return {} end
  if gres.name ~= "gpu" then return clamp (site, gres, place, list) end
  local stays = why_not (site, asked, gres)
  if stays then return { say = stays ~= "" and stays or nil } end
  local card = card_of (site, gres.kind)
  local host = gres.count > 1 and (card.host or site.host) or nil
  local advice, why = ferry.advice (site, print, slowdown_ppm or site.slowdown_ppm, card.bytes, limit_s, host, gres.count)
  if not advice then return { say = "ferry: " .. why .. "; the job keeps its card" } end
  local parts, most = parts_of (site, card, advice.card_bytes), most_of (site, card)
  local change = shared (site, asked, gres, place, list, parts)
  if not advice.fits or (parts > most and not change.whole) then
    if site.refuse then return { refuse = "ferry: " .. advice.reason } end
    return { say = "ferry: " .. advice.reason .. "; the job keeps its card" }
  end
  change.feature = not change.whole and site.cards and gres.kind and card.feature or nil
  change.host_mib = math.ceil (advice.host_bytes / MIB) * (host and 1 or gres.count)
  local cards = change.whole and string.format ("%.0f whole cards", gres.count) or
                string.format ("%.0f of a card's %.0f %s", parts, most, select (2, words_of (site)))
  change.say = string.format ("ferry: %s, and %.0f MB of pinned host memory%s%s", cards, change.host_mib, host and string.format (" for %.0f ranks on %s", gres.count, host) or "",
                              advice.slowdown and string.format ("; a step takes %.1f %% longer", 100 * advice.slowdown) or "")
  return change
end

return ferry
