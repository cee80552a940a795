<?php
// Keys of symfony/lock as text, in base64, and back.

use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\Store\RedisStore;

/**
 * 'native' is what this version's serialize() writes. The versions after 7.2 write plain names, and JSON: for these, the
 * shape is made here from the same Key.
 */
function write_key(Key $key, string $encoding): string
{
    return base64_encode(match ($encoding) {
        'native' => serialize($key),
        'plain' => in_plain_names($key),
        'json' => json_encode(fields_of($key), JSON_PRESERVE_ZERO_FRACTION | JSON_THROW_ON_ERROR),
    });
}

function read_key(string $text, string $encoding): Key
{
    $text = base64_decode($text, true);
    if ('native' === $encoding) {
        $key = unserialize($text, ['allowed_classes' => [Key::class]]);
        if (!$key instanceof Key) {
            throw new UnexpectedValueException('no Key');
        }

        return $key;
    }
    $fields = json_decode($text, true, 512, JSON_THROW_ON_ERROR);
    $key = new Key($fields['resource']);
    foreach ($fields['state'] as $store => $state) {
        $key->setState($store, $state);
    }
    (new ReflectionProperty(Key::class, 'expiringTime'))->setValue($key, $fields['expiringTime']);

    return $key;
}

/** @return array{resource: string, token: string, remaining: ?float} */
function describe_key(Key $key): array
{
    return [
        'resource' => (string) $key,
        'token' => $key->getState(RedisStore::class),
        'remaining' => $key->getRemainingLifetime(),
    ];
}

/** Keys with names and states of all kinds, in all encodings, each with what it says. */
function write_many(int $times): array
{
    $letters = ['a', ' ', "\0", "\n", '"', ';', '}', '{', ':', 'é', '語', '🔑', "\u{feff}", '\\', 's:1:"x";'];
    $states = [null, true, -7, 1.5, 1.0E+25, INF, 'text', ['a' => [1, 2, ['b' => null]]], []];
    $written = [];
    for ($index = 0; $index < $times; ++$index) {
        $resource = '';
        for ($length = random_int(0, 12); $length > 0; --$length) {
            $resource .= $letters[array_rand($letters)];
        }
        $key = new Key($resource);
        $key->setState('Before', $states[array_rand($states)]);
        $key->setState(RedisStore::class, base64_encode(random_bytes(32)));
        $key->setState("After\0", $states[array_rand($states)]);
        if (random_int(0, 3) > 0) {
            $key->reduceLifetime(random_int(1, 1_000_000) / 1000);
        }
        foreach (['native', 'plain'] as $encoding) {
            $written[] = ['text' => write_key($key, $encoding)] + describe_key($key);
        }
    }

    return $written;
}

function fields_of(Key $key): array
{
    $fields = [];
    foreach (['resource', 'expiringTime', 'state'] as $name) {
        $fields[$name] = (new ReflectionProperty(Key::class, $name))->getValue($key);
    }

    return $fields;
}

/** As an object with these three as its public names is serialised. */
function in_plain_names(Key $key): string
{
    return preg_replace('/^O:8:"stdClass"/', 'O:26:"Symfony\Component\Lock\Key"', serialize((object) fields_of($key)));
}
