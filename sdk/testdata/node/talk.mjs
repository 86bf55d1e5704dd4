// A program written with the SDK for Node, in three lives.
//
//   node talk.mjs first PORT TOKEN        asks for a tool, and waits for a permission that nobody gives
//   node talk.mjs second ABIDE SESSION    comes back with a process of its own, allows it, and prints the answer
//
//   node talk.mjs stock ABIDE SESSION     comes back with a process of its own and only its handlers, and prints the answer
//
// Each says what happened in a line of JSON.
import { CopilotClient, RuntimeConnection } from "@github/copilot-sdk";

const [life, door, word] = process.argv.slice(2);

const say = (what) => process.stdout.write(JSON.stringify(what) + "\n");
const forever = new Promise(() => {});
let ran = 0;

const tool = {
  name: "lookup",
  description: "Looks up a value",
  parameters: { type: "object", properties: { value: { type: "string" } }, required: ["value"] },
  handler: async ({ value }) => `found ${value}, run ${++ran}`,
};

async function first() {
  const client = new CopilotClient({ connection: RuntimeConnection.forUri(`localhost:${door}`, { connectionToken: word }) });
  const session = await client.createSession({ tools: [tool], onPermissionRequest: () => forever });
  session.on((event) => {
    if (event.type === "permission.requested") say({ session: session.sessionId, request: event.data.requestId });
  });
  await session.send({ prompt: "Use lookup with value 'x', then reply with the result." });
  setInterval(() => {}, 1 << 30); // until it is killed
}

async function second() {
  const client = new CopilotClient({ connection: RuntimeConnection.forStdio({ path: door }) });
  let idle;
  const ended = new Promise((resolve) => (idle = resolve));
  const session = await client.resumeSession(word, {
    tools: [tool],
    continuePendingWork: true,
    onPermissionRequest: () => ({ kind: "user-not-available" }),
    onEvent: (event) => event.type === "session.idle" && idle(),
  });
  const pending = (await session.rpc.permissions.pendingRequests()).items.map((item) => item.requestId);
  const answers = [];
  for (const requestId of [...pending, ...pending]) {
    const answer = { requestId, result: { kind: "approve-once" } };
    answers.push((await session.rpc.permissions.handlePendingPermissionRequest(answer)).success);
  }
  await ended;
  const events = await session.getEvents();
  const words = events.filter((event) => event.type === "assistant.message").at(-1).data.content;
  const resumed = events.filter((event) => event.type === "session.resume").length;
  await client.stop();
  say({ pending, answers, words, resumed });
}

async function stock() {
  const client = new CopilotClient({ connection: RuntimeConnection.forStdio({ path: door }) });
  let idle, asked = 0;
  const ended = new Promise((resolve) => (idle = resolve));
  const session = await client.resumeSession(word, {
    tools: [tool],
    continuePendingWork: true,
    onPermissionRequest: () => (asked++, { kind: "approve-once" }),
    onEvent: (event) => event.type === "session.idle" && idle(),
  });
  await ended;
  const words = (await session.getEvents()).filter((event) => event.type === "assistant.message").at(-1).data.content;
  await client.stop();
  say({ words, asked });
}

await { first, second, stock }[life]();
