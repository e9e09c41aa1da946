/** Calls of a playground: each at up to seven revisions side by side, kept for a while with their results. */
import { randomUUID } from 'node:crypto'
import type { Client } from '../../client/index.ts'
import type { Cancel, Clock } from '../../core/clock.ts'
import { Problem } from '../../core/problem.ts'
import { expandTemplate } from '../../features/mcp/resources/template.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { jsonValue } from '../../recording/format.ts'
import type { RevisionId } from '../../revisions/index.ts'
import { messageOf } from '../../stores/store.ts'
import type { Call, CallProblem, CallQuery, CallRun, CallWish } from '../contract/calls.ts'
import { ConsoleFailure } from '../failure.ts'
import type { Traffic } from '../frames/traffic.ts'
import type { PlaygroundServer, Used } from './server.ts'

const mostCalls = 200
const mostRunning = 32
/** Results that are whole in an answer. */
const listedResult = 65_536
/** What is stored of all results together. */
const mostChars = 32 * 1024 * 1024
const mostOfResult = 8 * 1024 * 1024
const tellMs = 100
/** What is shown of a message that comes with progress. */
const mostSaid = 500
const timeouts = { least: 100, most: 3_600_000, standard: 60_000 } as const

/** The methods whose answer is the result of a call. */
const answering: ReadonlySet<string> = new Set(['tools/call', 'tasks/result', 'resources/read', 'prompts/get'])

type Run = { -readonly [K in keyof CallRun]: CallRun[K] } & {
  /** The result as JSON, without secrets. */
  text?: string
}

interface StoredCall {
  readonly call: Omit<Call, 'runs' | 'state'>
  readonly runs: readonly Run[]
  readonly end: AbortController
  /** Characters of arguments and meta. */
  readonly size: number
  state: Call['state']
  /** The event that waits. */
  told?: Cancel | undefined
}

interface CallsParts {
  readonly clock: Clock
  readonly traffic: Traffic
  /** Something of a call has changed. */
  changed(call: Call): void
  /** Writes into the log who called what. */
  note(by: string, text: string): void
}

/** What is asked of the client. */
interface Asked {
  readonly kind: Call['kind']
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

/** Makes calls, and remembers the last ones. */
export class Calls {
  readonly #parts: CallsParts
  readonly #calls = new Map<string, StoredCall>()

  constructor(parts: CallsParts) {
    this.#parts = parts
  }

