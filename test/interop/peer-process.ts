/** Starting a peer that serves HTTP in a process of its own, and ending it again. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export function peerFile(name: string): string {
  return join(import.meta.dirname, 'peers', `${name}.mjs`)
}

export interface PeerProcess {
  readonly url: string
  close(): Promise<void>
}

/** The peer's first line is its address. */
export async function startPeer(name: string, carrier: string): Promise<PeerProcess> {
  const child = spawn(process.execPath, [peerFile(name), carrier], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const first = once(createInterface({ input: child.stdout }), 'line')
  const url = await Promise.race([first.then(([line]) => String(line)), exited.then(() => undefined)])
  if (url === undefined) throw new Error(`The peer ${name} ended before it said where it serves`)
  return {
    url,
    close: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}
