// The main job of each framework against a server: node frameworks.mjs PORT PHASE. It runs in a directory with their packages; see
// .ci/frameworks, which restarts the server between the phases "before" and "after". A line of output is a framework, its
// version, the job and the result, with tabs between them.
import Redis from 'ioredis';
import { createRequire } from 'module';
import { existsSync, readFileSync } from 'fs';
const require = createRequire(import.meta.url);
const [port, phase] = [+process.argv[2], process.argv[3]];
const url = { host: '127.0.0.1', port };
const address = `redis://127.0.0.1:${port}`;
const sleep = ms => new Promise(r => setTimeout(r, ms));
const until = async (f, ms = 15000) => { for (const end = Date.now() + ms; Date.now() < end && !f(); ) await sleep(50); };
const results = [];

// check runs a job, unless the package is not installed.
async function check(name, job, f) {
  const dir = `node_modules/${name}/package.json`;
  if (!existsSync(dir)) return;
  let result;
  try {
    result = await Promise.race([f(), sleep(25000).then(() => 'TIMED OUT')]);
  } catch (e) {
    result = 'FAILED: ' + e.message.replaceAll(/\s+/g, ' ');
  }
  results.push(result);
  console.log([name === 'redis' ? 'node-redis' : name, JSON.parse(readFileSync(dir)).version, job, result].join('\t'));
}

const client = () => new Redis(url);
const names = { bull: 'bull-restart', bullmq: 'bullmq-restart', bee: 'bee-restart' };
const jobs = 100; // that wait during the restart, of each queue

// before fills what a restart must keep.
async function before() {
  await check('bull', 'add, then a restart', async () => {
    const Queue = require('bull');
    const q = new Queue(names.bull, { redis: url });
    for (let i = 0; i < jobs; i++) await q.add({ i }, i % 10 ? {} : { delay: 200 });
    await q.close();
    return 'ok';
  });
  await check('bullmq', 'add, then a restart', async () => {
    const { Queue } = require('bullmq');
    const q = new Queue(names.bullmq, { connection: url });
    for (let i = 0; i < jobs; i++) await q.add('j', { i }, i % 10 ? {} : { delay: 200 });
    await q.close();
    return 'ok';
  });
  await check('bee-queue', 'add, then a restart', async () => {
    const Queue = require('bee-queue');
    const q = new Queue(names.bee, { redis: url, isWorker: false });
    for (let i = 0; i < jobs; i++) await q.createJob({ i }).save();
    await q.close();
    return 'ok';
  });
  await check('redlock', 'acquire, then a restart', async () => {
    const Redlock = require('redlock').default;
    const r = client();
    await new Redlock([r]).acquire(['lock:restart'], 120000);
    r.disconnect();
    return 'ok';
  });
  await check('@keyv/redis', 'set, then a restart', async () => {
    const kv = keyv();
    for (let i = 0; i < jobs; i++) await kv.set('k' + i, { i }, 120000);
    await kv.disconnect();
    return 'ok';
  });
  await check('connect-redis', 'set, then a restart', () => withSessions(async call => {
    await call('set', 'restart', { cookie: { originalMaxAge: 120000 }, user: 7 });
    return 'ok';
  }));
}