  /** Starts a call at all revisions of the wish. */
  start(server: PlaygroundServer, wish: CallWish, by: string): Call {
    const { clock, note } = this.#parts
    const asked = askedOf(wish)
    const { meta, task = false, timeout = timeouts.standard } = wish
    if (timeout < timeouts.least || timeout > timeouts.most)
      throw invalid('timeout', `timeout is not from ${timeouts.least} to ${timeouts.most} ms.`)
    const revisions = revisionsOf(server, wish)
    if ([...this.#calls.values()].filter(({ state }) => state === 'running').length >= mostRunning)
      throw new ConsoleFailure('TOO_MANY', `${mostRunning} calls run already.`, 'Wait until one ends, or cancel one.')
    const call = {
      ...{ id: randomUUID(), server: server.name, kind: asked.kind, name: asked.name, at: clock.now(), by, timeout, task },
      ...(wish.arguments !== undefined && { arguments: wish.arguments }),
      ...(meta !== undefined && { meta }),
    }
    const runs = revisions.map((revision): Run => ({ revision: revision ?? server.preferred ?? '', state: 'opening' }))
    const size = JSON.stringify([wish.arguments, meta]).length
    const stored: StoredCall = { call, runs, end: new AbortController(), size, state: 'running' }
    this.#calls.set(call.id, stored)
    this.#trim()
    note(
      by,
      `called ${asked.kind} ${asked.name} of ${server.name} at ${runs.map(run => run.revision || 'its revision').join(', ')}`,
    )
    void Promise.all(runs.map((run, at) => this.#run(stored, run, server, revisions[at], asked, wish))).then(() => {
      if (stored.state === 'running') stored.state = 'done'
      this.#tell(stored, true)
    })
    return this.#listed(stored)
  }

  /** Newest first, without arguments and results. */
  list({ server, kind, name }: CallQuery): readonly Call[] {
    return [...this.#calls.values()]
      .filter(({ call }) => (server ?? call.server) === call.server && (kind ?? call.kind) === call.kind)
      .filter(({ call }) => (name ?? call.name) === call.name)
      .map(stored => this.#listed(stored))
      .reverse()
  }

  /** One call. `whole`: with arguments and results. */
  find(id: string, whole: boolean): Call | undefined {
    const stored = this.#calls.get(id)
    if (stored === undefined || !whole) return stored && reducedCall(this.#listed(stored))
    const { call, runs, state } = stored
    const { redaction } = this.#parts.traffic
    const { arguments: args, meta } = call
    return {
      ...call,
      ...(args !== undefined && { arguments: redaction.value(args) as NonNullable<Call['arguments']> }),
      ...(meta !== undefined && { meta: redaction.value(meta) as NonNullable<Call['meta']> }),
      ...{ state, runs: runs.map(run => ({ ...this.#withFrames(stored, run), ...resultIn(run) })) },
    }
  }

  /** A result as JSON; undefined where there is none, or it is no longer stored. */
  result(id: string, revision: string): string | undefined {
    return this.#calls.get(id)?.runs.find(run => run.revision === revision)?.text
  }

  /** Ends a call; false where there is none. */
  cancel(id: string): boolean {
    const stored = this.#calls.get(id)
    if (stored === undefined) return false
    if (stored.state === 'running') {
      stored.state = 'cancelled'
      stored.end.abort(new Error('Cancelled in the console'))
    }
    return true
  }

  /** Ends all calls. */
  close(): void {
    for (const stored of this.#calls.values()) {
      stored.told?.()
      stored.end.abort(new Error('The process is ending'))
    }
  }

  async #run(
    stored: StoredCall,
    run: Run,
    server: PlaygroundServer,
    revision: RevisionId | undefined,
    asked: Asked,
    wish: CallWish,
  ): Promise<void> {
    try {
      await server.use(revision, used => this.#ask(stored, run, used, asked, wish))
    } catch (error) {
      run.state = stored.end.signal.aborted ? 'cancelled' : 'failed'
      if (run.state === 'failed') run.problem = this.#problem(error)
    }
    this.#tell(stored, true)
  }

  async #ask(stored: StoredCall, run: Run, used: Used, asked: Asked, wish: CallWish): Promise<void> {
    const { clock, traffic } = this.#parts
    const { client, connection, openMs } = used
    const { signal } = stored.end
    signal.throwIfAborted()
    Object.assign(run, { revision: client.revision, state: 'running', connection, from: clock.now() })
    if (openMs !== undefined) run.openMs = openMs
    this.#tell(stored, true)
    let answer: string | undefined
    const stop = traffic.ring.follow(({ row, call }, whole) => {
      if (call === stored.call.id && row.connection === connection && row.kind === 'result' && answering.has(row.method ?? ''))
        answer = whole
    })
    const began = performance.now()
    const { timeout = timeouts.standard, meta, task } = wish
    const options = { signal, timeout, ...(meta !== undefined && { meta }) }
    try {
      const outcome = await traffic.during(stored.call.id, () =>
        asking(client, asked, {
          ...options,
          ...(task !== undefined && { task }),
          onProgress: ({ progress, total, message }) => {
            const times = (run.progress?.times ?? 0) + 1
            const said = message === undefined ? {} : { message: traffic.redaction.text(message).slice(0, mostSaid) }
            run.progress = { progress, times, ...(total !== undefined && { total }), ...said }
            this.#tell(stored, false)
          },
        }),
      )
      run.state = 'done'
      if (outcome.isError !== undefined) run.isError = outcome.isError
      if (outcome.cost !== undefined) run.cost = outcome.cost
      this.#take(run, wireResult(answer) ?? outcome.result)
    } catch (error) {
      // What the client refuses was all the same the answer of the server.
      const result = wireResult(answer)
      if (result !== undefined) this.#take(run, result)
      throw error
    } finally {
      run.ms = Math.round((performance.now() - began) * 100) / 100
      stop()
    }
  }

  #take(run: Run, result: unknown): void {
    const text = JSON.stringify(this.#parts.traffic.redaction.value(result)) ?? 'null'
    run.length = text.length
    run.text = text.length <= mostOfResult ? text : text.slice(0, listedResult)
    let chars = 0
    for (const { runs } of [...this.#calls.values()].reverse())
      for (const each of runs) {
        chars += each.text?.length ?? 0
        if (chars > mostChars && each !== run) delete each.text
      }
  }

  #problem(error: unknown): CallProblem {
    const { redaction } = this.#parts.traffic
    const message = redaction.text(messageOf(error)).slice(0, 4_000)
    if (error instanceof Problem) {
      const { code, suggestion, details } = error
      return { code, message, ...(suggestion !== undefined && { fix: suggestion }), ...dataIn(redaction.value(details)) }
    }
    if (error instanceof McpError)
      return { code: String(error.code ?? error.kind), message, ...dataIn(redaction.value(error.data)) }
    if (error instanceof ConnectionError) return { code: error.kind, message }
    if (error instanceof ConsoleFailure) return { code: error.problem.code, message, fix: error.problem.fix }
    return { code: error instanceof Error ? error.name : 'Error', message }
  }

  #listed(stored: StoredCall): Call {
    const { arguments: _, meta: __, ...call } = stored.call
    const runs = stored.runs.map(({ text: ___, problem, ...run }) => ({
      ...this.#withFrames(stored, run),
      // What came with it may be as long as a result.
      ...(problem !== undefined && { problem: { ...problem, data: undefined } }),
    }))
    return { ...call, state: stored.state, runs }
  }

  #withFrames({ call }: StoredCall, { text: _, ...run }: Run): CallRun {
    if (run.connection === undefined) return run
    const rows = this.#parts.traffic.ring.find(
      { call: call.id, connection: run.connection },
      false,
      Number.POSITIVE_INFINITY,
      1_000,
    )
    const [last, first] = [rows[0]?.n, rows.at(-1)?.n]
    return last === undefined || first === undefined ? run : { ...run, frames: { first, last } }
  }

  /** News of a call; progress waits for more of it. */
  #tell(stored: StoredCall, now: boolean): void {
    const { clock, changed } = this.#parts
    if (now) {
      stored.told?.()
      stored.told = undefined
      changed(this.#listed(stored))
      return
    }
    stored.told ??= clock.setTimeout(
      () => {
        stored.told = undefined
        changed(this.#listed(stored))
      },
      tellMs,
      true,
    )
  }

  #trim(): void {
    let chars = [...this.#calls.values()].reduce((sum, { size }) => sum + size, 0)
    for (const [id, { state, size }] of this.#calls) {
      if (this.#calls.size <= mostCalls && chars <= mostChars) return
      if (state === 'running') continue
      this.#calls.delete(id)
      chars -= size
    }
  }
}

/** The same call for those who may not see what the server says. */
export function reducedCall({ runs, ...call }: Call): Call {
  return {
    ...call,
    runs: runs.map(({ problem, progress, ...run }) => {
      const { message: _, ...far } = progress ?? {}
      return {
        ...run,
        ...('progress' in far && { progress: far as NonNullable<CallRun['progress']> }),
        ...(problem !== undefined && { problem: { code: problem.code, message: 'The call failed.' } }),
      }
    }),
  }
}

/** What a call gives in the end, whatever is called. */
interface Outcome {
  readonly result: unknown
  readonly isError?: boolean
  readonly cost?: string
}

type CallOptions = NonNullable<Parameters<Client['callTool']>[2]>

async function asking(client: Client, { kind, name, args }: Asked, options: CallOptions): Promise<Outcome> {
  if (kind === 'resource') return { result: await client.readResource(name, options) }
  if (kind === 'prompt') return { result: await client.getPrompt(name, textsIn(args), options) }
  const { content, structured, isError, meta, cost } = await client.callTool(name, args, options)
  const result = {
    ...{ content, isError },
    ...(structured !== undefined && { structuredContent: structured }),
    ...(meta !== undefined && { _meta: meta }),
  }
  return { result, isError, ...(cost !== undefined && { cost: `${cost.units} ${cost.unitLabel ?? 'units'}` }) }
}

/** The member `result` of an answer. */
function wireResult(answer: string | undefined): unknown {
  const message = answer === undefined ? undefined : jsonValue(answer)
  return isRecord(message) ? message['result'] : undefined
}

function resultIn({ text, length = 0 }: Run): Pick<CallRun, 'result' | 'beginning'> {
  if (text === undefined) return {}
  return length <= listedResult ? { result: jsonValue(text) } : { beginning: text.slice(0, listedResult) }
}

function dataIn(data: unknown): Pick<CallProblem, 'data'> {
  return data === undefined ? {} : { data }
}

function textsIn(args: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(args).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  )
}

function askedOf({ tool, uri, template, prompt, arguments: args = {} }: CallWish): Asked {
  const named = [tool, uri, template, prompt].filter(each => each !== undefined)
  if (named.length !== 1) throw invalid('tool', 'Give exactly one of tool, uri, template and prompt.')
  if (tool !== undefined) return { kind: 'tool', name: tool, args }
  if (prompt !== undefined) return { kind: 'prompt', name: prompt, args }
  if (uri !== undefined) return { kind: 'resource', name: uri, args }
  try {
    return { kind: 'resource', name: expandTemplate(template ?? '', textsIn(args)), args }
  } catch (error) {
    throw invalid('template', messageOf(error))
  }
}

/** Undefined: the revision that both sides agree on by themselves. */
function revisionsOf(server: PlaygroundServer, { revisions = [] }: CallWish): readonly (RevisionId | undefined)[] {
  const wanted = [...new Set(revisions)].map(each => server.revisionOf(each))
  return wanted.length === 0 ? [undefined] : wanted
}

function invalid(member: string, message: string): ConsoleFailure {
  return new ConsoleFailure('INVALID_INPUT', message, 'Correct it, then call again.', { member })
}
