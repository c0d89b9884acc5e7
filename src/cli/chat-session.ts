/** One conversation of a chat: sends a line as a turn, follows it to its end, goes on with what a crash left open. */
import { HeadfastError } from "../domain/errors.ts";
import type { SessionId } from "../domain/ids.ts";
import type { Bot, TurnEvent } from "../domain/ports.ts";
import type { Entry, Outcome } from "../domain/records.ts";
import type { Headfast } from "../main.ts";
import { realSystem } from "../system.ts";
import type { ChatView } from "./chat-view.ts";

const help = `a line is a turn; a line that begins with // is sent with one slash
/prefix  the frozen bytes before the conversation
/help    this
/exit    ends the chat; with URLs the session goes on the next time`;

/** A turn as the chat told it. */
export interface ToldTurn {
  turnId: string;
  input: string;
  outcome: Outcome;
  text: string;
  /** Notices and notes that the model was told. */
  told: string[];
  tools: string[];
}

export class ChatSession {
  readonly told: ToldTurn[] = [];
  readonly #hf: Headfast;
  readonly #bot: Bot;
  readonly #session: SessionId;
  readonly #user: string;
  readonly #view: ChatView;
  readonly #left = new AbortController();
  #unsubscribe: () => Promise<void> = async () => undefined;
  #current = "";
  /** Entries up to this one were looked at. */
  #seq = 0;
  /** Entries whose notices were shown. */
  readonly #shown = new Set<number>();
  /** The persona text of which it was said that it differs. */
  #saidOf: string | null = null;

  private constructor(hf: Headfast, bot: Bot, { session, user }: { session: SessionId; user: string }, view: ChatView) {
    this.#hf = hf;
    this.#bot = bot;
    this.#session = session;
    this.#user = user;
    this.#view = view;
  }

  /** Subscribes before anything is sent, so that no delta falls in between. @throws `ownership_conflict` where it is another bot's */
  static async open(hf: Headfast, bot: Bot, who: { session: SessionId; user: string }, view: ChatView): Promise<ChatSession> {
    const chat = new ChatSession(hf, bot, who, view);
    await hf.sessions.claim(who.session, bot.name);
    try {
      chat.#unsubscribe = await hf.internals.queues.events.subscribe(
        who.session,
        (event) => chat.#heard(event),
        () => undefined,
      );
    } catch (error) {
      if (!(error instanceof HeadfastError) || error.code !== "queue_unavailable") throw error;
      view.remark("Redis does not answer: no text is shown while it is made, and no turn runs until it is back");
    }
    return chat;
  }

  get busy(): boolean {
    return this.#current !== "";
  }

  /** True where a turn ended otherwise than done. */
  get failed(): boolean {
    return this.told.some(({ outcome }) => outcome !== "done");
  }

  /** Goes on with the turns that an earlier chat left without an outcome. */
  async resume(): Promise<void> {
    const { seq } = await this.#hf.sessions.get(this.#session);
    this.#seq = seq;
    if (seq > 0) this.#view.remark(`goes on after ${seq} ${seq === 1 ? "entry" : "entries"}`);
    for (const { turnId, input } of await this.#hf.sessions.openTurns(this.#session)) {
      this.#view.remark(`still to be answered: ${input}`);
      await this.#follow(turnId, input);
    }
  }

  /** One line of the person's. False: the chat ends. */
  async hear(line: string): Promise<boolean> {
    if (this.#left.signal.aborted) return false;
    if (line.trim() === "") return true;
    if (line.startsWith("/") && !line.startsWith("//")) return this.#command(line.trim());
    await this.#comparePersona();
    const input = line.startsWith("//") ? line.slice(1) : line;
    const turnId = `chat-${realSystem.id()}`;
    this.#current = turnId;
    await this.#hf.turns.send({ bot: this.#bot.name, session: this.#session, turnId, input, user: { id: this.#user } });
    await this.#follow(turnId, input);
    return !this.#left.signal.aborted;
  }

  /** Stops waiting; what runs in a durable session goes on elsewhere. */
  leave(): void {
    this.#left.abort();
  }

  async close(): Promise<void> {
    await this.#unsubscribe();
  }

  async #command(command: string): Promise<boolean> {
    if (command === "/exit") return false;
    if (command === "/help") this.#view.remark(help);
    else if (command === "/prefix") await this.#showPrefix();
    else this.#view.remark(`there is no ${command}; /help lists what there is`);
    return true;
  }

  async #showPrefix(): Promise<void> {
    const prefix = await this.#hf.sessions.prefix(this.#session);
    if (prefix === null) return this.#view.remark("no prefix was taken yet: the first turn takes it");
    this.#view.remark(`sha256 ${prefix.sha256}`);
    this.#view.prefix(prefix.text);
  }

  async #follow(turnId: string, input: string): Promise<void> {
    this.#current = turnId;
    try {
      const ended = await this.#hf.turns.wait({ session: this.#session, turnId }, { signal: this.#left.signal });
      const entries = (await this.#newEntries()).filter(({ turn }) => turn?.turnId === turnId);
      for (const entry of entries) this.#tell(entry);
      this.#view.ended(ended);
      this.told.push({
        turnId,
        input,
        outcome: ended.outcome,
        text: ended.text,
        told: entries.flatMap(toldIn),
        tools: entries.flatMap(toolsIn),
      });
    } catch (error) {
      if (!this.#left.signal.aborted) throw error;
    } finally {
      this.#current = "";
    }
  }

  async #newEntries(): Promise<Entry[]> {
    const entries: Entry[] = [];
    for (let more = true; more; ) {
      const page = await this.#hf.sessions.transcript(this.#session, { after: this.#seq });
      entries.push(...page.entries);
      this.#seq = page.cursor;
      more = page.more;
    }
    return entries;
  }

  #heard(event: TurnEvent): void {
    if (event.turnId !== this.#current) return;
    this.#view.event(event);
    if (event.type === "notice.told") void this.#showTold(event.seq);
  }

  /** The event names the step; lost or late, the end of the turn makes up for it. */
  async #showTold(seq: number): Promise<void> {
    try {
      const { entries } = await this.#hf.sessions.transcript(this.#session, { after: seq - 1, limit: 1 });
      for (const entry of entries) this.#tell(entry);
    } catch (error) {
      if (!(error instanceof HeadfastError)) throw error; // the end of the turn reads it again
    }
  }

  #tell(entry: Entry): void {
    if (this.#shown.has(entry.seq)) return;
    this.#shown.add(entry.seq);
    this.#view.told(entry);
  }

  /** Once for each new text: a session keeps its persona, however often PERSONA.md changes (I1). */
  async #comparePersona(): Promise<void> {
    const prefix = await this.#hf.sessions.prefix(this.#session);
    if (prefix === null || prefix.persona === null || this.#bot.memory === null) return;
    const now = await this.#bot.memory.persona().catch((error: unknown) => {
      if (!(error instanceof HeadfastError)) throw error;
      this.#view.remark(error.message);
      return null;
    });
    if (now?.state !== "ready" || now.body === this.#saidOf) return;
    if (now.body === prefix.persona) return;
    this.#saidOf = now.body;
    this.#view.remark(`this session keeps its persona of ${prefix.personaAt}; a new one has the new text`);
  }
}

function toldIn({ messages }: Entry): string[] {
  return messages.flatMap((message) =>
    message.role === "user" ? message.blocks.flatMap(({ type, text }) => (type === "input" ? [] : [text])) : [],
  );
}

function toolsIn({ messages }: Entry): string[] {
  return messages.flatMap((message) => (message.role === "assistant" ? message.toolCalls.map(({ name }) => name) : []));
}
