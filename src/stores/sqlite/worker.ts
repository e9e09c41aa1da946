/** The thread that owns the file. Whatever queued up while it was busy is one batch: that is the group commit. */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { messageOf } from '../store.ts'
import { type Batch, closeWord, type WorkerStarted } from './protocol.ts'

/** Enough to share a sync, little enough not to keep the first ones waiting. */
const MOST = 512

const port = parentPort
if (port === null) throw new Error('This file can only run as a worker thread')

try {
  const { Database } = await loadWithoutWarning()
  const database = new Database(String(workerData.path))
  port.on('message', (first: string) => {
    const batches: Batch[] = []
    let count = 0
    let closes = false
    for (let text: string | undefined = first; text !== undefined; ) {
      if (text === closeWord) closes = true
      else {
        const batch: Batch = JSON.parse(text)
        batches.push(batch)
        count += batch.requests.length
      }
      text = count < MOST ? receiveMessageOnPort(port)?.message : undefined
    }
    const now = batches.at(-1)?.now ?? 0
    const requests = batches.flatMap(batch => batch.requests)
    if (requests.length > 0) port.postMessage(JSON.stringify(database.answer({ now, requests })))
    if (closes) {
      database.close()
      port.close()
    }
  })
  port.postMessage({ ready: true } satisfies WorkerStarted)
} catch (error) {
  port.postMessage({ failed: messageOf(error) } satisfies WorkerStarted)
  port.close()
}

/** Node calls its SQLite experimental, on every start and on standard error. Users cannot act on that. */
async function loadWithoutWarning(): Promise<typeof import('./database.ts')> {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return await import('./database.ts')
  } finally {
    process.emitWarning = emitWarning
  }
}
