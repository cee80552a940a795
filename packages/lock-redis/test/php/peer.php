<?php
// A process that locks with symfony/lock, on the Redis servers whose ports are its arguments: on one by its RedisStore, on
// several by its CombinedStore. It is told what to do by lines of JSON on standard input, one answer line for each:
// {"do": …, "lock": <resource>, "as"?: <holder, where a lock has several>, "ttl"?: seconds, …}

use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\Lock;
use Symfony\Component\Lock\Store\CombinedStore;
use Symfony\Component\Lock\Store\RedisStore;
use Symfony\Component\Lock\Strategy\ConsensusStrategy;

require 'Symfony/Component/Lock/autoload.php';
require __DIR__.'/keys.php';
require __DIR__.'/work.php';

$clients = array_map(function (string $port): Redis {
    $redis = new Redis();
    $redis->connect('127.0.0.1', (int) $port);

    return $redis;
}, array_slice($argv, 1));
$redis = $clients[0];
$stores = array_map(fn (Redis $client) => new RedisStore($client), $clients);
$store = count($stores) > 1 ? new CombinedStore($stores, new ConsensusStrategy()) : $stores[0];
$keys = [];

while (($line = fgets(STDIN)) !== false) {
    $request = json_decode($line, true);
    $holder = ($request['as'] ?? '').'@'.$request['lock'];
    $keys[$holder] ??= new Key($request['lock']);
    $key = $keys[$holder];
    $asked = isset($request['initialTtl']) ? new RedisStore($redis, $request['initialTtl']) : $store;
    $lock = new Lock($key, $asked, $request['ttl'] ?? 10.0, false);
    try {
        $answer = match ($request['do']) {
            'acquire' => $lock->acquire(),
            'wait' => $lock->acquire(true),
            'acquireRead' => $lock->acquireRead(),
            'save' => $store->save($key),
            'saveRead' => $store->saveRead($key),
            'refresh' => $lock->refresh($request['ttl']),
            'release' => $lock->release(),
            'isAcquired' => $lock->isAcquired(),
            'token' => $key->getState(RedisStore::class),
            'adopt' => $key->setState(RedisStore::class, $request['token']),
            'write' => write_key($key, $request['encoding']),
            'read' => describe_key($keys[$holder] = read_key($request['text'], $request['encoding'])),
            'writeMany' => write_many($request['times']),
            'count' => count_up($redis, $lock, $request['counter'], $request['times']),
            'countByPromotion' => count_by_promotion($redis, $lock, $request['counter'], $request['times']),
            'look' => look($redis, $lock, $request['counter'], $request['times']),
        };
    } catch (LockConflictedException) {
        $answer = 'conflicted';
    } catch (Throwable $error) {
        $answer = get_class($error).': '.$error->getMessage();
    }
    echo json_encode($answer, JSON_THROW_ON_ERROR), "\n";
}
