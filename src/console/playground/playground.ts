/** A playground: servers that were named where it was started, calls to them, and all that passes. */
import { basename } from 'node:path'
import type { JudgeTarget } from '../../conformance/index.ts'
import { type Clock, realClock } from '../../core/clock.ts'
import { secretValues } from '../../core/redact.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { ApprovalQueue } from '../approvals.ts'
import { ConformanceRun } from '../conformance/conformance-run.ts'
import type { Call, CompleteWish, Completions } from '../contract/calls.ts'
import type { Conformance, ConformanceResult, ConformanceWish } from '../contract/conformance.ts'
import type { LogLevel } from '../contract/log.ts'
import type { ServerRow } from '../contract/servers.ts'
import type { TapeRow } from '../contract/tapes.ts'
import { ConsoleFailure } from '../failure.ts'
import { FrameRedaction } from '../frames/redaction.ts'
import { Traffic } from '../frames/traffic.ts'
import { LogRing } from '../log-ring.ts'
import type { PlaygroundOptions, PlaygroundTarget } from '../shown.ts'
import { Tapes } from '../tapes/tapes.ts'
import { Calls } from './calls.ts'
import { type OfferList, Offers } from './offers.ts'
import { questionHandlers } from './questions.ts'
import { PlaygroundServer } from './server.ts'

/** News of a playground. */
interface PlaygroundNews {
  server(row: ServerRow): void
  call(call: Call): void
  tape(row: TapeRow): void
  conformance(conformance: Conformance): void
  result(result: ConformanceResult): void
}

const lists: readonly OfferList[] = ['tools', 'resources', 'prompts']

/** The levels of a server's log messages as levels of ours. */
const severities: Readonly<Record<string, LogLevel>> = { debug: 'debug', info: 'info', notice: 'info', warning: 'warn' }

/** One server, the calls to it, and what passed. */
export class Playground {
  readonly name: string
  readonly label: string
  readonly again: string
  readonly clock: Clock
  readonly traffic: Traffic
  readonly log: LogRing
  readonly calls: Calls
  readonly server: PlaygroundServer
  readonly offers: Offers
  readonly tapes: Tapes
  /** Absent where the server can only be called. */
  readonly conformance: ConformanceRun | undefined
  /** The target as it was given. */
  readonly target: PlaygroundTarget
  /** Headers of everything that goes to the target over HTTP. */
  readonly headers: Readonly<Record<string, string>>
  readonly #followers = new Set<PlaygroundNews>()
  readonly #end = new AbortController()
  readonly #wish: ConformanceWish | undefined
  /** Ends the listening to answers. */
  readonly #stop: () => void

