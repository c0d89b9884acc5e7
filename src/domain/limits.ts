/**
 * Every limit of Headfast, in one file. The unit is in the name; the reason stands beside it.
 * The relations between limits are asserted when the module is loaded.
 */
import assert from "node:assert/strict";

const KiB = 1024;
const MiB = 1024 * KiB;

export const limits = {
  // ── ids and input ────────────────────────────────────────────────────────────────────────────
  /** A session id, turn id or user id, in UTF-8 bytes: platforms compose ids, none comes near this. */
  idBytesMax: 4 * KiB,
  /** A bot's name: it stands in metrics labels and file names. */
  botNameBytesMax: 128,
  /** One input: far above what a person types, far below the 16 MB of a MongoDB document. */
  inputBytesMax: 1 * MiB,
  /** A user's display name. */
  userNameBytesMax: 1 * KiB,
  /** A host's note. */
  noteBytesMax: 16 * KiB,
  /** Notes told in one turn; the rest waits for the next. */
  notesToldMax: 50,
  /** Input carried inside a queue job; a larger one is read from MongoDB. Keeps Redis small. */
  inlineInputBytesMax: 4 * KiB,

  // ── the prefix ───────────────────────────────────────────────────────────────────────────────
  /** PERSONA.md's body: a prompt, not a library. */
  personaBytesMax: 64 * KiB,
  /** PERSONA.md with its front matter: read whole, so bounded before it is read. */
  personaFileBytesMax: 128 * KiB,
  /** One tool's description and schema as text. */
  toolBytesMax: 64 * KiB,
  /** Tools of one bot: providers refuse more. */
  toolsMax: 128,

  // ── a turn ───────────────────────────────────────────────────────────────────────────────────
  /** Model calls in one turn: an endless tool loop ends as a dead letter. */
  stepsMax: 100,
  /** Tool calls asked for in one reply. */
  toolCallsPerStepMax: 64,
  /** A tool's result as told to the model. */
  toolResultBytesMax: 64 * KiB,
  /** A tool's arguments as sent by the model. */
  toolArgumentsBytesMax: 1 * MiB,
  /** How deeply a tool's arguments may nest to be replayed: a provider that refuses them would refuse the session for ever. */
  toolArgumentsDepthMax: 100,
  /** What one model call may answer: keeps a step's document far from 16 MB. */
  replyBytesMax: 2 * MiB,
  /** Tries of one generation before the turn is dead. */
  attemptsMax: 3,
  /** Attempts kept with the turn. */
  attemptsKeptMax: 10,
  /** An error's message and stack as kept with an attempt or a letter. */
  errorBytesMax: 8 * KiB,
  /** Crashes charged to one generation before it is dead (I12). */
  crashesMax: 5,
  /** First back-off after a failed attempt; doubles up to `backoffMsMax`. */
  backoffMsMin: 1_000,
  backoffMsMax: 60_000,
  /** The longest wait that a provider's "later" may impose before it is asked again. */
  laterMsMax: 15 * 60_000,
  /** The wait where the provider said "later" without saying when. */
  laterMsDefault: 5_000,
  /** How long one model call may take. */
  modelCallMsMax: 10 * 60_000,
  /** How long one tool may run. */
  toolMsMax: 120_000,
  /** Paths that the tools of one turn may write. */
  pathsWrittenMax: 2_000,

  // ── an activation ────────────────────────────────────────────────────────────────────────────
  /** Turns after which an activation yields to other sessions. */
  turnsPerActivationMax: 64,
  /** Time after which an activation yields to other sessions. */
  activationMsMax: 10_000,
  /** Heads read from the turn queue at once. */
  peekMax: 16,
  /** Wait before an activation is tried again when MongoDB or Redis did not answer. */
  outageMsMin: 500,
  outageMsMax: 5_000,
  /** Wait before a session of a bot that this worker does not serve is offered again. */
  unservedMs: 5_000,
  /** Wait before a session with a turn or document of a newer release is offered again: a newer worker that starts has it within this. */
  aheadMs: 5_000,
  /** Tries of one guarded write that keeps losing a race before the activation starts over. */
  raceTriesMax: 64,
  /** Warm copies kept by one worker, in bytes of conversation. */
  warmBytesMax: 256 * MiB,
  /** Entries of a log read at once. */
  logBatchMax: 200,

  // ── memory ───────────────────────────────────────────────────────────────────────────────────
  /** A notice names this many paths and counts the rest (I7). */
  noticePathsMax: 30,
  /** A notice in UTF-8 bytes (I7). */
  noticeBytesMax: 4 * KiB,
  /** One path or branch name in a notice; a longer one is cut. A rename with its two names fits several times. */
  noticeNameBytesMax: 512,
  /** A file half written, or the scratch folder of a look, is a crash's leftover after this time: no write or look takes so long. */
  leftoverMs: 10 * 60_000,
  /** How long one git command may take. */
  gitMsMax: 60_000,
  /** What one git command may print. 200,000 paths of 200 bytes fit. */
  gitOutputBytesMax: 64 * MiB,
  /** Files of one Memory Repository. */
  manifestPathsMax: 200_000,
  /** A file that a tool reads or writes whole. */
  toolFileBytesMax: 1 * MiB,
  /** Lines or paths that one tool call returns. */
  toolLinesMax: 2_000,
  /** A line found by a search, as told. */
  toolMatchBytesMax: 500,
  /** What a search looks for, and a glob pattern. */
  toolPatternBytesMax: 1 * KiB,
  /** How long a pattern of the model's own may be matched against one file: it may take exponential time. */
  toolPatternMsMax: 2_000,
  /** What one search reads. */
  toolSearchBytesMax: 64 * MiB,

  // ── the store ────────────────────────────────────────────────────────────────────────────────
  /** How long a call waits for a primary: an election takes less, a lost server must not hold a host for long. */
  storeSelectMsMax: 5_000,
  storeConnectMsMax: 5_000,
  /** How long a call waits for a free connection of the pool. */
  storeQueueMsMax: 5_000,
  storePoolMax: 50,
  /** How long a write waits for its majority before it counts as not answered. */
  storeMajorityMsMax: 10_000,
  /** A connection that says nothing for so long is dead: above any wait for a majority, and the build of an index. */
  storeSocketMsMax: 60_000,
  /** MongoDB's own limit of one document. */
  documentBytesMax: 16 * MiB,
  /** Pause before a write is tried again whose collision vanished: a fail-over is under way. */
  storePauseMs: 20,
  /** Writes that go to the server in one command: few enough that neither side is held up by one for long. */
  storeBatchMax: 500,
  /** Point reads in one command: each may bring a whole step, and all are decoded at once. */
  storeReadsMax: 200,
  /** Writes in one command; a larger document goes alone. The driver cuts a command in two at 16 MiB, and a failure would not tell which. */
  storeBatchBytesMax: 8 * MiB,
  /** Commands of one kind on one collection at the same time; what comes meanwhile goes together in the next one. */
  storeBatchesOutMax: 2,
  /** After this time without an answer one more may go: a lost connection must not hold back what others can carry. */
  storeBatchHeldMs: 100,
  /** Entries of a log that are read first; then four times as many each time, since mostly there is nothing new. */
  storeReadAheadMin: 4,
  /** Paths of a manifest in one document: at 200 bytes each far below 16 MB, uncompressed too. */
  statePathsPerDocument: 20_000,

  /**
   * How long a send may take: a webhook handler must answer its platform. A driver that waits on a frozen server finds out
   * in 18 s; the caller is told before, and sends again.
   */
  sendMsMax: 10_000,

  // ── queues ───────────────────────────────────────────────────────────────────────────────────
  /** The turn that wakes a session is named in its activation while it is this small, in UTF-16 units: it saves a read. */
  headCharsMax: 1_024,
  /** How long a send waits for Redis before it is acknowledged without (I13). */
  redisSendMsMax: 250,
  /** Job lock of an activation; with the stall check it bounds the takeover after a kill. */
  lockMs: 10_000,
  /** Locks are renewed at least this often: an event loop blocked for 5 s loses none. */
  lockRenewMs: 2_500,
  /** Workers share one check. The next one comes after up to twice this time where the worker that made the last was killed. */
  stalledCheckMs: 2_000,
  /** A lease not renewed this long before its end is taken for lost. */
  leaseMarginMs: 2_000,
  /** The clock of a worker may differ from Redis by this much at start. */
  clockSkewMsMax: 5_000,
  /** How often the reconciler compares MongoDB with Redis. */
  reconcileMs: 10_000,
  /** Marks of finished turns are flushed this often or at this many. */
  flushMs: 2_000,
  flushMax: 500,
  /** A session's stored hints may lag by this many entries, and by this long: a search from them takes a few reads more. */
  hintLagMax: 8,
  hintLagMs: 60_000,
  /** Open turns that one pass of the reconciler looks at before it starts the next page. */
  reconcilePageMax: 500,
  /** A stall seen this soon after a Redis restart is not charged as a crash. */
  restartGraceMs: 30_000,
  /** A Redis that owes an answer for this long is taken for gone; the connection is made anew. */
  redisSilentMsMax: 5_000,
  /** Pause before a lost connection to Redis is tried again. */
  redisReconnectMsMin: 50,
  redisReconnectMsMax: 1_000,
  /** How long a start waits for Redis before it goes on without, and a stop before it cuts the connection. */
  redisStartMsMax: 2_000,
  redisCloseMsMax: 2_000,
  /** Redis time is asked for again this often, where it is asked for at all: clocks drift. */
  redisTimeMs: 60_000,
  /** Events that BullMQ keeps in the stream of a shard's queues: for people who look, nothing here reads them. */
  queueEventsMax: 100,
  /** Wait before a second stay of a session in one process is offered again: the first must have returned. */
  besideMs: 250,
  /** Lost leases that a process remembers, so that their stalls charge nobody. */
  ownStallsMax: 10_000,
  /** How often the leases of a process are held against the clock. */
  leaseCheckMs: 500,
  /** How long a worker waits on SIGTERM for what runs. */
  drainMs: 20_000,
  /** How long a worker that has drained waits for servers that do not answer. */
  closeGraceMs: 3_000,
  /** A session active within this time is live. */
  liveMs: 24 * 60 * 60_000,
  /** Live sessions told at once by one observation. */
  liveSessionsMax: 1_000,
  /** A running turn says so this often. */
  heartbeatMs: 4_000,
  /** `wait` reads MongoDB again this often, whatever events say. */
  waitPollMs: 10_000,
  /** Sessions whose last number a host remembers: saves reads. */
  sessionsRememberedMax: 50_000,
  /** A turn open for so long is worth an operator's look, where `doctor` is told nothing else. */
  stuckMs: 5 * 60_000,
  /** Shards of one namespace: each costs every worker two blocking connections. */
  shardsMax: 1_024,
  /** Sessions that run at the same time in one process. */
  concurrencyMax: 10_000,
  /** Rows of one listing. */
  listMax: 1_000,
} as const;

