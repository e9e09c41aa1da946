/** One server, looked at from the outside in: can it be started or reached, does it open, is what it offers sound. */
import { setTimeout } from 'node:timers/promises'
import { type Client, connect } from '../../client/index.ts'
import type { Command } from '../../client/target.ts'
import { durationText } from '../../core/clock.ts'
import { unlessAborted } from '../../core/deadlines.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { jsonValue } from '../../recording/format.ts'
import { tapConnection } from '../../recording/tap.ts'
import { officialRevisions } from '../../revisions/index.ts'
import { type ConnectingOptions, isFetched, optionsFor, probeMs } from '../connecting.ts'
import type { Io } from '../io.ts'
import { type Lists, listsOf, missingLists } from '../lists.ts'
import { addressIn, errorWords } from '../server-errors.ts'
import { networkIn, type ResolvedTarget } from '../target.ts'
import { brief } from '../terminal/text.ts'
import { examineAddress, streamableAt } from './address.ts'
import { examineOffers } from './definitions.ts'
import { type Finding, fail, ok, type WaitDisplay, warn } from './finding.ts'
import { examineCommand, examineOutput, examineStart, isFramed, nodeOf, type Traces } from './program.ts'

/** What came of the examination of one server. */
export interface Examination {
  readonly findings: readonly Finding[]
  /** In a few words, where it works. */
  readonly summary: string | undefined
  /** Their names, to find collisions between servers. */
  readonly tools: readonly string[]
}

/** How long a server may take to open; one that is fetched first takes longer. */
const openMs = 8_000
/** As long as a download may take. */
const fetchMs = 60_000
/** An address is looked at from another side while the client still tries. */
const asideMs = 1_500
/** How long an address may take to answer a plain request. */
const requestMs = 5_000
/** Who serves HTTP and speaks on stdio as well has answered by then. */
const httpMs = 2_000
/** What does not end when its input does is ended: nobody wants to wait for that. */
const closeMs = 300
/** The last lines of each output that are kept. */
const tailLines = 20

/** What was noticed while the server was opened. */
interface StartTraces extends Traces {
  readonly noise: string[]
  readonly stderr: string[]
  /** By which the client reached it in the end. */
  carrier: string
}

/** Examines one server: its command or address, how it opens, and what it offers. */
export async function examine(
  resolved: ResolvedTarget,
  options: ConnectingOptions,
  io: Io,
  waits: WaitDisplay,
): Promise<Examination> {
  const { target, folder } = resolved
  const command = typeof target === 'object' && 'command' in target ? target : undefined
  const before = command === undefined ? [] : examineCommand(command, io.env, folder)
  if (before.some(({ level }) => level === 'fail')) return { findings: before, summary: undefined, tools: [] }
  const traces: StartTraces = { noise: [], stderr: [], carrier: '' }
  const limitMs = options.timeout ?? (isFetched(target) ? fetchMs : openMs)
  const waited = waits.add({ name: resolved.label, limitMs, said: () => traces.stderr.at(-1) ?? traces.noise.at(-1) })
  const begun = performance.now()
  try {
    const opened = await open(resolved, options, io, traces, limitMs)
    if (!('client' in opened))
      return { findings: [...before, ...examineOutput(traces), opened.why], summary: undefined, tools: [] }
    await using client = opened.client
    const openedMs = Math.round(performance.now() - begun)
    const { lists, wrong } = await listed(client, opened.missing)
    const counts = Object.entries(lists).map(([kind, { length }]) => `${length} ${length === 1 ? kind.slice(0, -1) : kind}`)
    const summary = [client.revision, ...counts, durationText(openedMs)].join(' · ')
    const findings = [
      ...before,
      ok('open', `The server connects and speaks ${client.revision}`),
      ...examineOutput(traces),
      ...old(client.revision),
      ...(await oldPair(target, traces.carrier, io)),
      ...wrong,
      ...examineOffers(lists),
    ]
    return { findings, summary, tools: (lists.tools ?? []).map(({ name }) => name) }
  } finally {
    waited()
  }
}

/** An open client; or why there is none. */
type Opening = { readonly client: Client; readonly missing: ReadonlySet<string> } | { readonly why: Finding }

