/**
 * The only place that knows BullMQ's key layout: two scripts over a queue that has no Worker. They rest on this much of
 * it, which the conformance suite holds to BullMQ's public API:
 * - `<queue>:wait` is a list of job ids, pushed on the left, the oldest on the right; `prioritized` and `delayed` are
 *   sorted sets of job ids, and clients of older releases push to `paused` while a queue is paused;
 * - `<queue>:<job id>` is the job's hash with its payload as JSON in `data`, its deduplication id in `deid`;
 * - `<queue>:de:<id>` and `<queue>:dn:<id>` belong to a deduplication id; the other keys of a queue are those of
 *   `lastKeys`.
 * KEYS are wait, prioritized, delayed, paused; all other keys have the same prefix, hence the same hash tag.
 */

/** Keys of a queue that stay when its last job is gone. */
const lastKeys = ["meta", "id", "events", "marker", "pc", "limiter", "stalled", "stalled-check"];

/** Moves what lies elsewhere to `wait`; answers how many. Order is by number, so where they land does not matter. */
const gather = `
local function gather(prefix)
  if redis.call('EXISTS', KEYS[2], KEYS[3], KEYS[4]) == 0 then return 0 end
  local moved = 0
  for _, key in ipairs({KEYS[2], KEYS[3]}) do
    for _, id in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      redis.call('LPUSH', KEYS[1], id)
      moved = moved + 1
    end
  end
  for _, id in ipairs(redis.call('LRANGE', KEYS[4], 0, -1)) do
    redis.call('LPUSH', KEYS[1], id)
    moved = moved + 1
  end
  redis.call('DEL', KEYS[2], KEYS[3], KEYS[4], prefix .. 'pc')
  return moved
end`;

/** The oldest jobs as id, data, id, data …; an id without a hash is no job and is dropped. */
const heads = `
local function heads(prefix, count, answer)
  local ids = redis.call('LRANGE', KEYS[1], -count, -1)
  for i = #ids, 1, -1 do
    local data = redis.call('HGET', prefix .. ids[i], 'data')
    if data then
      answer[#answer + 1] = ids[i]
      answer[#answer + 1] = data
    else
      redis.call('LREM', KEYS[1], -1, ids[i])
    end
  end
  return answer
end`;

/** ARGV: prefix, count. Answers the number of gathered jobs, then the heads. */
export const peekScript = `${gather}${heads}
local moved = gather(ARGV[1])
return heads(ARGV[1], tonumber(ARGV[2]), {moved})`;

/**
 * ARGV: prefix, count, job ids. Removes the jobs with everything that is theirs, wherever they wait, and the queue's
 * last keys if nothing is left (I10); answers as `peekScript` does.
 */
export const settleScript = `${gather}${heads}
local prefix = ARGV[1]
local gone = {}
for i = 3, #ARGV do
  local job = prefix .. ARGV[i]
  if redis.call('LREM', KEYS[1], -1, ARGV[i]) == 0 then
    redis.call('ZREM', KEYS[2], ARGV[i])
    redis.call('ZREM', KEYS[3], ARGV[i])
    redis.call('LREM', KEYS[4], -1, ARGV[i])
  end
  local deid = redis.call('HGET', job, 'deid')
  if deid and redis.call('GET', prefix .. 'de:' .. deid) == ARGV[i] then
    redis.call('DEL', prefix .. 'de:' .. deid, prefix .. 'dn:' .. deid)
  end
  gone[#gone + 1] = job
  gone[#gone + 1] = job .. ':logs'
  gone[#gone + 1] = job .. ':lock'
end
if #gone > 0 then redis.call('DEL', unpack(gone)) end
if redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3], KEYS[4]) == 0 then
  redis.call('DEL', ${lastKeys.map((key) => `prefix .. '${key}'`).join(", ")})
  return {0}
end
local moved = gather(prefix)
return heads(prefix, tonumber(ARGV[2]), {moved})`;

/** The keys that both scripts are given, for a queue's prefix (`<prefix>:<queue>:`). */
export function scriptKeys(prefix: string): [string, string, string, string] {
  return [`${prefix}wait`, `${prefix}prioritized`, `${prefix}delayed`, `${prefix}paused`];
}
