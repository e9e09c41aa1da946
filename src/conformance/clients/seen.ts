/** What a play has shown, ready for questions: the frames of the client by kind, what it declared, what it reported. */
import type { Carrier } from '../../jsonrpc/connection.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { RevisionId } from '../../revisions/index.ts'
import type { End } from './drive.ts'
import { type Book, type Frame, metaIn, paramsOf, type Said, type Visit } from './stage/book.ts'
import type { Stage } from './stage/open.ts'
import { isStateless } from './stage/script.ts'

/** What the client says came of a step. */
export interface Reported {
  readonly as: string
  readonly ok: boolean
  readonly text?: string
  readonly isError?: boolean
  readonly code?: number
  readonly message?: string
  readonly progress?: number
  readonly problem?: boolean
  readonly count?: number
}

const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

export class Seen {
  readonly book: Book
  readonly revision: RevisionId
  readonly wire: string
  readonly carrier: Carrier
  readonly origin: string
  readonly end: End
  readonly stateless: boolean

  constructor(stage: Stage, end: End) {
    this.book = stage.book
    this.revision = stage.revision
    this.wire = stage.wire
    this.carrier = stage.carrier
    this.origin = stage.origin
    this.end = end
    this.stateless = isStateless(stage.revision)
  }

  /** All that the client has said. */
  get fromClient(): readonly Said[] {
    return this.book.said.filter(({ from }) => from === 'client')
  }

  /** Its requests, of one method or of all. */
  requests(method?: string): readonly Said[] {
    return this.fromClient.filter(
      ({ frame }) =>
        frame !== undefined &&
        typeof frame['method'] === 'string' &&
        'id' in frame &&
        (method ?? frame['method']) === frame['method'],
    )
  }

  notices(method: string): readonly Said[] {
    return this.fromClient.filter(({ frame }) => frame?.['method'] === method && !('id' in frame))
  }

  /** Its answers to what it was asked. */
  get answers(): readonly Said[] {
    return this.fromClient.filter(({ frame }) => frame !== undefined && !('method' in frame) && 'id' in frame)
  }

  answer(id: unknown): Said | undefined {
    return this.answers.find(({ frame }) => frame?.['id'] === id)
  }

  /** Calls of a tool; of any but the report where none is named. */
  calls(tool?: string): readonly Said[] {
    return this.requests(this.revision === 's3' ? 'tools/invoke' : 'tools/call').filter(said => {
      const { name } = paramsOf(said)
      return tool === undefined ? name !== 'test-report' : name === tool
    })
  }

  /** Whether it came past the opening: it asked for something. */
  get opened(): boolean {
    const opening = new Set(['initialize', 'server/discover', 'ping'])
    return this.requests().some(({ frame }) => !opening.has(String(frame?.['method'])))
  }

  get info(): Frame {
    const declared = this.stateless
      ? metaIn(this.requests().at(-1))['io.modelcontextprotocol/clientInfo']
      : paramsOf(this.requests('initialize').at(-1))['clientInfo']
    return isRecord(declared) ? declared : {}
  }

  /** What the client says that it can do. */
  get capabilities(): Frame {
    const declared = this.stateless
      ? metaIn(this.requests().at(-1))[CAPABILITIES]
      : paramsOf(this.requests('initialize').at(-1))['capabilities']
    return isRecord(declared) ? declared : {}
  }

  /** Whether a capability is declared: `has('elicitation.url')`. */
  has(path: string): boolean {
    let at: unknown = this.capabilities
    for (const name of path.split('.')) {
      if (!isRecord(at)) return false
      at = at[name]
    }
    return at !== undefined && at !== false
  }

  /** Whether an extension is declared; where each request does that: with any of them. */
  extension(id: string): boolean {
    const declared = this.stateless ? this.requests().map(said => metaIn(said)[CAPABILITIES]) : [this.capabilities]
    return declared
      .filter(isRecord)
      .some(({ extensions, experimental }) => [extensions, experimental].some(map => isRecord(map) && id in map))
  }

  /** What the client says came of its steps, by name. */
  get reported(): ReadonlyMap<string, Reported> {
    const { steps } = argumentsOf(this.requests('tools/call').find(said => paramsOf(said)['name'] === 'test-report'))
    const list = Array.isArray(steps) ? (steps as readonly Reported[]) : []
    return new Map(list.map(entry => [entry.as, entry]))
  }

  /** HTTP requests without a message, of one kind. */
  visits(method: string, path = '/mcp'): readonly Visit[] {
    return this.book.visits.filter(visit => visit.method === method && visit.path.startsWith(path))
  }

  note<T>(name: string): T | undefined {
    return this.book.notes.get(name) as T | undefined
  }
}

export function argumentsOf(said: Said | undefined): Frame {
  const args = paramsOf(said)['arguments']
  return isRecord(args) ? args : {}
}
