import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DataFolderInUseError, openDataFolder } from "../src/data-folder.ts";

let path: string;
beforeEach(async () => {
  path = join(await mkdtemp(join(tmpdir(), "ota-folder-")), "deep", "data");
});
afterEach(() => rm(join(path, "..", ".."), { recursive: true, force: true }));

/** Another process that has the folder and sits there. */
async function holder(): Promise<{ kill(): Promise<void> }> {
  const module = new URL("../src/data-folder.ts", import.meta.url).href;
  const script = `
    const { openDataFolder } = await import(${JSON.stringify(module)});
    await openDataFolder(${JSON.stringify(path)});
    console.log("held");
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  return {
    async kill() {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}

describe("openDataFolder", () => {
  test("a second process is refused and told what to do, until the first is gone, even by SIGKILL", async () => {
    const other = await holder();
    try {
      await expect(openDataFolder(path)).rejects.toThrow(DataFolderInUseError);
      await expect(openDataFolder(path)).rejects.toThrow(/OTA_DATA_DIR.*DATABASE_URL/);
    } finally {
      await other.kill();
    }
    (await openDataFolder(path)).close();
  });

  test("a second opening in the same process is refused as well, and close gives the folder back", async () => {
    const folder = await openDataFolder(path);
    await expect(openDataFolder(path)).rejects.toThrow(DataFolderInUseError);
    folder.close();
    (await openDataFolder(path)).close();
  });

  test("the folder is its owner's alone, and the lock leaves one empty file", async () => {
    const folder = await openDataFolder(path);
    expect((await stat(path)).mode & 0o777).toBe(0o700);
    expect(await readdir(path)).toEqual(["lock"]);
    folder.close();
  });

  test("a secret is made once, whole, readable by its owner alone, and different from any other", async () => {
    const folder = await openDataFolder(path);
    // What a process leaves that died while it made the secret.
    await writeFile(join(path, "operator-key.new"), "half");
    const first = await folder.secret("operator-key");
    expect(first).toEqual({
      value: expect.stringMatching(/^[\w-]{43}$/),
      file: join(path, "operator-key"),
      created: true,
    });
    expect(await folder.secret("operator-key")).toEqual({ ...first, created: false });
    expect((await folder.secret("url-signing-key")).value).not.toBe(first.value);
    expect((await stat(first.file)).mode & 0o777).toBe(0o600);
    expect(await readFile(first.file, "utf8")).toBe(`${first.value}\n`);
    expect(await readdir(path)).toEqual(["lock", "operator-key", "url-signing-key"]);
    folder.close();
  });

  test("an empty secret is an error, not a new secret", async () => {
    const folder = await openDataFolder(path);
    await writeFile(join(path, "operator-key"), "\n");
    await expect(folder.secret("operator-key")).rejects.toThrow(/is empty/);
    folder.close();
  });
});
