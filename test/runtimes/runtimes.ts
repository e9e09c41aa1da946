/** The runtimes as they are installed beside this file (`npm run runtimes`), and how each is started. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { build } from 'esbuild'

const here = import.meta.dirname

export interface Running {
  /** Its origin. */
  readonly origin: string
  stop(): Promise<void>
}

export interface Runtime {
  readonly name: string
  /** Undefined where it is not installed. */
  readonly binary: string | undefined
  start(binary: string): Promise<Running>
}

const { platform, arch } = process
const arm = arch === 'arm64'

/** Where its packages put the binary for this machine. */
function installed(name: string): string | undefined {
  const path = join(here, 'node_modules', name)
  return existsSync(path) ? path : undefined
}

export const bun: Runtime = {
  name: 'Bun',
  binary: installed(`@oven/bun-${platform}-${arm ? 'aarch64' : 'x64'}/bin/bun`),
  start: binary => told(spawn(binary, [join(here, 'on-bun.ts')], { stdio: ['ignore', 'pipe', 'inherit'] })),
}

export const deno: Runtime = {
  name: 'Deno',
  binary: installed(`@deno/${platform}-${arm ? 'arm64' : 'x64'}${platform === 'linux' ? '-glibc' : ''}/deno`),
  // No permission but to listen: neither files nor the environment.
  start: binary => {
    const words = ['run', '--no-lock', '--node-modules-dir=manual', '--allow-net', join(here, 'on-deno.ts')]
    return told(spawn(binary, words, { cwd: here, stdio: ['ignore', 'pipe', 'ignore'] }))
  },
}

const workerdBinary = installed(`@cloudflare/workerd-${platform}-${arm ? 'arm64' : '64'}/bin/workerd`)

/** With these compatibility flags; the newest behaviours that it has. */
export function workerd(flags: readonly string[]): Runtime {
  return {
    name: `workerd ${flags.length === 0 ? 'without Node' : `with ${flags.join(', ')}`}`,
    binary: workerdBinary,
    start: async binary => {
      const folder = await mkdtemp(join(tmpdir(), 'workerd-'))
      await bundleWorker(join(folder, 'worker.js'))
      await writeFile(join(folder, 'config.capnp'), config(flags))
      const words = ['serve', join(folder, 'config.capnp'), '--control-fd=3']
      const child = spawn(binary, words, { stdio: ['ignore', 'inherit', 'ignore', 'pipe'] })
      return told(child, child.stdio[3] as Readable, () => rm(folder, { recursive: true, force: true }))
    },
  }
}

/** One file, as wrangler makes it: no externals, the conditions of Workers. */
export async function bundleWorker(outfile: string): Promise<void> {
  await build({
    entryPoints: [join(here, 'on-workerd.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    conditions: ['workerd', 'worker', 'browser'],
    mainFields: ['module', 'main'],
    target: 'es2022',
    // The package as it is published, and not its sources, which the paths of the checkout lead to.
    alias: Object.fromEntries(['server'].map(name => [`vivarium/${name}`, join(here, `../../dist/web/${name}.js`)])),
    logLevel: 'silent',
  })
}

const config = (flags: readonly string[]): string => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = .worker) ],
  sockets = [ (name = "http", address = "127.0.0.1:0", http = (), service = "main") ],
);
const worker :Workerd.Worker = (
  modules = [ (name = "worker", esModule = embed "worker.js") ],
  compatibilityDate = "2026-11-01",
  compatibilityFlags = [${flags.map(flag => `"${flag}"`).join(', ')}],
  durableObjectNamespaces = [ (className = "SessionObject", uniqueKey = "sessions") ],
  durableObjectStorage = (inMemory = void),
  bindings = [ (name = "SESSIONS", durableObjectNamespace = "SessionObject") ],
);
`

/** Waits for the line that says where it listens: an address, or workerd's JSON with a port. */
async function told(
  child: ChildProcess,
  lines: Readable | null = child.stdout,
  clean: () => Promise<void> = async () => {},
): Promise<Running> {
  const ended = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const origin = await new Promise<string>((resolve, reject) => {
    child.once('error', reject)
    void ended.then(() => reject(new Error(`${dirname(child.spawnfile)} ended before it listened`)))
    createInterface({ input: lines as Readable }).on('line', line => {
      const port = /"port":(\d+)|http:\/\/127\.0\.0\.1:(\d+)/.exec(line)
      if (port !== null) resolve(`http://127.0.0.1:${port[1] ?? port[2]}`)
    })
  })
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
    await clean()
  }
  return { origin, stop }
}
