import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { assert, suite } from "../support/suite.ts";
import { countsIn, endRunningFiles, type FileResult, runTestFile } from "../support/test-file.ts";

const test = suite("runner");
const wrapper = pathToFileURL(join(import.meta.dirname, "../support/suite.ts")).href;
const head = `import { assert, suite } from ${JSON.stringify(wrapper)};\nconst test = suite("planted", { timeoutMs: 300 });\n`;
let folder = "";
process.once("SIGTERM", () => void endRunningFiles(0).then(() => process.exit(143)));

test.before(() => {
  folder = mkdtempSync(join(tmpdir(), "headfast-runner-"));
});
test.after(() => rmSync(folder, { recursive: true }));

async function planted(body: string, limits = { fileMs: 20_000, exitMs: 500 }): Promise<FileResult> {
  const file = join(folder, "planted.test.ts");
  writeFileSync(file, head + body);
  return runTestFile(file, limits, process.env);
}

function summaryOf({ passed, failed, reasons }: FileResult): unknown {
  return { passed, failed, reasons };
}

test("counts the tests of a file that passes", async () => {
  const result = await planted('test("a", () => {}); test("b", async () => {}); test.run();');
  assert.equal(summaryOf(result), { passed: 2, failed: 0, reasons: [] });
});

test("counts a failed test once and goes on with the others", async () => {
  const result = await planted('test("a", () => assert.is(1, 2)); test("b", () => {}); test.run();');
  assert.equal(summaryOf(result), { passed: 1, failed: 1, reasons: [] });
  assert.match(result.output, /FAIL.*planted.*"a"/);
});

test("a file without .run() has failed, although it exits with 0", async () => {
  const result = await planted('test("a", () => {});');
  assert.equal(summaryOf(result), { passed: 0, failed: 1, reasons: ["uvu printed no counts: does the file end with .run()?"] });
});

test("a file whose suite is empty has failed", async () => {
  const result = await planted("test.run();");
  assert.equal(summaryOf(result), { passed: 0, failed: 1, reasons: ["it ran no test: does the file end with .run()?"] });
});

test("a test that never settles fails by its name, and the next one runs", async () => {
  const result = await planted('test("stuck", () => new Promise(() => {})); test("b", () => {}); test.run();');
  assert.equal(summaryOf(result), { passed: 1, failed: 1, reasons: [] });
  assert.match(result.output, 'timed out: test "stuck" did not settle within 300 ms');
});

test("a file that blocks its process is killed at its time limit", async () => {
  const result = await planted('test("busy", () => { for (;;); }); test.run();', { fileMs: 1_500, exitMs: 500 });
  assert.equal(summaryOf(result), { passed: 0, failed: 1, reasons: ["killed: it did not end within 1.5 s"] });
});

test("a file that leaves a handle open has failed, and says what is open", async () => {
  const result = await planted('test("a", () => void setInterval(() => {}, 1000)); test.run();');
  assert.equal(summaryOf(result), {
    passed: 1,
    failed: 1,
    reasons: ["killed: it left handles open and did not exit within 0.5 s of its last test"],
  });
  assert.match(result.output, "still open: ");
  assert.match(result.output, "Timeout");
});

test("what a file started ends with it", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const connected = once(server, "connection") as Promise<[Socket]>;
  const result = await planted(`
    import { spawn } from "node:child_process";
    import { once } from "node:events";
    test("a", async () => {
      const code = 'require("node:net").connect(${port}, "127.0.0.1", () => process.send("connected"))';
      const child = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
      await once(child, "message");
      child.disconnect();
      child.unref();
    }, { timeoutMs: 20_000 });
    test.run();`);
  assert.equal(summaryOf(result), { passed: 1, failed: 0, reasons: [] });
  const [socket] = await connected;
  socket.on("error", () => undefined).resume(); // a killed peer may reset the connection
  if (!socket.closed) await once(socket, "close");
  server.close();
});

test("a failing before hook fails every test of the suite", async () => {
  const result = await planted('test.before(() => { throw new Error("no world"); }); test("a", () => {}); test.run();');
  assert.equal(summaryOf(result), { passed: 0, failed: 1, reasons: [] });
  assert.match(result.output, "no world");
});

test("a failing after hook fails the file", async () => {
  const result = await planted('test.after(() => { throw new Error("left behind"); }); test("a", () => {}); test.run();');
  assert.equal(summaryOf(result), { passed: 1, failed: 1, reasons: ["exit code 1"] });
  assert.match(result.output, "left behind");
});

test("an after.each hook runs after a failed test too, once", async () => {
  const result = await planted('test.after.each(() => console.log("<swept>")); test("a", () => assert.is(1, 2)); test.run();');
  assert.equal(result.output.match(/<swept>/g)?.length, 1);
});

test("an unhandled rejection fails the file", async () => {
  const result = await planted('test("a", () => void Promise.reject(new Error("lost"))); test.run();');
  assert.is(result.failed, 1);
  assert.match(result.output, "lost");
});

test("a second test of the same name is refused", async () => {
  const result = await planted('test("a", () => {}); test("a", () => {}); test.run();');
  assert.is(result.failed, 1);
  assert.match(result.output, 'two tests of the suite "planted" are named "a"');
});

test("reads uvu's counts with and without colours, and none where there are none", () => {
  const bright = "\n  Total:     3\u001b[32m\n  Passed:    2\u001b[39m\n  Skipped:   \u001b[33m1\u001b[39m\n";
  assert.equal(countsIn(bright), { total: 3, passed: 2, skipped: 1 });
  assert.is(countsIn("  Total: none"), undefined);
});

test.run();
