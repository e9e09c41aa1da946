/** `vivarium listen`: what a server says by itself, a line each as it comes: events, pushes, updates, changed lists, its log. */
import type { Client, LogMessage, PushEvent } from '../../client/index.ts'
import { eventsExtension } from '../../features/reliability/events/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { type ConnectingOptions, connectingOptions, milliseconds, targetAbout, withClient } from '../connecting.ts'
import { CliError, cliFailureOf, type Io, untilInterrupted } from '../io.ts'
import { gather } from '../lists.ts'
import { type Printer, printerOf } from '../print.ts'
import type { Verb, VerbCall } from '../program.ts'
import { extensionsIn, liveGuest } from '../server-facts.ts'
import { brief, say, type TerminalText } from '../terminal/text.ts'
import { clockText } from '../terminal/words.ts'

/** The options of `vivarium listen`. */
interface ListenOptions extends ConnectingOptions {
  /** Only events of these names. */
  readonly event?: readonly string[]
  /** The cursor behind which events begin. */
  readonly after?: string
  /** Only updates of these resources. */
  readonly resource?: readonly string[]
  /** Take pushes of MCP Live. */
  readonly live: boolean
  /** How long to listen, in milliseconds. */
  readonly for?: number
  /** After how many lines it ends. */
  readonly count?: number
}

/** `vivarium listen`. */
export const listen: Verb = (command, io) => {
  command
    .argument('[target]', targetAbout)
    .option('--event <name>', 'Listen only to events with this name, and to what else you name (default: everything)', {
      repeated: true,
    })
    .option('--after <cursor>', 'Begin after this event instead of now')
    .option('--resource <uri>', 'Listen only to updates of this resource, and to what else you name', { repeated: true })
    .option('--no-live', 'Do not take MCP Live pushes')
    .option('--for <time>', 'End after this time: 30s', { parse: milliseconds })
    .option('--count <number>', 'End after this many lines', { parse: countOf })
  connectingOptions(command)
    .note('MCP Live pushes are accepted: a server that waits for a host believes that one took them.')
    .examples([
      ['vivarium listen https://example.com/mcp', 'Listen to everything, until you press Ctrl-C'],
      ['vivarium listen ./server.ts --event ticket_created --count 1', 'Wait for one event'],
      ['vivarium listen notes --format json | jq .kind', 'Print one JSON value per line'],
    ])
    .action<ListenOptions>(call => run(call, io))
}

/** A number of lines, as it is typed. */
function countOf(text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text)
  throw new TypeError(`${clip(text)} is not a number of lines. Write a whole number from 1 up`)
}

/** Something that was heard. */
interface HeardMessage {
  readonly kind: 'event' | 'push' | 'updated' | 'list' | 'log'
  /** The event, feature set, resource, list or logger. */
  readonly name: string
  /** What it says, as the server sent it. */
  readonly data?: unknown
  readonly id?: string
  /** Behind it `--after` begins. */
  readonly cursor?: string
  readonly at: Date
}

/** Subscribes to what the server announces and prints it until a limit, an end or Ctrl-C. */
async function run(call: VerbCall<ListenOptions>, io: Io): Promise<number> {
  const { options } = call
  const enough = new AbortController()
  const limits = [io.signal, enough.signal, ...(options.for === undefined ? [] : [AbortSignal.timeout(options.for)])]
  const signal = AbortSignal.any(limits)
  const printer = printerOf(io)
  let left = options.count ?? Number.POSITIVE_INFINITY
  const tell = (heard: HeardMessage): void => {
    if (left <= 0) return
    if (options.format === 'json') printer.json(heard, true)
    else printer.line(lineOf(heard, printer))
    left--
    if (left <= 0) enough.abort()
  }
  const chosen = options.event !== undefined || options.resource !== undefined
  const onLog = ({ level, logger, data }: LogMessage): void =>
    tell({ kind: 'log', name: logger === undefined ? level : `${level} ${logger}`, data, at: new Date() })
  const more = {
    ...(!chosen && { onLog, logLevel: 'info' as const }),
    ...(options.live && !chosen && { live: liveGuest(event => tell(pushed(event))) }),
  }
  const work: Parameters<typeof withClient>[2] = async ({ client, label }) => {
    const following = new Following(signal, chosen, (what, error) =>
      printer.aside.warn(`Cannot listen to ${what}: ${cliFailureOf(error).message}`),
    )
    const hears = await subscribe(client, options, following, tell)
    if (hears.length === 0)
      throw new CliError(
        `${label} announces no events, updates or list changes`,
        'Pass --event NAME or --resource URI to listen to it anyway',
      )
    if (options.format !== 'json') printer.aside.note(`Listening to ${hears.join(', ')}. Press Ctrl-C to end`)
    const lost = client.ended.then(reason => {
      if (reason !== undefined && !signal.aborted) throw reason
    })
    await Promise.race([untilInterrupted(signal), lost, following.failed])
    return 0
  }
  return withClient(call, io, work, more)
}

/** Subscriptions, each of which the server may refuse. A refusal of one that was asked for by name ends all; another one is told. */
class Following {
  readonly signal: AbortSignal
  readonly #chosen: boolean
  readonly #refused: (what: string, error: unknown) => void
  readonly #failed = Promise.withResolvers<never>()
  #left = 0