/** A client; or why there is none. What has not ended by then ends by itself. */
async function open(
  resolved: ResolvedTarget,
  options: ConnectingOptions,
  io: Io,
  traces: StartTraces,
  limitMs: number,
): Promise<Opening> {
  const { target } = resolved
  const command = typeof target === 'object' && 'command' in target ? target : undefined
  const enough = new AbortController()
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(limitMs), enough.signal])
  const given = optionsFor(resolved, options, { ...io, interactive: false, signal })
  const { missing, onTrace } = missingLists()
  const connecting = connect(command === undefined ? target : heard(command, traces, enough), {
    timeout: limitMs,
    probeTimeout: Math.min(probeMs(target), Math.ceil(limitMs * 0.6)),
    onTrace,
    ...given,
    signal,
    wrap: connection => {
      traces.carrier = connection.carrier
      return tapConnection(connection, ({ way, text }) => {
        if (way === 'out' || !isNoise(text)) return
        keep(traces.noise, text)
        if (isFramed(text)) enough.abort(silent('The server separates its messages in another way'))
      })
    },
  })
  const looking = new AbortController()
  const looked =
    command === undefined
      ? lookAside(target, given.headers ?? {}, connecting, options, AbortSignal.any([io.signal, looking.signal]))
      : undefined
  // Nobody waits for it where the client opens.
  looked?.catch(() => {})
  try {
    return { client: await unlessAborted(connecting, signal), missing }
  } catch (error) {
    io.signal.throwIfAborted()
    connecting.then(late => late.close()).catch(() => {})
    const reason = error instanceof Error ? error : new Error(String(error))
    if (command === undefined) return { why: (await looked) ?? fail('open', brief(reason.message, 300), 'Check the server') }
    const suspect = {
      node: nodeOf(command, io.env),
      typed: resolved.folder === undefined,
      unnamed: isFetched(command) ? Object.keys(networkIn(io.env)).filter(name => command.env?.[name] === undefined) : [],
      has: (name: string) => (io.env[name] ?? '') !== '',
      given: (name: string) => command.env?.[name],
    }
    return { why: examineStart(reason, traces, suspect, limitMs) }
  } finally {
    looking.abort()
  }
}

/** Ends the waiting for one that serves at an address: it will say nothing on its output. */
function heard(command: Command, traces: StartTraces, enough: AbortController): Command & { readonly closeMs: number } {
  const line = (text: string): void => {
    keep(traces.stderr, text)
    if (addressIn(text) !== undefined)
      void setTimeout(httpMs, undefined, { ref: false }).then(() => enough.abort(silent('The program serves HTTP')))
  }
  return { ...command, stderr: line, closeMs }
}

/** No more is to be expected. */
const silent = (why: string): Error => new DOMException(why, 'TimeoutError')

/** What an address answers to plain requests, asked once the client has failed or takes long. */
async function lookAside(
  target: ResolvedTarget['target'],
  headers: Readonly<Record<string, string>>,
  connecting: Promise<unknown>,
  { timeout }: ConnectingOptions,
  signal: AbortSignal,
): Promise<Finding | undefined> {
  if (typeof target !== 'string' && !(target instanceof URL)) return undefined
  const opening = connecting.then(
    () => true,
    () => false,
  )
  const opened = await Promise.race([opening, setTimeout(asideMs, false, { ref: false })])
  return opened ? undefined : examineAddress(new URL(target), { headers, signal, waitMs: timeout ?? requestMs })
}

/** What could be had, and what is wrong with the rest. */
async function listed(
  client: Client,
  missing: ReadonlySet<string>,
): Promise<{ readonly lists: Lists; readonly wrong: readonly Finding[] }> {
  try {
    const { lists, failed } = await listsOf(client, missing)
    return {
      lists,
      wrong: failed.map(({ kind, message, unknown }) =>
        unknown
          ? warn(
              'list',
              brief(message, 200),
              'Declare only what the server implements: some clients show nothing of a server that fails here',
            )
          : fail(
              'list',
              `The server does not list its ${kind}: ${brief(message, 200)}`,
              'Look into the log of the server. The rest works',
            ),
      ),
    }
  } catch (error) {
    const said = brief(errorWords(error), 200)
    return {
      lists: {},
      wrong: [fail('list', `The server connects, but does not list what it offers: ${said}`, 'Look into the log of the server')],
    }
  }
}

/** Keeps a line among the last ones. */
function keep(lines: string[], line: string): void {
  // A server that is started twice says the same twice.
  if (!lines.includes(line)) lines.push(line)
  if (lines.length > tailLines) lines.shift()
}

/** Whether a line on standard output is no message. */
function isNoise(text: string): boolean {
  const value = jsonValue(text)
  return !(Array.isArray(value) || (isRecord(value) && value['jsonrpc'] === '2.0'))
}

/** The first two lack what clients of today expect: structured results, questions to the user. */
function old(revision: string): readonly Finding[] {
  const aged = warn(
    'revision',
    `The server speaks the old revision ${revision}`,
    `Update its SDK: current revisions are ${officialRevisions.slice(-2).join(' and ')}`,
  )
  return officialRevisions.slice(0, 2).some(id => id === revision) ? [aged] : []
}

/** A warning where the server was reached by the old pair of endpoints. */
async function oldPair(target: ResolvedTarget['target'], carrier: string, { signal }: Io): Promise<readonly Finding[]> {
  if (carrier !== 'sse' || (typeof target !== 'string' && !(target instanceof URL))) return []
  const better = await streamableAt(new URL(target), { headers: {}, signal, waitMs: asideMs })
  const fix =
    better === undefined
      ? 'Serve Streamable HTTP as well. Until then configs need "type": "sse"'
      : `Use ${better}, where the server speaks Streamable HTTP`
  return [warn('carrier', 'The server speaks the old HTTP+SSE transport, which newer clients no longer support', fix)]
}
