/** The thread that owns the file. Whatever queued up while it was busy is one batch: that is the group commit. */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { messageOf } from '../store.ts'
import type { Answer, Batch, Hello } from './protocol.ts'

/** Enough to share a sync, little enough not to keep the first ones waiting. */
const MOST = 512

const port = parentPort
if (port === null) throw new Error('This file is started as a worker thread')

try {
  const { Database } = await loadQuietly()
  const database = new Database(String(workerData.path))
  port.on('message', (first: Batch | 'close') => {
    const batches = [first]
    let count = first === 'close' ? 0 : first.requests.length
    while (count < MOST) {
      const more = receiveMessageOnPort(port)
      if (more === undefined) break
      const batch: Batch | 'close' = more.message
      batches.push(batch)
      count += batch === 'close' ? 0 : batch.requests.length
    }
    const open = batches.filter(batch => batch !== 'close')
    const now = open.at(-1)?.now ?? 0
    const answers: Answer[] = open.length === 0 ? [] : database.answer({ now, requests: open.flatMap(batch => batch.requests) })
    if (answers.length > 0) port.postMessage(answers)
    if (open.length < batches.length) {
      database.close()
      port.close()
    }
  })
  port.postMessage({ ready: true } satisfies Hello)
} catch (error) {
  port.postMessage({ failed: messageOf(error) } satisfies Hello)
  port.close()
}

/** Node calls its SQLite experimental, on every start and on standard error. Users cannot act on that. */
async function loadQuietly(): Promise<typeof import('./database.ts')> {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return await import('./database.ts')
  } finally {
    process.emitWarning = emitWarning
  }
}