  constructor(signal: AbortSignal, chosen: boolean, refused: (what: string, error: unknown) => void) {
    this.signal = signal
    this.#chosen = chosen
    this.#refused = refused
    // It may fail before anybody waits for it.
    this.#failed.promise.catch(() => {})
  }

  /** Only ends by failing: what ends in good order has nothing more to say, and the others may. */
  get failed(): Promise<never> {
    return this.#failed.promise
  }

  /** The names of what could be listened to; what the server does not tell is told as such, and the rest is heard all the same. */
  readonly had = async (what: string, names: Promise<readonly string[]>): Promise<readonly string[]> => {
    try {
      return await names
    } catch (error) {
      this.signal.throwIfAborted()
      this.#refused(what, error)
      return []
    }
  }

  follow<T>(what: string, items: AsyncIterable<T>, heard: (item: T) => void): void {
    this.#left++
    this.#each(items, heard).catch(error => {
      if (this.signal.aborted) return
      this.#left--
      if (this.#chosen || this.#left === 0) this.#failed.reject(error)
      else this.#refused(what, error)
    })
  }

  async #each<T>(items: AsyncIterable<T>, heard: (item: T) => void): Promise<void> {
    for await (const item of items) heard(item)
  }
}

/** Gives what is listened to, in words. */
async function subscribe(
  client: Client,
  options: ListenOptions,
  following: Following,
  tell: (heard: HeardMessage) => void,
): Promise<readonly string[]> {
  const { signal } = following
  const hears: string[] = []
  const follow = <T>(what: string, items: AsyncIterable<T>, heard: (item: T) => HeardMessage): void =>
    following.follow(what, items, item => tell(heard(item)))
  const chosen = options.event !== undefined || options.resource !== undefined
  for (const kind of ['tools', 'prompts', 'resources'] as const) {
    if (chosen || !says(client, kind, 'listChanged')) continue
    hears.push(`the list of ${kind}`)
    follow(`the list of ${kind}`, client.changes(kind, { signal }), () => ({ kind: 'list', name: kind, at: new Date() }))
  }
  const had = following.had
  const uris =
    options.resource ?? (!chosen && says(client, 'resources', 'subscribe') ? await had('resources', listed(client)) : [])
  if (uris.length > 0) hears.push(uris.length === 1 ? brief(uris[0] ?? '', 60) : `${uris.length} resources`)
  for (const uri of uris)
    follow(uri, client.resourceUpdates(uri, { signal }), updated => ({ kind: 'updated', name: updated, at: new Date() }))
  const names = options.event ?? (chosen ? [] : await had('events', announced(client)))
  if (names.length > 0) {
    hears.push(`events ${names.map(name => brief(name, 40)).join(', ')}`)
    const { after } = options
    follow(
      'events',
      client.events(names, { signal, ...(after !== undefined && { after }) }),
      ({ event: name, payload: data, id, cursor, at }) => ({ kind: 'event', name, data, id, cursor, at }),
    )
  }
  if (!chosen && names.length === 0 && extensionsIn(client.capabilities).includes(eventsExtension))
    hears.push('no events (the server does not list their names: pass --event NAME)')
  if (client.live !== undefined) hears.push('MCP Live pushes')
  if (!chosen && client.capabilities['logging'] !== undefined) hears.push('its log')
  return hears
}

/** Whether a capability has a setting switched on. */
function says({ capabilities }: Client, list: string, what: string): boolean {
  const settings = capabilities[list]
  return isRecord(settings) && settings[what] === true
}

/** Watching is a request each, so that there is a limit. */
const mostWatched = 50

/** The resources whose updates are subscribed to where none is named. */
async function listed(client: Client): Promise<readonly string[]> {
  return (await gather(client.resources())).slice(0, mostWatched).map(({ uri }) => uri)
}

/** The events that a manifest tells of. */
async function announced(client: Client): Promise<readonly string[]> {
  const { events = [] } = await client.manifest()
  return events.map(({ name }) => name)
}

/** A push of MCP Live as a line. */
function pushed({ featureSet, eventId, content, timestamp }: PushEvent): HeardMessage {
  return { kind: 'push', name: featureSet, id: eventId, data: content, at: new Date(timestamp) }
}

/** The sign of each kind of line. */
const marks = { event: '◆', push: '▶', updated: '↻', list: '≡', log: '·' } as const
/** The word of each kind of line. */
const words = { event: 'event', push: 'push', updated: 'updated', list: 'list changed', log: 'log' } as const

/** One thing that was heard, for people. */
function lineOf({ kind, name, data, at }: HeardMessage, { paint }: Printer): TerminalText {
  const said = data === undefined ? '' : say` ${brief(textOf(data), 400)}`
  return say`${paint.dim(clockText(at.getTime()))} ${paint.good(marks[kind])} ${paint.dim(words[kind])} ${paint.name(name)}${said}`
}

/** Blocks of text are shown as what they say. */
function textOf(data: unknown): string {
  if (typeof data === 'string') return data
  if (!Array.isArray(data)) return JSON.stringify(data) ?? ''
  return data.map(block => (isRecord(block) && 'text' in block ? String(block['text']) : JSON.stringify(block))).join(' ')
}
