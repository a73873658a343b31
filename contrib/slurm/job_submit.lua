-- Slurm's job_submit/lua plugin, in slurmctld: see README.md. slurmctld holds its locks meanwhile, so
-- there is one short look-up, and any mistake leaves the job as it is.
local here = debug.getinfo (1, "S").source:match ("^@(.*)/[^/]*$") or "/etc/slurm"
local ferry, site = dofile (here .. "/ferry.lua"), dofile (here .. "/site.lua")

local function apply (job)
  local tasks = job.ntasks_per_node
  local change = ferry.rewrite (site, { text = job[site.field or "comment"], gres = job.tres_per_node,
                                        tasks_per_node = tasks and tasks < 0xfffe and tasks or nil }, site.limit_s)
  if change.gres then job.tres_per_node = change.gres end
  if change.gres or change.host_mib then job.admin_comment = change.say end
  if change.per_task then job.tres_per_task = change.per_task end
  if change.feature then
    job.features = job.features and job.features ~= "" and job.features .. "&" .. change.feature or change.feature
  end
  if change.host_mib and job.min_mem_per_node then
    job.min_mem_per_node = job.min_mem_per_node + change.host_mib
  end
  return change
end

function slurm_job_submit (job, partitions, uid)
  local ok, change = pcall (apply, job)
  if not ok then
    slurm.log_error ("ferry: %s", tostring (change))
    return slurm.SUCCESS
  end
  if change.refuse then
    slurm.log_user ("%s", change.refuse)
    return slurm.ERROR
  end
  if change.say then slurm.log_user ("%s", change.say) end
  return slurm.SUCCESS
end

function slurm_job_modify (job, record, partitions, uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
