/** The book-keeping of one measured round, the same over every carrier: what is in flight, how long it took, what it cost. */
import type { AnswerCheck } from '../answers.ts'
import { cpuMicros } from '../processes.ts'
import { Latencies } from '../stats.ts'
import { FIRST_ID } from '../work.ts'

export interface RoundResult {
  requests: number
  ms: number
  /** CPU of the server process, all threads. */
  cpuMicros: number
  p50: number
  p99: number
}

const SLOTS = 4096
/** No server takes this long for 32 answers; one that does hangs. */
const SILENCE_MS = 15_000

let lastId = FIRST_ID
/** Ids are drawn from one counter for the whole run: never reused, whatever the server. */
export const nextId = (): number => ++lastId

const latencies = new Latencies()
const sentAt = new Float64Array(SLOTS)
const sentId = new Float64Array(SLOTS)

export class Round {
  readonly #check: AnswerCheck
  readonly #pid: number
  readonly #cpuBefore: number
  readonly #started = performance.now()
  readonly #until: number
  #answered = 0
  #inFlight = 0
  #lastAnswer = this.#started

  constructor(check: AnswerCheck, pid: number, ms: number) {
    latencies.clear()
    sentId.fill(0)
    this.#check = check
    this.#pid = pid
    this.#cpuBefore = cpuMicros(pid)
    this.#until = this.#started + ms
  }

  /** A fresh id for a request about to be written. */
  issue(): number {
    const id = nextId()
    sentId[id % SLOTS] = id
    sentAt[id % SLOTS] = performance.now()
    this.#inFlight++
    return id
  }

  /** Takes an answer; throws if it is wrong or nobody asked for it. */
  settle(body: Buffer): number {
    const id = this.#check.read(body)
    if (sentId[id % SLOTS] !== id) throw new Error(`an answer to ${id}, which is not in flight`)
    sentId[id % SLOTS] = 0
    this.#lastAnswer = performance.now()
    latencies.add(this.#lastAnswer - (sentAt[id % SLOTS] ?? 0))
    this.#answered++
    this.#inFlight--
    return id
  }

  /** Whether time is up: no more requests, only the open answers. */
  get over(): boolean {
    return this.#lastAnswer >= this.#until
  }

  get drained(): boolean {
    return this.#inFlight === 0
  }

  get silent(): boolean {
    return performance.now() - this.#lastAnswer > SILENCE_MS
  }

  result(): RoundResult {
    const cpu = cpuMicros(this.#pid) - this.#cpuBefore
    const ms = this.#lastAnswer - this.#started
    return { requests: this.#answered, ms, cpuMicros: cpu, ...latencies.quantiles() }
  }
}

/** Rejects when the server stays silent, so that a hang costs one cell and not the run. */
export function watch(round: Round, fail: (error: Error) => void): () => void {
  const timer = setInterval(() => {
    if (round.silent) fail(new Error(`no answer for ${SILENCE_MS / 1000} s`))
  }, 1000)
  return () => clearInterval(timer)
}
