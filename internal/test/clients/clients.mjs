// Node's clients over TLS: node clients.mjs PACKAGE -2|-3, in a directory with their packages. See main.go.
import { createInterface } from 'readline';
import { once } from 'events';
import { readFileSync } from 'fs';
import assert from 'assert';
const [name, protocol] = [process.argv[2], -process.argv[3]];
const { CLIENT_PORT, CLIENT_CA, CLIENT_USER, CLIENT_PASSWORD, CLIENT_PREFIX: prefix } = process.env;
const ca = readFileSync(CLIENT_CA);
const sleep = ms => new Promise(r => setTimeout(r, ms));
const commands = 1000, counters = 4, counts = 10, bulk = 'x'.repeat(1 << 20);

// eventually calls f until it succeeds.
async function eventually(f) {
  for (const end = Date.now() + 20000; ; await sleep(50)) {
    try {
      return await Promise.race([f(), sleep(5000).then(() => { throw new Error('timed out'); })]);
    } catch (e) {
      if (Date.now() > end) throw e;
    }
  }
}

async function restart() {
  console.log('restart');
  await once(createInterface({ input: process.stdin }), 'line');
}

// Each client as the functions that the jobs below need.
const clients = {
  async ioredis() {
    const { default: Redis } = await import('ioredis');
    const c = new Redis({ host: 'localhost', port: +CLIENT_PORT, tls: { ca, servername: 'localhost' }, username: CLIENT_USER, password: CLIENT_PASSWORD, protocol, lazyConnect: true });
    c.on('error', () => {}); // of connecting during the restart; what fails for good is reported by the command
    await c.connect();
    return {
      call: (...args) => c.call(...args),
      pipeline: async list => (await c.pipeline(list).exec()).map(([e, r]) => { if (e) throw e; return r; }),
      multi: list => c.multi(list).exec().then(r => r && r.map(([, v]) => v)),
      subscribe: async (channel, f) => { await c.subscribe(channel); c.on('message', (_, m) => f(m)); },
      end: () => c.disconnect(),
    };
  },
  async redis() {
    const { createClient } = await import('redis');
    const c = createClient({ RESP: protocol, username: CLIENT_USER, password: CLIENT_PASSWORD, socket: { host: 'localhost', port: +CLIENT_PORT, tls: true, ca, servername: 'localhost' } });
    c.on('error', () => {});
    await c.connect();
    const all = list => { const m = c.multi(); for (const args of list) m.addCommand(args.map(String)); return m; };
    return {
      call: (...args) => c.sendCommand(args.map(String)),
      pipeline: list => Promise.all(list.map(args => c.sendCommand(args.map(String)))),
      multi: list => all(list).exec().catch(e => { if (e.constructor.name === 'WatchError') return null; throw e; }),
      subscribe: (channel, f) => c.subscribe(channel, f),
      end: () => c.destroy(),
    };
  },
};
const connect = clients[name];

async function count(key) {
  const c = await connect();
  for (let done = 0; done < counts; ) {
    await c.call('WATCH', key);
    const n = +(await c.call('GET', key) ?? 0);
    if (await c.multi([['set', key, n + 1]])) done++;
  }
  c.end();
}

const c = await connect();
await assert.rejects(c.call('SET', 'foreign', '1'), /NOPERM/);
await assert.rejects(c.call('FLUSHALL'), /NOPERM/);
const replies = await c.pipeline(Array.from({ length: commands }, (_, i) => ['incrby', prefix + 'sum', i]));
assert.equal(replies[commands - 1], commands * (commands - 1) / 2);
await c.call('HSET', prefix + 'hash', 'f', 'v');
const hash = await c.call('HGETALL', prefix + 'hash');
assert.deepEqual(Array.isArray(hash) ? hash : Object.entries(hash).flat(), ['f', 'v']);
await c.call('SET', prefix + 'bulk', bulk);
assert.equal(await c.call('GET', prefix + 'bulk'), bulk);
await Promise.all(Array.from({ length: counters }, () => count(prefix + 'n')));
assert.equal(await c.call('GET', prefix + 'n'), String(counters * counts));
const waiter = await connect();
const popped = waiter.call('BLPOP', prefix + 'none', prefix + 'list', '20');
await sleep(50);
await c.call('RPUSH', prefix + 'list', 'element');
assert.deepEqual(await popped, [prefix + 'list', 'element']);
assert.equal(await waiter.call('BLPOP', prefix + 'none', '0.1'), null);
const listener = await connect();
let heard = 0;
await listener.subscribe(prefix + 'channel', m => { if (m === 'message') heard++; });
async function publish() {
  const before = heard;
  assert.equal(await c.call('PUBLISH', prefix + 'channel', 'message'), 1);
  for (const end = Date.now() + 5000; heard === before; await sleep(10)) assert(Date.now() < end, 'no message');
}
await publish();
await restart();
await eventually(async () => assert.equal(await c.call('GET', prefix + 'bulk'), bulk));
await eventually(publish);
process.exit(0);
