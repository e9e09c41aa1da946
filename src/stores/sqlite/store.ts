/** The embedded default: one file, lasting, for one process. The file belongs to a worker thread, so nothing here blocks. */
import { mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import { checkKey, checkOps, pageSize, Watchers } from '../checks.ts'
import {
  type Committed,
  type Conflict,
  type Entry,
  type LogEntry,
  messageOf,
  type Op,
  type ReadOptions,
  type ScanOptions,
  type Store,
  StoreError,
} from '../store.ts'
import { checkSqlitePath, correctPath, unopened } from './path.ts'
import {
  type Batch,
  closeWord,
  type Pragmas,
  type WorkerAnswer,
  type WorkerReply,
  type WorkerRequest,
  type WorkerStarted,
} from './protocol.ts'

interface SqliteStoreOptions {
  readonly path: string
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

/** Resolves when the file is open and its tables are there. */
export async function sqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const path = resolve(options.path)
  try {
    checkSqlitePath(path)
    mkdirSync(dirname(path), { recursive: true })
  } catch (error) {
    throw error instanceof StoreError
      ? error
      : new StoreError('input', `${unopened(path)}: its folder cannot be created (${messageOf(error)}). ${correctPath}`, error)
  }
  const store = new SqliteStore(options)
  await store.opened
  return store
}

/** Messages to the thread at once: it takes all that are there as one batch. */
const mostSent = 16

/** How often it is looked whether another process has written, while anybody watches. */
const othersMs = 1_000

interface Waiter {
  resolve(value: WorkerReply): void
  reject(error: StoreError): void
}

class SqliteStore implements Store {
  readonly opened: Promise<void>
  readonly #path: string
  readonly #now: () => number
  readonly #worker: Worker
  readonly #watchers = new Watchers()
  readonly #waiting = new Map<number, Waiter>()
  readonly #exited: Promise<void>
  #queue: [number, WorkerRequest][] = []
  /** The last request of each message that is not answered yet. */
  readonly #sent: number[] = []
  #id = 0
  #looking: NodeJS.Timeout | undefined
  #others: number | undefined
  #ended: StoreError | undefined

  constructor(options: SqliteStoreOptions) {
    this.#path = resolve(options.path)
    this.#now = options.now ?? Date.now
    // Compiled, the worker lies beside this chunk; from source, Node strips the types.
    const file = import.meta.url.endsWith('.ts') ? './worker.ts' : './sqlite-worker.js'
    this.#worker = new Worker(new URL(file, import.meta.url), { workerData: { path: this.#path } })
    this.#exited = new Promise(done => this.#worker.once('exit', () => done()))
    this.opened = new Promise((done, fail) => {
      const end = (message: string, cause?: unknown): void => {
        this.#end(new StoreError('failed', `The store sqlite:${this.#path} failed: ${message}`, cause))
        fail(this.#ended)
      }
      this.#worker.once('message', (hello: WorkerStarted) => {
        if ('failed' in hello) return end(hello.failed)
        this.#worker.on('message', (text: string) => this.#answered(JSON.parse(text)))
        if (this.#waiting.size === 0) this.#worker.unref()
        done()
      })
      this.#worker.once('error', error => end(error.message, error))
      this.#worker.once('exit', () => end('its worker thread has ended'))
    })
  }

  async get(key: string): Promise<Entry | undefined> {
    checkKey(key)
    return (await this.#ask({ ask: 'get', key })) as Entry | undefined
  }

  async scan(prefix: string, { after, before, limit }: ScanOptions = {}): Promise<readonly Entry[]> {
    return (await this.#ask({ ask: 'scan', prefix, after, before, limit: pageSize(limit) })) as readonly Entry[]
  }

  async read(log: string, { after = 0, limit }: ReadOptions = {}): Promise<readonly LogEntry[]> {
    checkKey(log, 'log')
    return (await this.#ask({ ask: 'read', log, after, limit: pageSize(limit) })) as readonly LogEntry[]
  }

  async commit(ops: readonly Op[]): Promise<Committed | Conflict> {
    checkOps(ops)
    const outcome = (await this.#ask({ ask: 'commit', ops })) as Committed | Conflict
    if (outcome.ok && this.#watchers.size > 0) this.#watchers.changed(ops.map(op => ('log' in op ? op.log : op.key)))
    return outcome
  }

  /** How the file is kept, and how many transactions there were. */
  async pragmas(): Promise<Pragmas> {
    return (await this.#ask({ ask: 'pragmas' })) as Pragmas
  }

  watch(prefixes: readonly string[], signal: AbortSignal): AsyncIterable<void> {
    const watch = this.#watchers.watch(prefixes, signal)
    if (this.#looking === undefined && this.#ended === undefined) {
      this.#others = undefined
      void this.#look()
      this.#looking = setInterval(() => void this.#look(), othersMs).unref()
    }
    return watch
  }

  /** What was asked before is answered first. */
  async close(): Promise<void> {
    if (this.#ended === undefined) {
      this.#sent.length = 0
      this.#flush()
      this.#ended = new StoreError('closed', 'The store is closed: open it again')
      this.#watchers.close()
      this.#worker.ref()
      this.#worker.postMessage(closeWord)
    }
    await this.#exited
  }

  /** The file does not tell what other processes do with it, only that they did something: all who watch are to look. */
  async #look(): Promise<void> {
    if (this.#watchers.size === 0 || this.#ended !== undefined) {
      clearInterval(this.#looking)
      this.#looking = undefined
      return
    }
    const now = (await this.#ask({ ask: 'others' }).catch(() => this.#others)) as number | undefined
    const changed = this.#others !== undefined && now !== this.#others
    this.#others = now
    if (changed) this.#watchers.all()
  }

  #ask(request: WorkerRequest): Promise<WorkerReply> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended)
    return new Promise((done, fail) => {
      const id = ++this.#id
      if (this.#waiting.size === 0) this.#worker.ref()
      this.#waiting.set(id, { resolve: done, reject: fail })
      // What is asked in one turn travels in one message.
      if (this.#queue.push([id, request]) === 1) setImmediate(() => this.#flush())
    })
  }

  /** What comes while the thread is at work has to be there when it is done: it shares the next sync to disk, not the one after. */
  #flush(): void {
    if (this.#queue.length === 0 || this.#sent.length >= mostSent) return
    const requests = this.#queue
    this.#queue = []
    this.#sent.push(this.#id)
    this.#worker.postMessage(JSON.stringify({ now: this.#now(), requests } satisfies Batch))
  }

  #answered(answers: readonly WorkerAnswer[]): void {
    const upTo = answers.at(-1)?.id ?? 0
    while ((this.#sent[0] ?? Number.POSITIVE_INFINITY) <= upTo) this.#sent.shift()
    if (this.#queue.length > 0) setImmediate(() => this.#flush())
    for (const answer of answers) {
      const waiter = this.#waiting.get(answer.id)
      this.#waiting.delete(answer.id)
      if ('error' in answer) waiter?.reject(new StoreError('failed', `The store ${this.#path} failed: ${answer.error}`))
      else waiter?.resolve(answer.value)
    }
    if (this.#waiting.size === 0 && this.#ended === undefined) this.#worker.unref()
  }

  #end(error: StoreError): void {
    this.#ended ??= error
    this.#watchers.close()
    for (const waiter of this.#waiting.values()) waiter.reject(this.#ended)
    this.#waiting.clear()
  }
}
