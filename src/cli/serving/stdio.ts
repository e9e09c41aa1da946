/**
 * Serving a file over standard input and output. Watched, it runs in a child, and its successor is told how the conversation began:
 * the client keeps its session, hears that the lists may have changed, and gets from the old child what it had asked of it.
 */
import { dirname, resolve } from 'node:path'
import { claimStdout } from '../../transports/stdio/server.ts'
import type { Io } from '../io.ts'
import { loadServer } from './load.ts'
import { Relay } from './relay.ts'
import { watchCode } from './watch.ts'

/** Serves one client until it goes. What the file writes while it is loaded is none of the protocol. */
export async function serveStdio(file: string): Promise<number> {
  const claim = claimStdout()
  const { server } = await loadServer(file).finally(() => claim.release())
  const served = server.stdio()
  process.send?.('ready')
  await served
  await server.close()
  return 0
}

export async function watchStdio(file: string, io: Io, say: (text: string) => void): Promise<number> {
  const relay = new Relay(file, io)
  const begun = relay.begin()
  const reload = async (changed: string): Promise<void> => {
    if (await begun) say(`${changed} changed: ${await relay.reload()}`)
  }
  // Before the first start has ended: what is saved while the code is being loaded counts too.
  const watching = watchCode(dirname(resolve(file)), changed => void reload(changed))
  try {
    if (!(await begun)) return 1
    await relay.over
    return 0
  } finally {
    watching.close()
  }
}