  constructor(options: PlaygroundOptions, queue: ApprovalQueue, clock: Clock = realClock) {
    const { target, connect = {}, reveal = false } = options
    this.clock = clock
    this.target = target
    this.#wish = options.run
    this.headers = connect.headers ?? {}
    this.name = options.name ?? shortName(target)
    this.label = options.label ?? this.name
    this.again = options.again ?? this.label
    const redaction = new FrameRedaction(reveal)
    redaction.learn(secretValues(this.headers))
    this.traffic = new Traffic(clock, redaction)
    this.log = new LogRing(clock)
    this.server = new PlaygroundServer({
      ...{ name: this.name, clock, traffic: this.traffic, target: this.#listened(target) },
      options: {
        log: 'silent',
        ...questionHandlers(queue, this.name),
        ...connect,
        onLog: message => {
          const { level, data, logger } = message
          const text = typeof data === 'string' ? data : JSON.stringify(data)
          this.log.add(severities[level] ?? 'error', logger ?? 'message', text, this.name)
          connect.onLog?.(message)
        },
      },
      changed: () => this.#changed(),
    })
    this.offers = new Offers(this.server, clock)
    this.#stop = queue.subscribe({
      answered: ({ id, yes, by }) => {
        if (yes !== undefined)
          this.log.add('info', 'console', `${by ?? 'somebody'} ${yes ? 'approved' : 'refused'} ${id}`, this.name)
      },
    })
    this.calls = new Calls({
      ...{ clock, traffic: this.traffic },
      changed: call => {
        for (const { call: tell } of this.#followers) tell(call)
      },
      note: (by, text) => this.log.add('info', 'console', `${by} ${text}`, this.name),
    })
    this.tapes = new Tapes(this, options.tapes ?? 'tapes', row => {
      for (const { tape } of this.#followers) tape(row)
    })
    this.conformance = this.#conformance(options.judge ?? judged(target))
  }

  /** Connects, counts what is offered, and perhaps starts a run of conformance. What goes wrong is told by the row of the server. */
  async start(by: string): Promise<void> {
    await this.server.start()
    if (this.#wish !== undefined && !this.#end.signal.aborted) this.conformance?.start(this.#wish, by)
    if (this.server.row.status !== 'up') return
    await this.offers.count()
    for (const list of lists) void this.#follow(list).catch(() => undefined)
  }

  /** The server of a wish, which may leave it out. */
  serverNamed(name: string | undefined): PlaygroundServer {
    if (name === undefined || name === this.name) return this.server
    throw new ConsoleFailure('NOT_FOUND', 'There is no server of this name.', 'Reload the list of servers.')
  }

  /** Values that the server knows for an argument. */
  async complete({ prompt, template, argument, value, context = {}, ...wish }: CompleteWish): Promise<Completions> {
    const server = this.serverNamed(wish.server)
    const ref = prompt !== undefined ? { prompt } : template !== undefined ? { template } : undefined
    if (ref === undefined)
      throw new ConsoleFailure('INVALID_INPUT', 'Neither prompt nor template is given.', 'Give one of them.', {
        member: 'prompt',
      })
    const texts = Object.fromEntries(
      Object.entries(context).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    )
    const found = await server.use(server.revisionOf(wish.revision), ({ client }) =>
      client.complete(ref, { name: argument, value }, { arguments: texts }),
    )
    const { values, total, hasMore = false } = found
    return { values: values.slice(0, 100), hasMore, ...(total !== undefined && { total }) }
  }

  /** Calls back with news; returns the way to stop. */
  follow(news: PlaygroundNews): () => void {
    this.#followers.add(news)
    return () => void this.#followers.delete(news)
  }

  async close(): Promise<void> {
    this.#end.abort()
    this.#stop()
    this.calls.close()
    await Promise.all([this.tapes.close(), this.conformance?.close(), this.server.close()])
  }

  /** Reads a list again when the server says that it has changed. */
  async #follow(list: OfferList): Promise<void> {
    await this.server.use(undefined, async ({ client }) => {
      const declared = client.capabilities[list]
      if (!isRecord(declared) || declared['listChanged'] !== true) return
      for await (const _ of client.changes(list, { signal: this.#end.signal })) {
        this.offers.forget(list)
        await this.offers.count()
      }
    })
  }

  #conformance(target: JudgeTarget | undefined): ConformanceRun | undefined {
    const { clock, traffic, again, name: server, headers } = this
    if (target === undefined) return undefined
    return new ConformanceRun({
      ...{ server, target, clock, redaction: traffic.redaction },
      // Options stand before the `--` of a program.
      command: flags =>
        ['vivarium test', ...(again.startsWith('-- ') ? [flags, again] : [again, flags])].filter(Boolean).join(' '),
      // Whoever signed in to be called is judged with the same credentials.
      headers: () => ({ ...headers, ...traffic.credentials }),
      changed: now => {
        for (const { conformance } of this.#followers) conformance(now)
      },
      result: row => {
        for (const { result } of this.#followers) result(row)
      },
    })
  }

  #changed(): void {
    const { row } = this.server
    for (const { server } of this.#followers) server(row)
  }

  /** A program's standard error goes into the log. */
  #listened(target: PlaygroundTarget): PlaygroundTarget {
    if (typeof target !== 'object' || !('command' in target)) return target
    const { stderr } = target
    return {
      ...target,
      stderr: line => {
        this.log.stderr(this.name, line)
        if (typeof stderr === 'function') stderr(line)
      },
    }
  }
}

/** The target as the kit takes it: without a function that hears standard error, which it does not read. */
function judged(target: PlaygroundTarget): JudgeTarget | undefined {
  if (typeof target === 'string' || target instanceof URL) return target
  if (typeof target !== 'object' || !('command' in target)) return undefined
  const { stderr: _, ...subject } = target
  return subject
}

/** The host of an address, the file or program of a command. */
function shortName(target: PlaygroundTarget): string {
  if (typeof target === 'string' || target instanceof URL) return new URL(target).host
  if (typeof target !== 'object' || !('command' in target)) return 'server'
  const file = target.args?.findLast(each => /\.\w{1,4}$/.test(each))
  return basename(file ?? target.command)
}
