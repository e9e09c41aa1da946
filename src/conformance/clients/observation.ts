/** What a play has shown, ready for questions: the messages of the client by kind, what it declared, what it reported. */
import { isRecord } from '../../jsonrpc/message.ts'
import { listIn, objectIn } from '../define.ts'
import type { Carrier, Json, RevisionId } from '../scenario.ts'
import { isStateless, keys } from '../wire/envelope.ts'
import type { ClientEnd } from './drive.ts'
import type { HttpVisit, LoggedMessage, MessageLog } from './log.ts'
import type { ScriptedServer } from './server.ts'

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

/** All that scenarios may ask about one play. */
export class Observation {
  readonly log: MessageLog
  readonly revision: RevisionId
  readonly wire: string
  readonly carrier: Carrier
  readonly end: ClientEnd
  readonly stateless: boolean

  constructor({ log, revision, wire, carrier }: ScriptedServer, end: ClientEnd) {
    this.log = log
    this.revision = revision
    this.wire = wire
    this.carrier = carrier
    this.end = end
    this.stateless = isStateless(revision)
  }

  /** All that the client has sent. */
  get fromClient(): readonly LoggedMessage[] {
    return this.log.messages.filter(({ from }) => from === 'client')
  }

  /** Its requests, of one method or of all. */
  requests(method?: string): readonly LoggedMessage[] {
    return this.fromClient.filter(
      message =>
        typeof message.method === 'string' && 'id' in (message.frame ?? {}) && (method ?? message.method) === message.method,
    )
  }

  notices(method: string): readonly LoggedMessage[] {
    return this.fromClient.filter(({ frame }) => frame?.['method'] === method && !('id' in frame))
  }

  /** Its answers to what it was asked. */
  get answers(): readonly LoggedMessage[] {
    return this.fromClient.filter(({ frame }) => frame !== undefined && !('method' in frame) && 'id' in frame)
  }

  answer(id: unknown): LoggedMessage | undefined {
    return this.answers.find(answer => answer.id === id)
  }

  /** Calls of a tool; of any but the report where none is named. */
  calls(tool?: string): readonly LoggedMessage[] {
    return this.requests(this.revision === 's3' ? 'tools/invoke' : 'tools/call').filter(({ params: { name } }) =>
      tool === undefined ? name !== 'test-report' : name === tool,
    )
  }

  /** Whether it came past the opening: it asked for something. The ground of all further verdicts. */
  get opened(): boolean {
    return this.requests().some(({ method }) => !isOpening(method))
  }

  get info(): Json {
    return this.stateless
      ? objectIn(this.requests().at(-1)?.meta, keys.info)
      : objectIn(this.requests('initialize').at(-1)?.params, 'clientInfo')
  }

  /** What the client says that it can do. */
  get capabilities(): Json {
    return this.stateless
      ? objectIn(this.requests().at(-1)?.meta, keys.capabilities)
      : objectIn(this.requests('initialize').at(-1)?.params, 'capabilities')
  }

  /** Whether a capability is declared: `has('elicitation.url')`. */
  has(path: string): boolean {
    let at: unknown = this.capabilities
    for (const name of path.split('.')) at = isRecord(at) ? at[name] : undefined
    return at !== undefined && at !== false
  }

  /** Whether an extension is declared; where each request does that: with any of them. */
  extension(id: string): boolean {
    const declared = this.stateless ? this.requests().map(({ meta }) => objectIn(meta, keys.capabilities)) : [this.capabilities]
    return declared.some(one => id in objectIn(one, 'extensions') || id in objectIn(one, 'experimental'))
  }

  /** What the client says came of its steps, by name. */
  get reported(): ReadonlyMap<string, Reported> {
    const report = this.requests('tools/call').find(({ params }) => params['name'] === 'test-report')
    const steps = listIn(report?.args, 'steps') as readonly Reported[]
    return new Map(steps.map(entry => [entry.as, entry]))
  }

  /** HTTP requests without a message, of one kind. */
  visits(method: string, path = '/mcp'): readonly HttpVisit[] {
    return this.log.visits.filter(visit => visit.method === method && visit.path.startsWith(path))
  }

  note<T>(name: string): T | undefined {
    return this.log.notes.get(name) as T | undefined
  }
}

/** Whether a request of this method may come before a session is announced as open. */
export function isOpening(method: unknown): boolean {
  return method === 'initialize' || method === 'ping' || method === 'server/discover'
}