// kept processes what was there before the restart: each job once, and none lost.
async function kept() {
  const once = seen => seen.length === jobs && new Set(seen).size === jobs ? 'ok' : `${seen.length} jobs, ${new Set(seen).size} different`;
  await check('bull', 'process after the restart', async () => {
    const Queue = require('bull');
    const q = new Queue(names.bull, { redis: url });
    const seen = [];
    q.process(4, async job => { seen.push(job.data.i); });
    await until(() => seen.length >= jobs);
    await q.close();
    return once(seen);
  });
  await check('bullmq', 'process after the restart', async () => {
    const { Worker } = require('bullmq');
    const seen = [];
    const w = new Worker(names.bullmq, async job => { seen.push(job.data.i); }, { connection: { ...url, maxRetriesPerRequest: null }, concurrency: 4 });
    await until(() => seen.length >= jobs);
    await w.close();
    return once(seen);
  });
  await check('bee-queue', 'process after the restart', async () => {
    const Queue = require('bee-queue');
    const q = new Queue(names.bee, { redis: url });
    const seen = [];
    q.process(async job => { seen.push(job.data.i); });
    await until(() => seen.length >= jobs);
    await q.close();
    return once(seen);
  });
  await check('redlock', 'refuse after the restart', async () => {
    const Redlock = require('redlock').default;
    const r = client();
    const taken = await new Redlock([r], { retryCount: 0 }).acquire(['lock:restart'], 1000).then(() => true, () => false);
    r.disconnect();
    return taken ? 'the lock was lost' : 'ok';
  });
  await check('@keyv/redis', 'get after the restart', async () => {
    const kv = keyv();
    let found = 0;
    for (let i = 0; i < jobs; i++) found += (await kv.get('k' + i))?.i === i;
    await kv.disconnect();
    return found === jobs ? 'ok' : `found ${found}`;
  });
  await check('connect-redis', 'get after the restart', () => withSessions(async call => (await call('get', 'restart'))?.user === 7 ? 'ok' : 'the session was lost'));
}

function keyv() {
  const { Keyv } = require('keyv');
  const KeyvRedis = require('@keyv/redis').default;
  return new Keyv({ store: new KeyvRedis(address), namespace: 'kv' });
}

// withSessions gives f a way to call the methods of a store of sessions, which take callbacks.
async function withSessions(f) {
  const { RedisStore } = require('connect-redis');
  const { createClient } = require('redis');
  const c = await createClient({ url: address }).connect();
  const store = new RedisStore({ client: c, prefix: 'sess:' });
  const result = await f((method, ...args) => new Promise((done, failed) => store[method](...args, (err, v) => err ? failed(err) : done(v))));
  await c.close();
  return result;
}

