/** A loopback proxy before any server, which can take the server away: as one that is down, or as one that says nothing more. */

import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";

/** `refused`: connections end and no new one is made. `silent`: they stand, new ones too, and nothing comes through. */
export type Away = "refused" | "silent";

export interface TcpProxy {
  url: string;
  cut(how: Away): Promise<void>;
  close(): Promise<void>;
}

/** @param target the URL of the server behind it, which keeps its path, user and password */
export async function tcpProxy(target: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let silent = false;
  const hold = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    hold(near);
    if (silent) return void near.resume();
    const far = hold(connect(Number(port), hostname));
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = async (): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  const silence = (): void => {
    silent = true;
    for (const socket of sockets) socket.unpipe().resume();
  };
  const url = new URL(target);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url: url.href, close, cut: async (how) => (how === "refused" ? close() : silence()) };
}
