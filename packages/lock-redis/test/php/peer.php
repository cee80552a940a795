<?php
// A process that locks with symfony/lock, told what to do by lines of JSON on standard input, one answer line for each:
// {"do": "acquire"|"wait"|"refresh"|"release"|"isAcquired"|"token"|"adopt"|"count", "lock": <resource>, "ttl"?: seconds, …}

use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\Lock;
use Symfony\Component\Lock\Store\RedisStore;

require 'Symfony/Component/Lock/autoload.php';

$redis = new Redis();
$redis->connect('127.0.0.1', (int) $argv[1]);
$store = new RedisStore($redis);
$keys = [];
$locks = [];

while (($line = fgets(STDIN)) !== false) {
    $request = json_decode($line, true);
    $name = $request['lock'];
    $keys[$name] ??= new Key($name);
    $locks[$name] ??= new Lock($keys[$name], $store, $request['ttl'] ?? 10.0, false);
    $lock = $locks[$name];
    try {
        $answer = match ($request['do']) {
            'acquire' => $lock->acquire(),
            'wait' => $lock->acquire(true),
            'acquireRead' => $lock->acquireRead(),
            'refresh' => $lock->refresh($request['ttl']),
            'release' => $lock->release(),
            'isAcquired' => $lock->isAcquired(),
            'token' => $keys[$name]->getState(RedisStore::class),
            'adopt' => $keys[$name]->setState(RedisStore::class, $request['token']),
            'count' => count_up($redis, $lock, $request['counter'], $request['times']),
        };
    } catch (LockConflictedException) {
        $answer = 'conflicted';
    } catch (Throwable $error) {
        $answer = get_class($error).': '.$error->getMessage();
    }
    echo json_encode($answer), "\n";
}

/** Reads, waits and writes back under the lock: two holders at once would lose a count. */
function count_up(Redis $redis, Lock $lock, string $counter, int $times): int
{
    for ($done = 0; $done < $times;) {
        if (!$lock->acquire()) {
            usleep(random_int(200, 2000));
            continue;
        }
        $value = (int) $redis->get($counter);
        usleep(200);
        $redis->set($counter, $value + 1);
        $lock->release();
        ++$done;
    }

    return $done;
}