// work is all jobs that need no restart.
async function work() {
  await check('ioredis', 'defineCommand, pipeline, transaction', async () => {
    const r = client();
    r.defineCommand('addup', { numberOfKeys: 1, lua: 'return redis.call("incrby", KEYS[1], ARGV[1])' });
    await r.del('n');
    const a = await r.addup('n', 5), b = await r.addup('n', 6);
    const piped = await r.pipeline().set('p', 1).incr('p').exec(), multi = await r.multi().get('p').del('p').exec();
    r.disconnect();
    return a === 5 && b === 11 && piped[1][1] === 2 && multi[0][1] === '2' ? 'ok' : JSON.stringify([a, b, piped, multi]);
  });
  await check('redis', 'function load, fcall, stream, iterator', async () => {
    const { createClient } = require('redis');
    const c = await createClient({ url: address }).connect();
    await c.functionLoad("#!lua name=fw\nredis.register_function('addone', function(keys, args) return redis.call('INCRBY', keys[1], args[1]) end)", { REPLACE: true });
    const n = await c.fCall('addone', { keys: ['fn'], arguments: ['3'] });
    const libraries = await c.functionList();
    await c.xAdd('st', '*', { a: '1' });
    let found = 0;
    for await (const keys of c.scanIterator({ MATCH: 'fn' })) found += keys.length;
    await c.del('fn');
    await c.close();
    return n === 3 && found === 1 && libraries.some(l => l.library_name === 'fw') ? 'ok' : JSON.stringify([n, found, libraries]);
  });
  await check('redlock', 'acquire, refuse, extend, release', async () => {
    const Redlock = require('redlock').default;
    const r = client();
    const l = new Redlock([r], { retryCount: 1 });
    let k = await l.acquire(['lock:a'], 5000);
    const second = await l.acquire(['lock:a'], 1000).then(() => 'taken', () => 'refused');
    k = await k.extend(5000);
    await k.release();
    await (await l.acquire(['lock:a'], 1000)).release();
    r.disconnect();
    return second === 'refused' ? 'ok' : second;
  });
  await check('redis-semaphore', 'mutex, semaphore', async () => {
    const { Mutex, Semaphore } = require('redis-semaphore');
    const r = client();
    const m = new Mutex(r, 'm');
    await m.acquire();
    const refused = await new Mutex(r, 'm', { acquireTimeout: 100 }).acquire().then(() => false, () => true);
    await m.release();
    const s = new Semaphore(r, 's', 2);
    await s.acquire();
    await s.release();
    r.disconnect();
    return refused ? 'ok' : 'taken twice';
  });
  await check('rate-limiter-flexible', 'limit', async () => {
    const { RateLimiterRedis } = require('rate-limiter-flexible');
    const r = client();
    const l = new RateLimiterRedis({ storeClient: r, points: 3, duration: 5 });
    let refused = 0;
    for (let i = 0; i < 5; i++) await l.consume('u').catch(() => refused++);
    r.disconnect();
    return refused === 2 ? 'ok' : 'refused ' + refused;
  });
  await check('rate-limit-redis', 'limit, reset', async () => {
    const { RedisStore } = require('rate-limit-redis');
    const r = client();
    const store = new RedisStore({ sendCommand: (...args) => r.call(...args), prefix: 'rl:' });
    store.init({ windowMs: 60000 });
    await store.increment('u');
    const second = (await store.increment('u')).totalHits;
    await store.resetKey('u');
    const first = (await store.increment('u')).totalHits;
    r.disconnect();
    return second === 2 && first === 1 ? 'ok' : `hits ${second}, ${first}`;
  });
  await check('@keyv/redis', 'set, get, expire, delete, iterate, clear', async () => {
    const kv = keyv();
    await kv.clear();
    await kv.set('a', { x: 1 });
    await kv.set('b', 2, 50);
    await sleep(120);
    let keys = 0;
    for await (const _ of kv.iterator()) keys++;
    const [a, b] = await kv.get(['a', 'b']);
    const deleted = await kv.delete('a');
    await kv.disconnect();
    return a?.x === 1 && b === undefined && keys === 1 && deleted ? 'ok' : JSON.stringify([a, b, keys, deleted]);
  });
  await check('connect-redis', 'set, touch, all, length, destroy', () => withSessions(async call => {
    const session = { cookie: { originalMaxAge: 60000 }, user: 1 };
    await call('clear');
    for (const id of ['a', 'b', 'c']) await call('set', id, session);
    await call('touch', 'a', session);
    await call('destroy', 'b');
    const n = await call('length'), all = await call('all');
    return n === 2 && all.length === 2 && (await call('get', 'a')).user === 1 ? 'ok' : `${n} sessions`;
  }));
  await check('@socket.io/redis-adapter', 'emit between two servers, fetch sockets', () => emits(io => {
    const { createAdapter } = require('@socket.io/redis-adapter');
    const pub = client(), sub = client();
    io.adapter(createAdapter(pub, sub));
    return () => { pub.disconnect(); sub.disconnect(); };
  }));
  await check('@socket.io/redis-streams-adapter', 'emit between two servers, fetch sockets', () => emits(io => {
    const { createAdapter } = require('@socket.io/redis-streams-adapter');
    const r = client();
    io.adapter(createAdapter(r));
    return () => r.disconnect();
  }));
  await queues();
}

