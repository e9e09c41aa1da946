/**
 * Serving a file over standard input and output. Watched, it runs in a child, and its successor is told how the conversation began:
 * the client keeps its session, hears that the lists may have changed, and gets from the old child what it had asked of it.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { dirname, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { isRecord } from '../../jsonrpc/message.ts'
import { jsonValue } from '../../recording/format.ts'
import { claimStdout } from '../../transports/stdio/server.ts'
import type { Io } from '../io.ts'
import { selfCommand } from '../own-package.ts'
import { loadServer, watchCode } from './code.ts'

/** Serves one client until it goes; `say` is told of reloads where the file is watched. */
export function serveOverStdio(file: string, io: Io, say: ((text: string) => void) | undefined): Promise<number> {
  return say === undefined ? serve(file) : watch(file, io, say)
}

/** Serves the client itself. What the file writes while it is loaded is none of the protocol. */
async function serve(file: string): Promise<number> {
  const claim = claimStdout()
  const { server } = await loadServer(file).finally(() => claim.release())
  const served = server.stdio()
  process.send?.('ready')
  await served
  await server.close()
  return 0
}

/** Serves and watches until the client goes. */
async function watch(file: string, io: Io, say: (text: string) => void): Promise<number> {
  const relay = new Relay(file, io)
  const begun = relay.begin()
  const reload = async (changed: string): Promise<void> => {
    if (await begun) say(`${changed} changed: ${await relay.reload()}`)
  }
  // Before the first start has ended: what is saved while the code is being loaded counts too.
  const watching = watchCode(dirname(resolve(file)), changed => void reload(changed))
  try {
    if (!(await begun)) return 1
    await relay.over
    return 0
  } finally {
    watching.close()
  }
}

/** One process that serves the file. */
interface Behind {
  readonly child: ChildProcess
  /** Ids of the client's requests that it has not answered yet. */
  readonly pending: Set<unknown>
  /** It gets no more requests. */
  leaving: boolean
  /** Its answer to a handshake that the client has had already. */
  swallow: unknown
  /** Called when that answer has come. */
  onSwallowed: () => void
}

/** A message, as JSON. */
type Frame = Readonly<Record<string, unknown>>

/** How long one that goes may take over what it was asked. */
const waitMs = 10_000
/** Lists that may have changed with the code. */
const listChanges = ['tools', 'prompts', 'resources']

/** Stands between the client and the process that serves the file at the moment. */
class Relay {
  readonly #file: string
  readonly #io: Io
  readonly #over = Promise.withResolvers<void>()
  /** Which process asked the client something, by the id of its question. */
  readonly #asked = new Map<unknown, Behind>()
  #current: Behind | undefined = undefined
  /** What opened the session: the request and, behind it, the notification. */
  #opening: readonly string[] = []
  /** The capabilities that the client was told. */
  #declared: Frame = {}

  constructor(file: string, io: Io) {
    this.#file = file
    this.#io = io
  }

  /** Resolves when the client has gone and the last process with it. */
  get over(): Promise<void> {
    return this.#over.promise
  }

  /** Starts the first process. False: it does not start. */
  async begin(): Promise<boolean> {
    this.#current = await this.#start()
    if (this.#current === undefined) return false
    const lines = createInterface({ input: this.#io.input, terminal: false })
    lines.on('line', line => this.#fromClient(line))
    lines.on('close', () => this.#current?.child.stdin?.end())
    return true
  }

  /** Gives what came of it, in a few words. */
  async reload(): Promise<string> {
    const next = await this.#start()
    const before = this.#current
    if (next === undefined) return 'the new version does not start, so the previous one keeps serving'
    await this.#introduce(next)
    this.#current = next
    if (before !== undefined) this.#leave(before)
    if (this.#opening.length > 0) this.#tellChanges()
    return 'reloaded'
  }

  /** The new one learns who it speaks with; its answer says what the client knows already. */
  async #introduce(next: Behind): Promise<void> {
    const [first, ...rest] = this.#opening
    if (first === undefined) return
    const answered = new Promise<void>(resolve => {
      next.onSwallowed = resolve
    })
    next.swallow = frameOf(first)['id']
    next.child.stdin?.write(`${first}\n`)
    await Promise.race([answered, new Promise(resolve => next.child.once('exit', resolve))])
    for (const line of rest) next.child.stdin?.write(`${line}\n`)
  }

  /** Tells the client that lists may have changed. */
  #tellChanges(): void {
    for (const list of listChanges) {
      const said = this.#declared[list]
      if (isRecord(said) && said['listChanged'] === true)
        this.#io.output.write(`${JSON.stringify({ jsonrpc: '2.0', method: `notifications/${list}/list_changed` })}\n`)
    }
  }

  /** Starts a process. Undefined: it ended before it could serve. */
  #start(): Promise<Behind | undefined> {
    const { command, args } = selfCommand(['serve', this.#file, '--stdio'])
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit', 'ipc'], env: { ...this.#io.env } })
    const behind: Behind = { child, pending: new Set(), leaving: false, swallow: undefined, onSwallowed: () => {} }
    child.stdin?.on('error', () => {})
    if (child.stdout !== null)
      createInterface({ input: child.stdout, terminal: false }).on('line', line => this.#fromServer(behind, line))
    child.once('exit', () => {
      if (behind === this.#current) this.#over.resolve()
    })
    return new Promise(resolve => {
      child.once('message', () => resolve(behind))
      child.once('exit', () => resolve(undefined))
    })
  }

  /** An answer goes to the process that asked, anything else to the current one. */
  #fromClient(line: string): void {
    const { id, method } = frameOf(line)
    if (method === 'initialize') this.#opening = [line]
    else if (method === 'notifications/initialized') this.#opening = [...this.#opening.slice(0, 1), line]
    const asker = method === undefined ? this.#asked.get(id) : undefined
    this.#asked.delete(id)
    const to = asker ?? this.#current
    if (method !== undefined && id !== undefined) to?.pending.add(id)
    to?.child.stdin?.write(`${line}\n`)
  }

  /** What a process says goes to the client, except an answer that it has had already. */
  #fromServer(behind: Behind, line: string): void {
    const { id, method, result } = frameOf(line)
    if (method !== undefined && id !== undefined) this.#asked.set(id, behind)
    if (method === undefined && id !== undefined) {
      if (behind.swallow !== undefined && behind.swallow === id) {
        behind.swallow = undefined
        behind.onSwallowed()
        return
      }
      behind.pending.delete(id)
      // At the opening the client was told of which lists it hears when they change.
      if (isRecord(result) && isRecord(result['capabilities'])) this.#declared = result['capabilities']
    }
    this.#io.output.write(`${line}\n`)
    if (behind.leaving && behind.pending.size === 0) behind.child.stdin?.end()
  }

  /** Lets a process finish what it was asked, and ends it. */
  #leave(behind: Behind): void {
    behind.leaving = true
    if (behind.pending.size === 0) behind.child.stdin?.end()
    const timer = setTimeout(() => behind.child.kill('SIGKILL'), waitMs)
    behind.child.once('exit', () => clearTimeout(timer))
  }
}

/** The message of a line; none where it is none. */
function frameOf(line: string): Frame {
  const value = jsonValue(line)
  return isRecord(value) ? value : {}
}
