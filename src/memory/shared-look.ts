/**
 * One scan for many askers. A scan is shared only by those who asked before it began: whoever asks while one runs waits for
 * the next, so that an answer is never older than its question (rule 10). Never shared across processes.
 */
export function sharedLook<T>(scan: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  let next: Promise<T> | undefined;

  const begin = (): Promise<T> => {
    const mine = scan().finally(() => {
      if (running === mine) running = undefined;
    });
    running = mine;
    return mine;
  };
  const afterRunning = async (before: Promise<T>): Promise<T> => {
    await before.catch(() => undefined); // Its own askers hear of its failure.
    next = undefined;
    return begin();
  };
  return () => {
    // The next scan has not begun: it may be joined even when the running one has just ended.
    if (next !== undefined) return next;
    if (running === undefined) return begin();
    next = afterRunning(running);
    return next;
  };
}
