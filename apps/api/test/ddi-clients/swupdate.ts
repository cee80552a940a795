import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { access, copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { forget, killWithUs, temporaryDirectory } from "@ota/testkit";
import { fileOfPage, runScriptOfPage } from "./operators-page.ts";

const run = promisify(execFile);

const KEY_FILES = ["image.key", "image.crt"];

/** What stands in for an image's files. */
export interface ImageOptions {
  readonly version: string;
  /** Of the file that it installs. @default 300 000 */
  readonly payloadBytes?: number;
  /** What its script ends with after the installation. @default 0 */
  readonly exitCode?: number;
  /** Whether the file in the image is another one than the description says. @default false */
  readonly isSpoilt?: boolean;
}

/** A device that runs Debian's swupdate by what the operators' page says, in a folder of its own. */
export class SwupdateDevice {
  readonly folder: string = temporaryDirectory("swupdate");
  readonly #env: Readonly<Record<string, string>>;
  #running: { readonly child: ChildProcess; readonly ended: Promise<unknown> } | undefined;
  #log = "";

  /** `env` holds what the page's commands speak of. */
  constructor(env: Readonly<Record<string, string>>) {
    this.#env = {
      ...{ PATH: process.env["PATH"] ?? "", TMPDIR: join(this.folder, "tmp"), INSTALL_PATH: this.installPath },
      ...env,
    };
  }

  /** Where images install their file. */
  get installPath(): string {
    return join(this.folder, "installed.bin");
  }

  /** All that it has written so far. */
  get log(): string {
    return this.#log;
  }

  /** Makes an image and publishes it; returns the SHA-256 of the file that it installs. */
  async publish(image: ImageOptions, { keysFrom }: { readonly keysFrom: string }): Promise<string> {
    const payload = randomBytes(image.payloadBytes ?? 300_000);
    await mkdir(join(this.folder, "tmp"));
    await writeFile(join(this.folder, "payload.bin"), payload);
    await writeFile(join(this.folder, "post.sh"), `#!/bin/sh\n[ "$1" != postinst ] || exit ${image.exitCode ?? 0}\n`);
    await writeFile(join(this.folder, "swupdate.cfg"), fileOfPage("swupdate.cfg"));
    for (const file of KEY_FILES) await copyFile(join(keysFrom, file), join(this.folder, file));
    const env = { VERSION: image.version };
    await this.#runScript("make-image.sh", env);
    if (image.isSpoilt) await spoil(join(this.folder, "image.swu"), payload);
    await this.#runScript("publish.sh", env);
    return sha256(payload);
  }

  /** Starts swupdate by a script of the page. */
  async start(name: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
    const child = spawn("bash", ["-c", fileOfPage(name)], {
      ...{ cwd: this.folder, env: { ...this.#env, ...env }, stdio: ["ignore", "pipe", "pipe"] },
    });
    await once(child, "spawn");
    const pid = child.pid ?? 0;
    // Its own processes end with it.
    killWithUs(pid);
    const ended = once(child, "close").then(() => forget(pid));
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#log += text;
      });
    }
    this.#running = { child, ended };
  }

  /** Has it poll at once, which it else does when its sleep is over. */
  async poll(): Promise<void> {
    await run("swupdate-ipc", ["hawkbitcfg", "-t"], { env: this.#env });
  }

  /** Ends it, as a restart of the device does. */
  async stop(): Promise<void> {
    const { child, ended } = this.#running ?? {};
    this.#running = undefined;
    child?.kill("SIGTERM");
    await ended;
  }

  /** The SHA-256 of what is installed; `undefined`: nothing is. */
  async installedSha256(): Promise<string | undefined> {
    try {
      await access(this.installPath);
    } catch {
      return undefined;
    }
    return sha256(await readFile(this.installPath));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  #runScript(name: string, env: Readonly<Record<string, string>>): Promise<void> {
    return runScriptOfPage(name, { cwd: this.folder, env: { ...this.#env, ...env } });
  }
}

/** Makes the keys that images are signed with, which takes long enough to be done once. */
export async function makeImageKeys(): Promise<string> {
  const folder = temporaryDirectory("swupdate-keys");
  const [, command] = /(openssl req .*?digitalSignature)\n/s.exec(fileOfPage("make-image.sh")) ?? [];
  await run("bash", ["-c", command ?? ""], { cwd: folder });
  return folder;
}

/** Swaps two bytes: the archive's own sum of bytes stays the same. */
async function spoil(image: string, payload: Buffer): Promise<void> {
  const bytes = await readFile(image);
  const at = bytes.indexOf(payload);
  const other = payload.findIndex((byte) => byte !== payload[0]);
  bytes[at] = payload[other] ?? 0;
  bytes[at + other] = payload[0] ?? 0;
  await writeFile(image, bytes);
}

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
