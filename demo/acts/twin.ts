/** Act (g): the same script, by Headfast and by a twin that rebuilds its system prompt on each request. */
import type { NaiveView, SentBody } from "../bodies.ts";
import type { Claim } from "../claims.ts";
import { addLine, notes, personaLines } from "../memory.ts";
import { model, type Stage, twinSession } from "../stage.ts";
import { type Bill, billOf, cheaper, departsInPrefix, naiveBody, onlyAppends } from "../twins.ts";
import { afterTheKill, bodiesOf, say } from "./turns.ts";

export interface Bills {
  headfast: Bill;
  naive: Bill;
}

/** A person's words in a conversation about one thing, long enough for a provider to cache it. */
const script: readonly string[] = [
  "Good morning. Before I forget: the Heron came back yesterday evening with a scratch along the port side, about two metres long, just above the water. The people who had her said that it was there before, and I do not believe it.",
  "Can you look up what we wrote down when she went out? If there was a scratch we would have a photograph, and the date of it.",
  `[write ${notes}/heron.md] The Heron came back with a scratch of two metres on the port side. Nobody knows yet since when it is there.`,
  "Thank you. The workshop can take her on Wednesday, but only if the Kingfisher is out of the dock by then. Is she?",
  "Then let us say Wednesday. What else is on the list for the week? I would like to have it by the day, with the boat first and what is to be done with it after that.",
  "That is more than I thought. Which of these can wait until after the holidays without anybody noticing?",
  `[write ${notes}/week.md] Wednesday: the Heron into the dock, if the Kingfisher is out of it. All else can wait until after the holidays.`,
  "Mara asks whether the Otter may go out on Saturday for nine days. The customer is the one from last spring who kept the keys.",
  "Right, I had forgotten about the deposit. Write to him that he gets the boat if the deposit is there on Thursday, and not before.",
  "And what do we tell the family that asked for the same week? They were first, if I remember it right, and they have been with us four times.",
  "I would rather keep the family. Suggest the Teal to the man with the keys, at the price of the Otter, and see what he says.",
  "Good. One more thing, and then I leave you alone: what was it that you wanted to ask me about the new ropes?",
  "Take the thicker ones. Sum up for Mara what we have decided today, in five lines at most, and leave the scratch to me.",
];

/** What a person does to the repository before the turn of that index. */
const edits: Readonly<Record<number, (memory: string) => void>> = {
  3: (memory) => addLine(memory, `${notes}/plan.md`, "The Kingfisher leaves the dock on Tuesday."),
  6: (memory) => addLine(memory, "PERSONA.md", personaLines.editedAmongTwins),
  9: (memory) => addLine(memory, `${notes}/people.md`, "The family of the Otter: four times, always friendly."),
};

export async function naiveTwin(stage: Stage): Promise<{ claims: Claim[]; bills: Bills }> {
  await afterTheKill(stage); // act (d) writes to the same repository before
  const answers: string[] = [];
  for (const [i, input] of script.entries()) {
    edits[i]?.(stage.memory);
    answers.push((await say(stage, "ada", twinSession, `twin-${i + 1}`, input)).text);
  }
  const sent = bodiesOf(stage, twinSession).filter((body): body is SentBody & { naive: NaiveView } => body.naive !== undefined);
  const naive = sent.map((body) => ({ turnId: body.turnId, body: naiveBody(body) }));
  const answer = (i: number): string =>
    sent[i]?.turnId === sent[i + 1]?.turnId ? "" : (answers[Number(sent[i]?.turnId.slice("twin-".length)) - 1] ?? "");
  const bills = { headfast: await billOf(sent, model, answer), naive: await billOf(naive, model, answer) };
  const claims = [
    onlyAppends(
      "Headfast: a request only ever adds at the bottom",
      sent.map(({ body }) => body),
    ),
    departsInPrefix(
      "the twin, which re-reads PERSONA.md and lists its files on each request, changes its own prefix",
      naive.map(({ body }) => body),
    ),
    cheaper("both bills", model, bills.headfast, bills.naive),
  ];
  return { claims, bills };
}
