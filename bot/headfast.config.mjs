// The bots that the workers of docker-compose.yml serve: a place to begin. The scripted model needs no provider and no key;
// it answers in plain words and uses the file tools when it is asked to ("remember …", "list", "read notes.md").
import { defineBot, scriptedModel } from "headfast";

export const bots = [
  defineBot({
    name: "helper",
    model: scriptedModel(),
    memory: "/app/memory",
    rolePrompts: ["You are a helper in a small team. Answer briefly."],
  }),
];
