/** Inserting what is the same whoever inserts it: a collision is success only once it was read with a majority (rule 3). */
import { HeadfastError } from "./errors.ts";
import { limits } from "./limits.ts";
import type { Inserted, System } from "./ports.ts";

/** Resolves when it stands, by us or by another. `read` answers what has a majority. @throws `store_unavailable` */
export async function insertOnce<T>(
  system: System,
  insert: () => Promise<Inserted>,
  read: () => Promise<T | undefined>,
): Promise<T | undefined> {
  for (let tries = 0; tries < limits.raceTriesMax; tries += 1) {
    if ((await insert()) === "inserted") return undefined;
    const standing = await read();
    if (standing !== undefined) return standing;
    await system.sleep(1 + tries); // not with a majority yet, or rolled back: insert again
  }
  throw new HeadfastError("store_unavailable", "an insert collides with one that has no majority; try again");
}
