<?php
// Work under a lock that goes wrong, visibly, where two hold it that must not.

use Symfony\Component\Lock\Lock;

/** Reads, waits and writes back under the lock: two holders at once would lose a count. Both values are always the same. */
function count_up(Redis $redis, Lock $lock, string $counter, int $times): int
{
    for ($done = 0; $done < $times;) {
        if (!$lock->acquire()) {
            usleep(random_int(200, 2000));
            continue;
        }
        add_one($redis, $counter);
        $lock->release();
        ++$done;
    }

    return $done;
}

/** Reads as a reader and writes back once promoted: nobody may have written in between. */
function count_by_promotion(Redis $redis, Lock $lock, string $counter, int $times): int
{
    for ($done = 0; $done < $times;) {
        if (!$lock->acquireRead()) {
            usleep(random_int(200, 2000));
            continue;
        }
        $value = (int) $redis->get($counter);
        usleep(random_int(0, 500));
        if ($lock->acquire()) {
            $redis->set($counter, $value + 1);
            ++$done;
        }
        $lock->release();
        usleep(random_int(200, 2000));
    }

    return $done;
}

/** How often a reader saw the two values of count_up differ. */
function look(Redis $redis, Lock $lock, string $counter, int $times): int
{
    $torn = 0;
    for ($done = 0; $done < $times;) {
        if (!$lock->acquireRead()) {
            usleep(random_int(200, 2000));
            continue;
        }
        $first = $redis->get($counter);
        usleep(300);
        $torn += $first === $redis->get("$counter:copy") ? 0 : 1;
        $lock->release();
        usleep(random_int(200, 2000));
        ++$done;
    }

    return $torn;
}

function add_one(Redis $redis, string $counter): void
{
    $value = (int) $redis->get($counter);
    usleep(200);
    $redis->set($counter, $value + 1);
    usleep(200);
    $redis->set("$counter:copy", $value + 1);
}
