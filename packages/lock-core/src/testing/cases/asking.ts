import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createOwnerToken } from "../../owner-token.ts";
import type { AcquireRequest, Grant, LockStore, OwnedKey } from "../../store.ts";

/** A key that nobody has used before. */
export function freshKey(): string {
  return `contract:${randomUUID()}`;
}

/** A fresh owner of a key, by default of a fresh one. */
export function freshOwner(key: string = freshKey()): OwnedKey {
  return { key, owner: createOwnerToken() };
}

/** Acquires, and insists on the grant. */
export async function grant(store: LockStore, request: AcquireRequest): Promise<Grant> {
  const result = await store.acquire(request);
  assert.equal(result.outcome, "granted", "acquire of a key that nothing stands against");
  return result as Grant;
}

/** Acquires, and insists on being refused. */
export async function refuse(store: LockStore, request: AcquireRequest): Promise<void> {
  const { outcome } = await store.acquire(request);
  assert.equal(outcome, "contended", "acquire of a key that another owner holds");
}

/** Insists on what the store says about whether this owner holds the key. */
export async function expectHeld(store: LockStore, owned: OwnedKey, expected: boolean): Promise<void> {
  assert.equal(await store.isHeld(owned), expected, expected ? "isHeld for the holder" : "isHeld for a non-holder");
}
