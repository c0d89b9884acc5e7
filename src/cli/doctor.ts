/** `headfast doctor`: looks at everything that a worker needs, says what is wrong and what to do. Changes nothing. */

import { type Call, type Command, type ExitCode, exit } from "./command.ts";
import { configuredBots } from "./config-file.ts";
import { placeOf } from "./connect.ts";
import { checkBots } from "./doctor-bots.ts";
import { type Check, failedBy } from "./doctor-check.ts";
import { checkGit, checkMongo, checkRedis } from "./doctor-services.ts";
import { checkSessions } from "./doctor-sessions.ts";
import { shown } from "./output.ts";
import { redacted } from "./redact.ts";

async function doctor(call: Call): Promise<ExitCode> {
  const stuckMs = call.options.whole("stuck-after-ms", { min: 0 });
  const checks = [...(await checkPlace(call, stuckMs)), await checkGit(), ...(await checkConfig(call))].map(clean);
  const verdict = verdictOf(checks);
  call.out.answer({ verdict, checks }, () => textOf(call, verdict, checks));
  return verdict === "failed" ? exit.failed : verdict === "degraded" ? exit.degraded : exit.ok;
}

async function checkPlace(call: Call, stuckMs: number | undefined): Promise<Check[]> {
  const place = placeOf(call);
  if (place === undefined)
    return [
      {
        check: "services",
        status: "failed",
        code: "services_missing",
        detail: "nothing says where Redis and MongoDB are",
        advice: "give --redis and --mongo, or HEADFAST_REDIS_URL and HEADFAST_MONGO_URL",
      },
    ];
  const [redis, mongo] = await Promise.all([checkRedis(place), checkMongo(place)]);
  return [
    ...redis.checks,
    ...mongo.checks,
    ...(await checkSessions(place, redis, mongo, { session: call.options.text("session"), stuckMs })),
  ];
}

async function checkConfig(call: Call): Promise<Check[]> {
  try {
    const bots = await configuredBots(call);
    if (bots === undefined)
      return [
        {
          check: "config",
          status: "skipped",
          detail: "no config: the bots and their Memory Repositories were not looked at (--config FILE)",
        },
      ];
    const names = bots.map(({ name }) => name).join(", ");
    return [
      { check: "config", status: "ok", detail: `${bots.length} ${bots.length === 1 ? "bot" : "bots"}: ${names}` },
      ...(await checkBots(bots)),
    ];
  } catch (error) {
    return [failedBy("config", error, "mend the config file")];
  }
}

function clean({ check, status, code, detail, advice }: Check): Check {
  return {
    check,
    status,
    ...(code !== undefined && { code }),
    detail: redacted(detail),
    ...(advice !== undefined && { advice: redacted(advice) }),
  };
}

function verdictOf(checks: readonly Check[]): "ok" | "degraded" | "failed" {
  if (checks.some(({ status }) => status === "failed")) return "failed";
  return checks.some(({ status }) => status === "degraded") ? "degraded" : "ok";
}

function textOf({ out: { colors } }: Call, verdict: string, checks: readonly Check[]): string {
  const paint = { ok: colors.green, degraded: colors.yellow, failed: colors.red, skipped: colors.dim };
  const width = Math.max(...checks.map(({ check }) => shown(check).length));
  const lines = checks.flatMap(({ check: subject, status, code, detail, advice }) => {
    const check = shown(subject);
    const line = `${paint[status](status.padEnd(8))}  ${check.padEnd(width)}  ${code === undefined ? "" : `${code}: `}${shown(detail)}`;
    return advice === undefined ? [line] : [line, `${" ".repeat(width + 12)}→ ${shown(advice)}`];
  });
  return [...lines, "", verdict].join("\n");
}

export const doctorCommands: readonly Command[] = [
  {
    name: "doctor",
    text: "Check Redis, MongoDB, git, the bots' repositories and stuck sessions; exit 4 degraded, 1 failed",
    options: [
      { flag: "--session <id>", text: "Check this session's log and prefix too" },
      { flag: "--stuck-after-ms <ms>", text: "A turn open for so long is told; default 5 minutes" },
    ],
    examples: ["headfast doctor --config headfast.config.mjs", "headfast doctor --session tg:42 --json"],
    run: doctor,
  },
];
