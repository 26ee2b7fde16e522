// ioredis with Sentinel: node sentinel.mjs, in a directory with its package. See sentinel.go.
import { createInterface } from 'readline';
import { once } from 'events';
import assert from 'assert';
import Redis from 'ioredis';
const { CLIENT_SENTINELS, CLIENT_PREFIX: prefix } = process.env;
const sleep = ms => new Promise(r => setTimeout(r, ms));
const sentinels = CLIENT_SENTINELS.split(',').map(a => ({ host: a.split(':')[0], port: +a.split(':')[1] }));
const c = new Redis({ sentinels, name: 'main' });
c.on('error', () => {}); // of connecting while there is no master; what fails for good is reported by the command
await c.set(prefix + 'before', 1);
await sleep(200); // that the replica has it
console.log('restart');
await once(createInterface({ input: process.stdin }), 'line');
for (const end = Date.now() + 20000; ; await sleep(50)) {
  try {
    await c.set(prefix + 'after', 2);
    break;
  } catch (e) {
    if (Date.now() > end) throw e;
  }
}
assert.deepEqual(await c.mget(prefix + 'before', prefix + 'after'), ['1', '2']);
c.disconnect();
process.exit(0);
