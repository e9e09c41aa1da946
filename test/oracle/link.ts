/**
 * What passes between one client and one server, judged frame by frame. The link learns from the frames themselves which
 * revision each belongs to and what an answer answers: it knows the wire, and nothing of the code that made it.
 */
import { isRecord } from '../../src/jsonrpc/message.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import { type Asked, faultsOf } from './judge.ts'
import type { Rules } from './rules.ts'
import { isJudged, type Judged } from './schemas.ts'

export type From = 'client' | 'server'

interface Placed extends Asked {
  readonly revision: RevisionId | undefined
}

export interface Verdict {
  readonly revision: Judged
  readonly faults: readonly string[]
}

type Frame = Readonly<Record<string, unknown>>

const versionKey = 'io.modelcontextprotocol/protocolVersion'
const wires = new Map<string, RevisionId>([
  ['2024-10-07', '2024-11-05'],
  ['2024-11-05', '2024-11-05'],
  ['2025-03-26', '2025-03-26'],
  ['2025-06-18', '2025-06-18'],
  ['2025-11-25', '2025-11-25'],
  ['2026-07-28', '2026-07-28'],
  ['DRAFT-2026-v1', 'draft-2026-v1'],
])

export class Link {
  readonly #rules: (revision: Judged) => Rules
  readonly #asked = new Map<string, Placed>()
  /** The methods that tasks were made of, by their id. */
  readonly #tasks = new Map<unknown, string>()
  /** Ids that one array gave to several requests: which of them an answer answers cannot be told. */
  readonly #twins = new Set<string>()
  /** What the handshake settled on. */
  #session: RevisionId | undefined
  /** The version that the last request named by itself. */
  #named: RevisionId | undefined = undefined

  constructor(rules: (revision: Judged) => Rules, session?: RevisionId) {
    this.#rules = rules
    this.#session = session
  }

  /** The verdict on a frame; undefined for what is no message, or of a wire that has no schema. */
  see(from: From, text: string): Verdict | undefined {
    const message = parsed(text)
    if (Array.isArray(message)) {
      this.#note(from, message.filter(isRecord))
      const faults = message.filter(isRecord).flatMap(each => this.#seeOne(from, each)?.faults ?? [])
      const allowed = this.#session === undefined || this.#session === '2025-03-26'
      return { revision: '2025-03-26', faults: allowed ? faults : ['only 2025-03-26 has arrays', ...faults] }
    }
    return isRecord(message) ? this.#seeOne(from, message) : undefined
  }

  #note(from: From, frames: readonly Frame[]): void {
    const keys = frames.filter(frame => 'method' in frame).map(frame => key(from, frame['id']))
    for (const [index, each] of keys.entries()) if (keys.indexOf(each) < index) this.#twins.add(each)
  }

  #seeOne(from: From, frame: Frame): Verdict | undefined {
    if (frame['method'] === undefined && this.#twins.has(key(from === 'client' ? 'server' : 'client', frame['id'])))
      return undefined
    const asked = frame['method'] === undefined ? this.#answered(from, frame) : undefined
    const revision = typeof frame['method'] === 'string' ? this.#ofCall(from, frame) : this.#ofAnswer(frame, asked)
    if (revision === undefined || !isJudged(revision)) return undefined
    return { revision, faults: faultsOf(this.#rules(revision), revision, frame, asked) }
  }

  #ofCall(from: From, frame: Frame): RevisionId | undefined {
    const params = isRecord(frame['params']) ? frame['params'] : {}
    const method = frame['method'] as string
    const revision = this.#claimed(method, params) ?? this.#related(params) ?? this.#session ?? unopened(method) ?? this.#named
    if (frame['id'] !== undefined)
      this.#asked.set(key(from, frame['id']), { method: frame['method'] as string, params, revision })
    return revision
  }

  #claimed(method: string, params: Frame): RevisionId | undefined {
    const meta = params['_meta']
    const claim = isRecord(meta) ? meta[versionKey] : undefined
    if (typeof claim === 'string') {
      this.#named = wires.get(claim) ?? this.#named
      return wires.get(claim)
    }
    if (method !== 'initialize') return undefined
    const version = params['protocolVersion']
    if (typeof version === 'string') return wires.get(version)
    this.#session = 's3'
    return 's3'
  }

  /** Where both eras speak on one pipe, what a message refers to says which of them it belongs to. */
  #related(params: Frame): RevisionId | undefined {
    const meta = isRecord(params['_meta']) ? params['_meta'] : {}
    const id = meta['io.modelcontextprotocol/subscriptionId'] ?? params['requestId']
    const asked = this.#asked.get(key('client', id)) ?? this.#asked.get(key('client', Number(id)))
    if (asked !== undefined) return asked.revision
    const token = params['progressToken']
    if (token === undefined) return undefined
    return [...this.#asked.values()].find(
      each => isRecord(each.params['_meta']) && each.params['_meta']['progressToken'] === token,
    )?.revision
  }

  #answered(from: From, frame: Frame): Placed | undefined {
    const asked = this.#asked.get(key(from === 'client' ? 'server' : 'client', frame['id']))
    const task = isRecord(frame['result']) ? frame['result']['task'] : undefined
    if (asked?.params['task'] !== undefined && isRecord(task)) this.#tasks.set(task['taskId'], asked.method)
    return asked?.method === 'tasks/result' ? { ...asked, work: this.#tasks.get(asked.params['taskId']) } : asked
  }

  #ofAnswer(frame: Frame, asked: Placed | undefined): RevisionId | undefined {
    const result = frame['result']
    if (asked?.method === 'initialize' && isRecord(result)) {
      const version = result['protocolVersion']
      this.#session = typeof version === 'string' ? wires.get(version) : 's3'
      return this.#session
    }
    return asked?.revision ?? this.#session ?? this.#named
  }
}

const dialectMethods = new Set(['tools/invoke', 'initialized', 'cancel', 'progress', 'shutdown', 'exit'])

/** Without a version and a handshake, the dialect's own words are the dialect's, whatever else is said on the pipe. */
function unopened(method: string): RevisionId | undefined {
  return dialectMethods.has(method) ? 's3' : undefined
}

function key(from: From, id: unknown): string {
  return `${from} ${JSON.stringify(id)}`
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
