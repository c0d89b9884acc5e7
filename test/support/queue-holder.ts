/** Holds the first session it gets until it is killed. Arguments: Redis URL, namespace. Says `held` once. */
import { openQueues } from "../../src/queues/queues.ts";
import { realSystem } from "../../src/system.ts";
import { quiet } from "./queue-records.ts";

const [url = "", namespace = ""] = process.argv.slice(2);
const queues = await openQueues({ url, namespace, shards: 1, system: realSystem, log: quiet });
await queues.work(
  () => {
    console.log("held");
    return new Promise(() => undefined);
  },
  { concurrency: 1 },
);
