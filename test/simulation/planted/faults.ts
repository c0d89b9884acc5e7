/**
 * Planted faults: each is a rule of the protocol left out, as a small change of the real code. The simulator has to find
 * every one of them; `run.ts` beside this applies each to a copy of the sources and runs seeds on it.
 */
export interface PlantedFault {
  /** The rule or invariant that is left out. */
  rule: string;
  what: string;
  file: string;
  /** Stands in the file exactly once. */
  find: string;
  replace: string;
}

export const plantedFaults: readonly PlantedFault[] = [
  {
    rule: "1",
    what: "the next number is tried although the one before was not read with a majority",
    file: "src/domain/acceptance.ts",
    find: "    if (atNumber !== undefined) {",
    replace: "    if (tries >= 0) {",
  },
  {
    rule: "2",
    what: "a turn with recorded steps is not the head",
    file: "src/actors/session-actor.ts",
    find: "    if (checkpoint.open !== null) return this.#required(checkpoint.open.number); // rule 2\n",
    replace: "",
  },
  {
    rule: "3",
    what: "a collision in the log is taken for success",
    file: "src/domain/log.ts",
    find: "    if (atSeq !== undefined) return atSeq.writer === entry.writer;",
    replace: "    if (atSeq !== undefined || tries >= 0) return true;",
  },
  {
    rule: "3",
    what: "a collision of an insert by content is believed without reading it",
    file: "src/domain/insert-once.ts",
    find: "    if (standing !== undefined) return standing;",
    replace: "    return standing;",
  },
  {
    rule: "4",
    what: "a turn that is not dead is replayed",
    file: "src/domain/operations.ts",
    find: 'state.entry.outcome !== "dead") throw no(',
    replace: "state.entry.seq < 0) throw no(",
  },
  {
    rule: "4",
    what: "what is put to the head goes before what was put there earlier",
    file: "src/domain/checkpoint.ts",
    find: "next: [...checkpoint.next, number]",
    replace: "next: [number, ...checkpoint.next]",
  },
  {
    rule: "5",
    what: "a re-owned turn's next generation is not inserted",
    file: "src/domain/operations.ts",
    find: "  if (owed === null) return;",
    replace: "  if (owed === null || ownerEpoch > 0) return;",
  },
  {
    rule: "5",
    what: "a re-own in the log is not obeyed by the holder",
    file: "src/actors/session-actor.ts",
    find: "    if (owner.ownerEpoch === checkpoint.ownerEpoch && checkpoint.owed === null) return;",
    replace: "    if (owner.ownerEpoch >= 0) return;",
  },
  {
    rule: "5",
    what: "a re-owned session keeps what it heard of the other bot's memory",
    file: "src/domain/operations.ts",
    find: "baseline: 0, heard: null, wrote: [] }",
    replace: "baseline: 0 }",
  },
  {
    rule: "6",
    what: "the snapshot is not read back: each racer uses its own",
    file: "src/actors/assembly.ts",
    find: "  conversation.owner = standing;",
    replace: "  conversation.owner = { ...standing, ...frozen };",
  },
  {
    rule: "6",
    what: "a repository that is not ready counts as an empty persona",
    file: "src/actors/assembly.ts",
    find: 'const body = persona.state === "ready" ? persona.body.toWellFormed() : null;',
    replace: 'const body = persona.state === "ready" ? persona.body.toWellFormed() : "";',
  },
  {
    rule: "7",
    what: "a host cancels a turn with recorded steps by itself",
    file: "src/domain/operations.ts",
    find: "    running = tail.checkpoint.open?.number === turn.number;",
    replace: "    running = false;",
  },
  {
    rule: "8",
    what: "notes are told without being counted as told",
    file: "src/actors/turn-drafts.ts",
    find: "    notesTold: appended.notesTold,",
    replace: "    notesTold: conversation.checkpoint.notesTold,",
  },
  {
    rule: "8",
    what: "a notice is told without being recorded as heard",
    file: "src/actors/turn-drafts.ts",
    find: "    heard: appended.heard,",
    replace: "    heard: conversation.checkpoint.heard ?? appended.heard,",
  },
  {
    rule: "8",
    what: "a failed look counts as heard",
    file: "src/actors/gathering.ts",
    find: "    return { heard, wrote, notice: lookFailed };",
    replace: "    return { heard, wrote: [], notice: null };",
  },
  {
    rule: "9",
    what: "a fenced answer is always dropped, and the call made again",
    file: "src/actors/appender.ts",
    find: "      if (between.some((other) => this.concerns(other))) return false;",
    replace: "      return false;",
  },
  {
    rule: "9",
    what: "a fenced answer is inserted behind whatever came in between",
    file: "src/actors/appender.ts",
    find: '    return entry.messages.length > 0 || entry.kind === "reowned" || entry.turn?.number === this.#number;',
    replace: "    return entry.seq < 0;",
  },
  {
    rule: "10",
    what: "what the session's tools wrote is not laid over what it heard",
    file: "src/actors/turn-runner.ts",
    find: "    return { ...kept, messages: [message], wrote };",
    replace: "    return { ...kept, messages: [message], wrote: checkpoint.wrote };",
  },
  {
    rule: "10",
    what: "the writes of a turn that is closed are forgotten",
    file: "src/actors/turn-runner.ts",
    find: "    if (checkpoint.open?.number !== this.#turn.number) return checkpoint.wrote;",
    replace: "    if (checkpoint.ownerEpoch >= 0) return checkpoint.wrote;",
  },
  {
    rule: "10",
    what: "what a person had put where an uncertain write went is taken for the session's own",
    file: "src/domain/net-change.ts",
    find: "blobs.filter((blob, index) => index === 0 || earlier.includes(blob))",
    replace: "blobs.filter((blob, index) => index >= 0 || earlier.includes(blob))",
  },
  {
    rule: "11",
    what: "a turn of another client is not stored",
    file: "src/actors/mailbox-view.ts",
    find: "      else heads.push(...(await this.#accept(job)));",
    replace: "",
  },
  {
    rule: "13",
    what: "crashes have no limit",
    file: "src/actors/suspicion.ts",
    find: "    if (crashes >= limits.crashesMax)",
    replace: "    if (crashes >= 1e9)",
  },
  {
    rule: "13",
    what: "every takeover counts as a crash",
    file: "src/actors/suspicion.ts",
    find: "const guilty = !stall.excused && (turn.crashes === 0 || turn.startMark !== null);",
    replace: "const guilty = stall.count > 0;",
  },
  {
    rule: "14",
    what: "another input under the same id is taken for the same turn",
    file: "src/host/turns.ts",
    find: "    if (standing.inputSha256 !== inputSha256) {",
    replace: "    if (standing.number < 0) {",
  },
  {
    rule: "17",
    what: "the reconciler adds nothing",
    file: "src/actors/reconciler.ts",
    find: "    const mended = await this.#queues.repair(session, left);",
    replace: "    const mended = { turns: 0, activations: 0 };",
  },
  {
    rule: "17",
    what: "marks that a crash kept from being flushed are not made up for",
    file: "src/actors/reconciler.ts",
    find: "    if (marks.length > 0) await this.#ledger.store.turns.settle(marks);",
    replace: "",
  },
  {
    rule: "18",
    what: "a parked session goes on",
    file: "src/actors/session-actor.ts",
    find: "    if (checkpoint.parked !== null) {",
    replace: "    if (checkpoint.parked !== null && checkpoint.through < 0) {",
  },
  {
    rule: "20",
    what: "a re-owned generation is reported as an end",
    file: "src/host/turn-watch.ts",
    find: '    if (state.entry.kind !== "reowned") {',
    replace: "    if (state.entry.seq > 0) {",
  },
  {
    rule: "I12",
    what: "a provider's later spends an attempt",
    file: "src/actors/turn-runner.ts",
    find: '    if (ours.kind === "later") return this.#putOff(ours, error);\n',
    replace: "",
  },
  {
    rule: "I10",
    what: "told items stay in the inbox queue",
    file: "src/actors/session-actor.ts",
    find: "    if (stale.length > 0)",
    replace: "    if (stale.length < 0)",
  },
  {
    rule: "I2",
    what: "a turn that ended with open tool calls is not closed",
    file: "src/actors/turn-runner.ts",
    find: "messages: [...this.#closers(), gathered.message]",
    replace: "messages: [gathered.message]",
  },
  {
    rule: "I3",
    what: "a turn is taken although a lower number has no outcome",
    file: "src/domain/checkpoint.ts",
    find: "through: reaches ? first[1] : checkpoint.through,",
    replace: "through: Math.max(checkpoint.through, number),",
  },
];
