/** The scripted model, and the same with simulated billing around it, keep the contract of the `Model` port. */

import { billingSimulator, withBilling } from "../../src/models/billing.ts";
import { fail, hang, later, type Reply, stream } from "../../src/models/script.ts";
import { scriptedModel } from "../../src/models/scripted.ts";
import { realSystem } from "../../src/system.ts";
import { modelSuite, type Situation } from "./model-suite.ts";

function replyFor(situation: Situation): Reply {
  switch (situation.kind) {
    case "answers":
      return stream([...situation.text]);
    case "asks":
      return {
        tools: [
          { name: "lookup", args: { q: "x" } },
          { name: "lookup", args: { q: "x" } },
        ],
      };
    case "later":
      return later(situation.ms ?? undefined);
    case "fails":
      return fail("status 500");
    case "breaks_off":
      return stream(["half"], "the connection was closed");
    case "hangs":
      return hang();
  }
}

modelSuite("scripted", (situation) => ({ model: scriptedModel(() => replyFor(situation)) }));
modelSuite("scripted with billing", (situation) => ({
  model: withBilling(
    scriptedModel(() => replyFor(situation)),
    billingSimulator({ model: "claude-opus-5-5", system: realSystem }),
  ),
}));
