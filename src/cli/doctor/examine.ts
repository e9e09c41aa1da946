/** One server, looked at from the outside in: can it be started or reached, does it open, is what it offers sound. */
import { connect } from '../../client/index.ts'
import { durationText } from '../../core/duration.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { officialRevisions } from '../../revisions/index.ts'
import { tapConnection } from '../../testing/tap.ts'
import { listsOf } from '../commands/list.ts'
import { type ConnectingOptions, optionsFor } from '../connecting.ts'
import type { Io } from '../io.ts'
import type { Resolved } from '../target.ts'
import { safe } from '../terminal/paint.ts'
import { examineAddress } from './address.ts'
import { type Finding, fail, ok, warn } from './finding.ts'
import { examineOffers } from './offers.ts'
import { examineCommand, examineOutput, examineStart, type Traces } from './program.ts'

export interface Examined {
  readonly findings: readonly Finding[]
  /** In a few words, where it works. */
  readonly summary: string | undefined
  readonly tools: readonly string[]
}

const openMs = 20_000
const keptLines = 20

export async function examine(resolved: Resolved, options: ConnectingOptions, io: Io): Promise<Examined> {
  const { target } = resolved
  const isCommand = typeof target === 'object' && 'command' in target
  const before = isCommand ? examineCommand(target, io.env) : []
  if (before.some(({ level }) => level === 'fail')) return { findings: before, summary: undefined, tools: [] }
  const traces: Traces & { noise: string[]; stderr: string[] } = { noise: [], stderr: [] }
  const listened = isCommand ? { ...target, stderr: (line: string) => keep(traces.stderr, line) } : target
  const begun = performance.now()
  const given = optionsFor(resolved, options, io)
  try {
    await using client = await connect(listened, {
      ...given,
      signal: AbortSignal.any([io.signal, AbortSignal.timeout(options.timeout ?? openMs)]),
      wrap: connection => tapConnection(connection, ({ way, text }) => way === 'in' && isNoise(text) && keep(traces.noise, text)),
    })
    const ms = performance.now() - begun
    const lists = await listsOf(client)
    const counts = Object.entries(lists).map(([kind, { length }]) => `${length} ${length === 1 ? kind.slice(0, -1) : kind}`)
    const summary = [client.revision, ...counts, durationText(Math.round(ms))].join(' · ')
    const findings = [
      ...before,
      ok('open', `It opens and speaks ${client.revision}`),
      ...examineOutput(traces),
      ...old(client.revision),
      ...examineOffers(lists),
    ]
    return { findings, summary, tools: (lists.tools ?? []).map(({ name }) => name) }
  } catch (error) {
    io.signal.throwIfAborted()
    const reason = error instanceof Error ? error : new Error(String(error))
    const why = isCommand ? examineStart(reason, traces) : await unopened(target, reason, given.headers ?? {}, io)
    return { findings: [...before, ...examineOutput(traces), why], summary: undefined, tools: [] }
  }
}

async function unopened(
  target: Resolved['target'],
  error: Error,
  headers: Readonly<Record<string, string>>,
  io: Io,
): Promise<Finding> {
  if (typeof target !== 'string' && !(target instanceof URL)) return fail('open', error.message, 'Look at the server')
  return examineAddress(new URL(target), { headers, signal: io.signal })
}

function keep(lines: string[], line: string): void {
  // A server that is started twice says the same twice.
  if (!lines.includes(safe(line))) lines.push(safe(line))
  if (lines.length > keptLines) lines.shift()
}

function isNoise(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return !(Array.isArray(value) || (isRecord(value) && value['jsonrpc'] === '2.0'))
  } catch {
    return true
  }
}

/** The first two lack what clients of today expect: structured results, questions to the user. */
function old(revision: string): readonly Finding[] {
  if (!officialRevisions.slice(0, 2).some(id => id === revision)) return []
  return [
    warn(
      'revision',
      `${revision} is old`,
      `Bring its SDK up to date: ${officialRevisions.slice(-2).join(' and ')} are what is spoken now`,
    ),
  ]
}
