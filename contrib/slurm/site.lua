-- What a site says of itself; everything beside server has a meaning without being changed.
return {
  server = "http://127.0.0.1:8077", -- of `ferry serve`; "unix:/run/ferry.sock" too
  header_file = nil,                -- a file with one line, "Authorization: Bearer TOKEN"
  shard_bytes = 1024 * 1024 * 1024, -- memory that one shard stands for
  card_bytes = 80 * 1024 * 1024 * 1024,
  cards = nil,                      -- several sizes: { a100 = { bytes = 40 << 30, feature = "a100" }, ... }; a job that names
                                    -- a type stays on nodes with its feature, another's counts by the largest
  share = "shard",                  -- or "mps": hundredths of a card, which MPS enforces
  field = "comment",                -- of the job that has the word ferry:FINGERPRINT: or "extra", "wckey"
  host = nil,                       -- of `ferry hosts`, for jobs with several cards: advice for all of them together; a row of cards may have its own
  per_task = false,                 -- can Slurm divide the cards of several tasks? Then sbatch --help has --tres-per-task
  card_type = nil,                  -- only requests for this type of card are changed; nil: any
  slowdown_ppm = 50000,             -- how much longer a step may take, in millionths
  refuse = false,                   -- refuse a job that needs more than a card; else leave it alone
  limit_s = 0.15,                   -- the longest that a submission waits in slurmctld
  patience_s = 2,                   -- and in the user's own sbatch, where cli_filter is on
  silence_s = 30,                   -- so long nobody asks an advisor that did not answer in time
  keep_s = 60,                      -- so long an answer is used again
}
