import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Reads "hold PID" and "free PID" lines from a pipe whose other end this process alone has. The pipe ends when this
 * process does, whatever ended it (SIGKILL included); then every process still held is killed and the folder removed.
 */
const guardScript = `
held=" "
while read -r verb pid; do
  case $verb in
    hold) held="$held$pid " ;;
    free) case $held in *" $pid "*) held="\${held%% $pid *} \${held#* $pid }" ;; esac ;;
  esac
done
[ -n "\${held# }" ] && kill -KILL $held 2>/dev/null
rm -rf "$1" 2>/dev/null || { sleep 1; rm -rf "$1"; }
`;

interface Guard {
  readonly watcher: ChildProcess;
  readonly root: string;
  directories: number;
}

let guard: Guard | undefined;

/** Has the process `pid` killed as soon as this process ends, however it ends. */
export function killWithUs(pid: number): void {
  openGuard().watcher.stdin?.write(`hold ${pid}\n`);
}

/** Takes back {@link killWithUs}: `pid` has ended, and its number may belong to another process soon. */
export function forget(pid: number): void {
  openGuard().watcher.stdin?.write(`free ${pid}\n`);
}

/** Makes a fresh folder that is removed when this process ends. Other users may enter it by name, not list it. */
export function temporaryDirectory(name: string): string {
  const open = openGuard();
  const directory = join(open.root, `${name}-${++open.directories}`);
  mkdirSync(directory);
  return directory;
}

function openGuard(): Guard {
  if (guard !== undefined) return guard;
  const root = mkdtempSync(join(tmpdir(), "ota-testkit-"));
  chmodSync(root, 0o711);
  // Detached: a Ctrl-C in the terminal goes to the whole process group, and the guard must outlive this process.
  const watcher = spawn("sh", ["-c", guardScript, "sh", root], {
    cwd: "/",
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  watcher.unref();
  if (watcher.stdin instanceof Socket) watcher.stdin.unref();
  guard = { watcher, root, directories: 0 };
  return guard;
}
