import { HeadfastError } from "../domain/errors.ts";

/** Work on Redis that the reconciler makes up for when Redis is away (I13): true where it was done. */
export async function bestEffort(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof HeadfastError && error.code === "queue_unavailable") return false;
    throw error;
  }
}
