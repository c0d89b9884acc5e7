import { memoryRepository } from "../../src/testing/memory-repository.ts";
import { gitWorld } from "../support/git-world.ts";
import { type MemoryWorld, memoryRepositorySuite } from "./memory-suite.ts";

function memoryWorld(): MemoryWorld {
  const repository = memoryRepository();
  return {
    repository,
    edit: (path, text) => repository.edit(path, text),
    remove: (path) => repository.remove(path),
    rename: (from, to) => repository.rename(from, to),
    chmod: (path, executable) => repository.chmod(path, executable),
    switchTo: (branch) => repository.switchTo(branch),
    commit: (message) => repository.commit(message),
    breakIt: () => repository.breakWith("broken by the test"),
    repair: () => repository.breakWith(null),
    unready: () => repository.unready("unready by the test"),
    ready: () => repository.unready(null),
    dispose: () => undefined,
  };
}

memoryRepositorySuite("in memory", memoryWorld);
memoryRepositorySuite("on git", gitWorld);
