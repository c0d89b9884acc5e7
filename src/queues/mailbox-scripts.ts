/**
 * The only place that knows BullMQ's key layout: one script over queues that have no Worker. It rests on this much of
 * it, which the conformance suite holds to BullMQ's public API:
 * - `<queue>:wait` is a list of job ids, pushed on the left, the oldest on the right; `prioritized` and `delayed` are
 *   sorted sets of job ids, and clients of older releases push to `paused` while a queue is paused;
 * - `<queue>:<job id>` is the job's hash with its payload as JSON in `data`, its deduplication id in `deid`;
 * - `<queue>:de:<id>` and `<queue>:dn:<id>` belong to a deduplication id; the other keys of a queue are `lastKeys`.
 */

/** Keys of a queue that stay when its last job is gone. */
const lastKeys = ["meta", "id", "events", "marker", "pc"];

/**
 * Any number of operations on queues of one shard in one call, each for itself: a queue that is broken spoils only its
 * own answer. KEYS: the `wait` list of each operation's queue; the others have the same prefix, hence the same hash tag.
 * ARGV, for each operation: how many heads to answer, how many job ids follow, the job ids to remove.
 *
 * An operation removes its jobs with everything that is theirs, wherever they wait, and the queue's last keys if nothing
 * is left (I10). What is delayed or prioritized is moved to `wait` (order is by number, so where it lands does not
 * matter). Answers how many were moved, then the oldest jobs as id, data, id, data …; or the text of an error.
 */
export const shelfScript = `
local call = redis.call
local lastKeys = {${lastKeys.map((key) => `'${key}'`).join(", ")}}

local function gather(wait, p)
  if call('EXISTS', p .. 'prioritized', p .. 'delayed', p .. 'paused') == 0 then return 0 end
  local moved = 0
  for _, set in ipairs({'prioritized', 'delayed'}) do
    for _, id in ipairs(call('ZRANGE', p .. set, 0, -1)) do
      call('LPUSH', wait, id)
      moved = moved + 1
    end
  end
  for _, id in ipairs(call('LRANGE', p .. 'paused', 0, -1)) do
    call('LPUSH', wait, id)
    moved = moved + 1
  end
  call('DEL', p .. 'prioritized', p .. 'delayed', p .. 'paused', p .. 'pc')
  return moved
end

local function heads(wait, p, count, moved)
  local answer = {moved}
  if count == 0 then return answer end
  local ids = call('LRANGE', wait, -count, -1)
  for i = #ids, 1, -1 do
    local data = call('HGET', p .. ids[i], 'data')
    if data then
      answer[#answer + 1] = ids[i]
      answer[#answer + 1] = data
    else
      call('LREM', wait, -1, ids[i]) -- an id without a hash is no job
    end
  end
  return answer
end

local function forget(p, id, gone)
  local deid = call('HGET', p .. id, 'deid')
  if deid and call('GET', p .. 'de:' .. deid) == id then
    gone[#gone + 1] = p .. 'de:' .. deid
    gone[#gone + 1] = p .. 'dn:' .. deid
  end
  gone[#gone + 1] = p .. id
  gone[#gone + 1] = p .. id .. ':logs'
end

local function remove(wait, p, from, to)
  local gone = {}
  for i = from, to do
    local id = ARGV[i]
    if call('LREM', wait, -1, id) == 0 then
      call('ZREM', p .. 'prioritized', id)
      call('ZREM', p .. 'delayed', id)
      call('LREM', p .. 'paused', -1, id)
    end
    forget(p, id, gone)
  end
  local left = call('EXISTS', wait, p .. 'prioritized', p .. 'delayed', p .. 'paused') > 0
  if not left then
    for _, key in ipairs(lastKeys) do gone[#gone + 1] = p .. key end
  end
  call('DEL', unpack(gone))
  return left
end

local function operate(wait, at)
  local p = string.sub(wait, 1, -5)
  local ids = tonumber(ARGV[at + 1])
  if ids > 0 and not remove(wait, p, at + 2, at + 1 + ids) then return {0} end
  return heads(wait, p, tonumber(ARGV[at]), gather(wait, p))
end

local answers = {}
local at = 1
for i, wait in ipairs(KEYS) do
  local fine, answer = pcall(operate, wait, at)
  if fine then
    answers[i] = answer
  else
    answers[i] = type(answer) == 'table' and answer.err or tostring(answer)
  end
  at = at + 2 + tonumber(ARGV[at + 1])
end
return answers`;
