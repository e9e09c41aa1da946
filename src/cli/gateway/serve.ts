/** What `vivarium gateway` tells beside its work, on standard error: lines for people, or records where its log is JSON. */

import { setFlagsFromString } from 'node:v8'
import { createLog } from '../../core/log.ts'
import type { Io } from '../io.ts'
import { printerOf } from '../print.ts'
import type { Words } from '../terminal/text.ts'

interface Telling {
  readonly tell: (text: Words, kind: 'done' | 'warning' | 'mistake') => void
  readonly stderr: (server: string, line: string) => void
}

const severities = { done: 'info', warning: 'warn', mistake: 'error' } as const

export function tellingTo(io: Io): Telling {
  const { aside } = printerOf(io)
  if (/,json$/.test(io.env['VIVARIUM_LOG'] ?? '')) {
    const log = createLog({ format: 'json', write: line => aside.line(line) })
    return {
      tell: (text, kind) => log[severities[kind]]('gateway', { message: String(text) }),
      stderr: (server, line) => log.info('stderr', { server, line }),
    }
  }
  const paints = { done: aside.paint.dim, warning: aside.paint.warn, mistake: aside.paint.bad }
  const tell: Telling['tell'] = (text, kind) => aside.line(paints[kind](text))
  return { tell, stderr: (server, line) => tell(`${server}: ${line}`, 'done') }
}

/** Opens something; `ready` tells when it is up, which nobody waits for here. */
export async function startQuietly<T>(open: () => Promise<T>, ready: (opened: T) => Promise<void>): Promise<T> {
  setFlagsFromString('--semi-space-growth-factor=1')
  const relax = (): void => setFlagsFromString('--semi-space-growth-factor=2')
  try {
    const opened = await open()
    void ready(opened).then(relax, relax)
    return opened
  } catch (error) {
    relax()
    throw error
  }
}
