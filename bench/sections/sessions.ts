/** What an idle session costs: heap after garbage collection, before and after opening thousands of them. */
import type { Contender } from '../contenders.ts'
import { HttpConnection } from '../load/http-connection.ts'
import { type HttpServer, openSession, SIDE_CHANNEL_FLAGS, startHttp } from '../load/http-server.ts'
import type { Options } from '../options.ts'
import { STEP_MS, within } from '../processes.ts'
import { failure, type SessionFigures, type SessionRow } from '../results.ts'

interface Heap {
  heapUsed: number
  rss: number
}

const CONNECTIONS = 8

export async function measureSessions(
  options: Options,
  contenders: readonly Contender[],
  done: (row: SessionRow) => void,
): Promise<void> {
  const cells: SessionRow['cells'] = {}
  const { sessions } = options.timing
  for (const contender of contenders) {
    // The schema language makes no difference to a session.
    if (!contender.http.includes('2025-11-25') || contender.name === 'vivarium-json') continue
    try {
      cells[contender.name] = await measureContender(contender, sessions)
    } catch (error) {
      cells[contender.name] = failure(error)
    }
  }
  done({ sessions, cells })
}

export async function measureContender(contender: Contender, sessions: number): Promise<SessionFigures> {
  const server = await startHttp(contender, 'tools', '2025-11-25', ['--expose-gc', ...SIDE_CHANNEL_FLAGS])
  try {
    // The first ones also pay for compiled code and tables, which do not grow with sessions.
    await openMany(server, contender, 150)
    const before = await readHeap(server)
    await openMany(server, contender, sessions)
    const after = await readHeap(server)
    return {
      heapBytes: (after.heapUsed - before.heapUsed) / sessions,
      rssBytes: (after.rss - before.rss) / sessions,
    }
  } finally {
    await server.child.stop()
  }
}

/** Opens sessions over a few connections and closes those, so that only the sessions remain. */
async function openMany({ port, child }: HttpServer, contender: Contender, count: number): Promise<void> {
  let left = count
  async function worker(): Promise<void> {
    const connection = await HttpConnection.open(port)
    try {
      while (left-- > 0) {
        const session = await openSession(connection, { port, contender, revision: '2025-11-25' })
        if (session === undefined) throw new Error('opened no session')
      }
    } finally {
      connection.close()
    }
  }
  const workers = Promise.all(Array.from({ length: CONNECTIONS }, worker))
  await Promise.race([workers, child.gone])
}

async function readHeap({ child }: HttpServer): Promise<Heap> {
  const reported = new Promise<Heap>(resolve => {
    child.process.stderr.on('data', function look(text: string) {
      const line = /^heap (\{.*\})$/m.exec(String(text))
      if (line === null) return
      child.process.stderr.off('data', look)
      resolve(JSON.parse(line[1] ?? '{}') as Heap)
    })
  })
  child.process.kill('SIGUSR2')
  return within(STEP_MS, 'heap report', Promise.race([reported, child.gone]))
}
