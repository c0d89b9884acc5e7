/** `headfast/testing`: Headfast in memory, fakes that pass the real ports' conformance suites, and the simulator. */
import { type Connection, Headfast, type WorkerSettings } from "../main.ts";

export { billingSimulator, withBilling } from "../models/billing.ts";
export { fail, hang, later, refuse, slow, stream } from "../models/script.ts";
export { scriptedModel } from "../models/scripted.ts";
export { type FakeClock, fakeClock } from "./fake-clock.ts";
export { memoryQueues } from "./memory-queues.ts";
export { type MemoryRepositoryFake, memoryRepository } from "./memory-repository.ts";
export { memoryStore } from "./memory-store.ts";
export { type Plan, planOf } from "./simulator/plan.ts";
export { type SimulationResult, simulate } from "./simulator/simulate.ts";

/** Host and worker in one process, everything in memory: for tests of your own bots. */
export function memoryHeadfast(settings: WorkerSettings & Pick<Connection, "logger" | "parts">): Promise<Headfast> {
  return Headfast.start(settings);
}