// emits sends a message by one server to the client of another.
async function emits(adapt) {
  const { Server } = require('socket.io'), { io: connect } = require('socket.io-client'), { createServer } = require('http');
  const ends = [], sockets = [], received = [], servers = [];
  for (let i = 0; i < 2; i++) {
    const http = createServer();
    const io = new Server(http);
    ends.push(adapt(io));
    await new Promise(r => http.listen(0, '127.0.0.1', r));
    const s = connect(`http://127.0.0.1:${http.address().port}`, { transports: ['websocket'] });
    s.on('hello', v => received.push(i + v));
    await new Promise(r => s.on('connect', r));
    servers.push(io);
    sockets.push(s);
  }
  let all = 0; // a server hears nothing before it has subscribed, which an adapter does not wait for
  for (const end = Date.now() + 15000; Date.now() < end && all < 4; ) {
    const counts = await Promise.all(servers.map(io => io.fetchSockets().then(list => list.length, () => 0)));
    all = counts[0] + counts[1];
  }
  servers[0].emit('hello', 'x');
  await until(() => received.length >= 2, 5000);
  sockets.forEach(s => s.disconnect());
  for (const io of servers) await new Promise(r => io.close(r));
  ends.forEach(end => end());
  return received.sort().join() === '0x,1x' && all === 4 ? 'ok' : `received ${received}, ${all} sockets`;
}

async function queues() {
  await check('bull', 'add, process, retry, delay, priority, clean, obliterate', async () => {
    const Queue = require('bull');
    const q = new Queue('q' + Date.now(), { redis: url });
    const done = [];
    let tries = 0;
    q.process(4, async job => { if (job.data.fail && tries++ < 1) throw new Error('once'); return job.data.i; });
    q.on('completed', j => done.push(j.id));
    for (let i = 0; i < 200; i++) await q.add({ i });
    await q.add({ i: 200, fail: true }, { attempts: 2 });
    await q.add({ i: 201 }, { delay: 300 });
    await q.add({ i: 202 }, { priority: 1 });
    await until(() => done.length >= 203);
    const counts = await q.getJobCounts();
    await q.pause();
    await q.resume();
    await q.clean(0);
    await q.obliterate({ force: true });
    await q.close();
    return done.length === 203 ? 'ok' : done.length + ' done ' + JSON.stringify(counts);
  });
  await check('bee-queue', 'add, process', async () => {
    const Queue = require('bee-queue');
    const q = new Queue('b' + Date.now(), { redis: url });
    let n = 0;
    q.process(async j => j.data.x);
    q.on('succeeded', () => n++);
    for (let i = 0; i < 50; i++) await q.createJob({ x: i }).save();
    await until(() => n >= 50);
    await q.close();
    return n === 50 ? 'ok' : n + ' done';
  });
  await check('bullmq', 'bulk, process, retry, delay, priority, flow, events, obliterate', async () => {
    const { Queue, Worker, QueueEvents, FlowProducer } = require('bullmq');
    const connection = { ...url, maxRetriesPerRequest: null }, name = 'm' + Date.now();
    const q = new Queue(name, { connection }), ev = new QueueEvents(name, { connection });
    let done = 0, failed = 0, tries = 0, events = 0;
    ev.on('completed', () => events++);
    await ev.waitUntilReady();
    const w = new Worker(name, async j => { if (j.data.fail && tries++ < 1) throw new Error('once'); }, { connection, concurrency: 4 });
    w.on('completed', () => done++);
    w.on('failed', () => failed++);
    await q.addBulk([...Array(200).keys()].map(i => ({ name: 'j', data: { i } })));
    await q.add('f', { fail: true }, { attempts: 2, backoff: 50 });
    await q.add('d', {}, { delay: 300 });
    await q.add('p', {}, { priority: 5 });
    const flow = new FlowProducer({ connection });
    const child = { name: 'c', queueName: name, data: {} };
    await flow.add({ name: 'parent', queueName: name, data: {}, children: [child, child] });
    await until(() => done >= 206 && events >= 206);
    await w.close();
    await ev.close();
    await flow.close();
    await q.obliterate({ force: true });
    await q.close();
    return done === 206 && failed === 1 && events === 206 ? 'ok' : `done ${done}, failed ${failed}, events ${events}`;
  });
}

if (phase === 'before') {
  await before();
} else {
  await kept();
  await work();
}
process.exit(results.every(r => r === 'ok') ? 0 : 1);
