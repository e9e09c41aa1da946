/** Child processes that lead a group of their own, so that ending one ends all it started. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'

export interface Running {
  /** Status, or the signal's name; undefined while it runs. */
  ended(): number | string | undefined
  /** What it wrote on both outputs so far. */
  output(): string
  done: Promise<number | string>
  stop(): Promise<void>
}

const groups = new Set<ChildProcess>()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    for (const child of groups) signalGroup(child, 'SIGKILL')
    process.exit(130)
  })
}

export function start(
  command: string,
  args: readonly string[],
  options: { shell?: boolean; env?: NodeJS.ProcessEnv } = {},
): Running {
  const child = spawn(command, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  groups.add(child)
  let output = ''
  let ended: number | string | undefined
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', text => (output += text))
  const done = new Promise<number | string>(resolve => {
    child.on('error', error => resolve(String(error)))
    child.on('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'))
  })
  void done.then(how => {
    ended = how
  })
  const stop = async () => {
    signalGroup(child, 'SIGTERM')
    const late = setTimeout(() => signalGroup(child, 'SIGKILL'), 2_000)
    await done
    clearTimeout(late)
    // Its own children may have stayed behind.
    signalGroup(child, 'SIGKILL')
    groups.delete(child)
  }
  return { ended: () => ended, output: () => output, done, stop }
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (child.pid) process.kill(-child.pid, signal)
  } catch {
    // The group is gone already, which is what we want.
  }
}

/** Waits for a child at most so long; `undefined` means that it was stopped because it took longer. */
export async function finish(child: Running, milliseconds: number): Promise<number | string | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => {
    timer = setTimeout(() => resolve(undefined), milliseconds)
  })
  const how = await Promise.race([child.done, late])
  clearTimeout(timer)
  await child.stop()
  return how
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (typeof address !== 'object' || address === null) throw new Error('no free port')
  return address.port
}

/** Whether something accepts connections there. */
export function answers(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ host: 'localhost', port, timeout: 2_000 })
    const settle = (up: boolean) => {
      socket.destroy()
      resolve(up)
    }
    socket.on('connect', () => settle(true))
    socket.on('error', () => settle(false))
    socket.on('timeout', () => settle(false))
  })
}
