<?php
// The main job of Laravel against a server: frameworks.php PORT PHASE. See frameworks.mjs. Without Laravel's queue, cache and phpredis it does nothing.
foreach (['Container', 'Events', 'Redis', 'Queue', 'Cache', 'Console'] as $part) {
    if (!@include_once "Illuminate/$part/autoload.php") {
        fwrite(STDERR, "left out: laravel, for there is no Illuminate/$part\n");
        exit(0);
    }
}
if (!extension_loaded('redis')) {
    fwrite(STDERR, "left out: laravel, for there is no phpredis\n");
    exit(0);
}

use Illuminate\Cache\RateLimiter;
use Illuminate\Cache\RedisStore;
use Illuminate\Cache\Repository;
use Illuminate\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Events\Dispatcher as Events;
use Illuminate\Events\Dispatcher;
use Illuminate\Queue\Connectors\RedisConnector;
use Illuminate\Queue\QueueManager;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;
use Illuminate\Redis\RedisManager;

const JOBS = 50;

class Work
{
    public static $redis;

    public function fire($job, $n)
    {
        if ($n === 0 && $job->attempts() === 1) {
            $job->release(1); // and again in a second
            return;
        }
        if ($n === -1) {
            throw new RuntimeException('on purpose');
        }
        self::$redis->rpush('laravel:seen', $n);
        $job->delete();
    }

    public function failed($n)
    {
        self::$redis->rpush('laravel:failed', $n);
    }
}

class Errors implements ExceptionHandler
{
    public function report(Throwable $e) {}
    public function shouldReport(Throwable $e) { return true; }
    public function render($request, Throwable $e) { throw $e; }
    public function renderForConsole($output, Throwable $e) { throw $e; }
}

$app = new class extends Container {
    public function isDownForMaintenance() { return false; }
};
Container::setInstance($app);
$app->instance('app', $app);
$app->instance(Events::class, $events = new Dispatcher($app));
$app->instance('events', $events);
// A database of its own, since flushing the cache empties it.
$manager = new RedisManager($app, 'phpredis', ['default' => ['host' => '127.0.0.1', 'port' => (int) $argv[1], 'database' => 3, 'read_timeout' => 60]]);
$app->instance('redis', $manager);
$app->instance('config', new ArrayObject(['queue.default' => 'redis', 'queue.connections.redis' => ['driver' => 'redis', 'queue' => 'default', 'retry_after' => 90, 'block_for' => 1]]));
$queues = new QueueManager($app);
$queues->addConnector('redis', function () use ($manager) { return new RedisConnector($manager); });
Work::$redis = $manager->connection();

function report($job, $got, $want)
{
    global $failed;
    $result = $got === $want ? 'ok' : json_encode($got).', want '.json_encode($want);
    $version = trim(shell_exec("dpkg-query -W -f '\${Version}' php-illuminate-queue 2>/dev/null | sed 's/[+-].*//'") ?? '');
    echo implode("\t", ['Laravel', $version, $job, $result]), "\n";
    $failed = $failed || $result !== 'ok';
}

$failed = false;
$queue = $queues->connection('redis');
if ($argv[2] === 'before') {
    for ($i = 0; $i < JOBS; $i++) {
        $queue->push('Work', $i);
    }
    $queue->push('Work', -1);
    $queue->later(1, 'Work', JOBS);
    report('enqueue, delay, then a restart', $queue->size(), JOBS + 2);
    exit($failed ? 1 : 0);
}

$worker = new Worker($queues, $events, new Errors, function () { return false; });
$options = new WorkerOptions;
$options->maxTries = 2;
$options->sleep = 0;
$deadline = time() + 60;
while (time() < $deadline && (Work::$redis->llen('laravel:seen') <= JOBS || Work::$redis->llen('laravel:failed') < 1)) {
    $worker->runNextJob('redis', 'default', $options);
}
$seen = array_map('intval', Work::$redis->lrange('laravel:seen', 0, -1));
sort($seen);
report('work after the restart: process, release, delay, retry, fail', [$seen, Work::$redis->lrange('laravel:failed', 0, -1), $queue->size()], [range(0, JOBS), ['-1'], 0]);

$store = new RedisStore($manager, 'laravel_cache:');
$cache = new Repository($store);
$cache->flush();
$made = 0;
for ($i = 0; $i < 2; $i++) {
    $cache->remember('slow', 60, function () use (&$made) { $made++; return ['a' => 1]; });
}
$tagged = $cache->tags(['people', 'artists']);
$tagged->put('John', 'one', 60);
$before = $tagged->get('John');
$cache->tags('artists')->flush();
report('cache: remember, add, increment, many, tags', [
    $made, $cache->get('slow'), $cache->add('once', 1, 60), $cache->add('once', 2, 60), $cache->increment('n', 5), $cache->decrement('n'),
    $cache->putMany(['x' => 1.5, 'y' => 'z'], 60), $cache->many(['x', 'y', 'none']), $before, $tagged->get('John'), $cache->forget('y'), $cache->get('y'),
], [1, ['a' => 1], true, false, 5, 4, true, ['x' => '1.5', 'y' => 'z', 'none' => null], 'one', null, true, null]);

$lock = $store->lock('door', 10);
$other = $store->lock('door', 10);
$limiter = new RateLimiter($cache);
$limits = [];
for ($i = 0; $i < 4; $i++) {
    $limits[] = $limiter->attempt('user', 3, function () { return 'in'; }, 60);
}
$funnel = 0;
$manager->funnel('jobs')->limit(1)->then(function () use (&$funnel) { $funnel++; });
$manager->throttle('calls')->block(0)->allow(2)->every(60)->then(function () use (&$funnel) { $funnel++; });
report('locks, rate limits, funnel and throttle', [
    $lock->get(), $other->get(), $other->release(), $lock->release(), $other->get(), $limits, $limiter->remaining('user', 3), $funnel,
], [true, false, false, true, true, ['in', 'in', 'in', false], 0, 2]);
exit($failed ? 1 : 0);
