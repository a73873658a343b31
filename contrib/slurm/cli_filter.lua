-- Slurm's cli_filter/lua plugin, in the user's own sbatch, srun or salloc: the same change as
-- job_submit.lua makes, where waiting a little longer is nobody else's loss.
local here = debug.getinfo (1, "S").source:match ("^@(.*)/[^/]*$") or "/etc/slurm"
local ferry, site = dofile (here .. "/ferry.lua"), dofile (here .. "/site.lua")

-- "500", "2G", "2gb": in MB; nil where nothing was asked for.
local function megabytes (text)
  local units = { K = 1 / 1024, M = 1, G = 1024, T = 1024 * 1024 }
  local number, unit = tostring (text or ""):upper ():match ("^(%d+)([KMGT]?)B?$")
  return number and math.ceil (tonumber (number) * (units[unit] or 1)) or nil
end

local function apply (options)
  local change = ferry.rewrite (site, { text = options[site.field or "comment"], gres = options["gres"],
                                        tasks_per_node = tonumber (options["ntasks-per-node"]) }, site.patience_s)
  if change.gres then options["gres"] = change.gres end
  if change.per_task then options["tres-per-task"] = change.per_task end
  if change.feature then
    local has = options["constraint"]
    options["constraint"] = has and has ~= "" and has .. "&" .. change.feature or change.feature
  end
  local asked = megabytes (options["mem"])
  if change.host_mib and asked and asked > 0 then
    options["mem"] = string.format ("%.0fM", asked + change.host_mib)
  end
  return change
end

function slurm_cli_pre_submit (options, pack_offset)
  local ok, change = pcall (apply, options)
  if not ok then
    slurm.log_error ("ferry: %s", tostring (change))
    return slurm.SUCCESS
  end
  if change.refuse or change.say then slurm.log_info ("%s", change.refuse or change.say) end
  return change.refuse and slurm.ERROR or slurm.SUCCESS
end

function slurm_cli_setup_defaults (options, early)
  return slurm.SUCCESS
end

function slurm_cli_post_submit (offset, job, step)
  return slurm.SUCCESS
end

return slurm.SUCCESS
