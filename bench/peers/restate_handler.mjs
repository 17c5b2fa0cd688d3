// The Restate service: no-op durable steps, served over HTTP/2 on the loopback.
//
// A branch of the fan-out is a step, not a call of another service: the cheaper of the two.
// Usage: node restate_handler.mjs SDK_FOLDER PORT
import { createRequire } from "node:module";
import { appendFileSync } from "node:fs";
import { createServer } from "node:http2";

const [folder, port] = process.argv.slice(2);
const restate = createRequire(`${folder}/package.json`)("@restatedev/restate-sdk");

const RESULT = { text: "a result of about a hundred bytes, as a small step of an agent would return it here", n: 7 };
const SIDE = process.env.PEERS_SIDE;

// What a step did is only written down where a crash is measured.
const step = (at) => {
  if (SIDE) appendFileSync(SIDE, `${at} ${Date.now() / 1000}\n`);
  return RESULT;
};

// Sets, not counters: a suspended handler is replayed from its start.
const parked = new Set();
const finished = new Set();

const handlers = {
  noop: async () => RESULT,

  chain: async (ctx, nodes) => {
    let last;
    for (let at = 0; at < nodes; at++) last = await ctx.run(`n${at}`, () => step(at));
    return last;
  },

  fan: async (ctx, branches) => {
    const all = Array.from({ length: branches }, (_, at) => ctx.run(`b${at}`, () => step(at)));
    return (await restate.RestatePromise.all(all)).length;
  },

  gate: async (ctx) => {
    const answer = ctx.awakeable();
    parked.add(answer.id);
    await answer.promise;
    const last = await ctx.run("done", () => step(0));
    finished.add(answer.id);
    return last;
  },

  counts: async () => ({ parked: parked.size, finished: finished.size }),
  waiting: async () => [...parked],
};

const service = restate.service({ name: "bench", handlers });
createServer(restate.createEndpointHandler({ services: [service] })).listen(Number(port), "127.0.0.1");
