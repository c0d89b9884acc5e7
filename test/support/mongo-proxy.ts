/** A loopback proxy before MongoDB that cuts the connection around one chosen command, or edits its answer. */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { BSON } from "mongodb";

/** `before`: the server never sees the command. `answer`: the server applied it, the client never hears. */
export type Cut = "before" | "answer";

export interface MongoProxy {
  url: string;
  /** Cuts at the next command of that name on that collection; resolves when it was cut. */
  cutNext(command: string, collection: string, cut: Cut): Promise<void>;
  /** Adds these fields to the answer to the next command of that name on that collection; resolves when it did. */
  addToNext(command: string, collection: string, fields: object): Promise<void>;
  close(): Promise<void>;
}

interface Armed {
  marks: Buffer[];
  does: Cut | object;
  done(): void;
}

export async function mongoProxy(target: string): Promise<MongoProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let armed: Armed | undefined;

  const server = createServer((client) => {
    const upstream = connect(Number(port || 27017), hostname);
    let swallow: Armed | undefined;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        client.destroy();
        upstream.destroy();
        sockets.delete(socket);
      });
    }
    client.on(
      "data",
      eachMessage((message) => {
        const hit = armed?.marks.every((mark) => message.includes(mark)) ? armed : undefined;
        if (hit !== undefined) armed = undefined;
        if (hit?.does === "before") {
          client.destroy();
          hit.done();
          return;
        }
        swallow = hit ?? swallow;
        upstream.write(message);
      }),
    );
    upstream.on(
      "data",
      eachMessage((answer) => {
        const { does, done } = swallow ?? {};
        if (does === "answer") client.destroy();
        else client.write(typeof does === "object" ? withFields(answer, does) : answer);
        done?.();
        swallow = undefined;
      }),
    );
  });

  const arm = (command: string, collection: string, does: Cut | object): Promise<void> =>
    new Promise((done) => {
      armed = { marks: [textElement(command, collection)], does, done };
    });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `mongodb://127.0.0.1:${(server.address() as AddressInfo).port}/?directConnection=true`,
    cutNext: (command, collection, does) => arm(command, collection, does),
    addToNext: (command, collection, does) => arm(command, collection, does),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** A command's first element in BSON: its name with the collection as text. */
function textElement(name: string, value: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32LE(Buffer.byteLength(value) + 1);
  return Buffer.concat([Buffer.from(`\u0002${name}\0`), length, Buffer.from(`${value}\0`)]);
}

/** An answer (OP_MSG: header, flags, one body) with further fields in its body. */
function withFields(answer: Buffer, fields: object): Buffer {
  const start = 16 + 4 + 1;
  const body = BSON.serialize({ ...BSON.deserialize(answer.subarray(start)), ...fields });
  const edited = Buffer.concat([answer.subarray(0, start), body]);
  edited.writeInt32LE(edited.length, 0);
  return edited;
}

/** Hands on whole wire messages: the first four bytes of each are its length. */
function eachMessage(handle: (message: Buffer) => void): (chunk: Buffer) => void {
  let pending: Buffer = Buffer.alloc(0);
  return (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 4 && pending.length >= pending.readInt32LE(0)) {
      const length = pending.readInt32LE(0);
      const message = pending.subarray(0, length);
      pending = pending.subarray(length);
      handle(message);
    }
  };
}