assert(limits.noticeBytesMax < limits.toolResultBytesMax);
assert(limits.gitMsMax * 4 < limits.leftoverMs, "a look of a few commands is over before its folder counts as left over");
assert(limits.noticeNameBytesMax * 5 < limits.noticeBytesMax, "a branch line and a rename fit in one notice");
assert(limits.personaBytesMax <= limits.personaFileBytesMax);
assert(limits.inlineInputBytesMax < limits.inputBytesMax);
assert(limits.lockMs + limits.stalledCheckMs * 2 <= 14_000, "takeover stays within 20 s on a busy machine too");
assert(limits.lockRenewMs + 5_000 <= limits.lockMs - limits.leaseMarginMs, "a blocked event loop loses no lease");
assert(limits.leaseMarginMs * 2 < limits.lockMs);
assert(limits.leaseCheckMs * 2 <= limits.leaseMarginMs, "a lost lease is seen before its lock ends");
assert(
  limits.inputBytesMax + limits.replyBytesMax + limits.toolCallsPerStepMax * limits.toolResultBytesMax < 15 * MiB,
  "a step fits in one document",
);
assert(limits.backoffMsMin < limits.backoffMsMax && limits.outageMsMin < limits.outageMsMax);
assert(limits.storeMajorityMsMax < limits.storeSocketMsMax);
assert(limits.storeBatchBytesMax < limits.documentBytesMax);
